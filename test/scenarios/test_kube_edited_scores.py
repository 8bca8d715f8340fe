"""What someone else changes in an AddOnPlacementScore of the agent's is put right at once, not when its validity is half
over: here that is after a quarter of an hour."""

import json

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER, DOMAIN, SCORES
from lib.wait import wait_until

LABEL = f"{DOMAIN}/managed-by"


def kubectl(kube, *words):
    done = kube.kubectl(*words, f"--namespace={CLUSTER}")
    assert done.returncode == 0, done.stderr


def annotation(kube, name, key):
    return kube.object(name)["metadata"]["annotations"][f"{DOMAIN}/{key}"]


def edit(kube, name, **status):
    patch = json.dumps({"status": status})
    kubectl(kube, "patch", "addonplacementscore", name, "--subresource=status", "--type=merge", f"--patch={patch}")


def test_edited_scores_are_put_right(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    was = kube.object("a")["status"]
    for edited in (
        {"scores": [{"name": "a", "value": 99}, {"name": "b", "value": 100}]},
        {"validUntil": "2020-01-01T00:00:00Z"},
    ):
        edit(kube, "a", **edited)
        wait_until(lambda: kube.object("a")["status"] == was, f"{edited} is undone")
    agent.wait_log("AddOnPlacementScore changed by another writer")
    assert len(fake.requests("/s")) == 1, "no round was needed"


def test_scores_found_after_a_restart_are_put_back(kube, fake, start_agent):
    """The agent has no others yet, as its rounds fail."""
    kube.configure(summary("s", fake.on("/s", results({}, 40)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": 40})
    agent.process.kill()
    fake.on("/s", plain("out of order", 500))
    agent.start()
    kube.wait_condition("s", "Scored", "False")
    edit(kube, "s", scores=[{"name": "s", "value": 99}])
    kube.wait_items("s", {"s": 40})
    kube.delete(SCORES.format(CLUSTER) + "/s")
    kube.wait_items("s", {"s": 40})


def test_the_score_of_a_renamed_scorer_is_named(kube, fake, start_agent):
    """Both names lead to one object, which the optimizer knows by the annotation."""
    url = fake.on("/s", results({"node": "n1"}, 1))
    kube.configure(summary("my_score", url, interval=2, scoreDimensionFormat="${node}"))
    start_agent({}, *kube.flags())
    kube.wait_items("my-score", {"n1": 1})
    kube.configure(summary("My.Score", url, interval=2, scoreDimensionFormat="${node}"), summary("my-score", url, interval=2))
    kube.wait_items("my-score", {"my-score": 1})
    wait_until(lambda: annotation(kube, "my-score", "score-name") == "my-score", "the annotation follows")
    kube.wait_items("my.score", {"n1": 1})
    assert annotation(kube, "my.score", "score-name") == "My.Score"


def test_the_metadata_of_others_is_theirs(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kubectl(kube, "label", "addonplacementscore", "a", "owner.example/team=x")
    edit(kube, "a", scores=[])  # put right by a write that comes after the label's event
    kube.wait_items("a", {"a": 1})
    agent.wait_metric_is(2, "dynamic_scoring_placement_writes_total", operation="status", result="ok")
    assert kube.object("a")["metadata"]["labels"]["owner.example/team"] == "x"


def test_an_object_without_its_label_is_taken_back(kube, fake, start_agent):
    """Not reported as another's, also by an agent that starts later, and still the same object: Placement never sees it
    gone."""
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    uid = kube.object("a")["metadata"]["uid"]
    kubectl(kube, "label", "addonplacementscore", "a", f"{LABEL}-")
    wait_until(lambda: kube.object("a")["metadata"].get("labels", {}).get(LABEL) == "agent", "it has its label again")
    agent.wait_log("label restored")
    edit(kube, "a", scores=[])
    kube.wait_items("a", {"a": 1})
    assert kube.object("a")["metadata"]["uid"] == uid
    assert "left alone" not in agent.log()
    kube.configure()
    kube.wait_gone("a")
