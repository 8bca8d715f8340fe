"""Who may use the optimizer: a bearer token for all but the probes, or rights of the cluster, no pages of other sites, and a
word in the log where everyone may."""

import pytest

from lib.accounts import allow, token_of
from lib.client import call
from lib.kube import NAMESPACE
from lib.optimizer import STATEFUL, STATELESS, kubeconfig_of_nothing, running_optimizer
from lib.process import free_port

OPEN = "everyone who reaches this address can plan and apply"


def test_a_token_for_all_but_the_probes(tmp_path):
    token, probes = tmp_path / "token", f"127.0.0.1:{free_port()}"
    token.write_text("s3cret\n")
    flags = f"--token-file={token}", f"--health-probe-bind-address={probes}"
    with running_optimizer(kubeconfig_of_nothing(tmp_path), *flags, host="") as optimizer:
        for path in "/healthz", "/readyz":
            assert optimizer.get(path).status in (200, 503)
            assert call("GET", f"http://{probes}{path}").status in (200, 503)
        for path in "/", "/metrics", "/openapi.json", "/nothing":
            answer = optimizer.get(path)
            assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert optimizer.get(path, Authorization="Bearer wrong").status == 401
            assert optimizer.get(path, Authorization="Bearer s3cret").status == (404 if path == "/nothing" else 200)
        assert optimizer.ask("tools/list").status == 401
        assert optimizer.ask("tools/list", Authorization="Bearer s3cret").status == 200
        token.write_text("other")
        assert optimizer.ask("tools/list", Authorization="Bearer s3cret").status == 401
        assert optimizer.ask("tools/list", Authorization="Bearer other").status == 200
        assert "s3cret" not in optimizer.log() and OPEN not in optimizer.log()
        assert optimizer.get("/openapi.json", Authorization="Bearer other").json["security"] == [{"token": []}]


@pytest.mark.parametrize("host, warns", [("", True), ("127.0.0.1", False)])
def test_without_authentication(tmp_path, host, warns):
    with running_optimizer(kubeconfig_of_nothing(tmp_path), host=host) as optimizer:
        assert optimizer.get("/openapi.json").status == 200
        assert (OPEN in optimizer.log()) == warns


@pytest.mark.parametrize("version", [STATELESS, STATEFUL])
def test_pages_of_other_sites_are_refused(tmp_path, version):
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer:
        for origin in f"http://127.0.0.1:{optimizer.port}", "http://localhost:6274", "https://[::1]":
            assert optimizer.ask("tools/list", version=version, Origin=origin).status == 200
        assert optimizer.post("/reset", {}, Origin="http://localhost:6274").status == 403
        for origin in "http://localhost.evil.example", "http://evil.example", "null", f"http://evil.example:{optimizer.port}":
            assert optimizer.ask("tools/list", version=version, Origin=origin).status == 403
        assert optimizer.ask("tools/list", version=version, Host="evil.example").status == 421
        for method in "GET", "DELETE":
            answer = call(method, optimizer.url + "/mcp")
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert optimizer.post("/mcp", "{}", Content_Type="text/plain").status == 415
        assert optimizer.post("/mcp", "{}", Accept="text/html").status == 406


@pytest.mark.parametrize("flags, assistants_write", [((), False), (("--mcp.allow-writes",), True)])
def test_the_clusters_rights(kube, flags, assistants_write):
    """Whoever reads needs the right to get /status, whoever plans or writes the one to post /optimize."""
    account = NAMESPACE, f"optimizer-reader-{assistants_write}".lower()
    allow(kube, account, "get", "/status")
    planner = NAMESPACE, f"optimizer-planner-{assistants_write}".lower()
    allow(kube, planner, "post", "/optimize")
    reads, plans = ({"Authorization": f"Bearer {token_of(kube, one)}"} for one in (account, planner))
    with running_optimizer(kube.kubeconfig(), "--web.kubernetes-auth", *flags) as optimizer:
        optimizer.wait_until(lambda: optimizer.get("/policies", **reads).status == 200, "policies are listed")
        assert optimizer.get("/policies").status == 401
        assert optimizer.get("/policies", **plans).status == 403
        assert optimizer.get("/metrics", **reads).status == 403
        for path in "/plan", "/optimize", "/apply", "/reset":
            assert optimizer.post(path, {}, **reads).status == 403
            assert optimizer.post(path, {}, **plans).status in (403, 422)
        assert optimizer.post("/plan", {}, **plans).status == 422
        allowed, refused = (plans, reads) if assistants_write else (reads, plans)
        assert optimizer.ask("tools/list", **allowed).status == 200
        assert optimizer.ask("tools/list", **refused).status == 403
        for headers in reads, plans:
            assert headers["Authorization"][7:] not in optimizer.log()
