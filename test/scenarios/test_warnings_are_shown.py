"""Warnings in a successful response are shown in full and have no other effect."""

from lib.agent import summary
from lib.fake import results, series

WARNING = 'remote storage "a<b>": partial data'


def test_warnings(fake, start_agent):
    fake.on("/api/v1/query_range", series({"node": "n1"}, warnings=[WARNING, "another"]))
    agent = start_agent({"summaries": [summary("s", fake.on("/scoring", results({}, 1)), source=fake.url)]})
    status = agent.wait_rounds("s")
    assert (status["state"], status["warnings"]) == ("ok", {"count": 2, "first": WARNING})
    assert agent.wait_scores("s") == [({}, 1)]
    assert "source returned warnings" in agent.log() and "partial data" in agent.log()
    agent.wait_metric("dynamic_scoring_source_warnings_total", 2, score_name="s")


def test_a_partial_answer_of_victoriametrics(fake, start_agent):
    fake.on("/api/v1/query_range", series({"node": "n1"}, isPartial=True))
    agent = start_agent({"summaries": [summary("s", fake.on("/scoring", results({}, 1)), source=fake.url)]})
    status = agent.wait_rounds("s")
    expected = "partial result: isPartial is true, so series or samples may be missing"
    assert (status["state"], status["warnings"]) == ("ok", {"count": 1, "first": expected})
    agent.wait_metric("dynamic_scoring_source_warnings_total", 1, score_name="s")
