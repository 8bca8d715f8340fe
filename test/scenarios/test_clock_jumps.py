"""The wall clock may jump by days in either direction: rounds stay on schedule, scores stay, and timestamps follow the
new time."""

import time

import pytest

from lib.agent import summary
from lib.fake import results, series
from lib.faketime import DAY, HOUR, Clock


@pytest.mark.parametrize("jump", [DAY, -30 * DAY])
def test_rounds_go_on(fake, start_agent, tmp_path, jump):
    clock = Clock(tmp_path, monotonic=False)
    fake.on("/api/v1/query_range", series({"node": "n"}))
    scorer = summary("s", fake.on("/s", results({}, 1)), source=fake.url)
    agent = start_agent({"summaries": [scorer]}, env=clock.env)
    agent.wait_rounds("s", 2)

    def drift():
        """How far the agent's clock is from ours."""
        return (agent.metric("dynamic_score_timestamp_seconds", ds_score_name="s") or 0) - time.time()

    agent.wait_until(lambda: abs(drift()) < HOUR, "the agent tells the time")
    before, began = len(fake.requests("/s")), time.monotonic()
    clock.move(jump)
    agent.wait_until(lambda: not agent.scores("s") or abs(drift() - jump) < HOUR, "the agent tells the new time")
    agent.holds_until(
        lambda: agent.scores("s") == [({}, 1)],
        lambda: len(fake.requests("/s")) >= before + 3,
        "there were three rounds",
    )
    # Neither does it hurry: one round a second, and those that were on their way.
    assert len(fake.requests("/s")) - before <= time.monotonic() - began + 2
    asked = fake.requests("/api/v1/query_range")[-1].arguments
    assert abs(float(asked["end"]) - time.time() - jump) < HOUR
    assert agent.metric("dynamic_scoring_expired_total", score_name="s") in (None, 0)
