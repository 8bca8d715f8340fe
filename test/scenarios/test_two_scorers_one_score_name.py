"""If two scorers have the same score name, the first is kept, the other is reported, and nothing is mixed."""

import json

import pytest

from lib.agent import PROGRAM, summary
from lib.fake import results
from lib.process import run


def test_the_first_stays(fake, start_agent):
    one = summary("same", fake.on("/one", results({"node": "n"}, 1)), name="one")
    two = summary("same", fake.on("/two", results({"node": "n"}, 2)), name="two")
    agent = start_agent({"summaries": [one, two]})
    agent.wait_rounds("same", 2)
    assert agent.scores("same") == [({"node": "n"}, 1)]
    assert not fake.requests("/two")
    assert [s["name"] for s in agent.status()["scorers"]] == ["one"]
    [problem] = agent.status()["config"]["problems"]
    assert "warning: summaries[1].scoreName: already used by the summary at line 4" in problem
    assert "already used by the summary" in agent.log()
    check = run(PROGRAM, "check-config", agent.file)
    assert check.returncode == 0 and problem.split("config:")[-1] in check.stdout


def test_identical_labels_under_different_names_stay_apart(fake, start_agent):
    url = fake.on("/s", results({"node": "n"}, 1))
    agent = start_agent({"summaries": [summary("one", url), summary("two", url), summary("One", url)]})
    for name in ("one", "two", "One"):
        assert agent.wait_scores(name) == [({"node": "n"}, 1)]


@pytest.mark.parametrize("second, refused", [({}, True), ({"scoreDestination": "None"}, False)])
def test_two_score_names_of_one_object(second, refused, tmp_path):
    """check-config refuses them as the hub does; without an object of its own, neither is in the other's way."""
    file = tmp_path / "config"
    url = "http://127.0.0.1:9"
    file.write_text(json.dumps({"summaries": [summary("my score", url), summary("my-score", url, **second)]}, indent=1))
    check = run(PROGRAM, "check-config", file)
    words = "error: score name my-score maps to AddOnPlacementScore my-score, as does score name my score at line 3"
    assert (check.returncode, words in check.stderr) == (int(refused), refused), check.stderr
