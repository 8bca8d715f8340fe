"""The tests' own receiver accepts what Prometheus and vmagent write; so its verdict about our requests counts."""

import json
import shutil
import subprocess

import pytest
from lib import remote, remote_wire
from lib.process import missing

SERIES = 50


@pytest.fixture(name="target")
def scraped():
    """A page of gauges with every kind of label."""
    with remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Receiver() as receiver:
            yield scoring, receiver


def scrape_config(folder, agent, receiver):
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "agent", "static_configs": [{"targets": [f"127.0.0.1:{agent.port}"]}]}],
    }
    if receiver:
        config["remote_write"] = [{"url": receiver.url(), "metadata_config": {"send_interval": "1s"}}]
    path = folder / "scrape.json"
    path.write_text(json.dumps(config))
    return path


def prometheus(folder, agent, receiver):
    return [
        "prometheus",
        f"--config.file={scrape_config(folder, agent, receiver)}",
        "--enable-feature=agent",
        f"--storage.agent.path={folder}/wal",
        f"--web.listen-address=127.0.0.1:{remote.free_port()}",
    ]


def vmagent(folder, agent, receiver):
    usage = subprocess.run(["vmagent", "-help"], capture_output=True, text=True, check=False)
    # A newer one begins with a protocol of its own, and labels what it queued in that as the standard's once it is refused.
    standard = ["-remoteWrite.forcePromProto"] if "-remoteWrite.forcePromProto" in usage.stdout + usage.stderr else []
    return [
        "vmagent",
        f"-promscrape.config={scrape_config(folder, agent, None)}",
        f"-remoteWrite.url={receiver.url()}",
        f"-remoteWrite.tmpDataPath={folder}/queue",
        f"-httpListenAddr=127.0.0.1:{remote.free_port()}",
        *standard,
    ]


@pytest.mark.parametrize("sender", [prometheus, vmagent])
def test_it_reads_what_others_send(tmp_path, target, sender):
    if not shutil.which(sender.__name__):
        missing(f"no {sender.__name__} here")
    scoring, receiver = target
    with remote.Agent(tmp_path, scoring, []) as agent:
        process = subprocess.Popen(sender(tmp_path, agent, receiver), stderr=subprocess.DEVNULL, env=remote.ENVIRONMENT)
        try:

            def scores():
                return {k: v for k, v in receiver.stream().items() if dict(k)["__name__"] == "dynamic_score"}

            remote.wait_for("all series", lambda: len(scores()) == SERIES, alive=lambda: process.poll() is None)
        finally:
            process.terminate()
            process.wait(remote.DEADLINE)
    expected = {remote.labels("t", node=f"n{i:05}") for i in range(SERIES)}
    without_target = {tuple(pair for pair in k if pair[0] not in ("instance", "job")) for k in scores()}
    assert without_target == expected
    if sender is vmagent:
        for arrival in receiver.arrivals:  # its only fault
            assert arrival.problem == "AssertionError: User-Agent: vmagent"
            arrival.problem = None
    remote.in_order(receiver.stream())
    assert all(s.bits != remote_wire.STALE for samples in scores().values() for s in samples[:1])
    if sender is prometheus:
        assert ("dynamic_score", remote_wire.GAUGE) in {(m.family, m.type) for m in receiver.metadata()}


def test_it_finds_faults():
    good = [("__name__", "a"), ("b", "c")]
    remote_wire.check_labels(good)
    for bad in (
        good[::-1],
        good + good[1:],
        [*good, ("d", "")],
        good[1:],
        [("", "x"), *good],
        [("__name__", "1a"), ("b", "c")],
    ):
        with pytest.raises(AssertionError):
            remote_wire.check_labels(bad)
    with pytest.raises(AssertionError):
        remote_wire.form_of({**remote_wire.FORMS["1.0"], "x-prometheus-remote-write-version": "2.0.0"})
