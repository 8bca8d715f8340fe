"""Another controller writes the same statuses or ManifestWorks or removes our finalizer, as the reference implementation
does during a migration: the conflict does not go on endlessly, conditions and one Event name it while it lasts, and our
state wins."""

import contextlib
import json
import threading
import time

import pytest

from lib.hub import CONFIG, CONFIGS, SCORERS
from lib.kube import Refused
from lib.scorers import FINALIZER, distributed, writes
from lib.wait import LONG, wait_until
from lib.work import WORK, WORKS

QUARREL_S = 8
AT_ONCE = 0.01
LATE = 2  # seconds: more than the back-off before a fight, so that each write is repeated at once, and no status says Progressing


@contextlib.contextmanager
def undoing(undo, pause=AT_ONCE):
    """Calls undo() all the time, which returns whether it changed something; yields [number of changes]."""
    stopping, done = threading.Event(), [0]

    def run():
        while not stopping.wait(pause):
            with contextlib.suppress(Refused):
                done[0] += bool(undo())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        stopping.set()
        thread.join()


def wait_end(hub, condition, what):
    """Waits until the condition is gone: when a write has stood for twice as long as any did during the fight."""
    wait_until(lambda: condition() is None, f"{what} is not Contested any more", 2 * LONG)


def events_of(hub, name, reason):
    return [e for e in hub.whole_events(name) if e["reason"] == reason]


def the_conflict(hub, name):
    """The note of the only Event about fights over the object."""
    found = events_of(hub, name, "WriteConflict")
    assert len(found) == 1, json.dumps(found, indent=1)
    return found[0]["note"]


def test_a_status(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller)

    def as_the_other_knows_it():
        found = hub.scorer("s")
        if "conditions" not in found["status"]:
            return False
        known = {k: found["status"][k] for k in ("healthStatus", "lastSyncedConfig")}
        hub.kube.call("PUT", f"{SCORERS}/s/status", {**found, "status": known})
        return True

    before = writes(controller)
    with undoing(as_the_other_knows_it) as done:
        wait_until(lambda: done[0] >= 3, "there is a quarrel")
        time.sleep(QUARREL_S)
        assert writes(controller) - before <= 14
        words = "the status of DynamicScorer s: managedFields do not name it"  # who only removes leaves no trace there
        hub.wait_config("Contested", "True", "WriteConflict", says=words)
    wait_until(lambda: "another writer keeps undoing our writes" in controller.log(), "it is said")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting", deadline=LONG)
    hub.wait_scorer("s", "Contested", "True", "WriteConflict", says=words)  # until it is clear that the write stands
    wait_end(hub, lambda: hub.scorer_condition("s", "Contested"), "the DynamicScorer")
    wait_end(hub, lambda: hub.config_condition("Contested"), "the DynamicScoringConfig")
    assert words in the_conflict(hub, "s")
    assert hub.score_names("c1") == ["cpu"]


@pytest.mark.parametrize("pause", [AT_ONCE, LATE])
def test_a_manifestwork(hub, fake, start_controller, pause):
    """The DynamicScoringConfig is not Ready then: no second Event says so, even if it was Ready until the fight began. The
    DynamicScorer has one of its own, even if it was Progressing until then."""
    distributed(hub, fake, start_controller)
    label = "dynamic-scoring.open-cluster-management.io/managed-by"

    def take_over():
        if hub.work("c1")["metadata"]["labels"].get(label) == "argocd":
            return False
        path = f"{WORKS.format('c1')}/{WORK}?fieldManager=argocd-controller"
        hub.patch(path, {"metadata": {"labels": {label: "argocd"}}})
        return True

    words = f"writer (field manager argocd-controller) keeps undoing what this one writes to ManifestWork c1/{WORK}"
    with undoing(take_over, pause):
        hub.wait_config("Distributed", "False", "WriteConflict", LONG, says=words)
        hub.wait_scorer("s", "Distributed", "False", "WriteConflict", says=words)
        failing = f"c1: ManifestWork not written: another {words}"
        assert failing in hub.wait_scorer("s", "Scoring", "Unknown", says="failing on 1")[2]
        hub.wait_config("Ready", "False", "WriteConflict", says=words)
        hub.wait_scorer("s", "Ready", "False", "WriteConflict", says=words)
    hub.wait_config("Distributed", "False", "Progressing", 2 * LONG)
    hub.wait_scorer("s", "Distributed", "False", "Progressing")
    wait_until(lambda: events_of(hub, CONFIG, "Ready"), "the end is told")  # after all that was told before
    assert words in the_conflict(hub, CONFIG)
    assert words in the_conflict(hub, "s")


def test_a_finalizer(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller)

    def take_away():
        if not hub.config()["metadata"].get("finalizers"):
            return False
        hub.patch(f"{CONFIGS}/{CONFIG}", {"metadata": {"finalizers": None}})
        return True

    before = writes(controller)
    with undoing(take_away) as done:
        wait_until(lambda: done[0] >= 3, "there is a quarrel")
        time.sleep(QUARREL_S)
        hub.wait_config("Contested", "True", "WriteConflict", says=f"finalizers of DynamicScoringConfig {CONFIG}")
    assert writes(controller) - before <= 16
    assert f"finalizers of DynamicScoringConfig {CONFIG}" in the_conflict(hub, CONFIG)
    wait_until(lambda: hub.config()["metadata"].get("finalizers") == [FINALIZER], "it is there again", LONG)
    # Deletion does not wait for the back-off.
    hub.kubectl("delete", "dynamicscoringconfig", CONFIG, "--timeout=60s")
    assert hub.config() is None and hub.works() == {}
