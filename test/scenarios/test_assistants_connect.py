"""Assistants' own SDKs connect to the optimizer and call its tools, in the protocol's current revision and in earlier ones."""

import json
import pathlib

import pytest

from lib.kube import script
from lib.optimizer import STATEFUL, STATELESS, running_optimizer
from lib.process import environment, run
from lib.wait import LONG

CLIENTS = pathlib.Path(__file__).parent / "mcp"
CALLS = ["policies_list", '{"limit": 1}', "scorer_explain", "{}"]


@pytest.fixture(name="optimizer")
def reads_a_real_api_server(kube):
    with running_optimizer(kube.kubeconfig()) as one:
        one.wait_ready()
        yield one


def check(done, optimizer, revision):
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["revision"] == revision
    assert found["tools"] == [tool["name"] for tool in optimizer.tools()]
    listed, refused = found["answers"]
    assert not listed["isError"] and json.loads(listed["text"]) == listed["structured"]
    assert listed["structured"] == optimizer.get("/policies?limit=1").json
    assert refused == {"isError": True, "text": "cluster: missing field", "structured": None}


@pytest.mark.parametrize("mode, revision", [("legacy", STATEFUL), ("auto", STATELESS), (STATELESS, STATELESS)])
def test_python(optimizer, mode, revision):
    env = environment(PYTHONPATH=script("python-packages", "mcp"))
    command = ["/usr/bin/python3", CLIENTS / "client.py", optimizer.url + "/mcp", mode]
    check(run(*command, *CALLS, env=env, timeout=LONG), optimizer, revision)


@pytest.mark.parametrize(
    "package, mode, revision",
    [("sdk", "legacy", STATEFUL), ("client", "legacy", STATEFUL), ("client", "auto", STATELESS), ("client", STATELESS, STATELESS)],
)
def test_typescript(optimizer, package, mode, revision):
    folder = pathlib.Path(script("node-packages", "mcp"))
    command = [folder / "node_modules/node/bin/node", CLIENTS / "client.mjs", folder, package, optimizer.url + "/mcp", mode]
    check(run(*command, *CALLS, env=environment(), timeout=LONG), optimizer, revision)
