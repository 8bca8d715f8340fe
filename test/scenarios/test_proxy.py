"""Proxies come from the environment: HTTP_PROXY also in upper case, as in Go programs; NO_PROXY is respected."""

import pytest

from lib.agent import summary
from lib.fake import plain, results
from lib.process import environment

ELSEWHERE = "http://scorer.invalid/scoring"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_used(fake, other_fake, start_agent, name):
    proxy = other_fake
    proxy.on("/scoring", results({"node": "by proxy"}, 1))
    direct = summary("direct", fake.on("/direct", results({"node": "direct"}, 2)))
    env = environment(**{name: proxy.url, "NO_PROXY": "example.com,127.0.0.1"})
    agent = start_agent({"summaries": [summary("away", ELSEWHERE), direct]}, env=env)
    assert agent.wait_scores("away") == [({"node": "by proxy"}, 1)]
    assert agent.wait_scores("direct") == [({"node": "direct"}, 2)]
    assert {r.path for r in proxy.requests()} == {ELSEWHERE}
    assert proxy.requests()[0].headers["Host"] == "scorer.invalid"
    assert {r.path for r in fake.requests()} == {"/direct"}


def test_a_proxy_that_refuses(other_fake, start_agent):
    proxy = other_fake
    proxy.on("/scoring", plain("not allowed", 403))
    proxy.on("scorer.invalid:443", plain("not allowed", 403))
    scorers = [summary("plain", ELSEWHERE), summary("tunnel", ELSEWHERE.replace("http", "https", 1))]
    env = environment(HTTP_PROXY=proxy.url, HTTPS_PROXY=proxy.url)
    status = start_agent({"summaries": scorers}, env=env).wait_all()
    assert status["plain"]["error"]["class"] == "http_4xx" and "not allowed" in status["plain"]["error"]["text"]
    assert status["tunnel"]["error"]["class"] == "connect" and "403" in status["tunnel"]["error"]["text"]
    assert [r.method for r in proxy.requests("scorer.invalid:443")][0] == "CONNECT"


def test_not_from_a_web_servers_environment(fake, other_fake, start_agent):
    """Under CGI, HTTP_PROXY contains a header of the client."""
    env = environment(HTTP_PROXY=other_fake.url, REQUEST_METHOD="GET")
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)))]}, env=env)
    assert agent.wait_scores("s") == [({}, 1)]
    assert not other_fake.requests()
