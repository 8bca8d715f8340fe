"""What the reference implementation leaves on a hub, as its documents show it: no labels, no owners."""

import json

from lib.kube import DOMAIN, MERGE_PATCH, SCORES, seconds_until
from lib.work import WORK, WORK_CONFIGMAP, WORKS

FINALIZER = f"{DOMAIN}/dynamic-scoring-config-finalizer"  # of the DynamicScoringConfig
ITEM = "worker01-control-plane;open-cluster-management-agent;klusterlet-work-agent-6477c8c976-bk9nt"


def add_score(kube, cluster, name, items, **metadata):
    """An AddOnPlacementScore without an end: the reference sets no validUntil."""
    body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
    path = SCORES.format(cluster)
    kube.call("POST", path, {**body, "metadata": {"name": name, **metadata}})
    status = {"scores": [{"name": k, "value": v} for k, v in items.items()]}
    return kube.call("PATCH", f"{path}/{name}/status", {"status": status}, MERGE_PATCH)


def add_work(kube, cluster, summaries, namespace="dynamic-scoring"):
    """The ManifestWork with the summaries."""
    configmap = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": WORK_CONFIGMAP, "namespace": namespace},
        "data": {"summaries": json.dumps(summaries)},
    }
    body = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": WORK}}
    body["spec"] = {"workload": {"manifests": [configmap]}}
    return kube.call("POST", WORKS.format(cluster), body)


def history(kube, path, since):
    """[(type, object)] of all changes after an object that was read before."""
    query = f"watch=1&timeoutSeconds=1&resourceVersion={since['metadata']['resourceVersion']}"
    lines = kube.text("GET", f"{path}?{query}").splitlines()
    return [(e["type"], e["object"]) for e in map(json.loads, lines)]


def check_never_lost(kube, cluster, since):
    """The AddOnPlacementScore `since`, as read before, has had valid scores at all times."""
    name = since["metadata"]["name"]
    changes = [c for c in history(kube, SCORES.format(cluster), since) if c[1]["metadata"]["name"] == name]
    assert changes, f"{name} has not changed"
    for kind, found in changes:
        assert kind == "MODIFIED" and found["metadata"]["uid"] == since["metadata"]["uid"], kind
        assert found["status"]["scores"], found
        end = found["status"].get("validUntil")
        assert end is None or seconds_until(end) > 0, found
