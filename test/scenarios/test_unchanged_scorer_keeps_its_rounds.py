"""A reload does not affect scorers that did not change: no round is added, skipped or aborted, and their scores
stay."""

import signal
import time

from lib.agent import summary
from lib.fake import hanging, results


def test_no_round_more(fake, start_agent):
    kept = summary("kept", fake.on("/kept", results({"node": "n"}, 1)), interval=600)
    slow = summary("slow", fake.on("/slow", hanging), interval=600)
    more = summary("more", fake.on("/more", results({}, 2)), interval=600)
    agent = start_agent({"summaries": [kept, slow]})
    before = agent.wait_rounds("kept")
    agent.wait_until(lambda: fake.requests("/slow"), "the slow scorer was asked")
    slow_before = agent.status("slow")
    for i in range(5):
        # Another order, a field written out with its default, and another scorer: no change to these two.
        agent.apply({"summaries": [{**more, "timeout": f"{i + 1}m"}, slow, {**kept, "location": "internal"}]})
    agent.wait_until(lambda: len(fake.requests("/more")) >= 2, "the new scorer runs, and restarts when it changes")
    after = agent.status("kept")
    assert (after["rounds"], after["nextRoundAt"]) == (1, before["nextRoundAt"])
    assert agent.status("slow")["runningSince"] == slow_before["runningSince"]
    assert agent.scores("kept") == [({"node": "n"}, 1)]
    assert len(fake.requests("/kept")) == len(fake.requests("/slow")) == 1


def test_the_rhythm_stays(fake, start_agent):
    """Any number of reloads neither delay nor hurry a scorer."""
    kept = summary("kept", fake.on("/kept", results({}, 1)))
    began = time.monotonic()
    agent = start_agent({"summaries": [kept]})
    # If each reload began the wait anew, there would be none. SIGHUP, since POST reloads only once a second.
    agent.wait_until(
        lambda: agent.process.send(signal.SIGHUP) or len(fake.requests("/kept")) >= 4, "there were four rounds"
    )
    assert len(fake.requests("/kept")) <= time.monotonic() - began + 2
    agent.wait_metric("dynamic_scoring_config_reloads_total", 6, result="success")
