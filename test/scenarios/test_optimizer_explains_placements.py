"""What /placements/explain says is what Open Cluster Management's own placement controller does: the clusters that it names first
are those that the Placement selects. And the optimizer reads all of it by watch: its answers cost the API server no list."""

import contextlib

import pytest

from lib.exposition import read_sample
from lib.hub import CLUSTERS as MANAGED
from lib.kube import MERGE_PATCH, SCORES
from lib.ocm import BINDINGS, PLACEMENTS, SETS, placement_controller
from lib.optimizer import running_optimizer
from lib.wait import LONG, wait_until

GROUP = "cluster.open-cluster-management.io/v1alpha1"
READ = ("addonplacementscores", "managedclusters", "placements", "placementdecisions", "dynamicscorers")
ASKED = ("addonplacementscores", "policies", "workloads", "scorers")
CLUSTERS = {  # {cluster: (its label zone, its score, whether that has expired)}
    "explain-a": ("north", 10, False),
    "explain-b": ("north", 90, True),
    "explain-c": ("south", 40, False),
    "explain-d": ("south", None, False),
    "explain-e": ("north", -20, False),
    "explain-f": ("south", 40, False),
}


def score(weight=1, item="i"):
    at = {"type": "AddOn", "addOn": {"resourceName": "explained", "scoreName": item}}
    return {"weight": weight, "scoreCoordinate": at}


def built_in(name, weight):
    return {"weight": weight, "scoreCoordinate": {"type": "BuiltIn", "builtIn": name}}


def exact(*configurations):
    return {"prioritizerPolicy": {"mode": "Exact", "configurations": list(configurations)}}


def requires(**selector):
    return {"predicates": [{"requiredClusterSelector": selector}]}


NORTH = requires(labelSelector={"matchLabels": {"zone": "north"}})
CLAIM = requires(claimSelector={"matchExpressions": [{"key": "ready", "operator": "In", "values": ["yes"]}]})
NAMED = requires(celSelector={"celExpressions": ['managedCluster.metadata.name == "explain-e"']})
ANY = {"tolerations": [{"key": "busy", "operator": "Exists"}]}
PLACEMENTS_MADE = {  # one after the other, as Balance counts what others have selected
    "explain-1-highest": {"numberOfClusters": 1, **exact(score())},
    "explain-2-ties-by-name": {"numberOfClusters": 2, **exact(score())},
    "explain-3-lowest": {"numberOfClusters": 3, **exact(score(-3), score(1, "other"))},
    "explain-4-labels": {"numberOfClusters": 1, **NORTH, **exact(score())},
    "explain-5-claims": {"numberOfClusters": 2, **CLAIM, **exact(score(-1))},
    "explain-6-name": {"numberOfClusters": 1, **NAMED, **exact(score())},
    "explain-7-balance-and-steady": {"numberOfClusters": 3},
    "explain-8-all-terms": {
        "numberOfClusters": 2,
        "prioritizerPolicy": {"configurations": [score(2), built_in("ResourceAllocatableCPU", 1)]},
    },
    "explain-9-tolerated": {"numberOfClusters": 1, **ANY, **exact(built_in("ResourceAllocatableCPU", 1))},
    "explain-more-than-there-are": {"numberOfClusters": 9, **exact(score())},
}


def make_cluster(hub, stack, n, name):
    zone, value, expired = CLUSTERS[name]
    hub.add_cluster(name, labels={"zone": zone, "explain": "yes"})
    if name == "explain-d":
        taint = {"key": "busy", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}
        hub.patch(f"{MANAGED}/{name}", {"spec": {"taints": [taint]}})
    status = {
        "allocatable": {"cpu": f"{n + 1}500m"},
        "capacity": {"cpu": "16"},
        "clusterClaims": [{"name": "ready", "value": "yes" if n % 2 else "no"}],
    }
    hub.patch(f"{MANAGED}/{name}/status", {"status": status})
    if value is None:
        return
    body = {"apiVersion": GROUP, "kind": "AddOnPlacementScore"}
    hub.kube.apply(SCORES.format(name), "explained", body)
    stack.callback(hub.kube.delete, SCORES.format(name) + "/explained")
    status = {"scores": [{"name": "i", "value": value}, {"name": "other", "value": n}]}
    status["validUntil"] = "2026-01-01T00:00:00Z" if expired else "2100-01-01T00:00:00Z"
    hub.kube.call("PATCH", SCORES.format(name) + "/explained/status", {"status": status}, MERGE_PATCH)


@pytest.fixture
def fleet(hub):
    with contextlib.ExitStack() as stack:
        for n, name in enumerate(CLUSTERS):
            make_cluster(hub, stack, n, name)
        selector = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"explain": "yes"}}}
        hub.put(SETS, "ManagedClusterSet", "explain", {"clusterSelector": selector})
        stack.callback(hub.kube.delete, f"{SETS}/explain")
        hub.put(BINDINGS, "ManagedClusterSetBinding", "explain", {"clusterSet": "explain"})
        stack.callback(hub.kube.delete, f"{BINDINGS}/explain")
        stack.enter_context(placement_controller(hub.kube))
        yield stack


def lists(kube):
    """How many lists of the kinds that the optimizer reads the API server has answered."""
    lines = kube.text("GET", "metrics").split("\n")
    found = [read_sample(line) for line in lines if line.startswith("apiserver_request_total{")]
    return sum(v for _, labels, v in found if labels["verb"] == "LIST" and labels["resource"] in READ)


def scheduled(hub, name):
    found = hub.kube.find(f"{PLACEMENTS}/{name}") or {}
    return any(c["type"] == "PlacementSatisfied" for c in found.get("status", {}).get("conditions", []))


def explain(optimizer, name):
    """The answer, once the explained order leads to the Placement's decisions."""
    answer = optimizer.get(f"/placements/explain?namespace=default&name={name}")
    return answer.status == 200 and answer.json["agrees"] and answer.json


def test_the_order_explained_is_the_one_that_placement_takes(hub, fleet):
    with running_optimizer(hub.kube.kubeconfig()) as optimizer:
        optimizer.wait_ready()
        for name, spec in PLACEMENTS_MADE.items():
            hub.put(PLACEMENTS, "Placement", name, spec)
            fleet.callback(hub.kube.delete, f"{PLACEMENTS}/{name}")
            wait_until(lambda n=name: scheduled(hub, n), f"{name} is scheduled", LONG)
            found = optimizer.wait_until(lambda n=name: explain(optimizer, n), f"{name} is explained", LONG)
            wanted = min(spec["numberOfClusters"], found["total"])
            assert {i["cluster"] for i in found["items"][:wanted]} == set(found["decisions"]), found
            assert found["total"] + found["leftOutTotal"] == len(CLUSTERS), found

        before = lists(hub.kube)
        for path in ASKED:
            assert optimizer.get(f"/{path}").status == 200, path
        assert lists(hub.kube) == before
