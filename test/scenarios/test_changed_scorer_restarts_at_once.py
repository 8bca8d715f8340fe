"""A changed scorer takes effect immediately, after POST or SIGHUP, even in the middle of a round."""

import signal

from lib.agent import summary
from lib.fake import hanging, results


def test_at_once(fake, start_agent):
    one, two = fake.on("/one", results({}, 1)), fake.on("/two", results({}, 2))
    agent = start_agent({"summaries": [summary("s", one, interval=600)]})
    assert agent.wait_scores("s") == [({}, 1)]
    agent.apply({"summaries": [summary("s", two, interval=600)]})
    agent.wait_until(lambda: agent.scores("s") == [({}, 2)], "POST: the new endpoint's scores")
    agent.write({"summaries": [summary("s", one, interval=500)]})
    agent.process.send(signal.SIGHUP)
    agent.wait_until(lambda: agent.scores("s") == [({}, 1)], "SIGHUP: the old endpoint's scores")
    agent.wait_until(
        lambda: agent.metric("dynamic_scoring_interval_seconds", score_name="s") == 500, "the interval is the new one"
    )


def test_a_round_under_way_is_given_up(fake, start_agent):
    hangs, good = fake.on("/hangs", hanging), fake.on("/good", results({}, 2))
    agent = start_agent({"summaries": [summary("s", hangs, interval=600)]})
    agent.wait_until(lambda: fake.requests("/hangs"), "the round is under way")
    agent.apply({"summaries": [summary("s", good, interval=600)]})
    assert agent.wait_scores("s") == [({}, 2)]
    assert agent.status("s")["rounds"] == 1


def test_scores_stay_until_the_new_round_ends(fake, start_agent):
    good, hangs = fake.on("/good", results({}, 1)), fake.on("/hangs", hanging)
    agent = start_agent({"summaries": [summary("s", good, interval=600)]})
    agent.wait_scores("s")
    agent.apply({"summaries": [summary("s", hangs, interval=600)]})
    agent.wait_until(lambda: fake.requests("/hangs"), "the new round is under way")
    assert agent.scores("s") == [({}, 1)]


def test_another_cluster_name_changes_all_series(fake, start_agent):
    config = {"summaries": [summary("s", fake.on("/s", results({}, 1)), interval=600)]}
    agent = start_agent({**config, "clusterName": "one"})
    agent.wait_scores("s")
    agent.apply({**config, "clusterName": "two"})
    agent.wait_until(lambda: agent.metric("dynamic_score", ds_cluster="two"), "the series have the new name")
    assert agent.metric("dynamic_score", ds_cluster="one") is None
    agent.wait_metric("dynamic_score_timestamp_seconds", ds_cluster="two")
    assert agent.metric("dynamic_score_timestamp_seconds", ds_cluster="one") is None
