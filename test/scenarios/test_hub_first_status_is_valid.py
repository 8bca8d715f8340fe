"""The API server accepts the first status of a DynamicScorer, whatever is known by then."""

from lib.fake import hanging
from lib.scorers import distributed, full, own, wait_status


def test_before_anything_is_known(hub, fake, start_controller):
    fake.on("/healthz", hanging)
    hub.apply_scorer("unknown", full(fake.on("/config", hanging)))
    hub.apply_scorer("refused", full("http://127.0.0.1:9/config"))
    hub.apply_scorer("own", own("cpu", "http://127.0.0.1:9"))
    controller = start_controller("--health-check-timeout=5m")
    status = wait_status(hub, "unknown", lambda s: s.get("healthStatus"), "the first status")
    assert status["healthStatus"] == "Unknown"
    assert status["observedGeneration"] == 1
    for name in ("refused", "own"):
        _, reason, message = hub.wait_scorer(name, "Healthy", "False")
        assert reason == "Unreachable" and "127.0.0.1:9" in message
        assert hub.scorer_status(name)["healthStatus"] == "Inactive"
    controller.wait_metric("dynamic_scoring_hub_writes_total", operation="status", result="ok")
    written = controller.metrics().all("dynamic_scoring_hub_writes_total", operation="status")
    assert {labels["result"] for labels, _ in written} == {"ok"}


def test_each_condition_is_whole(hub, fake, start_controller):
    """As users and `kubectl wait` need them; lastTransitionTime changes with the status only."""
    distributed(hub, fake, start_controller)
    conditions = {c["type"]: c for c in hub.scorer_status("s")["conditions"]}
    assert {"Healthy", "ConfigSynced", "Distributed", "Ready"} <= set(conditions)
    for c in conditions.values():
        assert c["status"] in ("True", "False", "Unknown") and c["reason"] and c["message"], c
        assert c["lastTransitionTime"].endswith("Z") and c["observedGeneration"] == 1, c
    hub.set_feedback("c1", None)
    wait_status(hub, "s", lambda s: s["clusters"]["applied"] == 1, "it is written once more")
    for c in hub.scorer_status("s")["conditions"]:
        if c["status"] == conditions[c["type"]]["status"]:
            assert c["lastTransitionTime"] == conditions[c["type"]]["lastTransitionTime"], c
