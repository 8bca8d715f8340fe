"""If two results have the same labels, the later one wins in every round, and the other is counted."""

from lib.agent import summary
from lib.fake import results


def test_the_later(fake, start_agent):
    pairs = [
        ({"node": "a"}, 1),
        ({"node": "b"}, 2),
        ({"node": "a", "unknown": "x"}, 3),
        ({"node": "a", "pod": ""}, 4),
    ]
    pairs += [({"node": "x" * 256 + "1"}, 5), ({"node": "x" * 256 + "2"}, 6)]  # the same once they are cut
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results(*[x for p in pairs for x in p])))]})
    status = agent.wait_rounds("s", 3)
    expected = [({"node": "a"}, 4), ({"node": "b"}, 2), ({"node": "x" * 256}, 6)]
    assert sorted(agent.scores("s"), key=repr) == expected
    assert (status["state"], status["lastRound"]["duplicates"]) == ("ok", 3)
    agent.wait_metric("dynamic_scoring_results_dropped_total", 9, score_name="s", reason="duplicate")
