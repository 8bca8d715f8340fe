"""`check-scorer` finds nothing wrong with a scoring API written with FastAPI, and the usual faults of its first draft."""

import contextlib
import json

import pytest

from lib.agent import PROGRAM
from lib.client import call
from lib.kube import script
from lib.process import ROOT, Process, environment, free_port, run
from lib.wait import LONG, wait_until


@contextlib.contextmanager
def serving(tmp_path, **env):
    folder = f"{ROOT}/test/scenarios:{script('python-packages', 'fastapi')}"
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = ["/usr/bin/python3", "-m", "uvicorn", "--port", port, "lib.fastapi_scorer:app"]
    scorer = Process("FastAPI scorer", command, tmp_path / "fastapi.log", environment(PYTHONPATH=folder, **env))
    try:
        wait_until(lambda: call("GET", f"{url}/healthz").status == 200, "it answers", LONG)
        yield url
    finally:
        scorer.kill()


@pytest.mark.parametrize(
    "env, expected",
    [({"TOKEN": "dummy-token-1234"}, set()), ({"FIRST_DRAFT": "1"}, {"short-series", "nan-values"})],
)
def test_of_fastapi(tmp_path, env, expected):
    token = tmp_path / "token"
    token.write_text(env.get("TOKEN", ""))
    flags = [f"--token-file={token}"] if "TOKEN" in env else []
    with serving(tmp_path, **env) as url:
        ended = run(PROGRAM, "check-scorer", "--output=json", "--timeout=60s", *flags, url)
    found = json.loads(ended.stdout)
    assert {f["rule"] for f in found["findings"]} == expected, found["findings"]
    assert ended.returncode == int(bool(expected)) and found["agent"]["series"] == 10
