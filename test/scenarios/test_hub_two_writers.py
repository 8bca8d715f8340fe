"""Another controller writes the same statuses or removes our finalizer, as the reference implementation does during a
migration: the conflict does not go on endlessly, and our state wins."""

import contextlib
import threading
import time

from lib.hub import CONFIG, CONFIGS, SCORERS
from lib.kube import Refused
from lib.scorers import FINALIZER, distributed, writes
from lib.wait import LONG, wait_until

QUARREL_S = 8


@contextlib.contextmanager
def undoing(undo):
    """Calls undo() continuously, which returns whether it changed something; yields [number of changes]."""
    stopping, done = threading.Event(), [0]

    def run():
        while not stopping.wait(0.01):
            with contextlib.suppress(Refused):
                done[0] += bool(undo())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        stopping.set()
        thread.join()


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
    assert writes(controller) - before <= 12
    wait_until(lambda: "another writer keeps undoing our writes" in controller.log(), "it is said")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting", deadline=LONG)
    assert hub.score_names("c1") == ["cpu"]


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
    assert writes(controller) - before <= 16
    wait_until(lambda: hub.config()["metadata"].get("finalizers") == [FINALIZER], "it is there again", LONG)
    # Deletion does not wait for the back-off.
    hub.kubectl("delete", "dynamicscoringconfig", CONFIG, "--timeout=60s")
    assert hub.config() is None and hub.works() == {}
