"""The example in Python, charts/samples/python-scorer: its own tests pass, `check-scorer` finds nothing wrong with it, and finds
the usual faults of a first draft."""

import contextlib
import json

import pytest

from lib.agent import PROGRAM
from lib.client import call
from lib.kube import script
from lib.process import ROOT, Process, environment, free_port, run
from lib.wait import LONG, wait_until

SAMPLE = ROOT / "charts/samples/python-scorer"
PYTHON = ["/usr/bin/python3", "-B", "-m"]
FIRST_DRAFT = """
def score(values):
    return sum(values) / len(values)


@app.get("/healthz")"""


@contextlib.contextmanager
def serving(folder, text, **env):
    (folder / "scorer.py").write_text(text)
    url = f"http://127.0.0.1:{(port := free_port())}"
    env = environment(PYTHONPATH=f"{folder}:{script('python-packages', 'fastapi')}", **env)
    scorer = Process("Python scorer", [*PYTHON, "uvicorn", "--port", port, "scorer:app"], folder / "scorer.log", env)
    try:
        wait_until(lambda: call("GET", f"{url}/healthz").status == 200, "it answers", LONG)
        yield url
    finally:
        scorer.kill()


@pytest.mark.parametrize(
    "draft, token, expected",
    [(False, "dummy-token-1234", set()), (True, "", {"short-series", "nan-values"})],
)
def test_of_fastapi(tmp_path, draft, token, expected):
    text = (SAMPLE / "scorer.py").read_text()
    if draft:
        text = text.replace('@app.get("/healthz")', FIRST_DRAFT.lstrip())
    (tmp_path / "token").write_text(token)
    flags = [f"--token-file={tmp_path / 'token'}"] if token else []
    with serving(tmp_path, text, TOKEN=token) as url:
        ended = run(PROGRAM, "check-scorer", "--output=json", "--timeout=60s", *flags, url)
    found = json.loads(ended.stdout)
    assert {f["rule"] for f in found["findings"]} == expected, found["findings"]
    assert ended.returncode == int(bool(expected)) and found["agent"]["series"] == 10


def test_its_own_tests():
    env = environment(PYTHONPATH=f"{SAMPLE}:{script('python-packages', 'fastapi')}")
    done = run(*PYTHON, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", SAMPLE, SAMPLE / "test_scorer.py", env=env)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
