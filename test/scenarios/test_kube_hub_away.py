"""Each API server may fail on its own: scoring and /metrics continue, and the latest state is written when it is
back."""

import signal

import pytest

from lib.agent import summary
from lib.fake import results
from lib.wait import DEADLINE, LONG


@pytest.fixture
def paused(kube):
    """An API server that is resumed after the test in any case."""
    yield kube
    kube.resume() if not (kube.state / "server.pid").exists() else None


def test_away_and_back(paused, fake, start_agent):
    kube = paused
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=1))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kube.pause()
    for value in (2, 3, 4):
        fake.on("/s", results({}, value))
        agent.wait_until(lambda v=value: agent.scores("a") == [({}, v)], "scoring goes on")
    agent.wait_until(lambda: agent.metric("dynamic_scoring_kubernetes_up", server="hub") == 0, "it is noticed")
    kube.resume()
    kube.wait_items("a", {"a": 4}, deadline=LONG)
    agent.wait_until(lambda: agent.metric("dynamic_scoring_kubernetes_up", server="hub") == 1, "all is well", LONG)
    agent.wait_until(lambda: agent.metric("dynamic_scoring_placement_behind") == 0, "nothing is behind")
    kube.configure(summary("b", fake.on("/t", results({}, 9)), interval=600))
    kube.wait_items("b", {"b": 9}, deadline=LONG)
    kube.wait_gone("a")


def test_all_return_within_seconds(paused, fake, start_agent):
    """One question asks for the API server while it is away; all objects wait for the answer instead of backing off."""
    kube, names = paused, [f"s{i}" for i in range(24)]
    kube.configure(*(summary(name, fake.on("/s", results({}, 1)), interval=1) for name in names))
    # Valid for long: a renewal is a write, too.
    agent = start_agent({"limits": {"staleAfterIntervals": 100}}, *kube.flags())
    for name in names:
        kube.wait_items(name, {name: 1})

    def tries():
        return agent.metric("dynamic_scoring_placement_writes_total", operation="status", result="retry")

    def more_rounds(n):
        agent.wait_rounds(names[0], agent.status(names[0])["rounds"] + n)

    fake.on("/s", results({}, 2))
    kube.pause()
    agent.wait_until(lambda: agent.metric("dynamic_scoring_kubernetes_up", server="hub") == 0, "the absence is noticed")
    more_rounds(4)
    before = tries()
    more_rounds(8)
    assert tries() == before
    kube.resume()  # returns once the server is ready; 20 s are promised
    agent.wait_until(lambda: agent.metric("dynamic_scoring_placement_behind") == 0, "all is written", DEADLINE / 2)
    for name in names:
        kube.wait_items(name, {name: 2})
    agent.wait_metric_is(1, "dynamic_scoring_kubernetes_up", server="cluster", resource="configmaps")


def test_away_at_the_start(paused, fake, start_agent):
    kube = paused
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    kube.pause()
    agent = start_agent({}, *kube.flags())
    assert agent.get("/metrics").status == 200
    kube.resume()
    kube.wait_items("a", {"a": 1}, deadline=LONG)


def test_a_hub_that_comes_late(kube, fake, start_agent, tmp_path):
    """OCM mounts the hub's kubeconfig once the registration is complete."""
    late = tmp_path / "late" / "kubeconfig"
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=1))
    agent = start_agent({}, *kube.flags(hub=late))
    agent.wait_scores("a")
    late.parent.mkdir()
    for name in ("tls.crt", "tls.key", "ca.crt", "kubeconfig"):
        (late.parent / name).write_bytes((kube.kubeconfig("hub").parent / name).read_bytes())
    kube.wait_items("a", {"a": 1}, deadline=LONG)


def test_kill_anywhere(kube, fake, start_agent):
    """After a kill at any moment, the next start completes the work."""
    url = fake.on("/s", results({}, 1))
    names = [f"s{i}" for i in range(8)]
    kube.configure(*(summary(name, url, interval=600) for name in names))
    agent = start_agent({}, *kube.flags(), start=False)
    for writes in range(8):
        agent.launch()
        agent.wait_until(lambda n=writes: len(kube.objects()) >= n, f"{writes} objects are there")
        agent.process.send(signal.SIGKILL)
        agent.process.wait()
    fake.on("/s", results({}, 2))
    kube.configure(*(summary(name, url, interval=600) for name in names[::2]))
    agent.start()
    for name in names[::2]:
        kube.wait_items(name, {name: 2})
    for name in names[1::2]:
        kube.wait_gone(name)
