"""Whatever others call their scores, labels, workloads and files, and whatever they answer: no line that a command prints
moves the cursor of a terminal, hides a line or turns the direction of writing, and JSON still means the same."""

import json
import os
import pty
import subprocess

import pytest

from lib.agent import PROGRAM, summary
from lib.fake import answer, plain, results
from lib.optimizer import kubeconfig_of_nothing, running_optimizer
from lib.process import environment, run

EVIL = "s\x1b[31m\x7f\u009b2J\u202e\u2066"  # ESC, DEL, CSI as one character, and both kinds of direction
RAW = b"s\x1b[31m\xff\xfe\xc2\x9b2J\xe2\x80\xae"  # and no UTF-8
NAME = "s\u009b[31m\u202e"  # no C0: such a score name is refused
STEERS = set("\x1b\x7f\u009b\u202e\u2066\x00\r\t")


def assert_harmless(text):
    text = text.decode() if isinstance(text, bytes) else text  # ill-formed UTF-8 fails here
    assert not STEERS & set(text), [line for line in text.splitlines() if STEERS & set(line)]


def on_terminal(*command):
    """What the command prints on a terminal of its own."""
    main, end = pty.openpty()
    with subprocess.Popen(command, stdout=end, stderr=end, stdin=end, env=environment(NO_COLOR="1")) as process:
        os.close(end)
        printed = b""
        while True:
            try:
                piece = os.read(main, 1 << 16)
            except OSError:  # it has ended
                break
            printed += piece
        process.wait()
    os.close(main)
    return printed.replace(b"\r\n", b"\n").decode()


@pytest.fixture
def evil_config(fake, tmp_path):
    """Scores with such labels, and a scoring API that fails with such words."""
    fake.on("/s", answer({"results": [{"metric": {"node": EVIL, "pod": EVIL}, "score": 1}]}))
    fake.on("/fails", plain(RAW, 503))
    fake.on("/page", plain(RAW, Content_Type=f"text/html; {EVIL[:7]}"))
    scorers = [summary(NAME, fake.url + "/s"), summary("fails", fake.url + "/fails"), summary("page", fake.url + "/page")]
    file = tmp_path / "config"
    file.write_text(json.dumps({"clusterName": "c", "summaries": scorers}), encoding="utf-8")
    return file


@pytest.mark.parametrize("output", ["table", "json", "prom"])
def test_once(evil_config, output):
    printed = on_terminal(PROGRAM, "agent", f"--config.file={evil_config}", "--once", f"--output={output}")
    assert_harmless(printed)
    assert "s" in printed and "[31m" in printed


def test_json_means_the_same(evil_config):
    ended = run(PROGRAM, "agent", f"--config.file={evil_config}", "--once", "--output=json")
    assert_harmless(ended.stdout)
    assert NAME in {s["scoreName"] for s in json.loads(ended.stdout)["scorers"]}


@pytest.mark.parametrize("output", ["table", "json"])
def test_check_scorer(fake, output):
    fake.on("/healthz", plain(RAW, 500))
    config = {"name": EVIL, "source": {"type": "none"}, "scoring": {"path": "/scoring", "params": {"name": EVIL, "interval": 30}}}
    fake.on("/config", answer(config))
    fake.on("/scoring", results({"node": EVIL, "pod": EVIL}, 1))
    ended = run(PROGRAM, "check-scorer", f"--output={output}", "--score-dimension-format=${node}", fake.url)
    assert "[31m" in ended.stdout
    assert_harmless(ended.stdout + ended.stderr)


def test_check_config(tmp_path):
    """Its messages quote names; and a file can have any name, too."""
    file = tmp_path / EVIL
    file.write_text(json.dumps({"clusterName": "c", "summaries": [{"scoreName": EVIL, EVIL: 1}]}), encoding="utf-8")
    ended = run(PROGRAM, "check-config", file)
    assert ended.returncode and "[31m" in ended.stderr
    assert_harmless(ended.stdout + ended.stderr)


def test_spool(tmp_path):
    folder = tmp_path / "remote-write" / "hub"
    folder.mkdir(parents=True)
    (folder / f"{EVIL}.seg").write_bytes(b"not a segment")
    (folder / f"{EVIL}.seg.damaged").write_bytes(b"")
    ended = run(PROGRAM, "spool", "ls", tmp_path)
    assert "[31m" in ended.stdout + ended.stderr
    assert_harmless(ended.stdout + ended.stderr)


def test_arguments():
    for command in ([EVIL], ["agent", f"--{EVIL}"], ["scorer", EVIL], ["check-scorer", EVIL], ["check-config", EVIL]):
        ended = run(PROGRAM, *command)
        assert ended.returncode and "[31m" in ended.stderr
        assert_harmless(ended.stdout + ended.stderr)


def test_the_optimizer(tmp_path):
    """Its log, its answers over HTTP, and the texts that an assistant shows."""
    asked = {"preference": {"addonPlacementScore": EVIL, "scoreDimensionFormat": EVIL}, "clusters": [{"name": EVIL}]}
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer:
        for body in ({**asked, EVIL: 1}, {**asked, "targetWorkloads": [{"name": EVIL}]}, asked, {EVIL: EVIL}):
            assert_harmless(optimizer.post("/plan", body).text)
            assert_harmless(optimizer.use("plan", **body)["content"][0]["text"])
        assert_harmless(optimizer.post("/plan", RAW).text)
        assert_harmless(optimizer.ask("tools/call", {"name": "plan", EVIL: 1}).text)
        assert_harmless(optimizer.get("/metrics").text)
        assert_harmless(optimizer.log())
