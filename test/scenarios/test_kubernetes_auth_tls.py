"""With --web.kubernetes-auth and TLS, a verified client certificate names a user as it does at the API server, and tokens
work beside certificates. Basic authentication beside both is refused."""

import json
import ssl

import pytest

from lib.accounts import allow, allow_user, bind, token_of, user_subject
from lib.client import call
from lib.kube import NAMESPACE
from lib.process import free_port
from lib.wait import wait_until
from lib.web import HASH, USER

METRICS = ("get", "/metrics")


@pytest.fixture(name="web")
def web_file(kube, tmp_path):
    """web(**more): the web configuration file with the API server's certificate and its authority of clients."""

    def write(client_auth_type=None, **more):
        tls = {
            "cert_file": str(kube.state / "server.crt"),
            "key_file": str(kube.state / "server.key"),
        }
        if client_auth_type:
            tls |= {"client_auth_type": client_auth_type, "client_ca_file": str(kube.state / "ca.crt")}
        file = tmp_path / "web.yml"
        file.write_text(json.dumps({"tls_server_config": tls, **more}))
        return file

    return write


@pytest.fixture(name="start")
def start_guarded(kube, web, start_agent):
    """start(client_auth_type): get(path, user=None, token=None), with the certificate of a user of the API server."""
    bind(kube, "reviewers", "system:auth-delegator", user_subject("managed-agent"))

    def start(client_auth_type):
        probes = f"127.0.0.1:{free_port()}"
        flags = ("--web.kubernetes-auth", f"--web.config.file={web(client_auth_type)}")
        agent = start_agent({}, *kube.flags(), *flags, f"--health-probe-bind-address={probes}", start=False)
        agent.launch()
        agent.wait_until(lambda: call("GET", f"http://{probes}/-/ready").status == 200, "it is ready")

        def get(path, user=None, token=None):
            context = ssl.create_default_context(cafile=kube.state / "ca.crt")
            if user:
                folder = kube.kubeconfig(user).parent
                context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
            more = {"Authorization": f"Bearer {token}"} if token else {}
            return call("GET", f"https://127.0.0.1:{agent.port}{path}", tls=context, **more)

        return get

    return start


def test_certificates_and_tokens(kube, start):
    account = NAMESPACE, "scrapes-with-tls"
    allow(kube, account, *METRICS)
    allow_user(kube, "nobody", *METRICS)
    token = token_of(kube, account)
    get = start("VerifyClientCertIfGiven")
    wait_until(lambda: get("/metrics", user="nobody").status == 200, "a certificate's user with the right is served")
    wait_until(lambda: get("/metrics", token=token).status == 200, "and a token's")
    refused = get("/", user="nobody")
    assert refused.status == 403 and 'user "nobody" cannot get path "/status"' in refused.text
    assert get("/metrics", user="hub").status == 403
    assert get("/", user="admin").status == 200  # by its group, system:masters
    assert get("/metrics").status == 401
    refused = get("/", user="admin", token=token)
    assert refused.status == 403 and "scrapes-with-tls" in refused.text


def test_a_certificate_that_is_demanded(kube, start):
    account = NAMESPACE, "scrapes-with-both"
    allow(kube, account, *METRICS)
    token = token_of(kube, account)
    get = start("RequireAndVerifyClientCert")
    wait_until(lambda: get("/metrics", user="hub", token=token).status == 200, "a token beside a certificate is served")
    assert get("/metrics", user="hub").status == 403
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get("/metrics", token=token)


def test_basic_authentication_beside_it(kube, web, start_agent):
    file = web(basic_auth_users={USER: HASH})
    agent = start_agent({}, *kube.flags(), "--web.kubernetes-auth", f"--web.config.file={file}", start=False)
    agent.launch()
    assert agent.process.wait() == 1
    assert "basic_auth_users: cannot be combined with --web.kubernetes-auth" in agent.log()
    agent.process = None
