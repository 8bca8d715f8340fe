"""`agent --once` runs each scorer once, prints the results, and reports by its exit status whether all succeeded."""

import json
import re
import signal

import pytest

from lib.agent import PROGRAM, labels, summary
from lib.exposition import Samples
from lib.fake import answer, hanging, plain, results, series
from lib.process import Process, run
from lib.wait import DEADLINE, wait_until


@pytest.fixture(name="once")
def write_and_run(fake, tmp_path):
    fake.on("/api/v1/query_range", series({"node": "n1"}))
    good = summary(
        "good_score",
        fake.on("/good", results({"node": "n1"}, 1.5, {"node": "n2"}, -3)),
        source=fake.url,
        interval=600,
    )
    empty = summary("empty_score", fake.on("/none", answer({"results": []})), interval=600)
    bad = summary("bad_score", fake.on("/bad", plain('{"error": "no model"}', 503)), source=fake.url, interval=600)

    def once(*flags, failing=False):
        file = tmp_path / "config.json"
        file.write_text(json.dumps({"clusterName": "c", "summaries": [good, empty, *([bad] if failing else [])]}))
        return run(PROGRAM, "agent", f"--config.file={file}", "--once", *flags)

    return once


def test_table(once):
    ended = once()
    assert ended.returncode == 0
    for word in ("good_score", "empty_score", "n1", "n2", "1.5", "-3"):
        assert word in ended.stdout
    assert "\033" not in ended.stdout and "error" not in ended.stderr


def test_table_with_a_failure(once):
    ended = once(failing=True)
    assert ended.returncode == 1
    for word in ("good_score", "bad_score", "503", "no model"):
        assert word in ended.stdout


@pytest.mark.parametrize("failing", [False, True])
def test_json(once, failing):
    ended = once("--output=json", failing=failing)
    assert ended.returncode == int(failing)
    states = {s["scoreName"]: s["state"] for s in json.loads(ended.stdout)["scorers"]}
    assert states == {"good_score": "ok", "empty_score": "empty", **({"bad_score": "failing"} if failing else {})}


@pytest.mark.parametrize("failing", [False, True])
def test_prom(once, failing):
    ended = once("--output", "prom", failing=failing)
    assert ended.returncode == int(failing)
    page = Samples(ended.stdout)
    assert page.value("dynamic_score", **labels(cluster="c", score_name="good_score", node="n2")) == -3
    assert page.value("dynamic_scoring_up", score_name="bad_score") == (0 if failing else None)
    assert run("promtool", "check", "metrics", input=ended.stdout).returncode == 0


def test_each_scorer_is_asked_once(once, fake):
    once()
    assert (len(fake.requests("/good")), len(fake.requests("/none"))) == (1, 1)


def test_it_waits_for_the_slowest_only(fake, tmp_path, start_agent):
    """Its deadline is the scorer's timeout, and it opens no port."""
    slow = summary("slow", fake.on("/slow", hanging), interval=600, timeout="1s")
    agent = start_agent({"summaries": [slow]}, start=False)
    ended = run(PROGRAM, "agent", f"--config.file={agent.file}", "--once", "--web.listen-address=192.0.2.1:1")
    assert ended.returncode == 1 and re.search(r"timed out after \d+\.\d s with 0 bytes received", ended.stdout)


def test_the_table_says_why_scores_are_gone(fake, start_agent):
    """Those of a short interval expire while another scorer is waited for."""
    quick = summary("quick", fake.on("/quick", results({"node": "n1"}, 1.5)))
    slow = summary("slow", fake.on("/slow", hanging), timeout="3s")
    limits = {"staleAfterIntervals": 1}
    agent = start_agent({"summaries": [quick, slow], "limits": limits}, start=False)
    table = run(PROGRAM, "agent", f"--config.file={agent.file}", "--once").stdout
    gone = r"✗ failed  quick\n.*\n    the scores of the last round have expired, and no round has ended since\n"
    assert re.search(gone, table), table


def test_no_scorers_and_a_bad_file(start_agent):
    agent = start_agent({"summaries": []}, start=False)
    assert run(PROGRAM, "agent", f"--config.file={agent.file}", "--once").returncode == 0
    agent.write("{")
    ended = run(PROGRAM, "agent", f"--config.file={agent.file}", "--once")
    assert (ended.returncode, ended.stdout) == (1, "") and "unexpected end" in ended.stderr


@pytest.mark.parametrize("others", [0, 1])
def test_what_the_hub_has_suspended(fake, start_agent, others):
    """It is not called, and not waited for: the ConfigMap's list `suspended` is a file like any other."""
    since = {"since": "2026-11-26T07:30:00Z"}
    idle = summary("idle", fake.on("/idle", results({}, 1)), interval=600) | since
    good = summary("good", fake.on("/good", results({}, 2)), interval=600)
    agent = start_agent({"summaries": [idle, good][: 1 + others]}, start=False)
    ended = run(PROGRAM, "agent", f"--config.file={agent.file}", "--once", timeout=DEADLINE)
    assert ended.returncode == 0 and not fake.requests("/idle"), ended.stderr
    assert "… suspended  idle\n    not called: the hub has found its scoring API unhealthy since 2026-" in ended.stdout
    assert f": {others} ok, 0 empty, 0 failed, 0 waiting, 1 suspended; {others} score" in ended.stdout


def test_ctrl_c(fake, start_agent):
    """Stops it immediately with the results so far, and a status that is not 0."""
    agent = start_agent({"summaries": [summary("slow", fake.on("/slow", hanging), interval=600)]}, start=False)
    process = Process("agent", [PROGRAM, "agent", f"--config.file={agent.file}", "--once"], agent.folder / "once.log")
    wait_until(lambda: fake.requests("/slow"), "the round is under way")
    process.send(signal.SIGINT)
    assert process.wait() == 1
