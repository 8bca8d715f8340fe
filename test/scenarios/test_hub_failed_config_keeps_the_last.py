"""A /config that fails, however it fails, leaves what was synced before in force, and is no sign of health."""

import pytest

from lib.fake import answer, hanging, plain
from lib.scorers import api_config, distributed, full, serve, wait_status

FAST = ("--health-check-timeout=1s", "--unhealthy-threshold=2")


@pytest.mark.parametrize(
    "reply, reason, words",
    [
        (answer(api_config("other"), 500), "HTTPStatus", "500"),
        (answer({"detail": "model not loaded"}, 503), "HTTPStatus", "model not loaded"),
        (plain("<html>login</html>"), "InvalidConfig", "JSON"),
        (answer({"error": "no"}), "InvalidConfig", "scoring"),
        (answer(api_config("cpu", source={"type": "Graphite"})), "InvalidConfig", "Graphite"),
        (hanging, "Timeout", ""),
    ],
    ids=["500_with_a_configuration", "503_with_words", "not_json", "another_document", "bad_field", "hangs"],
)
def test_the_last_good_one_stays(hub, fake, start_controller, reply, reason, words):
    distributed(hub, fake, start_controller, *FAST)
    before, known = hub.summaries("c1"), hub.scorer_status("s")["lastSyncedConfig"]
    fake.on("/config", reply)
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", reason)
    assert words in message and fake.url in message
    status = hub.scorer_status("s")
    assert status["lastSyncedConfig"] == known
    assert status["healthStatus"] == "Active" and status["scoreName"] == "cpu"
    assert hub.summaries("c1") == before
    fake.on("/config", answer(api_config("cpu", description="mended")))
    hub.wait_scorer("s", "ConfigSynced", "True")
    wait_status(hub, "s", lambda s: s["lastSyncedConfig"]["description"] == "mended", "it is read again")


def test_it_is_no_sign_of_health(hub, fake, start_controller):
    """An API without /healthz is judged by its /config: 500 is not Active, whatever the body says."""
    distributed(hub, fake, start_controller, *FAST)
    fake.on("/healthz", plain("no such path", 404))
    known = hub.scorer_status("s")["lastSyncedConfig"]
    fake.on("/config", answer(api_config("cpu"), 500))
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    status, reason, message = hub.scorer_condition("s", "Healthy")
    assert (status, reason) == ("False", "HTTPStatus") and "500" in message
    assert hub.scorer_status("s")["lastSyncedConfig"] == known
    hub.wait_scores("c1")  # an unhealthy scorer is left out
    fake.on("/config", answer(api_config("cpu")))
    hub.wait_scores("c1", "cpu")


def test_it_never_worked(hub, fake, start_controller):
    """Nothing is made up from an error's body."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    fake.on("/config", answer(api_config("cpu"), 500))
    start_controller(*FAST)
    hub.wait_scorer("s", "ConfigSynced", "False", "HTTPStatus")
    assert "lastSyncedConfig" not in hub.scorer_status("s")
    hub.wait_scores("c1")
    hub.wait_scorer("s", "Ready", "False")
    fake.on("/config", answer(api_config("cpu")))
    hub.wait_scores("c1", "cpu")
