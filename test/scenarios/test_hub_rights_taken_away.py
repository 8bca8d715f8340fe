"""A controller that may no longer read a kind of objects goes on with what it knows of them, and says so in the conditions of
all that it distributes, until it can read them again."""

import contextlib
import json
import time

from lib.hub import HUB_NAMESPACE
from lib.scorers import RBAC, distributed, in_parallel, limited_user
from lib.wait import LONG

KINDS = {  # the ClusterRole's: plural: (API group, kind)
    "managedclusters": ("cluster.open-cluster-management.io", "ManagedClusters"),
    "manifestworks": ("work.open-cluster-management.io", "ManifestWorks"),
    "managedclusteraddons": ("addon.open-cluster-management.io", "ManagedClusterAddOns"),
}
UNREADABLE = "ObjectsUnreadable"


def report(ago, lives):
    """Of an agent that has scored `ago` seconds ago."""
    at = [time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + s)) for s in (-ago, lives - ago)]
    scorer = {"scoreName": "cpu", "state": "ok", "lastSuccess": at[0], "validUntil": at[1]}
    return json.dumps({"configurationInForce": True, "scorers": [scorer]})


def look(hub, without=None):
    """What the controller's user may read everywhere."""
    rules = [
        {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]}
        for plural, (group, _) in KINDS.items()
        if plural != without
    ]
    hub.kube.apply(f"{RBAC}/clusterroles", "test-look", {"rules": rules})


@contextlib.contextmanager
def taken_away(hub, plural):
    """Yields what is said of it."""
    look(hub, without=plural)
    hub.kube.pause()  # a stream outlives the right to open it
    hub.kube.resume()
    yield f"{KINDS[plural][1]} cannot be read: hub: list {plural}"
    look(hub)


def start(hub, fake, start_controller):
    in_parallel(hub.add_namespace, ("c1", "c2"))
    user = limited_user(hub, ["c1", "c2"])
    look(hub)
    distributed(hub, fake, start_controller, kubeconfig=user)
    hub.set_feedback("c1", report(ago=0, lives=600))
    hub.wait_scorer("s", "Ready", "True")
    for wait in (hub.wait_config, lambda *condition: hub.wait_scorer("s", *condition)):
        wait("Distributed", "True", "Distributed")


def test_managed_clusters(hub, fake, start_controller):
    start(hub, fake, start_controller)
    with taken_away(hub, "managedclusters") as words:
        message = hub.wait_scorer("s", "Distributed", "False", UNREADABLE, LONG, words)[2]
        assert "forbidden" in message and message.endswith("; the last known ones stay active")
        hub.wait_config("Distributed", "False", UNREADABLE, LONG, words)
        hub.wait_scorer("s", "Ready", "True")
        hub.add_cluster("c2", namespace=False)
    hub.wait_scores("c2", "cpu", deadline=LONG)
    hub.wait_scorer("s", "Distributed", "False", "Progressing", LONG)


def test_manifest_works(hub, fake, start_controller):
    """With them come the agents' reports: that scores have expired would be a guess."""
    start(hub, fake, start_controller)
    hub.set_feedback("c1", report(ago=0, lives=30))
    with taken_away(hub, "manifestworks") as words:
        hub.wait_scorer("s", "Distributed", "False", UNREADABLE, LONG, words)
        hub.wait_config("Distributed", "False", UNREADABLE, LONG, words)
        for kind in ("Scoring", "Ready"):
            hub.wait_scorer("s", kind, "Unknown", "Silent", LONG, f"silent on 1 of 1 cluster: c1: {words}")
        (silent,) = hub.scorer_status("s")["failingClusters"]
        assert silent["state"] == "silent" and silent["error"].startswith(words)
        hub.set_feedback("c1", report(ago=0, lives=600))
    hub.wait_scorer("s", "Ready", "True", deadline=LONG)
    hub.wait_scorer("s", "Distributed", "True", "Distributed", LONG)
    hub.wait_config("Distributed", "True", "Distributed", LONG)


def test_add_ons(hub, fake, start_controller):
    """All accepted clusters are served meanwhile, so nothing is missing."""
    start(hub, fake, start_controller)
    hub.set_addon("c1", "True")
    with taken_away(hub, "managedclusteraddons") as words:
        hub.wait_scorer("s", "Distributed", "True", UNREADABLE, LONG, f"distributed to 1 cluster; {words}")
        hub.wait_config("Distributed", "True", UNREADABLE, LONG, f"distributed to 1 cluster; {words}")
    hub.wait_scorer("s", "Distributed", "True", "Distributed", LONG)


def test_dynamic_scoring_configs(hub, fake, start_controller):
    """Those of the controller's own namespace: what people change of masks has no effect any more."""
    start(hub, fake, start_controller)
    role = f"{RBAC}/namespaces/{HUB_NAMESPACE}/roles", "test-own"
    rules = hub.kube.find("/".join(role))["rules"]
    without = [{**r, "resources": [x for x in r["resources"] if x != "dynamicscoringconfigs"]} for r in rules]
    hub.kube.apply(*role, {"rules": without})
    hub.kube.pause()
    hub.kube.resume()
    words = "DynamicScoringConfigs cannot be read: hub: list dynamicscoringconfigs"
    hub.wait_scorer("s", "Distributed", "False", UNREADABLE, LONG, words)
    hub.kube.apply(*role, {"rules": rules})
    hub.wait_scorer("s", "Distributed", "True", "Distributed", LONG)
