"""README's "Your own Prometheus and scoring API", block by block as it stands there, only on free ports: a laptop with a
Prometheus that scrapes itself."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
from lib.agent import PROGRAM
from lib.client import call
from lib.page import BLOCK
from lib.process import ROOT, environment, free_port, steady_addresses
from lib.prometheus import ITSELF, running_prometheus
from lib.wait import LONG, eventually, wait_until

SECTION = "## Your own Prometheus and scoring API\n"


def blocks(**ports):
    """[(language, text)], with other ports."""
    section = (ROOT / "README.md").read_text().partition(SECTION)[2].partition("\n### ")[0]
    for port, other in ports.items():
        section = section.replace(port.removeprefix("_"), str(other))
    return BLOCK.findall(section)


def shape(text):
    """Words without numbers and widths."""
    return re.sub(r"-?[\d.]+(e[+-]\d+)?", "N", text).split()


@pytest.fixture(name="run")
def in_a_folder(tmp_path):
    """Runs a block in a folder with build/dynamic-scoring; what it leaves in the background ends with the test."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/dynamic-scoring").symlink_to(PROGRAM)
    started = []

    def run(commands, wait=True):
        words = [*steady_addresses(), "bash", "-euc", commands]
        with (tmp_path / "output").open("w") as out:
            started.append(subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=out, start_new_session=True))
        if wait:
            assert started[-1].wait(LONG) == 0, commands
        return (tmp_path / "output").read_text()

    run.folder = tmp_path
    yield run
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        one.wait()


def test_a_laptop(run):
    page, scorer = free_port(), free_port()
    job = {"job_name": "prometheus", "static_configs": [{"targets": [ITSELF]}]}
    with running_prometheus(job) as prometheus:
        source = prometheus.url.rpartition(":")[2]
        start, file, check, printed, agent, *_ = blocks(_9090=source, _8080=page, _8000=scorer)
        assert [b[0] for b in (start, file, check, printed, agent)] == ["sh", "yaml", "sh", "text", "sh"]
        prometheus.wait_query("rate(process_cpu_seconds_total[5m])", "Prometheus has scraped itself twice")
        run(start[1])
        (run.folder / "scorers.yaml").write_text(file[1])
        wait_until(lambda: call("GET", f"http://localhost:{scorer}/healthz").status == 200, "the scoring API answers")
        assert shape(run(check[1])) == shape(printed[1])
        run(agent[1].replace("--config", f"--web.listen-address=localhost:{page} --config"), wait=False)
        metrics = f"http://localhost:{page}/metrics"
        eventually(lambda: check_score(call("GET", metrics).text))


def check_score(text):
    assert re.search(r'^dynamic_score\{.*ds_cluster="laptop".*ds_score_name="prometheus_cpu"\} [\d.]', text, re.M), text
