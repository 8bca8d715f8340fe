"""Removing a scorer removes all its series immediately: its scores, and all metrics about it."""

import signal

from lib.agent import summary
from lib.fake import hanging, results


def test_nothing_is_left(prometheus, fake, start_agent):
    stays = summary("stays", fake.on("/stays", results({"node": "a"}, 1)))
    goes = summary("goes", fake.on("/goes", results({"node": "b"}, 2)), source=prometheus.url, query="vector(1)")
    busy = summary("busy", fake.on("/busy", hanging))
    agent = start_agent({"summaries": [goes, stays, busy]})
    agent.wait_scores("goes"), agent.wait_scores("stays")
    agent.wait_until(lambda: fake.requests("/busy"), "a round is under way")
    agent.apply({"summaries": [stays]})
    assert agent.scores("goes") == []
    agent.wait_until(lambda: agent.metric("dynamic_scoring_scorers") == 1, "the agent's own metrics are new")
    page = agent.get("/metrics").text
    assert '"goes"' not in page and '"busy"' not in page
    assert agent.scores("stays") == [({"node": "a"}, 1)]
    assert [s["scoreName"] for s in agent.status()["scorers"]] == ["stays"]


def test_it_can_come_back(fake, start_agent):
    one = summary("one", fake.on("/one", results({}, 1)), interval=600)
    agent = start_agent({"summaries": [one]})
    agent.wait_scores("one")
    agent.apply({"summaries": []})
    assert agent.scores("one") == []
    agent.write({"summaries": [one]})
    agent.process.send(signal.SIGHUP)
    assert agent.wait_scores("one") == [({}, 1)]
    assert len(fake.requests("/one")) == 2


def test_a_renamed_scorer_is_another(fake, start_agent):
    url = fake.on("/s", results({}, 1))
    agent = start_agent({"summaries": [summary("before", url)]})
    agent.wait_scores("before")
    agent.apply({"summaries": [summary("after", url)]})
    assert agent.scores("before") == []
    assert agent.wait_scores("after") == [({}, 1)]
