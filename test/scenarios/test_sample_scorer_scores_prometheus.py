"""End to end without fakes: series from Prometheus, their means from the model mean with a token, on /metrics."""

import pytest

from lib.agent import summary
from lib.scoring_api import running_scorer

META = "my_something_meta_by_sample_scorer"
RAMP = 'label_replace(label_replace(vector(time()), "node", "n1", "", ""), "pod", "a \\"b\\"", "", "")'


@pytest.fixture(name="scorer")
def sample_scorer_with_a_token(tmp_path):
    (tmp_path / "scorer").mkdir()
    (tmp_path / "scorer" / "token").write_text("s3cret")
    with running_scorer(tmp_path, f"--token-file={tmp_path}/scorer/token") as scorer:
        yield scorer.url


def test_the_mean(prometheus, scorer, start_agent, tmp_path):
    auth = {"scoringEndpointAuthName": "scorer", "scoringEndpointAuthKey": "token"}
    source = {"source": prometheus.url, "query": RAMP, "sourceRange": 600, "sourceStep": 10}
    agent = start_agent({"summaries": [summary("mean", scorer, **source, **auth)]}, f"--secrets.dir={tmp_path}")
    [(labels, score)] = agent.wait_scores("mean")
    assert labels == {"node": "n1", "pod": 'a "b"', "meta": META}
    # Its own scores' time is the range's end, and the mean of a ramp is its middle.
    at = agent.wait_until(lambda: agent.metric("dynamic_score_timestamp_seconds"), "there is a timestamp")
    assert abs(at - 300 - score) < 100
    assert agent.status("mean")["lastRound"]["sentBytes"]["scoring"] > 61 * 20
