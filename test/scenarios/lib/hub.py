"""The hub as its users and its other controllers see it, on a real API server."""

import base64
import contextlib
import json

from lib.kube import DOMAIN, MERGE_PATCH, NAMESPACE, Refused
from lib.wait import DEADLINE, wait_until
from lib.work import NAMESPACES, OWNED, WORK, WORK_CONFIGMAP, WORKS, manifest, write_work_status

HUB_NAMESPACE = "open-cluster-management"
CONFIG = "dynamic-scoring-config"

CLUSTERS = "apis/cluster.open-cluster-management.io/v1/managedclusters"
ADDONS = "apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons"
ADDON = "dynamic-scoring-framework"
ALL_WORKS = "apis/work.open-cluster-management.io/v1/manifestworks"
LEFT = [  # where tests leave objects
    ("apis/work.open-cluster-management.io/v1", "manifestworks"),
    ("apis/cluster.open-cluster-management.io/v1alpha1", "addonplacementscores"),
    ("apis/addon.open-cluster-management.io/v1alpha1", "managedclusteraddons"),
    ("api/v1", "configmaps"),
    ("api/v1", "secrets"),
]
OF_HUB = f"apis/{{}}/namespaces/{HUB_NAMESPACE}/{{}}"
SCORERS = OF_HUB.format(f"{DOMAIN}/v1alpha1", "dynamicscorers")
CONFIGS = OF_HUB.format(f"{DOMAIN}/v1alpha1", "dynamicscoringconfigs")
EVENTS = OF_HUB.format("events.k8s.io/v1", "events")
LEASES = OF_HUB.format("coordination.k8s.io/v1", "leases")


def condition_of(found, kind):
    """(status, reason, message), or None."""
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return next(((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == kind), None)


def static_scorer(url, score_name, interval=600, **more):
    """The spec of a DynamicScorer in None mode without a source; url: the API's, without a path."""
    params = {"name": score_name, "interval": interval}
    return {
        "configURL": f"{url}/config",
        "configSyncMode": "None",
        "source": {"type": "None"},
        "scoring": {"params": params},
        **more,
    }


class Hub:
    """The hub as its admin uses it."""

    def __init__(self, kube):
        self.kube = kube

    # ---- Clusters ----

    def add_namespace(self, name):
        with contextlib.suppress(Refused):
            self.kube.call("POST", NAMESPACES, {"metadata": {"name": name, "labels": OWNED}})

    def remove_namespace(self, name):
        """With its contents: no controller runs here that would delete them."""
        self.empty({name})
        self.end_namespace(name)

    def end_namespace(self, name):
        found = self.kube.call("DELETE", f"{NAMESPACES}/{name}")
        found["spec"]["finalizers"] = []
        self.kube.call("PUT", f"{NAMESPACES}/{name}/finalize", found)

    def add_cluster(self, name, accepted=True, namespace=True, labels=None):
        """namespace=False: without its namespace."""
        if namespace:
            self.add_namespace(name)
        return self.put(CLUSTERS, "ManagedCluster", name, {"hubAcceptsClient": accepted}, labels=labels or {})

    def accept(self, name, accepted=True):
        self.patch(f"{CLUSTERS}/{name}", {"spec": {"hubAcceptsClient": accepted}})

    def set_addon(self, cluster, status=None, message=""):
        """The add-on's condition Available; None: without one."""
        path = f"{ADDONS.format(cluster)}/{ADDON}"
        self.put(ADDONS.format(cluster), "ManagedClusterAddOn", ADDON, {})
        told = {"type": "Available", "status": status, "reason": "Told", "message": message}
        conditions = [{**told, "lastTransitionTime": "2026-01-01T00:00:00Z"}] if status else []
        self.patch(f"{path}/status", {"status": {"conditions": conditions}})

    def remove_cluster(self, name, namespace=False):
        """The ManagedCluster, and with namespace=True its namespace."""
        self.kube.delete(f"{CLUSTERS}/{name}")
        if namespace:
            self.remove_namespace(name)

    # ---- DynamicScorers and DynamicScoringConfigs ----

    def apply_scorer(self, name, spec):
        """Creates it, or replaces its spec."""
        return self.put(SCORERS, "DynamicScorer", name, spec)

    def scorer(self, name):
        return self.kube.find(f"{SCORERS}/{name}")

    def delete_scorer(self, name):
        self.kube.delete(f"{SCORERS}/{name}")

    def configure(self, name=CONFIG, **spec):
        """The DynamicScoringConfig: configure(masks=[...])."""
        return self.put(CONFIGS, "DynamicScoringConfig", name, spec)

    def config(self, name=CONFIG):
        return self.kube.find(f"{CONFIGS}/{name}")

    def delete_config(self, name=CONFIG):
        self.kube.delete(f"{CONFIGS}/{name}")

    def scorer_status(self, name):
        return (self.scorer(name) or {}).get("status", {})

    def scorer_condition(self, name, kind):
        return condition_of(self.scorer(name), kind)

    def config_condition(self, kind, name=CONFIG):
        return condition_of(self.config(name), kind)

    def wait_scorer(self, name, kind, status, reason=None, deadline=DEADLINE, says=""):
        """Waits for a condition; returns (status, reason, message). What several clusters reported is counted one by one: says."""
        return self.wait_condition(lambda: self.scorer(name), name, kind, status, reason, deadline, says)

    def wait_config(self, kind, status, reason=None, deadline=DEADLINE, says=""):
        return self.wait_condition(self.config, CONFIG, kind, status, reason, deadline, says)

    @staticmethod
    def wait_condition(find, name, kind, status, reason, deadline, says=""):
        def look():
            found = condition_of(find(), kind)
            last.append(found)
            return found if found and found[0] == status and reason in (None, found[1]) and says in found[2] else None

        last = []
        try:
            return wait_until(look, f"{name} is {kind}={status}", deadline)
        except AssertionError as error:
            raise AssertionError(f"{error}; {kind} is {last[-1]}") from None

    def secret(self, name, kind="Opaque", **values):
        """The controller may only read Secrets that test/kube-apiserver lists."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        return self.kube.apply(f"{NAMESPACES}/{HUB_NAMESPACE}/secrets", name, {"type": kind, "data": data})

    def events(self, name=None):
        """[(type, reason, note)] about an object."""
        return [(e["type"], e["reason"], e["note"]) for e in self.whole_events(name)]

    def whole_events(self, name=None):
        """The Events about an object, as the API server has them."""
        found = self.kube.call("GET", EVENTS)["items"]
        return [e for e in found if name in (None, e["regarding"]["name"])]

    # ---- ManifestWorks ----

    def work(self, cluster):
        return self.kube.find(f"{WORKS.format(cluster)}/{WORK}")

    def works(self):
        """{cluster: work}"""
        found = self.kube.call("GET", f"{ALL_WORKS}?fieldSelector=metadata.name%3D{WORK}")["items"]
        return {w["metadata"]["namespace"]: w for w in found}

    def summaries(self, cluster):
        """[{scoreName: ...}] in the cluster's work; None without a work."""
        work = self.work(cluster)
        return work and json.loads(manifest(work, WORK_CONFIGMAP)["data"]["summaries"])

    def score_names(self, cluster):
        """The score names in the cluster's work, in order; None without a work."""
        found = self.summaries(cluster)
        return None if found is None else [s["scoreName"] for s in found]

    def wait_scores(self, cluster, *names, deadline=DEADLINE):
        """Waits until the cluster's work contains exactly these."""
        wait_until(lambda: self.score_names(cluster) == sorted(names), f"{cluster} has {sorted(names)}", deadline)

    def set_feedback(self, cluster, text, applied=True, why="applied"):
        """The work agent's status once it has applied the work; text: the agent's report, or None."""
        write_work_status(self.kube, self.work(cluster), text, applied, why)

    # ---- All ----

    def put(self, path, kind, name, spec, **metadata):
        """Creates it, or replaces its spec."""
        if self.kube.find(f"{path}/{name}") is not None:
            change = [{"op": "add", "path": "/spec", "value": spec}]  # whatever version: the controller writes, too
            return self.kube.call("PATCH", f"{path}/{name}", change, "application/json-patch+json")
        version = "/".join(path.split("/")[1:3])
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return self.kube.call("POST", path, body)

    def patch(self, path, body):
        return self.kube.call("PATCH", path, body, MERGE_PATCH)

    def kubectl(self, *args, user="admin"):
        return self.kube.kubectl(f"--namespace={HUB_NAMESPACE}", *args, user=user)

    def empty(self, namespaces=None):
        """Deletes what tests leave in namespaces; None: in all except Kubernetes' own."""
        for api, plural in LEFT:
            found = {o["metadata"]["namespace"] for o in self.kube.call("GET", f"{api}/{plural}")["items"]}
            for name in sorted(found if namespaces is None else found & namespaces):
                if not name.startswith("kube-"):
                    self.drop(f"{api}/namespaces/{name}/{plural}")

    def drop(self, path):
        """Deletes all objects there, whatever finalizers they have."""
        for one in self.kube.call("GET", path)["items"]:
            if not one["metadata"].get("finalizers"):
                continue
            try:
                self.patch(f"{path}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
            except Refused as refused:
                if refused.status != 404:  # gone meanwhile
                    raise
        self.kube.call("DELETE", path)

    def clean(self):
        """Deletes everything that earlier tests left."""
        for path in (SCORERS, CONFIGS, LEASES, EVENTS, CLUSTERS):
            self.drop(path)
        self.empty()
        label = "%3D".join(*OWNED.items())
        for one in self.kube.call("GET", f"{NAMESPACES}?labelSelector={label}")["items"]:
            self.end_namespace(one["metadata"]["name"])


def clean_hub(kube):
    """A Hub without leftovers of earlier tests."""
    hub = Hub(kube)
    hub.clean()
    return hub


def agent_namespace_of(cluster):
    """For several "managed clusters" on one API server."""
    return f"{NAMESPACE}-{cluster}"


def agent_flags(hub, cluster):
    """The flags of an agent on such a cluster."""
    admin = hub.kube.kubeconfig()
    return (
        f"--hub-kubeconfig={admin}",
        f"--managed-kubeconfig={admin}",
        f"--cluster-name={cluster}",
        f"--addon-namespace={agent_namespace_of(cluster)}",
        "--addon-name=dynamic-scoring",
    )
