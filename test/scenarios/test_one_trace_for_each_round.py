"""All requests of a round carry one W3C trace id, by which traces and logs of the servers are found; it is shown where a
round has failed."""

import json
import re

from lib.agent import PROGRAM, summary
from lib.fake import plain, results, series
from lib.process import run

PARENT = re.compile(r"^00-([0-9a-f]{32})-([0-9a-f]{16})-01$")


def traces(requests):
    """[(trace id, span id)]"""
    found = [PARENT.match(r.headers["traceparent"]).groups() for r in requests]
    assert all(set(part) != {"0"} for one in found for part in one)
    return found


def test_rounds(fake, start_agent):
    fake.on("/api/v1/query_range", series({"node": "n1"}))
    url = fake.on("/score", plain("overloaded", 503), results({"node": "n1"}, 1))
    agent = start_agent({"summaries": [summary("s", url, source=fake.url, query="up; down")]})
    agent.wait_rounds("s", 3)
    asked, scored = traces(fake.requests("/api/v1/query_range")), traces(fake.requests("/score"))
    first = scored[0][0]
    assert [trace for trace, _ in asked[:2]] == [first, first], "two queries and a scoring request"
    assert len({trace for trace, _ in scored[:3]}) == 3, "each round has its own"
    spans = [span for _, span in asked + scored]
    assert len(set(spans)) == len(spans)
    (line,) = [line for line in agent.log().splitlines() if "round failed" in line]
    assert f"trace_id={first}" in line
    assert agent.status("s")["lastRound"]["traceId"] in [trace for trace, _ in traces(fake.requests("/score"))]


def test_check_scorer(fake):
    fake.on("/healthz", plain("ok"))
    fake.on("/config", plain("{}", 500))
    done = run(PROGRAM, "check-scorer", "--output=json", f"{fake.url}/config")
    found = traces(fake.requests("/healthz") + fake.requests("/config"))
    assert {trace for trace, _ in found} == {json.loads(done.stdout)["traceId"]}
    done = run(PROGRAM, "check-scorer", f"{fake.url}/config")
    assert re.search(r"^trace of all calls: [0-9a-f]{32}$", done.stdout, re.M)
