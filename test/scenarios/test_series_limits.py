"""limits.seriesPerScorer and limits.series: a scorer over its limit fails with an explanation, and the others keep
their scores."""

import threading

from lib.agent import summary
from lib.fake import results
from lib.wait import DEADLINE

RAISE = "raise it in the file of --config.file"


def many(n):
    return results(*[x for i in range(n) for x in ({"node": str(i)}, i)])


def test_per_scorer(fake, start_agent):
    fits, over = summary("fits", fake.on("/fits", many(5))), summary("over", fake.on("/over", many(5), many(6)))
    agent = start_agent({"summaries": [fits, over], "limits": {"seriesPerScorer": 5, "staleAfterIntervals": 100}})
    agent.wait_scores("over")
    error = agent.wait_rounds("over", 2)["error"]
    assert (error["class"], error["text"]) == ("series_limit", "too many series: limits.seriesPerScorer is 5; " + RAISE)
    assert len(agent.scores("fits")) == 5 and len(agent.scores("over")) == 5
    agent.wait_metric("dynamic_scoring_limit_hits_total", limit="series_per_scorer", score_name="over")


def test_of_all(fake, start_agent):
    first, second = summary("first", fake.on("/first", many(5))), summary("second", fake.on("/second", many(4)))
    agent = start_agent({"summaries": [first], "limits": {"series": 8}})
    agent.wait_scores("first")
    agent.apply({"summaries": [first, second], "limits": {"series": 8}})
    error = agent.wait_rounds("second")["error"]
    assert error["class"] == "series_limit"
    assert error["text"] == "too many series: limits.series (8 for all scorers) leaves 3 for this scorer; " + RAISE
    agent.wait_metric("dynamic_scoring_limit_hits_total", limit="series", score_name="second")
    # Its own scores do not count against a scorer, and what another gives up is there for the next.
    agent.wait_rounds("first", agent.status("first")["rounds"] + 1)
    assert agent.status("first")["error"] is None
    fake.on("/first", many(2))
    assert len(agent.wait_scores("second")) == 4


def test_of_all_in_rounds_that_run_at_once(fake, start_agent):
    """When both began, neither had series. The one that is answered first has its scores, then and in later rounds."""
    both = threading.Barrier(2)

    def together(connection, request):
        both.wait(DEADLINE)
        many(5)(connection, request)

    scorers = [summary(name, fake.on(f"/{name}", together, many(5))) for name in ("a", "b")]
    agent = start_agent({"summaries": scorers, "limits": {"series": 8}})
    found = agent.wait_all()
    first, second = sorted(found, key=lambda name: found[name]["failures"])
    for n in range(1, 6):
        assert agent.wait_rounds(first, n)["error"] is None
        assert agent.wait_rounds(second, n)["error"]["class"] == "series_limit"
        assert agent.status()["totals"]["series"] == 5
    assert len(agent.scores(first)) == 5 and not agent.scores(second)
    agent.wait_metric("dynamic_scoring_limit_hits_total", limit="series", score_name=second)
