"""HEAD responds like GET without a body; unknown paths are 404; unsupported methods are 405 with the supported ones."""

import contextlib
import socket

import pytest

from lib.agent import running_agent, summary
from lib.client import call
from lib.fake import results, running_fake


@pytest.fixture(scope="module", name="agent")
def one_agent():
    with running_fake() as fake:
        with running_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)), interval=600)]}) as agent:
            agent.wait_scores("s")
            yield agent


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/-/healthy", "/-/ready"])
def test_head(agent, path):
    get, head = call("GET", agent.url + path), call("HEAD", agent.url + path)
    assert (get.status, head.status, head.body) == (200, 200, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    if path.startswith("/-/"):  # the others tell the time
        assert head.headers["Content-Length"] == str(len(get.body))
    assert int(head.headers["Content-Length"]) > 0


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/api/v1", "//metrics", "/-/quit"])
def test_not_found(agent, path):
    answer = agent.get(path)
    assert answer.status == 404 and "/metrics" in answer.text


@pytest.mark.parametrize(
    "method, path, allow",
    [
        ("POST", "/metrics", "GET, HEAD"),
        ("DELETE", "/", "GET, HEAD"),
        ("OPTIONS", "/api/v1/status", "GET, HEAD"),
        ("GET", "/-/reload", "POST"),
        ("PUT", "/-/reload", "POST"),
    ],
)
def test_not_allowed(agent, method, path, allow):
    answer = call(method, agent.url + path)
    assert (answer.status, answer.headers["Allow"]) == (405, allow)


def test_a_large_body_is_refused(agent):
    assert call("POST", agent.url + "/-/reload", b"x" * 100_000).status == 413


NONSENSE = {
    "control": b"\0\1\2\r\n\r\n",
    "http_0_9": b"GET /metrics\r\n\r\n",
    "long": b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "nothing": b"",
    "half": b"GET /metrics HTTP/1.1\r\nHo",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_hurts_nobody(agent, name):
    with socket.create_connection(("127.0.0.1", agent.port), 10) as s, contextlib.suppress(OSError):
        s.sendall(NONSENSE[name])
        s.shutdown(socket.SHUT_WR)
        while s.recv(1 << 16):
            pass
    assert agent.get("/-/healthy").text == "healthy\n"


def test_requests_are_counted_by_known_paths_only(agent):
    agent.get("/a-path-of-a-stranger")
    handlers = {labels["handler"] for labels, _ in agent.metrics().all("dynamic_scoring_http_requests_total")}
    known = {"/", "/metrics", "/api/v1/status", "/-/healthy", "/-/ready", "/-/reload", "other"}
    assert "other" in handlers and handlers <= known
