"""The MIG example of the framework's guide, from empty clusters to power-optimised ones: the chart with its policy watchers, static
scores and optimizer, and Open Cluster Management's own placement, registration, work, ManifestWorkReplicaSet and governance
controllers on a hub and two clusters, each a real API server.

Stand-ins: processes for pods, Nodes that the test makes, and its hand for NVIDIA's GPU operator."""

import concurrent.futures
import contextlib
import json
import re
import types

import pytest

from lib import governance, helm, ocm
from lib.agent import PROGRAM
from lib.client import call
from lib.fleet import CLUSTERS, running_fleet
from lib.hub import HUB_NAMESPACE
from lib.kube import MERGE_PATCH, NAMESPACE
from lib.names import names_of_a_cluster
from lib.pod import deployed, mark_available, running_pod
from lib.process import ROOT, Process, free_port
from lib.rights import kubeconfig_of
from lib.wait import LONG, wait_until
from lib.watcher import POLICIES, claim, wait_claim

WORKERS = ("worker01", "worker02")
EXAMPLE = ROOT / "charts/samples/dynamic-scoring-framework-mcp"
CLAIM = "policy-watcher-claim"
OPTIMIZER = "dynamic-scoring-framework-mcp"
PLACEMENTS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placements"
BINDINGS = "apis/policy.open-cluster-management.io/v1/namespaces/default/placementbindings"
GENERATED = "dynamic-scoring-framework-mcp/generated=true"
PARAMS = json.loads((EXAMPLE / "params.json").read_text())
VALUES = {
    "policyWatcher": {"enabled": True, "stableDuration": "2s"},
    "samples": {"static": {"enabled": True, "extraArgs": ["--web.listen-address=:8000"]}},
    "optimizer": {"enabled": True},
}
STABLE_S = 2


class World:
    def __init__(self, fleet, stack):
        self.fleet, self.stack, self.hub = fleet, stack, fleet.hub

    def start_governance(self):
        governance.install_crds(self.hub)
        self.stack.enter_context(governance.propagator(self.hub))
        self.stack.enter_context(ocm.work_manager(self.hub))

    def start_governance_of(self, cluster):
        """And the node that the policies are about."""
        managed = self.fleet.cluster(cluster)
        governance.install_crds(managed)
        managed.apply("api/v1/namespaces", cluster, {})  # which the add-on's installation makes
        self.stack.enter_context(governance.framework_addon(self.hub, managed, cluster))
        self.stack.enter_context(governance.config_policy_controller(managed, cluster))
        managed.apply("api/v1/nodes", f"{cluster}-control-plane", {})

    def start_pod(self, kube, namespace, name, env=None):
        spec = wait_until(lambda: deployed(kube, namespace, name), f"{name} is deployed", LONG)
        variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
        spec["containers"][0].setdefault("env", []).extend(variables)
        pod = self.stack.enter_context(running_pod(kube, namespace, spec, name))
        mark_available(kube, namespace, name)
        return pod

    def start_pods_of(self, cluster):
        kube = self.fleet.cluster(cluster)
        env, services = self.stack.enter_context(names_of_a_cluster())
        self.fleet.wait_registered(cluster, helm.RELEASE)
        scorer = self.start_pod(kube, NAMESPACE, "static-scorer")
        services[f"static-scorer.{NAMESPACE}.svc:8000"] = int(scorer.url("http").rpartition(":")[2])
        self.start_pod(kube, NAMESPACE, "dynamic-scoring-agent", env)
        self.start_pod(kube, NAMESPACE, "policy-watcher")

    def start_optimizer(self, folder):
        """With the rights of the chart's ServiceAccount."""
        self.url = f"http://127.0.0.1:{free_port()}"
        kubeconfig = kubeconfig_of(self.hub, (HUB_NAMESPACE, f"{OPTIMIZER}-sa"), folder / "kubeconfig")
        flags = (f"--kubeconfig={kubeconfig}", f"--web.listen-address={self.url[7:]}", "--write-namespace=default")
        process = Process("optimizer", [PROGRAM, "optimizer", *flags], folder / "optimizer.log")
        self.stack.callback(process.kill)
        wait_until(lambda: call("GET", f"{self.url}/readyz").status == 200, "the optimizer is ready", LONG)

    def kubectl(self, *words, cluster=None):
        done = (self.fleet.cluster(cluster) if cluster else self.hub).kubectl(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def optimize(self, score):
        preference = {**PARAMS["preference"], "addonPlacementScore": score}
        return types.SimpleNamespace(**self.post("/optimize", {**PARAMS, "preference": preference}))

    def post(self, path, body):
        answer = call("POST", self.url + path, json.dumps(body).encode(), Content_Type="application/json")
        assert answer.status == 200, answer.text
        return answer.json

    def placements(self):
        """{name: (SUCCEEDED, REASON, SELECTEDCLUSTERS)}, as kubectl shows them."""
        lines = [line.split() for line in self.kubectl("get", "placements", "-n", "default", "--no-headers").splitlines()]
        return {name: tuple(rest) for name, *rest in lines}

    def policies(self, cluster):
        """{name: status.compliant} in the cluster's namespace on the hub."""
        found = self.hub.call("GET", POLICIES.format(cluster))["items"]
        return {o["metadata"]["name"]: o.get("status", {}).get("compliant") for o in found}

    def node_labels(self, cluster):
        return self.fleet.cluster(cluster).call("GET", f"api/v1/nodes/{cluster}-control-plane")["metadata"].get("labels", {})

    def claim_on_hub(self, cluster):
        claims = self.hub.call("GET", f"{CLUSTERS}/{cluster}").get("status", {}).get("clusterClaims", [])
        return next((c["value"] for c in claims if c["name"] == CLAIM), None)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor() as several:
        fleet = stack.enter_context(running_fleet(*WORKERS))
        world = World(fleet, stack)
        begun = [several.submit(world.start_governance), *(several.submit(world.start_governance_of, c) for c in WORKERS)]
        helm.install(fleet.hub, values=VALUES)
        world.kubectl("apply", "-n", HUB_NAMESPACE, "-f", ROOT / "charts/samples/mydynamicscoringconfig.yaml")
        world.start_pod(fleet.hub, HUB_NAMESPACE, f"{helm.RELEASE}-controller")
        begun += [several.submit(world.start_pods_of, c) for c in WORKERS]
        for one in begun:
            one.result()
        world.start_optimizer(tmp_path_factory.mktemp("optimizer"))
        yield world


def test_claims_are_empty(world):
    """On each cluster, and on the hub by OCM's registration agent."""
    for cluster in WORKERS:
        wait_claim(world.fleet.cluster(cluster), CLAIM, "empty")
        wait_until(lambda c=cluster: world.claim_on_hub(c) == "empty", f"the hub shows the claim of {cluster}", LONG)


def test_manifests_are_applied(world):
    done = world.kubectl("apply", "-f", EXAMPLE / "manifests")
    assert len(re.findall(r"(policy-\w.*|mwrs-app0\d|global) created", done)) == 9, done
    for cluster in WORKERS:
        world.kubectl("label", "managedcluster", cluster, f"cluster-name={cluster}")
    scores = ("example-performance-score", "example-powerconsumption-score")
    for cluster in WORKERS:
        for score in scores:
            wait_until(lambda c=cluster, s=score: scored(world.hub, c, s), f"{score} of {cluster}", LONG)


def scored(hub, cluster, score):
    return (hub.object(score, cluster) or {}).get("status", {}).get("scores")


def check_optimized(world, score, objective, device, policy, compliant_before):
    """One pass of the guide. Returns the hash in the names."""
    answer = world.optimize(score)
    assert (answer.status, answer.objective_value) == ("Optimal", objective)
    assert {(p["workload"], p["cluster"], p["device"]) for p in answer.placements} == {
        ("mwrs-app01", "worker01", device),
        ("mwrs-app02", "worker02", device),
    }
    (number,) = {name.rpartition("-")[2] for name in world.placements() if name.startswith("placement-")}
    assert re.fullmatch("[0-9a-f]{8}", number)
    names = {f"placement-{c}-{number}" for c in WORKERS}
    scheduled, unmatched = ("True", "AllDecisionsScheduled", "1"), ("False", "NoManagedClusterMatched")
    attached = dict.fromkeys(names, scheduled)
    apps = ("app01-placement", "app02-placement")
    if not compliant_before:
        wait_until(lambda: world.placements() == {**attached, **dict.fromkeys(apps, unmatched)}, "no cluster is ready", LONG)
    bindings = {o["metadata"]["name"] for o in world.hub.call("GET", BINDINGS)["items"]}
    assert bindings == {f"binding-{c}-{number}" for c in WORKERS}
    for cluster in WORKERS:
        name = f"default.{policy}-{cluster}"
        wait_until(lambda c=cluster: world.node_labels(c).get("migsettinglabel") == device, f"{cluster} is set", LONG)
        if not compliant_before:
            wanted = {name: "NonCompliant"}
            wait_until(lambda c=cluster, w=wanted: world.policies(c) == w, f"{name} is reported", LONG)
            wait_claim(world.fleet.cluster(cluster), CLAIM, "noncompliant")
            world.kubectl("label", "node", f"{cluster}-control-plane", "migresultlabel=true", cluster=cluster)
        wait_until(lambda c=cluster, w={name: "Compliant"}: world.policies(c) == w, f"{name} becomes compliant", LONG)
        wait_until(lambda c=cluster: world.claim_on_hub(c) == "compliant", f"{cluster} is ready", LONG)
    wait_until(lambda: world.placements() == {**attached, **dict.fromkeys(apps, scheduled)}, "all are placed", LONG)
    for app, cluster in zip(("app01", "app02"), WORKERS, strict=True):
        pod = f"api/v1/namespaces/default/pods/{app}-pod"
        wait_until(lambda c=cluster, p=pod: world.fleet.cluster(c).find(p), f"{app} is deployed to {cluster}", LONG)
        other = WORKERS[cluster == WORKERS[0]]
        wait_until(lambda c=other, p=pod: not world.fleet.cluster(c).find(p), f"{app} is not on {other}", LONG)
    return number


@pytest.fixture(scope="module")
def first(world):
    """The hash of the plan for performance, after which everything is reset."""
    number = check_optimized(world, "example-performance-score", 115, "3g.48gb", "policy-enable-mig-3g", False)
    for kind in ("placements", "placementbindings"):
        world.kubectl("delete", kind, "-n", "default", "-l", GENERATED)
    return number


def test_performance_is_optimized(world, first):
    """And reset: no policy, no application."""
    assert first
    for cluster in WORKERS:
        wait_until(lambda c=cluster: world.policies(c) == {}, f"{cluster} has no policy", LONG)
        wait_until(lambda c=cluster: claim(world.fleet.cluster(c), CLAIM) == "empty", f"{cluster} is empty", LONG)


def test_power_is_optimized(world, first):
    """The nodes have the label of the GPU operator's result already."""
    second = check_optimized(world, "example-powerconsumption-score", 170, "2g.24gb", "policy-enable-mig-2g", True)
    assert second != first


def test_reset_leaves_what_users_made(world, first):
    answer = world.post("/reset", {"namespace": "default"})
    assert len(answer["deleted"]) == 6 and not answer["failed"], answer
    assert world.hub.call("GET", PLACEMENTS)["items"] == []
    assert len(world.hub.call("GET", POLICIES.format("default"))["items"]) == 6
