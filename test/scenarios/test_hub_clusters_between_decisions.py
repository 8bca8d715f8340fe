"""A cluster that is in none of a Placement's decisions for a moment, as when Open Cluster Management moves it from one
PlacementDecision to the next, keeps its scorers and its scores; one that stays away loses them."""

import contextlib
import json

import pytest
from lib.agent import running_agent
from lib.fake import results
from lib.hub import ALL_WORKS, CLUSTERS, HUB_NAMESPACE
from lib.kube import CLUSTER, MERGE_PATCH, SCORES
from lib.ocm import BINDINGS, DECISIONS, OF_PLACEMENT, PLACEMENTS, SET_LABEL, SETS, placement_controller, work_agent
from lib.reference import history
from lib.scorers import full, in_parallel, scoring, serve
from lib.wait import LONG, wait_until
from lib.work import WORK

HERE = {path: path.replace("namespaces/default", f"namespaces/{HUB_NAMESPACE}") for path in (PLACEMENTS, BINDINGS, DECISIONS)}
ROUNDS = 12


def decided(decisions):
    """The clusters in any of them."""
    return {d["clusterName"] for one in decisions for d in one.get("status", {}).get("decisions", [])}


def decide(hub, *clusters, name="p-decision-1"):
    """What a placement controller would write."""
    path = HERE[DECISIONS]
    if hub.kube.find(f"{path}/{name}") is None:
        body = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"}
        hub.kube.call("POST", path, {**body, "metadata": {"name": name, "labels": {OF_PLACEMENT: "p"}}})
    status = {"decisions": [{"clusterName": c, "reason": ""} for c in clusters]}
    hub.patch(f"{path}/{name}/status", {"status": status})


def clean(hub):
    for path in (SETS, HERE[BINDINGS], HERE[PLACEMENTS], HERE[DECISIONS]):
        for one in hub.kube.call("GET", path)["items"]:
            hub.kube.delete(f"{path}/{one['metadata']['name']}")


@pytest.fixture
def two(hub, fake):
    """A Placement whose decisions the test makes, on two clusters that the scorer is for."""
    in_parallel(hub.add_cluster, ("c1", "c2"))
    hub.configure()
    hub.put(HERE[PLACEMENTS], "Placement", "p", {})
    decide(hub, "c1", "c2")
    hub.apply_scorer("s", full(serve(fake, "/cpu", "cpu"), placements=["p"]))
    yield
    clean(hub)


def test_an_absence_that_ends_and_one_that_does_not(hub, two, start_controller):
    start_controller()
    for cluster in ("c1", "c2"):
        hub.wait_scores(cluster, "cpu")
    before = hub.work("c2")
    for order in (("c1",), ("c1", "c2"), (), ("c1", "c2")):
        decide(hub, *order)
        hub.apply_scorer("told", {**hub.scorer("s")["spec"], "description": str(order)})  # a change that is seen later
        wait_until(lambda: hub.scorer_condition("told", "UniqueScoreName"), "the controller has seen it")
        hub.delete_scorer("told")
    decide(hub, "c1")
    hub.wait_scores("c2", deadline=LONG)
    hub.wait_scores("c1", "cpu")
    changes = [w for _, w in history(hub.kube, ALL_WORKS, before) if w["metadata"]["namespace"] == "c2"]
    has = ["cpu" in json.dumps(w["spec"]) for w in changes]
    assert has == sorted(has, reverse=True) and has.count(False) == 1, "it was withdrawn once, at the end"


def test_a_restart_during_an_absence(hub, two, start_controller):
    controller = start_controller()
    for cluster in ("c1", "c2"):
        hub.wait_scores(cluster, "cpu")
    before = hub.work("c2")
    controller.stop()
    decide(hub, "c1")
    controller.start()
    wait_until(lambda: controller.metric("dynamic_scoring_hub_clusters", state="up_to_date") == 2, "it has planned")
    decide(hub, "c1", "c2")
    hub.configure(masks=[{"clusterName": "c1", "scoreName": "cpu"}])
    hub.wait_scores("c1")
    assert hub.work("c2")["metadata"]["generation"] == before["metadata"]["generation"]
    controller.stop()
    decide(hub)
    controller.start()
    hub.wait_scores("c2", deadline=LONG)


@pytest.fixture
def many(hub, fake):
    """cluster1 is the last of the first hundred, or the first of the second when a000 is there."""
    others = [f"b{i:03d}" for i in range(99)] + [f"d{i:03d}" for i in range(50)]
    in_parallel(lambda name: hub.add_cluster(name, labels={SET_LABEL: "default"}), [*others, CLUSTER])
    hub.add_cluster("a000")
    hub.put(SETS, "ManagedClusterSet", "default", {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}})
    hub.put(HERE[BINDINGS], "ManagedClusterSetBinding", "default", {"clusterSet": "default"})
    hub.configure()
    hub.put(HERE[PLACEMENTS], "Placement", "p", {})
    url = fake.on("/s", results({}, 10))
    about = scoring("cpu_many", host=fake.url)
    about = {**about, "path": "/s", "params": {**about["params"], "interval": 600}}
    spec = {"configURL": url, "configSyncMode": "None", "healthCheck": "None", "source": {"type": "None"}, "scoring": about}
    hub.apply_scorer("s", {**spec, "placements": ["p"]})
    yield [*others, CLUSTER]
    clean(hub)


def move_boundary(hub, label):
    """Has a000 join or leave the Placement's clusters; returns how often the decisions lacked cluster1 meanwhile."""
    path = HERE[DECISIONS]
    since = hub.kube.call("GET", path)
    now = {d["metadata"]["name"]: d for d in since["items"]}
    hub.kube.call("PATCH", f"{CLUSTERS}/a000", {"metadata": {"labels": {SET_LABEL: label}}}, MERGE_PATCH)
    wait_until(
        lambda: ("a000" in (found := decided(hub.kube.call("GET", path)["items"]))) == bool(label) and CLUSTER in found,
        "the decisions follow",
        LONG,
    )
    absences = 0
    for kind, one in history(hub.kube, path, since):
        had = CLUSTER in decided(now.values())
        now.pop(one["metadata"]["name"], None)
        if kind != "DELETED":
            now[one["metadata"]["name"]] = one
        absences += had and CLUSTER not in decided(now.values())
    return absences


def test_a_hundred_and_fifty_clusters(hub, many, start_controller):
    with contextlib.ExitStack() as stack:
        stack.enter_context(placement_controller(hub.kube))
        stack.enter_context(work_agent(hub.kube, hub.kube, CLUSTER))
        start_controller()
        stack.enter_context(running_agent({}, *hub.kube.flags()))
        wait_until(lambda: hub.kube.items("cpu-many"), f"{CLUSTER} has its scores", 3 * LONG)
        wait_until(lambda: all("cpu_many" in json.dumps(hub.work(c)["spec"]) for c in many), "all have it", LONG)
        scores, works = hub.kube.call("GET", SCORES.format(CLUSTER)), hub.kube.call("GET", ALL_WORKS)
        absences = sum(move_boundary(hub, label) for _ in range(ROUNDS) for label in ("default", None))
        assert absences, "the placement controller left no gap"
        for kind, work in history(hub.kube, ALL_WORKS, works):
            meta = work["metadata"]
            if meta["name"] == WORK and meta["namespace"] in many:
                assert kind != "DELETED" and "cpu_many" in json.dumps(work["spec"]), f"withdrawn on {meta['namespace']}"
        kinds = [kind for kind, _ in history(hub.kube, SCORES.format(CLUSTER), scores)]
        assert set(kinds) <= {"MODIFIED"}, kinds
