"""What the optimizer plans with: clusters, Policies that say what each may supply, workloads, and scores."""

import contextlib

from lib.hub import CLUSTERS
from lib.kube import MERGE_PATCH, SCORES, Refused

POLICIES = "apis/policy.open-cluster-management.io/v1/namespaces/{}/policies"
BINDINGS = "apis/policy.open-cluster-management.io/v1/namespaces/{}/placementbindings"
PLACEMENTS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/{}/placements"
WORKLOADS = "apis/work.open-cluster-management.io/v1alpha1/namespaces/{}/manifestworkreplicasets"
SCORE = "example-performance-score"
PREFERENCE = {"addonPlacementScore": SCORE, "scoreDimensionFormat": "${app};${device}"}
GENERATED = "dynamic-scoring-framework-mcp/generated=true"


class Decide:
    """clusters: {name: {device: amount of gpu}}; workloads: {app: amount}; scores: {(app, cluster, device): value}."""

    def __init__(self, hub, clusters, workloads, scores, namespace="default"):
        self.hub, self.kube, self.namespace = hub, hub.kube, namespace
        self.clusters, self.workloads, self.scores = clusters, workloads, scores

    def make_clusters(self):
        for name in self.clusters:
            self.hub.add_cluster(name, labels={"cluster-name": name})
            self.add_score(name, [(f"{app};{device}", v) for (app, on, device), v in self.scores.items() if on == name])

    def make_work(self):
        """Policies and workloads, in the namespace."""
        for name, devices in self.clusters.items():
            for device, amount in devices.items():
                self.add_policy(name, device, amount)
        for app, amount in self.workloads.items():
            self.add_workload(app, amount)

    def add_policy(self, cluster, device, amount):
        labels = {"kind": "gpu", "amount": str(amount), "device": device}
        labels = {f"resource-supply-{k}": v for k, v in labels.items()}
        spec = {"disabled": False, "policy-templates": []}
        name = f"policy-{device}-{cluster}"
        body = {"apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy", "spec": spec}
        self.kube.apply(POLICIES.format(self.namespace), name, {**body, "metadata": {"labels": labels}})

    def add_workload(self, app, amount):
        labels = {"app": app, "resource-request-kind": "gpu", "resource-request-amount": str(amount)}
        pod = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app, "namespace": "default"}}
        spec = {"placementRefs": [{"name": f"{app}-placement"}], "manifestWorkTemplate": {"workload": {"manifests": [pod]}}}
        body = {"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet", "spec": spec}
        self.kube.apply(WORKLOADS.format(self.namespace), f"mwrs-{app}", {**body, "metadata": {"labels": labels}})

    def add_score(self, cluster, items):
        path = SCORES.format(cluster)
        body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        self.kube.apply(path, SCORE, body)
        status = {"scores": [{"name": name, "value": value} for name, value in items]}
        self.kube.call("PATCH", f"{path}/{SCORE}/status", {"status": status}, MERGE_PATCH)

    def request(self, **more):
        clusters = [
            {"name": name, "availablePolicies": [{"name": f"policy-{device}-{name}"} for device in devices]}
            for name, devices in self.clusters.items()
        ]
        targets = [{"name": f"mwrs-{app}"} for app in self.workloads]
        return {"namespace": self.namespace, "clusters": clusters, "targetWorkloads": targets, "preference": PREFERENCE, **more}

    def made(self, path):
        """Names of what plans have made."""
        path = path.format(self.namespace)
        found = self.kube.call("GET", f"{path}?labelSelector={GENERATED.replace('=', '%3D').replace('/', '%2F')}")["items"]
        return sorted(o["metadata"]["name"] for o in found)

    def remove(self):
        for path in (BINDINGS, PLACEMENTS, POLICIES, WORKLOADS):
            with contextlib.suppress(Refused):
                self.kube.call("DELETE", path.format(self.namespace))
        for name in self.clusters:
            for path in (f"{SCORES.format(name)}/{SCORE}", f"{CLUSTERS}/{name}"):
                with contextlib.suppress(Refused):
                    self.kube.call("DELETE", path)


@contextlib.contextmanager
def deciding(hub, **what):
    decide = Decide(hub, **what)
    try:
        decide.make_clusters()
        decide.make_work()
        yield decide
    finally:
        decide.remove()
