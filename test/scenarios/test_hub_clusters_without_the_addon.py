"""Where agents are installed by add-ons, a cluster whose add-on has been absent for ten minutes is not selected: its
ManifestWork goes, then the scores of its agent, and `Distributed` says so. One that never had it gets nothing."""

from lib.faketime import Clock
from lib.hub import ADDON, ADDONS
from lib.kube import DOMAIN, SCORES
from lib.scorers import distributed, full, in_parallel, serve
from lib.wait import LONG, wait_until

OVER = 11 * 60
OWNER, LABEL = f"{DOMAIN}/owner", f"{DOMAIN}/managed-by"


def add_scores(hub, cluster, **owners):
    for name, owner in owners.items():
        body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        metadata = {"name": name, "labels": {LABEL: "agent"}, "annotations": {OWNER: owner}}
        hub.kube.call("POST", SCORES.format(cluster), {**body, "metadata": metadata})


def test_an_add_on_that_goes_and_comes_back(hub, fake, start_controller, tmp_path):
    clock = Clock(tmp_path)
    in_parallel(hub.add_namespace, ("c1", "c2", "c3"))
    for cluster in ("c1", "c2"):
        hub.set_addon(cluster, "True")
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"), env=clock.env)
    add_scores(hub, "c1", own=f"dynamic-scoring/{ADDON}")
    add_scores(hub, "c2", own=f"dynamic-scoring/{ADDON}", moved=f"elsewhere/{ADDON}", others="dynamic-scoring/another")

    # In the first ten minutes nothing happens: Open Cluster Management recreates add-ons.
    hub.kube.delete(f"{ADDONS.format('c2')}/{ADDON}")
    hub.add_cluster("c3", namespace=False)
    hub.apply_scorer("t", full(serve(fake, "/other", "memory")))
    for cluster in ("c1", "c2"):
        hub.wait_scores(cluster, "cpu", "memory", deadline=LONG)
    words = f"not on 1 cluster without the add-on {ADDON}: c3"
    assert hub.wait_scorer("s", "Distributed", "False", says=words)[1] == "Progressing", "c3 never had it"
    assert hub.work("c3") is None

    wait_until(lambda: clock.passes(OVER, lambda: hub.work("c2") is None), "its ManifestWork goes", LONG)
    wait_until(lambda: set(hub.kube.objects("c2")) == {"others"}, "then the scores of its agent", LONG)
    assert hub.work("c1") and set(hub.kube.objects("c1")) == {"own"}
    words = f"not on 2 clusters without the add-on {ADDON}: "
    hub.wait_scorer("s", "Distributed", "False", says=words)
    hub.wait_config("Distributed", "False", says=words)
    for kind, name in (("managed", 1), ("failing", 0)):
        wait_until(lambda k=kind, n=name: hub.config()["status"]["clusters"][k] == n, f"{name} {kind}")
    hub.set_feedback("c1", None)
    assert hub.wait_scorer("s", "Distributed", "True", says=words)[1] == "AddOnMissing"
    assert hub.work("c3") is None

    for cluster in ("c2", "c3"):
        hub.set_addon(cluster, "True")
        hub.wait_scores(cluster, "cpu", "memory", deadline=LONG)
    wait_until(lambda: hub.config()["status"]["clusters"]["managed"] == 3, "all are served")
    wait_until(lambda: "without the add-on" not in hub.wait_scorer("s", "Distributed", "False")[2], "and so it says")
    assert controller.metric("dynamic_scoring_kubernetes_up", resource="managedclusteraddons") is not None


def test_scores_found_at_a_start(hub, fake, start_controller, tmp_path):
    """An earlier controller has withdrawn the ManifestWork, and ended."""
    clock = Clock(tmp_path)
    hub.add_namespace("c1")
    hub.set_addon("c1", "True")
    hub.add_cluster("c2")
    add_scores(hub, "c2", left=f"dynamic-scoring/{ADDON}")
    distributed(hub, fake, start_controller, env=clock.env)
    assert set(hub.kube.objects("c2")) == {"left"}
    wait_until(lambda: clock.passes(OVER, lambda: not hub.kube.objects("c2")), "they go", LONG)
    assert hub.work("c2") is None
