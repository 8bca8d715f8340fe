"""A query whose URL would exceed 2,000 bytes is sent as a form, and Prometheus accepts it; where POST is refused, it is sent
as a long URL."""

import pytest

from lib.agent import summary
from lib.fake import plain, results, series

LONG = 'label_replace(vector(1), "node", "' + "ä&=+%; " * 300 + '", "", "")'


def test_prometheus_understands(prometheus, fake, start_agent):
    scoring = fake.on("/scoring", results({}, 1))
    agent = start_agent({"summaries": [summary("s", scoring, source=prometheus.url, query=LONG, sourceRange=60)]})
    assert agent.wait_rounds("s")["error"] is None
    [found] = fake.requests("/scoring")[0].json["data"]
    assert found["metric"]["node"] == "ä&=+%; " * 300


def test_the_request(fake, start_agent):
    fake.on("/api/v1/query_range", series({}))
    scoring = fake.on("/scoring", results({}, 1))
    short = summary("short", scoring, source=fake.url, query='up{a="ä&=+%;"}', sourceRange=600, sourceStep=15)
    long = summary("long", scoring, source=fake.url, query=LONG)
    agent = start_agent({"summaries": [short, long]})
    agent.wait_all()
    asked = {r.method: r for r in fake.requests("/api/v1/query_range")}
    get, post = asked["GET"], asked["POST"]
    assert get.arguments["query"] == 'up{a="ä&=+%;"}'
    assert get.arguments["step"] == "15"
    assert float(get.arguments["end"]) - float(get.arguments["start"]) == 600
    assert (post.arguments["query"], post.arguments["step"]) == (LONG, "60")
    assert post.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert "?" not in post.path and len(get.path) < 2000
    assert {r.headers["Content-Type"] for r in fake.requests("/scoring")} == {"application/json"}


@pytest.mark.parametrize("status", [403, 405, 501])
def test_a_server_that_refuses_post_gets_the_whole_url(fake, start_agent, status):
    fake.on("/api/v1/query_range", plain(b"no POST here", status), series({}))
    scoring = fake.on("/scoring", results({}, 1))
    agent = start_agent({"summaries": [summary("s", scoring, source=fake.url, query=LONG)]})
    assert agent.wait_rounds("s")["error"] is None
    first, second = fake.requests("/api/v1/query_range")[:2]
    assert (first.method, second.method) == ("POST", "GET")
    assert second.arguments == first.arguments
