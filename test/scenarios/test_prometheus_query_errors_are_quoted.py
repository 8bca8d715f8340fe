"""When Prometheus rejects a query, its own message is in the log, in the JSON and in the
terminal."""

import json
from datetime import datetime, timedelta

from lib.agent import PROGRAM, summary
from lib.fake import results
from lib.process import run

# What Prometheus 2.42 says, but for the position, which it writes first.
WORDS = "parse error: unclosed left parenthesis"


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_the_words_are_everywhere(prometheus, fake, start_agent):
    bad = summary("bad", fake.on("/scoring", results({}, 1)), source=prometheus.url, query="sum(up")
    agent = start_agent({"summaries": [bad]})
    error = agent.wait_rounds("bad")["error"]
    assert (error["stage"], error["class"]) == ("source", "query")
    assert error["text"].startswith("bad_data: ") and WORDS in error["text"]
    assert agent.status("bad")["state"] == "failing"
    assert WORDS in agent.log()
    failed = {"class": "query", "score_name": "bad", "stage": "source"}
    agent.wait_metric("dynamic_scoring_round_errors_total", **failed)
    agent.wait_metric_is(0, "dynamic_scoring_up", score_name="bad")
    assert not fake.requests()

    table = run(PROGRAM, "agent", f"--config.file={agent.file}", "--once")
    assert table.returncode == 1
    assert WORDS in " ".join(table.stdout.split())
    printed = run(PROGRAM, "agent", f"--config.file={agent.file}", "--once", "--output=json")
    assert printed.returncode == 1
    assert WORDS in json.loads(printed.stdout)["scorers"][0]["error"]["text"]


def test_a_query_that_is_refused_is_not_asked_again_soon(prometheus, fake, start_agent):
    """Only temporary failures are retried early."""
    scoring = fake.on("/scoring", results({}, 1))
    agent = start_agent({"summaries": [summary("bad", scoring, source=prometheus.url, query="sum(", interval=600)]})
    from_now = agent.wait_rounds("bad")
    assert when(from_now["nextRoundAt"]) - when(from_now["lastRound"]["endedAt"]) > timedelta(seconds=500)
