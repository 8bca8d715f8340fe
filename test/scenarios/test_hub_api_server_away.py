"""While the API server is down, clusters keep what they have; when it is back, the controller catches up with all
changes."""

import signal

import pytest

from lib.agent import running_agent
from lib.fake import answer, results
from lib.hub import static_scorer
from lib.kube import CLUSTER, NAMESPACE, running_kube
from lib.scorers import api_config, distributed, full, serve, wait_no_work, wait_status
from lib.wait import LONG
from lib.work import FakeWorkAgent


@pytest.fixture(name="paused")
def runs_again(hub):
    """An API server that is resumed after the test in any case."""
    yield hub
    if not (hub.kube.state / "server.pid").exists():
        hub.kube.resume()


def test_away_and_back(paused, fake, start_controller):
    hub = paused
    controller = distributed(hub, fake, start_controller)
    hub.kube.pause()
    fake.on("/config", answer(api_config("memory")))
    controller.wait_metric("dynamic_scoring_hub_probes_total", 5, probe="config", result="ok", scorer="s")
    assert controller.get("/").status == 200
    hub.kube.resume()
    hub.wait_scores("c1", "memory", deadline=LONG)
    hub.add_cluster("c2")
    hub.wait_scores("c2", "memory", deadline=LONG)
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting", deadline=LONG)


def test_changes_of_which_no_event_came(paused, fake, start_controller):
    """The controller is stopped while objects change and its watches break."""
    hub = paused
    controller = distributed(hub, fake, start_controller, clusters=("c1", "goes"))
    hub.apply_scorer("t", full(serve(fake, "/t", "gone")))
    hub.wait_scores("c1", "cpu", "gone")
    controller.process.send(signal.SIGSTOP)
    try:
        hub.delete_scorer("t")
        hub.remove_cluster("goes")
        hub.add_cluster("c2")
        hub.apply_scorer("u", full(serve(fake, "/u", "new")))
        hub.kube.pause()
        hub.kube.resume()
    finally:
        controller.process.send(signal.SIGCONT)
    hub.wait_scores("c2", "cpu", "new", deadline=LONG)
    hub.wait_scores("c1", "cpu", "new", deadline=LONG)
    wait_status(hub, "u", lambda s: s["clusters"]["selected"] == s["clusters"]["upToDate"] == 2, "it is counted", LONG)
    wait_no_work(hub, "goes")


def test_away_at_the_start(paused, fake, start_controller):
    hub = paused
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    hub.kube.pause()
    controller = start_controller(start=False)
    controller.launch()
    controller.wait_until(lambda: controller.health("/healthz").status == 200, "it is alive")
    assert controller.health("/readyz").status != 200
    hub.kube.resume()
    hub.wait_scores("c1", "cpu", deadline=LONG)
    controller.wait_until(lambda: controller.health("/readyz").status == 200, "it is ready")


@pytest.fixture(name="managed")
def of_a_managed_cluster():
    with running_kube() as server:
        yield server


def test_a_restart_is_no_news(paused, managed, fake, start_controller):
    """The managed cluster has an API server of its own, so that its agent could report that the hub is away."""
    hub = paused
    hub.add_cluster(CLUSTER)
    hub.configure()
    fake.on("/healthz", answer({}))
    fake.on("/scoring", results({}, 1))
    hub.apply_scorer("s", static_scorer(fake.url, "cpu", interval=1))
    start_controller()
    flags = managed.flags(hub=hub.kube.kubeconfig())
    with FakeWorkAgent(hub, {CLUSTER: (managed, NAMESPACE)}), running_agent({}, *flags) as agent:
        hub.wait_scorer("s", "Scoring", "True")
        hub.kube.wait_items("cpu", {"cpu": 1})
        hub.kube.pause()
        fake.on("/scoring", results({}, 2))
        noticed = ("AddOnPlacementScore not written", "watch of AddOnPlacementScores failed")
        agent.wait_until(lambda: any(words in agent.log() for words in noticed), "the agent notices it")
        agent.wait_rounds("cpu", agent.status("cpu")["rounds"] + 8)  # after each of which a report could be written
        assert managed.reported("cpu")["state"] == "ok"
        assert "placementError" not in managed.reported("cpu") and "hubError" not in managed.report()
        hub.kube.resume()
        hub.kube.wait_items("cpu", {"cpu": 2}, deadline=LONG)
        hub.wait_scorer("s", "Ready", "True")
    assert [e for e in hub.events("s") if e[0] == "Warning"] == []
