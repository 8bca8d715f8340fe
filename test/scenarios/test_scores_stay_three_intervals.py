"""When a scorer fails, its scores stay for three intervals, or as many as configured; then they are removed, and come
back with the first successful round."""

import time

import pytest

from lib.agent import summary
from lib.fake import hanging, plain, results
from lib.wait import wait_until

GOOD = results({"node": "n"}, 1)
HANGS = "the scores of the last round have expired, and no round has ended since"
BAD = plain('{"error": "no model"}', 500)


@pytest.mark.parametrize("intervals, limits", [(3, {}), (2, {"staleAfterIntervals": 2})])
def test_they_stay_and_go(fake, start_agent, intervals, limits):
    fails = summary("fails", fake.on("/fails", GOOD, BAD))
    hangs = summary("hangs", fake.on("/hangs", GOOD, hanging), timeout="5m")
    agent = start_agent({"summaries": [fails, hangs], "limits": limits})
    agent.wait_scores("fails"), agent.wait_scores("hangs")
    ages, states = {}, {"fails": [], "hangs": []}

    def all_gone():
        for name in set(states) - set(ages):
            state, scores = agent.status(name), agent.scores(name)
            age = time.monotonic() - fake.requests(f"/{name}")[0].at
            if state["series"]:
                states[name].append(state["state"])
            if not scores:
                ages[name] = age
        return len(ages) == 2

    wait_until(all_gone, "all scores have gone")
    assert all(age > intervals - 0.05 for age in ages.values()), ages
    assert set(states["fails"]) <= {"ok", "failing"}
    assert agent.status("fails")["state"] == agent.status("hangs")["state"] == "stale"
    assert agent.status("fails")["staleReason"] is None and agent.status("hangs")["error"] is None
    assert agent.status("hangs")["staleReason"] == HANGS
    agent.wait_log("scores expired"), agent.wait_log(HANGS)
    agent.wait_metric("dynamic_scoring_expired_total", score_name="fails")
    agent.wait_metric_is(None, "dynamic_score_timestamp_seconds", ds_score_name="fails")
    agent.wait_metric_is(0, "dynamic_scoring_series", score_name="fails")

    fake.on("/fails", GOOD)
    assert agent.wait_scores("fails") == [({"node": "n"}, 1)]
    agent.wait_log("scoring recovered")
    agent.wait_until(lambda: agent.metric("dynamic_scoring_up", score_name="fails") == 1, "the scorer is up")


@pytest.mark.parametrize("intervals", [1, 2])
def test_a_healthy_scorer_never_lacks_scores(fake, start_agent, intervals):
    """Even with the shortest limit: rounds never take exactly the same time."""

    def slower_each_time(connection, request):
        time.sleep(0.2 * (len(fake.requests("/s")) % 4))
        GOOD(connection, request)

    scorer = summary("s", fake.on("/s", slower_each_time), interval=4)
    agent = start_agent({"summaries": [scorer], "limits": {"staleAfterIntervals": intervals}})
    agent.wait_scores("s")
    agent.holds_until(lambda: agent.scores("s"), lambda: len(fake.requests("/s")) >= 4, "there were four rounds")
    assert agent.metric("dynamic_scoring_expired_total", score_name="s") in (None, 0)


def test_one_bad_round_costs_nothing(fake, start_agent):
    agent = start_agent({"summaries": [summary("s", fake.on("/s", GOOD, BAD, GOOD, BAD, GOOD), interval=2)]})
    agent.wait_scores("s")
    agent.holds_until(
        lambda: agent.scores("s") == [({"node": "n"}, 1)],
        lambda: len(fake.requests("/s")) >= 5,
        "there were five rounds, two of them bad",
    )
