"""In Full mode, a scoring API cannot redirect a token to a host that the DynamicScorer does not name."""

import pytest

from lib.fake import answer, plain
from lib.hub import HUB_NAMESPACE
from lib.scorers import api_config, full, own, serve, source, summaries

TOKEN = {"tokenSecretRef": {"name": "prom", "key": "token"}}
REFERENCE = ("sourceEndpointAuthName", "sourceEndpointAuthKey")


def test_another_host_is_refused(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    named = {"type": "Prometheus", "host": "http://prom:9090", "auth": TOKEN}
    evil = source("http://evil.example")
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu", source=evil), source=named))
    start_controller()
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenHostNotAllowed")
    assert "http://evil.example" in message and "allowedHosts" in message
    # The query of such a configuration does not go with the host that is named either.
    assert all(s["sourceQuery"] != "up" for s in hub.summaries("c1") or [])
    # Once the API says the host that is named, in whatever spelling, all is well.
    fake.on("/config", answer(api_config("cpu", source=source("http://PROM:9090/"))))
    hub.wait_scores("c1", "cpu")
    assert [summaries(hub, "c1")["cpu"][name] for name in REFERENCE] == ["prom", "token"]
    # And when it turns, what was good stays.
    fake.on("/config", answer(api_config("memory", source=evil)))
    hub.wait_scorer("s", "ConfigSynced", "False", "TokenHostNotAllowed")
    assert hub.score_names("c1") == ["cpu"]
    assert hub.scorer_status("s")["lastSyncedConfig"]["source"]["host"] != "http://evil.example"


def test_the_dynamic_scorer_may_allow_it(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    other = source("https://thanos.example")
    for name, hosts in (("listed", ["http://x:1", "https://thanos.example:443"]), ("any", ["*"])):
        named = {"type": "Prometheus", "host": "http://prom:9090", "auth": {**TOKEN, "allowedHosts": hosts}}
        hub.apply_scorer(name, full(serve(fake, f"/{name}", name, source=other), source=named))
    hub.apply_scorer("none", full(serve(fake, "/none", "none", source=other)))
    start_controller()
    hub.wait_scores("c1", "listed", "any", "none")
    found = summaries(hub, "c1")
    assert all(s["sourceEndpoint"].startswith("https://thanos.example/") for s in found.values())
    assert [found["any"][name] for name in REFERENCE] == [found["listed"][name] for name in REFERENCE]
    assert [found["none"][name] for name in REFERENCE] == ["", ""]


def test_the_scoring_token_too(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    elsewhere = {"host": "http://evil.example", "params": {"name": "cpu", "interval": 5}}
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu", scoring=elsewhere), scoring={"auth": TOKEN}))
    start_controller()
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenHostNotAllowed")
    assert "http://evil.example" in message
    # The API's own host is that of configURL.
    fake.on("/config", answer(api_config("cpu")))
    hub.wait_scores("c1", "cpu")
    assert summaries(hub, "c1")["cpu"]["scoringEndpointAuthName"] == "prom"


def test_config_is_asked_with_its_own(hub, fake, start_controller):
    good, bad = answer(api_config("cpu")), plain('{"detail": "who are you?"}', 401)
    fake.on("/healthz", plain("ok"))
    url = fake.on("/config", lambda c, r: (good if r.token == "Bearer sesame" else bad)(c, r))
    hub.add_cluster("c1")
    hub.configure()
    auth = {"tokenSecretRef": {"name": "api", "key": "token"}}
    hub.apply_scorer("s", full(url, configAuth=auth))
    controller = start_controller()
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenMissing")
    assert f'"{HUB_NAMESPACE}/api"' in message
    assert not fake.requests("/config")
    hub.secret("api", token="wrong")
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "HTTPStatus")
    assert "401" in message and "who are you?" in message
    hub.secret("api", token="sesame\n")
    hub.wait_scorer("s", "ConfigSynced", "True")
    assert all(r.token is None for r in fake.requests("/healthz"))
    for text in (controller.log(), controller.get("/metrics").text, str(hub.scorer("s"))):
        assert "sesame" not in text


@pytest.mark.parametrize("mode", ["Full", "None"])
def test_an_api_that_is_not_for_all_is_healthy(hub, fake, start_controller, mode):
    """It returns 401 without the token; /healthz is requested without it, /config with it."""
    good, bad = answer(api_config("cpu")), plain('{"detail": "who are you?"}', 401)
    fake.on("/healthz", lambda c, r: (good if r.token == "Bearer sesame" else bad)(c, r))
    url = fake.on("/config", lambda c, r: (good if r.token == "Bearer sesame" else bad)(c, r))
    hub.add_cluster("c1")
    hub.configure()
    hub.secret("api", token="sesame")
    auth = {"tokenSecretRef": {"name": "api", "key": "token"}}
    hub.apply_scorer("s", (full(url) if mode == "Full" else own("cpu", fake.url)) | {"configAuth": auth})
    start_controller("--unhealthy-threshold=1")
    hub.wait_scores("c1", "cpu")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    assert all(r.token is None for r in fake.requests("/healthz"))
    # A token that counts no more shows.
    hub.secret("api", token="old")
    _, _, message = hub.wait_scorer("s", "Healthy", "False", "HTTPStatus")
    assert "401" in message and "who are you?" in message


def refused(hub, fake, start_controller, name, words):
    """The Secret's value "s3cret" is never sent, and the condition says why."""
    auth = {"tokenSecretRef": {"name": name, "key": "token"}}
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu"), configAuth=auth))
    controller = start_controller()
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenMissing")
    assert f'"{HUB_NAMESPACE}/{name}"' in message and words in message
    hub.wait_scorer("s", "Healthy", "True")
    assert not fake.requests("/config") and all(r.token is None for r in fake.requests("/healthz"))
    for text in (controller.log(), controller.get("/metrics").text, str(controller.status()), str(hub.scorer("s"))):
        assert "s3cret" not in text


def test_the_clusters_own_credentials_are_no_token(hub, fake, start_controller):
    hub.secret("bootstrap", kubeconfig="k", token="s3cret")
    refused(hub, fake, start_controller, "bootstrap", "kubeconfig")


@pytest.mark.parametrize("kind", ["helm.sh/release.v1", "kubernetes.io/basic-auth"])
def test_a_secret_of_a_type_is_no_token(hub, fake, start_controller, kind):
    """It was made for another purpose."""
    hub.secret("typed", kind, token="s3cret", password="s3cret")
    refused(hub, fake, start_controller, "typed", kind)


def test_a_secret_that_is_not_granted(hub, fake, start_controller):
    """Kubernetes' RBAC decides which Secrets may be read; the condition quotes its message."""
    hub.secret("private", token="s3cret")
    refused(hub, fake, start_controller, "private", 'forbidden: cannot get resource "secrets"')
