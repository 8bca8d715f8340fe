"""An invalid file is rejected: the response, the log, the metric and the status name every problem with line and
column, and the last valid configuration stays active."""

import re
import signal

import pytest

from lib.agent import PROGRAM, running_agent, summary
from lib.fake import results, running_fake
from lib.process import run

BAD = """clusterName: c1
summaries:
- scoreName: good
  sourceType: None
  scoringEndpoint: http://127.0.0.1:1/
  scoringIntervall: 5
- scoreName: bad
  sourceEndpoint: ftp://user:s3cret@example.org/
  scoringEndpoint: http://127.0.0.1:1/
  scoringInterval: soon
limits: {responseBytes: many}
"""
PROBLEMS = [(6, 3, "scoringIntervall"), (7, 3, "sourceQuery"), (8, 19, "http"), (10, 20, "soon"), (11, 25, "many")]


GOOD_TIME = "dynamic_scoring_config_last_reload_success_timestamp_seconds"


@pytest.fixture(scope="module", name="shared")
def agent_with_a_good_scorer():
    with running_fake() as fake:
        config = {"summaries": [summary("good", fake.on("/good", results({}, 1)), interval=600)]}
        with running_agent(config) as agent:
            agent.wait_scores("good")
            yield agent, fake, agent.file.read_text()


@pytest.fixture(name="agent")
def with_the_good_file(shared):
    agent, _, good = shared
    agent.write(good)
    assert agent.reload().status == 200
    agent.wait_metric("dynamic_scoring_config_last_reload_successful")
    yield agent
    # Whatever the test did, the scorer ran its one round and its scores are there.
    assert agent.scores("good") == [({}, 1)]
    assert (agent.status("good")["rounds"], len(shared[1].requests("/good"))) == (1, 1)
    assert agent.get("/-/ready").status == 200


def wait_refused(agent):
    agent.wait_until(
        lambda: agent.metric("dynamic_scoring_config_last_reload_successful") == 0, "the metric tells of the bad file"
    )


PLACEHOLDERS = {
    "http://NODE_IP:30007/scoring": "NODE_IP",
    "https://user:P_W@api.MY_ZONE/scoring": "MY_ZONE",
    "http://<NODE_IP>:30007/scoring": "<NODE_IP>",
    "http://$NODE_IP:30007": "$NODE_IP",
    "http://${NODE_IP}/scoring": "${NODE_IP}",
}


@pytest.mark.parametrize("field", ["scoringEndpoint", "sourceEndpoint"])
@pytest.mark.parametrize("url", PLACEHOLDERS)
def test_a_placeholder_that_was_never_replaced(agent, field, url):
    """As the CRD refuses it."""
    given = {"sourceQuery": "up", "scoringEndpoint": "http://127.0.0.1:1/", "sourceEndpoint": "http://127.0.0.1:1/"}
    agent.write({"summaries": [{"scoreName": "s", **given, field: url}]})
    words = f'{field}: expected an absolute http or https URL with a host: replace the placeholder "{PLACEHOLDERS[url]}"\n'
    assert words in agent.reload().text
    check = run(PROGRAM, "check-config", agent.file)
    assert check.returncode == 1 and words in check.stderr and "P_W" not in check.stderr


def test_what_only_looks_like_a_placeholder(tmp_path):
    """Users and passwords may have such characters, and names of hosts capitals or underscores."""
    for url in ("http://MY_USER:pa$s@host/A_B?x=C_D", "http://HOST:80", "http://my_host", "http://My_Host", "http://A__B"):
        (tmp_path / "config").write_text(f"summaries: [{{scoreName: s, sourceType: None, scoringEndpoint: '{url}'}}]")
        check = run(PROGRAM, "check-config", tmp_path / "config")
        assert check.returncode == 0, check.stderr
    slash = "http://u:pa$s3cret/x@host/scoring"  # no URL, as the password has a slash
    (tmp_path / "config").write_text(f"summaries: [{{scoreName: s, sourceType: None, scoringEndpoint: '{slash}'}}]")
    check = run(PROGRAM, "check-config", tmp_path / "config")
    assert check.returncode == 1 and "s3cret" not in check.stdout + check.stderr


def test_every_problem_is_named(agent):
    agent.write(BAD)
    answer = agent.reload()
    assert answer.status == 400
    status = agent.status()["config"]
    assert status["ok"] is False
    for place in (answer.text, "\n".join(status["problems"])):
        for line, column, word in PROBLEMS:
            assert re.search(rf"config:{line}:{column}: error: .*{word}", place), (line, column, word, place)
    for line, column, word in PROBLEMS:
        assert re.search(rf"level=error .*line={line} column={column} .*{word}", agent.log()), (line, column, word)
    for place in (answer.text, agent.log(), agent.get("/api/v1/status").text):
        assert "s3cret" not in place
    wait_refused(agent)


def test_check_config_says_the_same(agent):
    agent.write(BAD)
    check = run(PROGRAM, "check-config", agent.file)
    assert check.returncode == 1
    assert agent.reload().text.startswith("".join(l + "\n" for l in check.stderr.splitlines() if ": error: " in l))
    assert f"{len(PROBLEMS)} errors" in check.stderr


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1",
        b"\0",
        b"\xff\xfe",
        b"summaries: [",
        b"a: *b",
        b'{"summaries": {}}',
        b"[" * 5000,
        b"just words",
    ],
)
def test_by_signal(agent, text):
    agent.file.write_bytes(text)
    agent.process.send(signal.SIGHUP)
    wait_refused(agent)
    agent.wait_log("the last valid one stays active")


def test_a_file_that_is_gone(agent):
    agent.file.unlink()
    answer = agent.reload()
    assert answer.status == 400 and "No such file or directory" in answer.text
    wait_refused(agent)


def test_a_good_file_mends_it(agent, shared):
    before = agent.wait_until(lambda: agent.metric(GOOD_TIME), "the time of the good file")
    agent.write("{")
    assert agent.reload().status == 400
    wait_refused(agent)
    assert agent.metric(GOOD_TIME) == before
    agent.write(shared[2])
    assert agent.reload().status == 200
    agent.wait_until(lambda: agent.metric(GOOD_TIME) > before, "the time is the new one's")
    assert agent.metric("dynamic_scoring_config_last_reload_successful") == 1
    assert agent.status()["config"]["ok"] is True
