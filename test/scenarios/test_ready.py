"""/-/healthy and /-/ready respond as soon as a configuration is active, whatever the scorers do."""

from lib.agent import summary
from lib.fake import hanging


def test_ready_without_scores(fake, start_agent):
    agent = start_agent({"summaries": [summary("s", fake.on("/s", hanging))]})
    assert agent.get("/-/ready").text == "ready\n"
    assert agent.get("/-/healthy").text == "healthy\n"
    assert agent.status("s")["state"] == "waiting"
    assert agent.get("/").status == 200 and not agent.scores("s")


def test_a_start_that_fails_never_gets_there(start_agent):
    agent = start_agent("clusterName: c\nsummaries: 7\n", start=False)
    agent.launch()
    assert agent.process.wait() == 1
    assert "line=2 column=12" in agent.log() and "serving" not in agent.log()
    agent.process = None
