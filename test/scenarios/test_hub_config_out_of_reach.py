"""A scorer whose /config the hub cannot read is distributed with the last configuration that was read, or else with the
DynamicScorer's own fields, and says which; also after a crash of the controller."""

import pytest

from lib.fake import plain
from lib.process import free_port
from lib.scorers import full, own, serve, wait_status

NEVER = "none has been read yet, so the fields of the DynamicScorer are active"
LAST = "the last valid configuration stays active"


def crash(controller):
    controller.kill()
    controller.start()
    controller.wait_metric("dynamic_scoring_hub_probes_total", probe="config", scorer="s")


@pytest.mark.parametrize("check", ["Agents", "None"])
def test_never_read(hub, fake, start_controller, check):
    hub.add_cluster("c1")
    hub.configure()
    nowhere = f"http://127.0.0.1:{free_port()}"
    hub.apply_scorer("s", own("mine", nowhere, configSyncMode="Full", healthCheck=check))
    controller = start_controller()
    hub.wait_scores("c1", "mine")
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "Unreachable")
    assert nowhere in message and message.endswith(NEVER)
    status = wait_status(hub, "s", lambda s: s.get("configSource") == "Spec", "it says so")
    assert "lastSyncedConfig" not in status
    before = hub.work("c1")["metadata"]["generation"]
    crash(controller)
    assert hub.wait_scorer("s", "ConfigSynced", "False", "Unreachable")[2].endswith(NEVER)
    assert hub.work("c1")["metadata"]["generation"] == before

    # Once it can be read, what it says counts.
    url = serve(fake, "/config", "cpu")
    hub.apply_scorer("s", own("mine", nowhere, configSyncMode="Full", healthCheck=check, configURL=url))
    hub.wait_scores("c1", "cpu")
    wait_status(hub, "s", lambda s: s.get("configSource") == "API", "it says so")


def test_read_once(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu"), healthCheck="Agents"))
    controller = start_controller()
    hub.wait_scores("c1", "cpu")
    hub.wait_scorer("s", "ConfigSynced", "True")
    before = hub.work("c1")["metadata"]["generation"]
    fake.on("/config", plain("gone", 410))
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", "HTTPStatus")
    assert "gone" in message and message.endswith(LAST)
    crash(controller)
    assert hub.wait_scorer("s", "ConfigSynced", "False", "HTTPStatus")[2].endswith(LAST)
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")
    assert hub.work("c1")["metadata"]["generation"] == before
    assert not fake.requests("/healthz"), "the hub leaves the health to agents"


def test_neither(hub, start_controller):
    """The DynamicScorer has no source of its own."""
    hub.add_cluster("c1")
    hub.configure()
    url = f"http://127.0.0.1:{free_port()}/config"
    hub.apply_scorer("s", full(url, healthCheck="Agents", scoring={"params": {"name": "cpu", "interval": 30}}))
    start_controller()
    hub.wait_scores("c1")
    _, reason, message = hub.wait_scorer("s", "Ready", "False", "Unreachable")
    assert url in message and message.endswith("no configuration has been read yet")
