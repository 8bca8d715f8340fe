"""scoreTolerance: what differs by no more from the items on the hub is not written, until it must be; Placement decides as
before. Series are not affected."""

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER
from lib.wait import LONG, wait_until

PATIENT = {"limits": {"staleAfterIntervals": 1000}}  # so that half of the validity is far away
HELD_BACK = "dynamic_scoring_placement_held_back_total"


def version(kube, name):
    return kube.object(name)["metadata"]["resourceVersion"]


def rounds_pass(agent, name, n=3):
    was = agent.status(name)["rounds"]
    wait_until(lambda: agent.status(name)["rounds"] >= was + n, f"{n} rounds more")


def test_only_more_than_the_tolerance_is_written(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 10, {"node": "b"}, -20))
    kube.configure(summary("s", url, scoreDimensionFormat="${node}", scoreTolerance=5))
    agent = start_agent(PATIENT, *kube.flags())
    kube.wait_items("s", {"a": 10, "b": -20})
    written = version(kube, "s")

    fake.on("/s", results({"node": "a"}, 15.9, {"node": "b"}, -25))
    wait_until(lambda: ({"node": "a"}, 15.9) in agent.scores("s"), "series have what the scoring API said")
    rounds_pass(agent, "s")
    assert version(kube, "s") == written
    assert agent.metric(HELD_BACK, score_name="s") >= 3
    assert agent.metric("dynamic_scoring_placement_behind") == 0

    fake.on("/s", results({"node": "a"}, 16, {"node": "b"}, -25))
    kube.wait_items("s", {"a": 16, "b": -25})  # with all that is newest
    fake.on("/s", results({"node": "a"}, 16))
    kube.wait_items("s", {"a": 16})  # an item that goes


def test_a_change_of_state_is_written_at_once(kube, fake, start_agent):
    """A condition, the scorer itself; and what another writer has changed is put right."""
    url = fake.on("/s", results({"node": "a"}, 10))
    calm = {"scoreDimensionFormat": "${node}", "scoreTolerance": 50}
    kube.configure(summary("s", url, **calm))
    start_agent(PATIENT, *kube.flags())
    kube.wait_items("s", {"a": 10})
    fake.on("/s", plain("out of order", 500))
    kube.wait_condition("s", "Scored", "False")
    fake.on("/s", results({"node": "a"}, 11))
    kube.wait_items("s", {"a": 11})
    fake.on("/s", results({"node": "a"}, 140))
    kube.wait_items("s", {"a": 100})
    kube.wait_condition("s", "Clamped", "True")
    kube.configure(summary("s", url, scoreRange={"min": 0, "max": 160}, **calm))
    kube.wait_items("s", {"a": 75})
    patch = '--patch={"status":{"scores":[{"name":"a","value":74}]}}'
    done = kube.kubectl("patch", "addonplacementscore", "s", f"-n{CLUSTER}", "--subresource=status", "--type=merge", patch)
    assert done.returncode == 0, done.stderr
    kube.wait_items("s", {"a": 75})


def test_the_fallback_and_its_end_are_written_at_once(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 10))
    kube.configure(summary("s", url, scoreDimensionFormat="${node}", scoreTolerance=50, fallbackScore=12))
    start_agent({}, *kube.flags())
    kube.wait_items("s", {"a": 10})
    fake.on("/s", plain("out of order", 500))
    kube.wait_items("s", {"a": 12}, LONG)
    fake.on("/s", results({"node": "a"}, 11))
    kube.wait_items("s", {"a": 11})


def test_half_of_the_validity_renews_with_the_newest(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 10))
    kube.configure(summary("s", url, interval=2, scoreDimensionFormat="${node}", scoreTolerance=5))
    start_agent({}, *kube.flags())
    kube.wait_items("s", {"a": 10})
    fake.on("/s", results({"node": "a"}, 13))
    kube.wait_items("s", {"a": 13})
