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


# ---- Its chart ----

HUB_NAMESPACE, AGENT_NAMESPACE = "open-cluster-management", "dynamic-scoring"
ADDON, AGENT = "dynamic-scoring-framework", "dynamic-scoring-agent"
RBAC = "rbac.authorization.k8s.io/v1"
IMAGE = "quay.io/open-cluster-management/dynamic-scoring-{}:latest"


def thing(api, kind, name, namespace=None, labels=None, **more):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    metadata = {k: v for k, v in metadata.items() if v}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def deployment(name, namespace, labels, image, account, *command):
    container = {"name": name, "image": IMAGE.format(image), "command": list(command)}
    template = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": account, "containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return thing("apps/v1", "Deployment", name, namespace, labels, spec=spec)


def binding(name, role, account, namespace):
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return thing(RBAC, "ClusterRoleBinding", name, roleRef=ref, subjects=[subject])


def role(name, groups):
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}
    return thing(RBAC, "ClusterRole", name, rules=[rule])


def addon_objects():
    cluster, addon = "cluster.open-cluster-management.io", "addon.open-cluster-management.io"
    placements = []
    for suffix, operator in (("", "NotIn"), ("-aarch64", "In")):
        arch = {"key": "cluster-arch", "operator": operator, "values": ["aarch64"]}
        selector = {"requiredClusterSelector": {"labelSelector": {"matchExpressions": [arch]}}}
        name = f"dynamic-scoring-placement{suffix}"
        spec = {"clusterSets": ["global"], "predicates": [selector]}
        yield thing(f"{cluster}/v1beta1", "Placement", name, HUB_NAMESPACE, spec=spec)
        image = {"name": "Image", "value": IMAGE.format("addon") + suffix}
        spec = {"agentInstallNamespace": AGENT_NAMESPACE, "customizedVariables": [image]}
        config = f"dynamic-scoring-addon-config{suffix}"
        yield thing(f"{addon}/v1alpha1", "AddOnDeploymentConfig", config, HUB_NAMESPACE, spec=spec)
        config = {"group": addon, "resource": "addondeploymentconfigs", "name": config, "namespace": HUB_NAMESPACE}
        placements.append({"name": name, "namespace": HUB_NAMESPACE, "configs": [config]})
    spec = {"clusterSet": "global"}
    yield thing(f"{cluster}/v1beta2", "ManagedClusterSetBinding", "global", HUB_NAMESPACE, spec=spec)
    spec = {
        "addOnMeta": {"displayName": ADDON},
        "supportedConfigs": [{"group": addon, "resource": "addondeploymentconfigs"}],
        "installStrategy": {"type": "Placements", "placements": placements},
    }
    yield thing(f"{addon}/v1alpha1", "ClusterManagementAddOn", ADDON, spec=spec)


def chart_objects():
    """Its chart's objects on the hub, by the names that its documents and values use."""
    name = "dynamic-scoring-framework-controller"
    labels = {"app.kubernetes.io/name": ADDON, "control-plane": "controller-manager"}
    flags = ("--metrics-bind-address=:8443", "--leader-elect", "--health-probe-bind-address=:8081")
    own = ("dynamicscorer", "dynamicscoringconfig")
    service = {"ports": [{"name": "https", "port": 8443}], "selector": labels}
    addon, words = "dynamic-scoring-addon-controller", ("/dynamic-scoring-addon", "controller")
    return [
        deployment(name, HUB_NAMESPACE, labels, "controller", name, "/manager", *flags),
        thing("v1", "ServiceAccount", name, HUB_NAMESPACE, labels),
        thing("v1", "Service", f"{name}-metrics-service", HUB_NAMESPACE, labels, spec=service),
        *(role(f"{ADDON}-{o}-{who}-role", [DOMAIN]) for o in own for who in ("admin", "editor", "viewer")),
        role("dynamic-scoring-addon", ["addon.open-cluster-management.io"]),
        binding("dynamic-scoring-addon", "dynamic-scoring-addon", "dynamic-scoring-addon", HUB_NAMESPACE),
        deployment(addon, HUB_NAMESPACE, {"app": addon}, "addon", name, *words),
        *addon_objects(),
    ]


def write_chart(folder, objects):
    """A chart of objects, for helm."""
    (folder / "templates").mkdir(parents=True)
    chart = {"apiVersion": "v2", "name": ADDON, "version": "0.1.0"}
    (folder / "Chart.yaml").write_text(json.dumps(chart))
    text = "\n---\n".join(json.dumps(o) for o in objects)
    (folder / "templates" / "all.yaml").write_text(text)
    return folder


def agent_objects():
    """What its add-on controller installs on a cluster: the agent is cluster-admin there."""
    command = ("/dynamic-scoring-addon", "agent", "--hub-kubeconfig=/var/run/hub/kubeconfig", "--cluster-name=worker01")
    return [
        deployment(AGENT, AGENT_NAMESPACE, {"app": AGENT}, "addon", f"{AGENT}-sa", *command),
        thing("v1", "ServiceAccount", f"{AGENT}-sa", AGENT_NAMESPACE),
        binding(AGENT, "cluster-admin", f"{AGENT}-sa", AGENT_NAMESPACE),
    ]
