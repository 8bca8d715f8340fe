"""spec.placements: a scorer goes to the clusters that Open Cluster Management's own placement controller decides on, less
the masks, and follows its decisions."""

import pytest
from lib.fake import plain
from lib.hub import HUB_NAMESPACE
from lib.ocm import BINDINGS, DECISIONS, OF_PLACEMENT, PLACEMENTS, SET_LABEL, SETS, placement_controller
from lib.scorers import RBAC, full, in_parallel, limited_user, serve, wait_status
from lib.wait import LONG, wait_until

HERE = {path: path.replace("namespaces/default", f"namespaces/{HUB_NAMESPACE}") for path in (PLACEMENTS, BINDINGS, DECISIONS)}
CLUSTERS = {"c1": "eu", "c2": "eu", "c3": "us"}


def by_region(*regions):
    has = {"matchExpressions": [{"key": "region", "operator": "In", "values": list(regions)}]}
    return {"predicates": [{"requiredClusterSelector": {"labelSelector": has}}]}


def place(hub, name, *regions):
    hub.put(HERE[PLACEMENTS], "Placement", name, by_region(*regions))


def wait_clusters(hub, score, *expected):
    wait_until(
        lambda: tuple(c for c in CLUSTERS if score in hub.score_names(c)) == expected, f"{score} is on {expected}", LONG
    )


@pytest.fixture
def fleet(hub, fake):
    """Three clusters in a set that is bound to the controller's namespace, and a scorer that goes to all."""
    for name, region in CLUSTERS.items():
        hub.add_cluster(name, labels={SET_LABEL: "default", "region": region})
    hub.put(SETS, "ManagedClusterSet", "default", {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}})
    hub.put(HERE[BINDINGS], "ManagedClusterSetBinding", "default", {"clusterSet": "default"})
    hub.configure()
    hub.apply_scorer("all", full(serve(fake, "/all", "all")))
    with placement_controller(hub.kube) as process:
        yield process
    for path in (SETS, HERE[BINDINGS], HERE[PLACEMENTS]):
        for one in hub.kube.call("GET", path)["items"]:
            hub.kube.delete(f"{path}/{one['metadata']['name']}")


def test_union_and_masks(hub, fake, fleet, start_controller):
    place(hub, "eu", "eu")
    hub.apply_scorer("s", full(serve(fake, "/cpu", "cpu"), placements=["eu"]))
    controller = start_controller()
    wait_clusters(hub, "cpu", "c1", "c2")
    wait_clusters(hub, "all", "c1", "c2", "c3")
    status = wait_status(hub, "s", lambda s: s["clusters"]["selected"] == 2, "two are selected")
    assert status["clusters"]["upToDate"] == 2
    pairs = controller.get("/api/v1/scorer?name=s").json["pairs"]
    assert {p["cluster"]: p["state"] for p in pairs}["c3"] == "notSent"

    place(hub, "us", "us")
    hub.apply_scorer("s", full(f"{fake.url}/cpu", placements=["eu", "us"]))
    wait_clusters(hub, "cpu", "c1", "c2", "c3")
    hub.configure(masks=[{"clusterName": "c2", "scoreName": "cpu"}])
    wait_clusters(hub, "cpu", "c1", "c3")
    place(hub, "eu", "nowhere")
    wait_clusters(hub, "cpu", "c3")
    place(hub, "eu", "us")
    wait_clusters(hub, "cpu", "c3")
    hub.apply_scorer("s", full(f"{fake.url}/cpu", placements=[]))
    wait_clusters(hub, "cpu", "c1", "c3")


def test_what_is_wrong_with_a_placement(hub, fake, fleet, start_controller):
    hub.apply_scorer("s", full(serve(fake, "/cpu", "cpu"), placements=["later"]))
    start_controller()
    words = "Placement later does not exist in namespace open-cluster-management; selected for 0 clusters"
    assert hub.wait_scorer("s", "Distributed", "False", "PlacementNotFound")[2] == words
    place(hub, "later", "nowhere")
    hub.wait_scorer("s", "Distributed", "False", "NoClusterSelected", LONG)
    place(hub, "later", "us")
    wait_clusters(hub, "cpu", "c3")
    hub.kube.delete(f"{HERE[BINDINGS]}/default")
    hub.wait_scorer("s", "Distributed", "False", "NoManagedClusterSetBinding", LONG)
    wait_clusters(hub, "cpu")


def test_a_restart_takes_nothing_away(hub, fake, fleet, start_controller):
    place(hub, "us", "us")
    hub.apply_scorer("s", full(serve(fake, "/cpu", "cpu"), placements=["us"]))
    controller = start_controller()
    wait_clusters(hub, "cpu", "c3")
    wait_status(hub, "s", lambda s: s["clusters"]["upToDate"] == 1, "it is there")
    before = {c: hub.work(c)["metadata"]["generation"] for c in CLUSTERS}
    controller.kill()
    controller.start()
    asked = len(fake.requests("/healthz"))
    wait_until(lambda: len(fake.requests("/healthz")) > asked, "it probes")
    hub.apply_scorer("t", full(serve(fake, "/memory", "memory"), placements=["us"]))
    wait_clusters(hub, "memory", "c3")
    after = {c: hub.work(c)["metadata"]["generation"] for c in CLUSTERS}
    assert after == {**before, "c3": before["c3"] + 1}


def rights(hub, without=()):
    """Gives the controller's user the Role of the chart, less these resources."""
    own = f"{RBAC}/namespaces/{HUB_NAMESPACE}"
    all_rules = hub.kube.find(f"{own}/roles/dynamic-scoring-controller")["rules"]
    hub.kube.apply(f"{own}/roles", "test-less", {"rules": [r for r in all_rules if not set(without) & set(r["resources"])]})
    name = "test-nobody-dynamic-scoring-controller"
    binding = hub.kube.find(f"{own}/rolebindings/{name}")
    if binding:
        hub.kube.delete(f"{own}/rolebindings/{name}")
        role = {**binding["roleRef"], "name": "test-less"}
        hub.kube.apply(f"{own}/rolebindings", "test-nobody-test-less", {"roleRef": role, "subjects": binding["subjects"]})


def test_without_the_right_to_read_them(hub, fake, start_controller):
    """The others work, and the scorer says what is missing."""
    in_parallel(hub.add_cluster, ["c1"])
    hub.configure()
    fake.on("/healthz", plain("ok"))
    hub.apply_scorer("all", full(serve(fake, "/all", "all")))
    hub.apply_scorer("s", full(serve(fake, "/cpu", "cpu"), placements=["us"]))
    user = limited_user(hub, ["c1"])
    rights(hub, without=["placements"])
    start_controller(kubeconfig=user)
    hub.wait_scores("c1", "all")
    message = hub.wait_scorer("s", "Distributed", "False", "PlacementsUnreadable")[2]
    assert "list placements" in message and "forbidden" in message


@pytest.fixture
def decided(hub):
    """A Placement that has decided on c1."""
    place(hub, "mine", "us")
    body = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"}
    metadata = {"name": "mine-decision-1", "labels": {OF_PLACEMENT: "mine"}}
    hub.kube.call("POST", HERE[DECISIONS], {**body, "metadata": metadata})
    status = {"decisions": [{"clusterName": "c1", "reason": ""}]}
    hub.patch(f"{HERE[DECISIONS]}/mine-decision-1/status", {"status": status})
    yield
    hub.kube.delete(f"{HERE[DECISIONS]}/mine-decision-1")
    hub.kube.delete(f"{HERE[PLACEMENTS]}/mine")


def test_after_the_right_was_taken_away(hub, fake, decided, start_controller):
    """The last decisions stay, and the scorer says that it does not follow others, until it can."""
    in_parallel(hub.add_cluster, ["c1", "c2"])
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/cpu", "cpu"), placements=["mine"]))
    user = limited_user(hub, ["c1", "c2"])
    rights(hub)
    start_controller(kubeconfig=user)
    hub.wait_scores("c1", "cpu")
    rights(hub, without=["placements"])
    hub.kube.pause()  # a stream outlives the right to open it
    hub.kube.resume()
    message = hub.wait_scorer("s", "Distributed", "False", "PlacementsUnreadable", LONG)[2]
    assert "list placements" in message and "forbidden" in message and "selected for 1 cluster" in message
    rights(hub)
    hub.wait_scorer("s", "Distributed", "False", "Progressing", LONG)
    assert hub.score_names("c1") == ["cpu"] and not hub.score_names("c2")
