"""The OpenAPI document of the scoring API is valid; what agents send fits it."""

import json

from lib.agent import PROGRAM
from lib.fake import answer
from lib.openapi import misfits
from lib.process import run
from lib.wait import wait_until


def test_it_is_valid_and_tells_right_from_wrong():
    right = {"metric": {"pod": "p"}, "values": [[1718600000, "NaN"], [1718600060.5, "1e-07"]]}
    wrong = [{"metric": {"pod": 1}, "values": []}, {"metric": {}, "values": [[1, 2]]}, {"values": []}]
    assert misfits(Series=[right]) == ""
    assert len(misfits(Series=wrong, Result=[{"metric": {}}], Config=[{"source": {}}]).splitlines()) == 5


def test_agents_send_what_it_says(fake, prometheus, start_agent):
    """The agent with a real Prometheus, and check-scorer with each of its calls but the one that is cut short."""
    fake.on("/healthz", answer({}))
    fake.on("/config", answer({"scoring": {"params": {"name": "s", "interval": 30}}}))
    scoring = fake.on("/scoring", answer({"results": []}))
    run(PROGRAM, "check-scorer", "--timeout=60s", fake.url)
    bodies = [r.body for r in fake.requests("/scoring")]
    made = [json.loads(b) for b in bodies if b.endswith(b"}")]
    assert len(made) > 8 and len(bodies) == len(made) + 1
    large = max(made, key=lambda body: len(body["data"]))
    large["data"] = large["data"][:100]
    summary = {"scoreName": "s", "scoringEndpoint": scoring, "sourceEndpoint": prometheus.url, "scoringInterval": 600}
    query = "vector(1); label_replace(vector(0)/0, 'pod', 'größe', '', ''); vector(-1)/0; vector(1e-9)"
    start_agent({"clusterName": "c", "summaries": [{**summary, "sourceQuery": query, "sourceRange": 120}]})
    from_prometheus = wait_until(lambda: fake.requests("/scoring")[len(bodies) :], "the agent's first round")[0].json
    assert len(from_prometheus["data"]) == 4
    assert misfits(Request=[*made, from_prometheus]) == ""
