"""AddOnPlacementScores that the reference implementation left are adopted without a moment without scores."""

import datetime

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER, DOMAIN, MERGE_PATCH, SCORES
from lib.reference import ITEM, add_score, check_never_lost

ADOPT = "--adopt-unowned-scores"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "e7a5b1d5-6f0e-4c0e-8f5c-0a4b4f6b0000"}


def score(fake, value=5):
    found = {"node": "worker01-control-plane", "namespace": "n", "pod": "p"}
    url = fake.on("/s", results(found, value))
    return summary("sample_my_score", url, interval=600, scoreDimensionFormat="${node};${namespace};${pod}")


def test_scores_of_the_reference_are_adopted(kube, fake, start_agent):
    was = add_score(kube, CLUSTER, "sample-my-score", {ITEM: 0}, labels={"team": "x"}, annotations={"note": "y"})
    kube.configure(score(fake))
    agent = start_agent({}, *kube.flags(), ADOPT)
    kube.wait_items("sample-my-score", {"worker01-control-plane;n;p": 5})
    agent.wait_log("AddOnPlacementScore adopted")
    found = kube.object("sample-my-score")["metadata"]
    assert found["labels"] == {"team": "x", f"{DOMAIN}/managed-by": "agent"}
    assert found["annotations"]["note"] == "y"
    assert kube.object("sample-my-score")["status"]["validUntil"]
    check_never_lost(kube, CLUSTER, was)
    kube.configure()
    kube.wait_gone("sample-my-score")


def test_they_stay_while_the_first_round_fails(kube, fake, start_agent):
    was = add_score(kube, CLUSTER, "sample-my-score", {ITEM: 7})
    kube.configure(summary("sample_my_score", fake.on("/s", plain("not yet", 503)), interval=600))
    start_agent({}, *kube.flags(), ADOPT)
    kube.wait_condition("sample-my-score", "Scored", "False")
    assert kube.items("sample-my-score") == {ITEM: 7}
    check_never_lost(kube, CLUSTER, was)


def test_they_end_when_their_end_says(kube, fake, start_agent):
    """In whatever zone it is given: `date --iso-8601=seconds` says the local one, and the API server keeps it."""
    down = fake.on("/s", plain("not yet", 503))
    in_an_hour, an_hour_ago = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=h) for h in (1, -1))
    west, east = (datetime.timezone(datetime.timedelta(hours=h)) for h in (-5, 9))
    for name, end in ("west", in_an_hour.astimezone(west)), ("east", an_hour_ago.astimezone(east)):
        add_score(kube, CLUSTER, name, {"x": 7})
        until = end.isoformat(timespec="seconds")
        patch = {"status": {"validUntil": until}}
        kube.call("PATCH", f"{SCORES.format(CLUSTER)}/{name}/status", patch, MERGE_PATCH)
        assert kube.object(name)["status"]["validUntil"] == until
    kube.configure(*(summary(name, down, interval=600) for name in ("west", "east")))
    start_agent({}, *kube.flags(), ADOPT)
    for name in "west", "east":
        kube.wait_condition(name, "Scored", "False")
    assert kube.items("west") == {"x": 7}
    assert kube.items("east") == {}


def test_what_names_an_owner_or_no_scorer_is_left_alone(kube, fake, start_agent):
    left = {
        "owned": {"ownerReferences": [OWNER]},
        "of-an-addon": {"labels": {"open-cluster-management.io/addon-name": "other"}},
        "of-another-agent": {"annotations": {f"{DOMAIN}/owner": "dynamic-scoring/other"}},
        "of-no-scorer": {},
    }
    was = {name: add_score(kube, CLUSTER, name, {"x": 1}, **metadata) for name, metadata in left.items()}
    url = fake.on("/s", results({}, 1))
    kube.configure(*(summary(name, url, interval=600) for name in left if name != "of-no-scorer"))
    agent = start_agent({}, *kube.flags(), ADOPT)
    owners = {"owned": "ConfigMap x", "of-an-addon": "other", "of-another-agent": "dynamic-scoring/other"}
    for name, owner in owners.items():
        why = f"created by {owner} and is left alone"
        agent.wait_until(lambda n=name, w=why: w in kube.reported(n).get("placementError", ""), f"{name} is reported")
    assert kube.objects() == was
