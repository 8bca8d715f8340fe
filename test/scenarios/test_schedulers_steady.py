"""Workloads of the examples for Argo CD and Kueue do not hop for a point: with Open Cluster Management's own placement controller,
their Placements stay where they are while another cluster is better by 9 points, move when it is better by 11, and leave a cluster
whose score is -100."""

import itertools

import pytest
import yaml

from lib.helm import CHART
from lib.kube import MERGE_PATCH, SCORES
from lib.ocm import SETS, decisions_of, placement_controller, put_global_set
from lib.wait import LONG, wait_until

SAMPLES = CHART.parent / "samples"
FILES = {"argocd": SAMPLES / "argocd" / "applicationset.yaml", "kueue-system": SAMPLES / "kueue" / "multikueue.yaml"}
RESOURCE, ITEM = "sample-my-score", "shop"
PLACEMENTS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/{}/placements"
NUMBERS = itertools.count()


def set_score(hub, cluster, value):
    path = f"{SCORES.format(cluster)}/{RESOURCE}"
    if hub.kube.find(path) is None:
        version = "cluster.open-cluster-management.io/v1alpha1"
        body = {"apiVersion": version, "kind": "AddOnPlacementScore", "metadata": {"name": RESOURCE}}
        hub.kube.call("POST", SCORES.format(cluster), body)
    hub.kube.call("PATCH", f"{path}/status", {"status": {"scores": [{"name": ITEM, "value": value}]}}, MERGE_PATCH)


def objects_of(namespace):
    """{kind: object} of the example's parts that are Open Cluster Management's."""
    found = yaml.safe_load_all(FILES[namespace].read_text())
    return {o["kind"]: o for o in found if o["apiVersion"].startswith("cluster.open-cluster-management.io/")}


def without_steady(placement, name):
    """The same Placement without its last prioritizer: it follows every point."""
    policy = placement["spec"]["prioritizerPolicy"]
    assert policy["configurations"][-1]["scoreCoordinate"] == {"type": "BuiltIn", "builtIn": "Steady"}
    policy = {**policy, "configurations": policy["configurations"][:-1]}
    return {**placement, "metadata": {"name": name}, "spec": {**placement["spec"], "prioritizerPolicy": policy}}


def remove_all(hub, namespace):
    """No controller of Kubernetes runs here that would collect what Placements own."""
    for kind, version in (("placements", "v1beta1"), ("placementdecisions", "v1beta1"), ("managedclustersetbindings", "v1beta2")):
        hub.kube.call("DELETE", f"apis/cluster.open-cluster-management.io/{version}/namespaces/{namespace}/{kind}")
    hub.kube.delete(f"{SETS}/global")


@pytest.fixture(name="example", params=FILES)
def placement_of_an_example(request, hub):
    """The namespace and the name of its Placement. Three clusters can be selected, two are."""
    namespace, found = request.param, objects_of(request.param)
    hub.add_namespace(namespace)
    put_global_set(hub)
    binding, placement = found["ManagedClusterSetBinding"], found["Placement"]
    hub.kube.apply(
        f"apis/{binding['apiVersion']}/namespaces/{namespace}/managedclustersetbindings", binding["metadata"]["name"], binding
    )
    for cluster, score in (("a", 90), ("b", 50), ("c", 40)):
        hub.add_cluster(cluster)
        set_score(hub, cluster, score)
    for one in (placement, without_steady(placement, "hopping")):
        hub.kube.call("POST", PLACEMENTS.format(namespace), one)
    try:
        yield namespace, placement["metadata"]["name"]
    finally:
        remove_all(hub, namespace)


def wait_decided(hub, namespace, placement, *clusters):
    wait_until(lambda: decisions_of(hub, namespace, placement) == list(clusters), f"{placement} selects {clusters}", LONG)


def let_it_settle(hub, namespace):
    """The controller has one queue and one worker: what it was told before a new Placement, it has done once this one is decided."""
    name = f"behind-the-others-{next(NUMBERS)}"
    template = without_steady(objects_of(namespace)["Placement"], name)
    hub.kube.call("POST", PLACEMENTS.format(namespace), template)
    wait_until(lambda: decisions_of(hub, namespace, name), f"{name} is decided", LONG)


def test_it_moves_for_eleven_points_and_not_for_nine(hub, example):
    namespace, name = example
    with placement_controller(hub.kube):
        wait_decided(hub, namespace, name, "a", "b")
        set_score(hub, "c", 59)
        wait_decided(hub, namespace, "hopping", "a", "c")
        let_it_settle(hub, namespace)
        assert decisions_of(hub, namespace, name) == ["a", "b"], "it moved for 9 points"
        set_score(hub, "c", 61)
        wait_decided(hub, namespace, name, "a", "c")
        # Nor back for 9, but away from a cluster that somebody took out of rotation.
        set_score(hub, "b", 70)
        wait_decided(hub, namespace, "hopping", "a", "b")
        let_it_settle(hub, namespace)
        assert decisions_of(hub, namespace, name) == ["a", "c"], "it moved back for 9 points"
        set_score(hub, "c", -100)
        wait_decided(hub, namespace, name, "a", "b")
