"""scoreTolerance: what differs by no more from the items on the hub is not written, until it must be; Placement decides as
before. Series are not affected."""

import itertools

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER
from lib.wait import LONG, wait_until

PATIENT = {"limits": {"staleAfterIntervals": 1000}}  # so that half of the validity is far away
RENEWED_EVERY_THREE = {"limits": {"staleAfterIntervals": 6}}  # rounds: at half of the validity
HELD_BACK = "dynamic_scoring_placement_held_back_total"


def version(kube, name):
    return kube.object(name)["metadata"]["resourceVersion"]


def in_turn(*values, last=False):
    """One value of node a after the other, again and again; last=True: the last one in the end."""
    left = itertools.chain(values, itertools.repeat(values[-1])) if last else itertools.cycle(values)

    def send(connection, request):
        results({"node": "a"}, next(left))(connection, request)

    return send


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
    """Although both are within the tolerance, which is in force."""
    url = fake.on("/s", results({"node": "a"}, 10))
    kube.configure(summary("s", url, scoreDimensionFormat="${node}", scoreTolerance=50, fallbackScore=12))
    agent = start_agent(RENEWED_EVERY_THREE, *kube.flags())
    kube.wait_items("s", {"a": 10})
    fake.on("/s", in_turn(10, 11))
    agent.wait_metric(HELD_BACK, score_name="s")
    fake.on("/s", plain("out of order", 500))
    kube.wait_items("s", {"a": 12}, LONG)
    held_back = agent.metric(HELD_BACK, score_name="s")
    fake.on("/s", results({"node": "a"}, 13))
    kube.wait_items("s", {"a": 13})
    assert agent.metric(HELD_BACK, score_name="s") == held_back, "the first round was written"


def test_half_of_the_validity_renews_with_the_newest(kube, fake, start_agent):
    """The second round is held back; another is written, although it is near, too."""
    url = fake.on("/s", in_turn(10, 11, 13, last=True))
    kube.configure(summary("s", url, scoreDimensionFormat="${node}", scoreTolerance=5))
    agent = start_agent(RENEWED_EVERY_THREE, *kube.flags())
    kube.wait_items("s", {"a": 13})
    assert agent.metric(HELD_BACK, score_name="s") >= 1


def test_an_adjustment_is_written_however_small(kube, fake, start_agent):
    """Its beginning, its change, the change of its reason alone, and its end: without a round."""
    scorer = summary("s", fake.on("/s", results({"node": "a"}, 10)), interval=600, scoreDimensionFormat="${node}", scoreTolerance=50)

    def adjust(*entries):
        kube.configure(scorer, adjustments=[{"scoreName": "*", **e} for e in entries])

    adjust()
    start_agent(PATIENT, *kube.flags())
    kube.wait_items("s", {"a": 10})
    adjust({"name": "less", "add": -1})
    kube.wait_items("s", {"a": 9})
    adjust({"name": "less", "add": -2})
    kube.wait_items("s", {"a": 8})
    adjust({"name": "less", "add": -2, "reason": "disk"})
    wait_until(lambda: kube.condition("s", "Adjusted")[2] == '"less" adds -2: disk', "the condition has the reason")
    adjust()
    kube.wait_items("s", {"a": 10})
    assert len(fake.requests("/s")) == 1


def test_counts_in_messages_cause_no_write(kube, fake, start_agent):
    """Of Clamped and Truncated; also without a tolerance."""
    long = "n" * 256  # what differs beyond is cut off

    def answers(clamped, cut):
        values = [({"node": f"{long}{i}"}, 5) for i in range(1 + cut)] + [({"node": "a"}, 140), ({"node": "b"}, 100 + clamped)]
        return results(*itertools.chain(*values))

    url = fake.on("/s", answers(clamped=0, cut=1))
    kube.configure(summary("s", url, scoreDimensionFormat="${node}"))
    agent = start_agent(PATIENT, *kube.flags())
    kube.wait_items("s", {"a": 100, "b": 100, long: 5})
    assert kube.wait_condition("s", "Clamped", "True")[2].startswith("1 of 3 values")
    assert kube.wait_condition("s", "Truncated", "True")[2].startswith("1 result merged")
    written = version(kube, "s")
    fake.on("/s", answers(clamped=1, cut=2))
    rounds_pass(agent, "s")
    assert version(kube, "s") == written
    assert agent.metric("dynamic_scoring_placement_behind") == 0
    fake.on("/s", results({"node": "a"}, 100, {"node": "b"}, 100))
    assert kube.wait_condition("s", "Clamped", "False") and version(kube, "s") != written
