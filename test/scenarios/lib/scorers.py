"""DynamicScorers, the /config of their scoring APIs, and what comes of them."""

import concurrent.futures

from lib.fake import answer, plain
from lib.hub import HUB_NAMESPACE
from lib.kube import DOMAIN
from lib.wait import DEADLINE, wait_until
from lib.work import WORK, WORK_CONFIGMAP, WORKS, manifest

FINALIZER = "dynamic-scoring.open-cluster-management.io/manifestworks"  # ours, of the DynamicScoringConfig
RBAC = "apis/rbac.authorization.k8s.io/v1"


# ---- Documents ----


def source(host="http://prometheus.example:9090", query="up", **more):
    params = {"query": query, "range": 3600, "step": 60}
    return {"type": "Prometheus", "host": host, "path": "/api/v1/query_range", "params": params, **more}


def scoring(score_name, **more):
    return {"path": "/scoring", "params": {"name": score_name, "interval": 30}, **more}


def api_config(score_name, **more):
    """The response of a scoring API's /config."""
    said = {"name": score_name, "description": f"about {score_name}"}
    return {**said, "source": source(), "scoring": scoring(score_name), **more}


def full(url, **more):
    """The spec of a DynamicScorer that takes everything from its API."""
    return {"description": "", "configURL": url, "configSyncMode": "Full", **more}


def own(score_name, url, **more):
    """The spec of a DynamicScorer that contains everything; url: its API's."""
    of_api = {"description": "", "configURL": f"{url}/config", "configSyncMode": "None"}
    return {**of_api, "source": source(), "scoring": scoring(score_name, host=url), **more}


def serve(fake, path, score_name, **more):
    """A healthy scoring API with this configuration; returns the URL of its /config."""
    fake.on("/healthz", plain("ok"))
    return fake.on(path, answer(api_config(score_name, **more)))


def distributed(hub, fake, start_controller, *flags, clusters=("c1",), **more):
    """Distributes a scorer "s" with score "cpu" to the clusters; returns the controller."""
    in_parallel(hub.add_cluster, clusters)
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    controller = start_controller(*flags, **more)
    in_parallel(lambda cluster: hub.wait_scores(cluster, "cpu"), clusters)
    wait_status(hub, "s", lambda s: s["clusters"]["upToDate"] == len(clusters), "it is everywhere")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    return controller


# ---- What came of them ----


def summaries(hub, cluster):
    """{score name: summary}"""
    return {s["scoreName"]: s for s in hub.summaries(cluster)}


def text_of(work):
    """Its summaries, as text."""
    return manifest(work, WORK_CONFIGMAP)["data"]["summaries"]


def wait_status(hub, name, condition, what, deadline=DEADLINE):
    """Waits until a DynamicScorer's status meets the condition; returns the status."""
    return wait_until(lambda: (s := hub.scorer_status(name)) and condition(s) and s, what, deadline, 0.1)


def wait_no_work(hub, cluster, deadline=DEADLINE):
    wait_until(lambda: hub.work(cluster) is None, f"{cluster} has no work", deadline)


def patch_work(hub, cluster, patch):
    return hub.patch(f"{WORKS.format(cluster)}/{WORK}", patch)


def writes(controller, **labels):
    """Writes to the API server so far."""
    return sum(v for _, v in controller.metrics().all("dynamic_scoring_hub_writes_total", **labels))


def writes_at_rest(controller):
    """Waits until four more probes bring no write, and returns the number of writes so far."""

    def look():
        return sum(v for _, v in controller.metrics().all("dynamic_scoring_hub_probes_total")), writes(controller)

    def at_rest():
        nonlocal last
        found = look()
        if found[1] != last[1]:
            last = found
        return found[0] >= last[0] + 4

    last = look()
    controller.wait_until(at_rest, "the controller writes nothing more")
    return last[1]


# ---- Many, and rights ----


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(function, items))


def limited_user(hub, clusters):
    """The kubeconfig of a user with the controller's permissions in its own namespace alone, who may write ManifestWorks
    in these namespaces only."""
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    role = {"apiGroup": "rbac.authorization.k8s.io"}
    work = {"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"]}
    clusters_rule = {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"]}
    look = {"verbs": ["get", "list", "watch"]}
    rules = {"test-look": [{**work, **look}, {**clusters_rule, **look}], "test-write": [{**work, "verbs": ["*"]}]}
    for name, r in rules.items():
        hub.kube.apply(f"{RBAC}/clusterroles", name, {"rules": r})
    everywhere = {"roleRef": {**role, "kind": "ClusterRole", "name": "test-look"}, "subjects": [user]}
    hub.kube.apply(f"{RBAC}/clusterrolebindings", "test-look", everywhere)
    own = {"apiGroups": [DOMAIN], "resources": ["dynamicscorers", "dynamicscoringconfigs"], "verbs": ["list", "watch"]}
    events = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}
    own_namespace = f"{RBAC}/namespaces/{HUB_NAMESPACE}"
    hub.kube.apply(f"{own_namespace}/roles", "test-own", {"rules": [own, events]})
    for name in ("dynamic-scoring-controller", "test-own"):
        here = {"roleRef": {**role, "kind": "Role", "name": name}, "subjects": [user]}
        hub.kube.apply(f"{own_namespace}/rolebindings", f"test-nobody-{name}", here)
    in_parallel(lambda cluster: allow(hub, cluster), clusters)
    return hub.kube.kubeconfig("nobody")


def allow(hub, cluster):
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-write"}
    binding = {"roleRef": role, "subjects": [user]}
    hub.kube.apply(f"{RBAC}/namespaces/{cluster}/rolebindings", "test-write", binding)


def forbid(hub, cluster):
    hub.kube.delete(f"{RBAC}/namespaces/{cluster}/rolebindings/test-write")
