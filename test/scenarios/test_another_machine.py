"""An agent for a machine of another byte order makes the same scores, sends the same bytes, and reads the other one's spool.

`test/run s390x` and `test/run ppc64el` build that agent, and set DS_OTHER_BUILD to the folder with a `dynamic-scoring` that
runs it here. DS_BUILD has this machine's."""

import json
import math
import os
import pathlib
import random
import shutil
import subprocess

import pytest
from lib import remote, remote_wire
from lib.agent import PROGRAM, summary
from lib.client import call
from lib.fake import results, series
from lib.process import run
from lib.scoring_api import running_scorer
from lib.wait import LONG

OTHER = pathlib.Path(os.environ.get("DS_OTHER_BUILD", "")) / "dynamic-scoring"
NUMBERS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e308, 5e-324, -2.2e-308, 0.1 + 0.2, 1 / 3, 2.0**53 + 2]
LEAST_ROUNDS = 3


@pytest.fixture(name="programs", params=["here", "there"])
def both_ways(request):
    """Who writes and who reads: the agent of this machine, and that of the other one."""
    if not os.environ.get("DS_OTHER_BUILD"):
        pytest.skip("left out: test/run s390x builds the agent for another machine")
    return (PROGRAM, OTHER) if request.param == "here" else (OTHER, PROGRAM)


def spool(program, *arguments):
    done = subprocess.run([program, "spool", *map(str, arguments)], capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_spool(program, folder, receiver, scoring, form):
    """A spool that was left behind by a kill."""
    receiver.down()
    agent = remote.Agent(folder, scoring, [remote.endpoint(receiver, protocol=form)])
    agent.program = program
    with agent:
        remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= LEAST_ROUNDS * len(NUMBERS), seconds=LONG)
        agent.kill()
    return agent.storage


def send_spool(program, folder, storage, receiver, scoring, form):
    """The requests in which a copy of the spool is sent. There are no new scores, so that markers, of their own time, follow."""
    agent = remote.Agent(folder, scoring, [remote.endpoint(receiver, protocol=form)])
    agent.program = program
    for one in agent.summaries:
        one["scoringInterval"] = 600
    agent.write_config()
    shutil.copytree(storage, agent.storage)
    receiver.arrivals.clear()
    receiver.up()
    with agent:
        remote.wait_for("an empty queue", lambda: receiver.with_samples() and agent.remote("samples_pending") == 0, seconds=LONG)
    assert "samples_lost=0 damaged_bytes=0" in agent.log(), agent.log()
    receiver.down()
    return [a for a in receiver.with_samples() if a.write.series[0].samples[0].bits != remote_wire.STALE]


@pytest.mark.parametrize("form", ["1.0", "2.0", "vm"])
def test_spool_is_sent_to_the_byte_by_the_other(tmp_path, programs, form):
    writer, reader = programs
    scores = [({"node": f"n{i:05}", "pod": "zażółć 🦊"}, number) for i, number in enumerate(NUMBERS)]
    with remote.Receiver() as receiver, remote.Scoring(t=scores) as scoring:
        storage = write_spool(writer, tmp_path / "writer", receiver, scoring, form)
        scoring.of["t"] = None
        folder = next(storage.rglob("*.seg")).parent
        spool(reader, "verify", folder)
        assert spool(reader, "export", folder) == spool(writer, "export", folder)
        expected = send_spool(writer, tmp_path / "same", storage, receiver, scoring, form)
        sent = send_spool(reader, tmp_path / "reader", storage, receiver, scoring, form)
    assert len(sent) >= LEAST_ROUNDS and [a.body for a in sent] == [a.body for a in expected]
    for arrival in sent:
        values = {dict(s.labels)["ds_node"]: s.samples[0].bits for s in arrival.write.series}
        assert values == {f"n{i:05}": remote_wire.bits(number) for i, number in enumerate(NUMBERS)}


def test_scores_are_printed_alike(tmp_path, programs, fake):
    fake.on("/api/v1/query_range", series({"node": "n1"}))
    answer = [x for i, number in enumerate((1.5, -3, 0.1, 1 / 3, 1e21, 5e-324)) for x in ({"node": f"n{i}"}, number)]
    scorer = summary("s", fake.on("/s", results(*answer)), source=fake.url, interval=600)
    file = tmp_path / "config"
    file.write_text(json.dumps({"clusterName": "c1", "summaries": [scorer]}))
    printed = []
    for program in programs:
        done = run(program, "agent", f"--config.file={file}", "--once", "--output=prom")
        assert done.returncode == 0, done.stderr
        printed.append([line for line in done.stdout.splitlines() if line.startswith("dynamic_score{")])
    assert len(printed[0]) == 6 and printed[0] == printed[1]


@pytest.mark.parametrize("model", ["forecast", "mean"])
def test_models_score_alike(tmp_path, programs, model):
    """To the last digit: no machine rounds a product and a sum at once, or adds up in a wider type."""
    some = random.Random(4)
    data = [
        {"metric": {"pod": f"p{pod}"}, "values": [[60 * i, str(some.random() / 2 + i / 1000)] for i in range(120)]}
        for pod in range(40)
    ]
    data.append({"metric": {"pod": "large"}, "values": [[60 * i, str((-1) ** (i // 2) * 1e308)] for i in range(120)]})
    answers = []
    for program in programs:
        with running_scorer(tmp_path, model=model, program=program) as scorer:
            answer = call("POST", scorer.url + "/scoring", json.dumps({"data": data}).encode(), Content_Type="application/json")
        assert answer.status == 200, answer.text
        answers.append(answer.json["results"])
    assert len(answers[0]) >= 40 and answers[0] == answers[1]
