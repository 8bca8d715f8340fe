"""An interval of 0 means the default; a negative or huge one is rejected with its line and column, and the program
keeps running."""

import pytest

from lib.agent import PROGRAM, summary
from lib.fake import results
from lib.process import run

TEXT = """clusterName: c
summaries:
  - scoreName: s
    sourceType: None
    scoringEndpoint: {url}
    scoringInterval: {interval}
"""


@pytest.mark.parametrize("interval", ["-1", "604801", "99999999999999999999", "1e300", "0.5", ".nan", "5m", "[]"])
def test_refused(fake, start_agent, interval):
    good = summary("good", fake.on("/good", results({}, 1)), interval=3)
    agent = start_agent({"summaries": [good]})
    bad = TEXT.format(url=fake.url, interval=interval)
    agent.write(bad)
    answer = agent.reload()
    assert answer.status == 400
    said = ":6:22: error: summaries[0].scoringInterval: expected a whole number of seconds from 1 to 604800, got "
    assert said in answer.text
    check = run(PROGRAM, "check-config", agent.file)
    assert check.returncode == 1 and said in check.stderr
    assert agent.wait_scores("good") == [({}, 1)]


@pytest.mark.parametrize("interval, seconds", [("0", 60), ("604800", 604800), ("", 60), ("1", 1)])
def test_taken(fake, start_agent, interval, seconds):
    agent = start_agent(TEXT.format(url=fake.on("/s", results({}, 1)), interval=interval))
    assert agent.wait_rounds("s")["intervalSeconds"] == seconds
    assert agent.wait_scores("s") == [({}, 1)]
