"""Another program keeps changing an AddOnPlacementScore of the agent's: the object's condition and the report to the hub say
so, with the other's field manager and what to do, until a write stands."""

import contextlib
import threading

from lib.agent import summary
from lib.fake import results
from lib.kube import CLUSTER, MERGE_PATCH, SCORES, Refused
from lib.wait import LONG, wait_until


@contextlib.contextmanager
def changing(kube, name):
    """Sets another score whenever it is the agent's."""
    stopping = threading.Event()
    path = f"{SCORES.format(CLUSTER)}/{name}"
    scores = [{"name": "a", "value": 99}]

    def run():
        while not stopping.wait(0.01):
            with contextlib.suppress(Refused):
                if kube.call("GET", path).get("status", {}).get("scores") != scores:
                    body = {"status": {"scores": scores}}
                    kube.call("PATCH", f"{path}/status?fieldManager=autotuner", body, MERGE_PATCH)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_contested_scores(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    assert kube.condition("a", "Contested") is None
    words = (
        f"another writer (field manager autotuner) keeps undoing what this one writes to AddOnPlacementScore {CLUSTER}/a: "
        "stop it from managing this object"
    )
    with changing(kube, "a"):
        found = kube.wait_condition("a", "Contested", "True", LONG)
        assert found[1:] == ("WriteConflict", words)
        wait_until(lambda: words in str(kube.report()), "the report names it")
    kube.wait_items("a", {"a": 1}, LONG)
    wait_until(lambda: kube.condition("a", "Contested") is None, "it is over", 2 * LONG)
    wait_until(lambda: words not in str(kube.report()), "for the hub, too")
    kube.wait_items("a", {"a": 1})
    assert agent.log().count("another writer keeps undoing our writes") == 1
