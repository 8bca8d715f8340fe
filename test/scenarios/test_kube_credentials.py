"""Credentials from Secrets of a real API server: on a managed cluster, where ca.crt of a service account's Secret does not
count, and on the hub for /config."""

import ssl

import pytest

from lib.agent import summary
from lib.certificates import Authority
from lib.fake import answer, plain, results, running_fake
from lib.hub import HUB_NAMESPACE
from lib.kube import NAMESPACE
from lib.scorers import api_config, full, wait_status


@pytest.fixture(scope="module", name="tls")
def one_authority(tmp_path_factory):
    """(an SSLContext that demands client certificates, the keys of a Secret for it)"""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    context.load_verify_locations(authority.cert)
    context.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.issue("client")
    files = {"ca.crt": authority.cert, "tls.crt": certificate, "tls.key": key}
    return context, {name: path.read_text() for name, path in files.items()}


def test_the_type_of_the_secret_counts(kube, start_agent, tls):
    context, keys = tls
    account = f"api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    kube.apply(account, "reader", {})
    owner = {"kubernetes.io/service-account.name": "reader"}
    kube.secret("account", "kubernetes.io/service-account-token", owner, **keys, token="t0ken-of-reader", namespace=NAMESPACE)
    kube.secret("certificate", "kubernetes.io/tls", **keys)
    kube.secret("everything", **keys, token="t0ken", header="X-Scope-OrgID: team-a")
    with running_fake(context) as fake:
        urls = {name: fake.on(f"/{name}", results({}, 7)) for name in ("account", "certificate", "everything")}
        key = {"account": "token", "everything": "token"}
        kube.configure(*(
            summary(name, url, scoringEndpointAuthName=name, scoringEndpointAuthKey=key.get(name, ""))
            for name, url in urls.items()
        ))  # fmt: skip
        agent = start_agent({}, *kube.flags())
        kube.wait_items("certificate", {"certificate": 7})
        kube.wait_items("everything", {"everything": 7})
        message = kube.wait_condition("account", "Scored", "False")[2]
        assert "certificate" in message and not fake.requests("/account")
        request = fake.requests("/everything")[0]
        assert (request.token, request.headers["X-Scope-OrgID"], request.peer) == ("Bearer t0ken", "team-a", "client")
        # A client certificate that is taken away, and given back: each takes effect without waiting for a round.
        kube.secret("everything", **{"ca.crt": keys["ca.crt"]}, token="t0ken")
        kube.wait_condition("everything", "Scored", "False")
        kube.secret("everything", **keys, token="another")
        kube.wait_condition("everything", "Scored", "True")
        assert fake.requests("/everything")[-1].token == "Bearer another"
        told = agent.log() + str(kube.report()) + str(kube.objects())
        secret = [line for line in keys["tls.key"].splitlines() if "-----" not in line] + ["t0ken-of-reader", "Bearer"]
        assert not [s for s in secret if s in told]
    kube.delete(f"{account}/reader")


def test_the_hub_reads_a_config_behind_tls(hub, start_controller, tls):
    """A scoring API that demands a client certificate for all paths, and a password for /config."""
    context, keys = tls
    basic = "Basic dXNlcjpwYTU1IHcwcmQ="  # user:pa55 w0rd
    hub.add_cluster("c1")
    hub.configure()
    hub.secret("api", **keys, username="user", password="pa55 w0rd\n")
    with running_fake(context) as fake:
        fake.on("/healthz", plain("ok"))
        config = answer(api_config("cpu"))
        fake.on("/config", lambda c, r: (config if r.token == basic else plain("denied", 401))(c, r))
        hub.apply_scorer("s", full(fake.url + "/config", configAuth={"tokenSecretRef": {"name": "api"}}))
        controller = start_controller("--health-check-interval=1s", "--unhealthy-threshold=2")
        hub.wait_scores("c1", "cpu")
        hub.wait_scorer("s", "Healthy", "True")
        assert {r.token for r in fake.requests("/healthz")} == {None}
        assert {r.peer for r in fake.requests()} == {"client"}
        # Each request reads the Secret anew.
        hub.secret("api", **{"ca.crt": keys["ca.crt"]}, username="user", password="pa55 w0rd")
        wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
        # The server's alert may be lost behind the end of its connection.
        assert hub.scorer_condition("s", "Healthy")[1] in ("TLS", "Broken")
        hub.secret("api", **keys, username="user")
        message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenMissing")[2]
        assert message.startswith(f'spec.configAuth: Secret "{HUB_NAMESPACE}/api": it has the key "username" without "password"')
        hub.secret("api", **keys, username="user", password="pa55 w0rd")
        wait_status(hub, "s", lambda s: s["healthStatus"] == "Active", "it is healthy with its certificate")
        hub.wait_scorer("s", "ConfigSynced", "True")
        assert "pa55" not in controller.log() + str(hub.scorer("s"))


def test_the_hub_gets_a_token(hub, fake, start_controller):
    """By OAuth 2.0; another secret, and what the identity provider says of it, takes effect with the next probe."""
    hub.add_cluster("c1")
    hub.configure()
    known = {"client_id": "hub", "token_url": fake.url + "/token"}
    hub.secret("api", **known, client_secret="first-s3cret")
    issued, denied = answer({"access_token": "t0ken-of-hub", "expires_in": 3600}), answer({"error": "invalid_client"}, 401)
    first = "Basic aHViOmZpcnN0LXMzY3JldA=="
    fake.on("/token", lambda c, r: (issued if r.token == first else denied)(c, r))
    config = answer(api_config("cpu"))
    fake.on("/config", lambda c, r: (config if r.token == "Bearer t0ken-of-hub" else plain("denied", 401))(c, r))
    hub.apply_scorer("s", full(fake.url + "/config", configAuth={"tokenSecretRef": {"name": "api"}}))
    controller = start_controller("--health-check-interval=1s", "--unhealthy-threshold=2")
    hub.wait_scores("c1", "cpu")
    hub.wait_scorer("s", "Healthy", "True")
    assert len(fake.requests("/token")) == 1
    hub.secret("api", **known, client_secret="other-s3cret")
    message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenRequestFailed")[2]
    assert f'token request to {fake.url}/token failed: HTTP 401 Unauthorized: {{"error": "invalid_client"}}' in message
    hub.secret("api", **known, client_secret="first-s3cret")
    hub.wait_scorer("s", "ConfigSynced", "True")
    assert not [s for s in ("s3cret", "t0ken") if s in controller.log() + str(hub.scorer("s"))]
