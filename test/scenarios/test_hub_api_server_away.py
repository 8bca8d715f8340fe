"""While the API server is down, clusters keep what they have; when it is back, the controller catches up with all
changes."""

import signal

import pytest

from lib.fake import answer
from lib.scorers import api_config, distributed, full, serve, wait_no_work, wait_status
from lib.wait import LONG


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
    hub.wait_scorer("s", "Ready", "True", deadline=LONG)


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
