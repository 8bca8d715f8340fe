"""A query without results is not a failure; the scoring API is called without series."""

from lib.agent import summary
from lib.fake import answer, plain


def test_empty_is_its_own_state(prometheus, fake, start_agent):
    empty = summary(
        "empty", fake.on("/empty", answer({"results": []})), source=prometheus.url, query="no_such_metric"
    )
    failing = summary("failing", fake.on("/failing", plain("{}", 500)), source=prometheus.url, query="no_such_metric")
    agent = start_agent({"summaries": [empty, failing]})
    status = agent.wait_all()
    assert (status["empty"]["state"], status["empty"]["error"]) == ("empty", None)
    assert status["failing"]["state"] == "failing"
    agent.wait_metric("dynamic_scoring_rounds_total", score_name="empty", result="empty")
    agent.wait_metric_is(1, "dynamic_scoring_up", score_name="empty")
    agent.wait_metric_is(0, "dynamic_scoring_source_series", score_name="empty")
    assert fake.requests("/empty")[0].json == {"data": []}


def test_scores_go_when_the_scorer_has_none(prometheus, fake, start_agent):
    """A response without results is a valid response: the previous scores are removed."""
    path = fake.on("/s", answer({"results": [{"metric": {}, "score": 1}]}), answer({"results": []}))
    agent = start_agent({"summaries": [summary("s", path, source=prometheus.url, query="vector(1)")]})
    agent.wait_rounds("s", 2)
    agent.wait_until(lambda: not agent.scores("s"), "the scores have gone")
    assert agent.status("s")["state"] == "empty"
    assert agent.metric("dynamic_scoring_expired_total", score_name="s") in (None, 0)
