"""The guide's example of a decision: two clusters with three policies each, two workloads, two scores."""

import contextlib

from lib.kube import MERGE_PATCH, SCORES, Refused
from lib.wait import wait_until

CLUSTERS = "apis/cluster.open-cluster-management.io/v1/managedclusters"
PLACEMENTS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/{}/placements"
DECISIONS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/{}/placementdecisions"
BINDINGS = "apis/policy.open-cluster-management.io/v1/namespaces/{}/placementbindings"
POLICIES = "apis/policy.open-cluster-management.io/v1/namespaces/{}/policies"
WORKLOADS = "apis/work.open-cluster-management.io/v1alpha1/namespaces/{}/manifestworkreplicasets"
NAMESPACES = "api/v1/namespaces"
MARK = "dynamic-scoring-framework-mcp/generated"
PERFORMANCE, POWER = "example-performance-score", "example-powerconsumption-score"
DEVICES = {"disable-mig": ("1", "all"), "enable-mig-3g": ("2", "3g.48gb"), "enable-mig-2g": ("3", "2g.24gb")}
VALUES = {
    PERFORMANCE: {"all": (80, 80), "3g.48gb": (60, 55), "2g.24gb": (10, 15)},
    POWER: {"all": (20, 10), "3g.48gb": (30, 55), "2g.24gb": (80, 90)},
}


class Guide:
    """In a namespace of its own, with clusters of its own, so that several tests may share an API server."""

    def __init__(self, kube, namespace="guide"):
        self.kube, self.namespace = kube, namespace
        self.clusters = [f"{namespace}-worker01", f"{namespace}-worker02"]
        self.placements, self.bindings = PLACEMENTS.format(namespace), BINDINGS.format(namespace)

    def make(self):
        for name in [self.namespace, *self.clusters]:
            with contextlib.suppress(Refused):
                self.kube.call("POST", NAMESPACES, {"metadata": {"name": name}})
        for cluster in self.clusters:
            labels = {"cluster-name": cluster}
            version = "cluster.open-cluster-management.io/v1"
            self.put(CLUSTERS, cluster, version, "ManagedCluster", labels, {"hubAcceptsClient": True})
            for policy, (amount, device) in DEVICES.items():
                self.policy(f"policy-{policy}-{cluster}", amount, device)
            for name, values in VALUES.items():
                self.score(cluster, name, {f"app0{i + 1};{d}": pair[i] for d, pair in values.items() for i in (0, 1)})
        for app in ("app01", "app02"):
            self.workload(f"mwrs-{app}", app)
        return self

    def put(self, path, name, version, kind, labels, spec):
        body = {"apiVersion": version, "kind": kind, "metadata": {"labels": labels}, "spec": spec}
        self.kube.apply(path, name, body)

    def policy(self, name, amount, device, kind="gpu"):
        labels = {"resource-supply-kind": kind, "resource-supply-amount": amount, "resource-supply-device": device}
        spec = {"disabled": False, "policy-templates": []}
        self.put(POLICIES.format(self.namespace), name, "policy.open-cluster-management.io/v1", "Policy", labels, spec)

    def workload(self, name, app, amount="2"):
        labels = {"app": app, "resource-request-kind": "gpu", "resource-request-amount": amount}
        spec = {"placementRefs": [{"name": f"{app}-placement"}], "manifestWorkTemplate": {"workload": {"manifests": []}}}
        path = WORKLOADS.format(self.namespace)
        self.put(path, name, "work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", labels, spec)

    def relabel(self, policy, **labels):
        labels = {name.replace("_", "-"): value for name, value in labels.items()}
        path = f"{POLICIES.format(self.namespace)}/{policy}"
        self.kube.call("PATCH", path, {"metadata": {"labels": labels}}, MERGE_PATCH)

    def score(self, cluster, name, items):
        path = SCORES.format(cluster)
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        self.kube.apply(path, name, kind)
        status = {"status": {"scores": [{"name": item, "value": value} for item, value in items.items()]}}
        self.kube.call("PATCH", f"{path}/{name}/status", status, MERGE_PATCH)

    def request(self, score=PERFORMANCE, **more):
        """The guide's params.json."""
        clusters = [
            {"name": c, "availablePolicies": [{"name": f"policy-{p}-{c}"} for p in DEVICES]} for c in self.clusters
        ]
        return {
            "namespace": self.namespace,
            "clusters": clusters,
            "targetWorkloads": [{"name": "mwrs-app01"}, {"name": "mwrs-app02"}],
            "preference": {"addonPlacementScore": score, "scoreDimensionFormat": "${app};${device}"},
            **more,
        }

    def items(self, path, marked=True):
        query = f"?labelSelector={MARK}%3Dtrue" if marked else ""
        return {o["metadata"]["name"]: o for o in self.kube.call("GET", path + query)["items"]}

    def made(self):
        """Names of all objects that plans made."""
        return sorted([*self.items(self.placements), *self.items(self.bindings)])

    def clean(self):
        for path in (self.placements, self.bindings, WORKLOADS.format(self.namespace), POLICIES.format(self.namespace)):
            self.kube.call("DELETE", path)
        self.kube.call("DELETE", DECISIONS.format(self.namespace))
        for cluster in self.clusters:
            self.kube.delete(f"{CLUSTERS}/{cluster}")
            self.kube.call("DELETE", SCORES.format(cluster))

    def wait_known(self, optimizer, **more):
        """Until plans have stopped changing: other programs may still write what they are made from."""
        seen = []

        def settled():
            answer = optimizer.post("/plan", self.request(**more))
            seen.append(answer.json.get("planHash") if answer.status == 200 else answer.text)
            return answer.status == 200 and len(seen) > 2 and seen[-1] == seen[-2] == seen[-3] and answer

        return wait_until(settled, "the optimizer's plan is the same three times")


@contextlib.contextmanager
def running_guide(kube, namespace="guide"):
    guide = Guide(kube, namespace)
    try:
        yield guide.make()
    finally:
        guide.clean()
