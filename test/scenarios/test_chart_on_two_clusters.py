"""The chart, installed by helm on a hub with two clusters, leads to scores: OCM's own add-on manager and registration give each agent
its credentials, and controller and agents are started from exactly the pod specs that arrive. One cluster has no Prometheus.
Each agent writes the scores of its own cluster only. An upgrade with a changed value reaches the clusters, and an uninstall
leaves nothing but CRDs, what users made, and namespaces."""

import base64
import contextlib
import json
import re
import shlex
import shutil
import types
import urllib.parse

import pytest
import yaml

from lib import helm, ocm
from lib.client import call
from lib.fleet import running_fleet
from lib.hub import HUB_NAMESPACE, Hub, condition_of
from lib.kube import NAMESPACE, SCORES, go_program
from lib.pod import deployed, mark_available, running_pod
from lib.process import ROOT, run
from lib.rights import kubeconfig_of
from lib.wait import DEADLINE, LONG, eventually, wait_until
from test_hub_scorer_reaches_clusters import apply, sample_scorer

README = ROOT / "charts/README.md"
ADDON, CONTROLLER, AGENT = helm.RELEASE, f"{helm.RELEASE}-controller", "dynamic-scoring-agent"
PROMETHEUS, API = "prometheus.monitoring.svc", "sample-scorer.dynamic-scoring.svc"
HERE = "127.0.0.1"
RBAC = "apis/rbac.authorization.k8s.io/v1"
ADDON_GROUP = f"system:open-cluster-management:addon:{ADDON}"  # of all clusters' agents


@contextlib.contextmanager
def installed(credentials, on_hub=contextlib.nullcontext):
    """The chart on a hub with two clusters, whose add-ons get such credentials for the hub. on_hub: what else runs there."""
    with running_fleet("cluster1", "cluster2", credentials=credentials, on_hub=on_hub) as fleet:
        fleet.before = {"hub": stored(fleet.hub), **{c: stored(k) for c, k in fleet.clusters.items()}}
        helm.install(fleet.hub)
        for cluster in fleet.clusters:
            fleet.wait_registered(cluster, ADDON)
        yield fleet


@pytest.fixture(scope="module")
def fleet():
    with installed(ocm.CERTIFICATES) as fleet:
        yield fleet


def start_controller(fleet):
    spec = deployed(fleet.hub, HUB_NAMESPACE, CONTROLLER)
    return running_pod(fleet.hub, HUB_NAMESPACE, spec, "controller-0", hosts={API: HERE})


def start_agent(fleet, cluster, **names):
    kube = fleet.cluster(cluster)
    wait_until(lambda: deployed(kube, NAMESPACE, AGENT), f"the Deployment arrives in {cluster}", LONG)
    return running_pod(kube, NAMESPACE, deployed(kube, NAMESPACE, AGENT), f"{AGENT}-{cluster}", hosts=names)


@pytest.fixture(scope="module")
def pods(fleet):
    """The controller, and the agents by cluster. Only the first cluster has a Prometheus."""
    with contextlib.ExitStack() as stack:
        controller = stack.enter_context(start_controller(fleet))
        first = stack.enter_context(start_agent(fleet, "cluster1", **{API: HERE, PROMETHEUS: HERE}))
        second = stack.enter_context(start_agent(fleet, "cluster2", **{API: HERE}))
        for kube in fleet.clusters.values():
            mark_available(kube, NAMESPACE, AGENT)
        yield types.SimpleNamespace(controller=controller, cluster1=first, cluster2=second, stack=stack)


def token_user(cluster):
    """Of an agent with a token."""
    return f"system:serviceaccount:{cluster}:{ADDON}-agent"


def bound(fleet, cluster):
    """The names of those who have the agents' role in the cluster's namespace on the hub."""
    bindings = fleet.hub.call("GET", f"{RBAC}/namespaces/{cluster}/rolebindings")["items"]
    return {s["name"] for b in bindings if b["roleRef"]["name"] == AGENT for s in b["subjects"]}


def test_add_on_is_registered(fleet):
    """A request for a certificate that is approved and signed, a RoleBinding, credentials on the cluster."""
    for cluster in fleet.clusters:
        requests = fleet.hub.call("GET", "apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]
        own = next(r for r in requests if r["metadata"]["name"].startswith(f"addon-{cluster}-{ADDON}-"))
        assert [c["type"] for c in own["status"]["conditions"]] == ["Approved"]
        assert own["status"]["certificate"]
        wait_until(lambda c=cluster: f"system:open-cluster-management:cluster:{c}:addon:{ADDON}" in bound(fleet, c), "it is bound")
        assert (ADDON_GROUP in bound(fleet, cluster)) == (ocm.version() >= (1, 2))
        secret = fleet.wait_registered(cluster, ADDON)
        assert set(secret["data"]) == {"cluster-name", "kubeconfig", "tls.crt", "tls.key"}
        assert secret["metadata"]["namespace"] == NAMESPACE


def serves_scores(agent):
    return "dynamic_score{" in call("GET", agent.url("http-metrics") + "/metrics").text


def items(fleet, cluster):
    found = fleet.hub.object("sample-my-score", cluster) or {}
    return {i["name"]: i["value"] for i in found.get("status", {}).get("scores", [])}


@pytest.fixture(scope="module")
def source_port(fleet, pods, prometheus):
    """A user has applied a DynamicScorer of the sample scoring API. Its source has this port."""
    port = urllib.parse.urlsplit(prometheus.url).port
    with sample_scorer(types.SimpleNamespace(url=f"http://{PROMETHEUS}:{port}")) as url:
        apply(Hub(fleet.hub), f"http://{API}:{urllib.parse.urlsplit(url).port}")
        wait_until(lambda: items(fleet, "cluster1") == {"cluster1;n1": 42}, "cluster1 scores", LONG)
        yield port


def test_clusters_score(fleet, pods, source_port):
    url = f"http://{PROMETHEUS}:{source_port}/api/v1/query_range"
    why = f"source failed, {url}: could not resolve host: {PROMETHEUS}"

    def cluster2_says_why():
        found = fleet.hub.object("sample-my-score", "cluster2")
        assert condition_of(found, "Scored") == ("False", "SourceFailed", f"{why}; there are no scores")
        found = Hub(fleet.hub).scorer_condition("sample-scorer", "Scoring")
        assert found == ("False", "ClustersFailing", f"failing on 1 of 2 clusters: cluster2: {why}; scoring on 1")

    eventually(cluster2_says_why, LONG)
    assert items(fleet, "cluster2") == {}
    for cluster in fleet.clusters:
        wait_until(lambda c=cluster: fleet.addon_condition(c, ADDON, "Available") == "True", f"{cluster}'s add-on is fine")
        agent = getattr(pods, cluster)
        assert (agent.probe("livenessProbe"), agent.probe()) == (200, 200)
    assert (pods.controller.probe("livenessProbe"), pods.controller.probe()) == (200, 200)
    assert serves_scores(pods.cluster1)


def helm_test(**values):
    """The pod spec of `helm test`, with BusyBox as in its image. Debian's is built without wget's time limit, and crashes
    on -T."""
    spec = helm.named(helm.render(values=values), "Pod")["spec"]
    container = spec["containers"][0]
    container["command"] = [word.replace("wget -q -O - -T 10", "busybox wget -q -O -") for word in container["command"]]
    return spec


def test_helm_test_passes(fleet, pods):
    """Where the hub has an agent, also one that needs a token, and where it has none."""
    secured = {"agent": {"web": {"kubernetesAuth": {"enabled": True}}}}
    service = f"{AGENT}-service.{NAMESPACE}.svc"
    controller = {f"{CONTROLLER}.{HUB_NAMESPACE}.svc:8081": pods.controller.url("health")[len("http://") :]}
    agent = {f"{service}:8080": pods.cluster1.url("http-metrics")[len("http://") :]}
    probes = {f"{service}:8081": pods.cluster1.url("health")[len("http://") :]}
    cases = [
        ({}, controller | agent, 0, "agent: /metrics answers"),
        (secured, controller | probes, 0, "agent: /-/ready answers"),
        ({}, controller, 0, f"no Service {service} on the hub"),
        ({}, agent, 1, "bad address"),
    ]
    for values, services, status, said in cases:
        with running_pod(fleet.hub, HUB_NAMESPACE, helm_test(**values), "helm-test", services=services) as pod:
            assert pod.process.wait() == status, pod.log()
            assert said in pod.log()
            assert ("controller: ready" in pod.log()) == (status == 0)


def credentials(fleet, cluster, folder):
    """The agent's credentials as files; returns the kubeconfig."""
    for name, value in fleet.wait_registered(cluster, ADDON)["data"].items():
        (folder / name).write_bytes(base64.b64decode(value))
    return folder / "kubeconfig"


def create(kubeconfig, version, kind, namespace, name="by-hand", *options):
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
    words = (f"--kubeconfig={kubeconfig}", "create", "--validate=false", *options, "-f", "-")
    return run(go_program("kubectl"), *words, input=json.dumps(body))


def create_score(kubeconfig, namespace):
    return create(kubeconfig, "cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore", namespace)


@contextlib.contextmanager
def bound_everywhere(fleet):
    """The agents' role in the namespace of cluster2 for the agent of cluster1, whatever its credentials and OCM's version."""
    subjects = [{"kind": "Group", "name": ADDON_GROUP}, {"kind": "User", "name": token_user("cluster1")}]
    role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": AGENT}
    path = f"{RBAC}/namespaces/cluster2/rolebindings"
    fleet.hub.apply(path, "of-all-agents", {"roleRef": role, "subjects": subjects})
    yield
    fleet.hub.delete(f"{path}/of-all-agents")


def refusal(namespace):
    return f"agents of the add-on {ADDON} write only in the namespace of their own cluster, not in namespace {namespace}"


def test_agents_write_their_own_scores_only(fleet, tmp_path):
    """Also where RBAC would let them."""
    kubeconfig = credentials(fleet, "cluster1", tmp_path)
    refused = create_score(kubeconfig, "cluster2")
    assert refused.returncode and "forbidden" in refused.stderr, refused

    with bound_everywhere(fleet):
        wait_until(lambda: refusal("cluster2") in create_score(kubeconfig, "cluster2").stderr, "the policy refuses", every=0.2)
        assert not fleet.hub.find(SCORES.format("cluster2") + "/by-hand")
        done = create_score(kubeconfig, "cluster1")
        assert done.returncode == 0, done.stderr
        fleet.hub.delete(SCORES.format("cluster1") + "/by-hand")


def test_agents_use_additional_rights_in_their_own_cluster_only(fleet, tmp_path):
    """What agent.rbac.extraHubRules lets them write."""
    kubeconfig = credentials(fleet, "cluster1", tmp_path)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}]
    helm.install(fleet.hub, values={"agent": {"rbac": {"extraHubRules": rules}}})

    def refused():
        return create(kubeconfig, "v1", "ConfigMap", "cluster2", "by-hand", "--dry-run=server")

    with bound_everywhere(fleet):
        wait_until(lambda: refusal("cluster2") in refused().stderr, "the policy refuses", every=0.2)
        done = create(kubeconfig, "v1", "ConfigMap", "cluster1")
        assert done.returncode == 0, done.stderr
        fleet.hub.delete("api/v1/namespaces/cluster1/configmaps/by-hand")
    helm.install(fleet.hub)


OTHERS = {  # what an agent has no business with, by where its credentials are for
    "hub": (
        "addonplacementscores --all-namespaces",
        "secrets --all-namespaces",
        "secrets --namespace=cluster1",
        "secrets --namespace=cluster2",
        f"secrets --namespace={HUB_NAMESPACE}",
        f"dynamicscorers --namespace={HUB_NAMESPACE}",
        "manifestworks --namespace=cluster1",
        "managedclusters",
    ),
    "cluster1": (
        "secrets --all-namespaces",
        "secrets --namespace=kube-system",
        "configmaps --namespace=kube-system",
        f"configmaps --namespace={NAMESPACE}",
        f"pods --namespace={NAMESPACE}",
        "namespaces",
    ),
}


def is_open(fleet):
    """Whether agents can read the scores of other clusters: since 1.2 OCM binds their role to the group of all agents, which is in
    their certificates, but not in their tokens."""
    return ocm.version() >= (1, 2) and fleet.credentials == ocm.CERTIFICATES


def get(kubeconfig, what):
    return run(go_program("kubectl"), f"--kubeconfig={kubeconfig}", "get", *what.split())


def is_forbidden(done):
    return done.returncode != 0 and "Forbidden" in done.stderr


def test_agents_read_nothing_else(fleet, tmp_path):
    """With their own credentials: those that OCM has issued for the hub, and their ServiceAccount's for the cluster."""
    own = fleet.cluster("cluster1")
    cases = {
        "hub": credentials(fleet, "cluster1", tmp_path),
        "cluster1": kubeconfig_of(own, (NAMESPACE, f"{AGENT}-sa"), tmp_path / "own"),
    }
    for where, kubeconfig in cases.items():
        for what in OTHERS[where]:
            done = get(kubeconfig, what)
            assert is_forbidden(done), (where, what, done)
    others = get(cases["hub"], "addonplacementscores --namespace=cluster2")
    assert others.returncode == 0 if is_open(fleet) else is_forbidden(others), others
    for where, what in (("hub", "addonplacementscores --namespace=cluster1"), ("cluster1", f"secrets --namespace={NAMESPACE}")):
        allowed = get(cases[where], what)
        assert allowed.returncode == 0, "otherwise the refusals above prove nothing"


CHANGED = {"log": {"level": "debug"}, "image": {"tag": "9.9.9"}, "agent": {"limits": {"staleAfterIntervals": 5}}}


def test_upgrade_reaches_clusters(fleet, pods, source_port):
    """A changed value does; the scores stay meanwhile."""
    before = fleet.hub.object("sample-my-score", "cluster1")
    helm.install(fleet.hub, values=CHANGED)

    def container_changed():
        for kube in fleet.clusters.values():
            container = deployed(kube, NAMESPACE, AGENT)["containers"][0]
            assert container["image"].endswith("/dynamic-scoring:9.9.9")
            assert "--log.level=debug" in container["args"]
            config = kube.configmap(AGENT)["data"]["agent.yaml"]
            assert yaml.safe_load(config)["limits"] == {"staleAfterIntervals": 5}

    eventually(container_changed, LONG)
    pods.cluster1.process.end()
    pods.cluster1 = pods.stack.enter_context(start_agent(fleet, "cluster1", **{API: HERE, PROMETHEUS: HERE}))
    wait_until(lambda: serves_scores(pods.cluster1), "the new agent scores")
    after = fleet.hub.object("sample-my-score", "cluster1")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["scores"] == before["status"]["scores"]


CLAIM = f"api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/{AGENT}"


def applied(kube):
    """The resources that the work agent will delete once they are no longer in its works."""
    works = kube.call("GET", "apis/work.open-cluster-management.io/v1/appliedmanifestworks")["items"]
    return [r["resource"] for w in works for r in w.get("status", {}).get("appliedResources", [])]


def test_claim_survives_an_upgrade(fleet):
    """Once it is bound it is immutable, also what the cluster has added to it."""
    with_claim = {"agent": {"storage": {"type": "persistentVolumeClaim"}}}
    cluster = fleet.cluster("cluster1")
    helm.install(fleet.hub, values=with_claim)
    wait_until(lambda: cluster.find(CLAIM), "the claim arrives", LONG)
    merge = {"content_type": "application/merge-patch+json"}
    cluster.call("PATCH", CLAIM, {"spec": {"volumeName": "volume-1"}}, **merge)
    helm.install(fleet.hub, values={**with_claim, "commonLabels": {"team": "scoring"}})
    wait_until(lambda: "team" in cluster.call("GET", CLAIM)["metadata"]["labels"], "the new label arrives", LONG)
    assert cluster.call("GET", CLAIM)["spec"]["volumeName"] == "volume-1"
    for kube in fleet.clusters.values():
        wait_until(lambda k=kube: "persistentvolumeclaims" in applied(k), "the work agent remembers the claim", LONG)
    helm.install(fleet.hub, values=CHANGED)
    for kube in fleet.clusters.values():
        # Kubernetes' own controller takes its finalizer away once no pod uses the claim.
        wait_until(lambda k=kube: k.call("GET", CLAIM)["metadata"].get("deletionTimestamp"), "the claim is withdrawn", LONG)
        kube.call("PATCH", CLAIM, {"metadata": {"finalizers": None}}, **merge)


MONITORING = f"apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}/{{}}"
READERS = [{"kind": "Group", "name": "readers"}]
MONITORED = {
    "agent": {
        "web": {"config": {"rate_limit": {"burst": 20}}, "kubernetesAuth": {"enabled": True, "readers": READERS}},
        "podMonitor": {"enabled": True, "endpoint": {"authorization": {"credentials": {"name": "scrape", "key": "token"}}}},
    },
    "prometheusRule": {"enabled": True, "hub": ["agent"], "clusters": ["agent"]},
}


def test_rules_reach_clusters(fleet):
    """Their texts keep the braces that OCM's variables have, too. They and PodMonitors go again, although the work agent has a
    right to them from the chart only."""
    helm.install(fleet.hub, values=MONITORED)
    path = f"apis/monitoring.coreos.com/v1/namespaces/{HUB_NAMESPACE}/prometheusrules/{ADDON}"
    wanted = fleet.hub.call("GET", path)["spec"]
    for kube in fleet.clusters.values():
        found = wait_until(lambda k=kube: k.find(f"{MONITORING.format('prometheusrules')}/{AGENT}"), "the rules arrive", LONG)
        assert found["spec"] == wanted
        wait_until(lambda k=kube: k.call("GET", MONITORING.format("podmonitors"))["items"], "a PodMonitor arrives", LONG)
        wait_until(lambda k=kube: {"prometheusrules", "podmonitors"} <= set(applied(k)), "the work agent remembers them", LONG)
        bound = kube.call("GET", f"{RBAC}/clusterrolebindings/{AGENT}-metrics-reader")
        assert [subject["name"] for subject in bound["subjects"]] == ["readers"]
        secret = kube.call("GET", f"api/v1/namespaces/{NAMESPACE}/secrets/{AGENT}-web")["data"]["web.yaml"]
        assert yaml.safe_load(base64.b64decode(secret)) == MONITORED["agent"]["web"]["config"]
    helm.install(fleet.hub, values=CHANGED)
    for kube in fleet.clusters.values():
        for kind in ("prometheusrules", "podmonitors"):
            wait_until(lambda k=kube, kind=kind: not k.call("GET", MONITORING.format(kind))["items"], f"no {kind}", LONG)
        wait_until(lambda k=kube: not {"prometheusrules", "podmonitors"} & set(applied(k)), "the work agent knows", LONG)


EXTRAS = f"{ADDON}-extras"
BESIDE = {"static-scorer": "scorer", "policy-watcher": "policy-watcher"}  # Deployment: its container


def test_only_the_agent_makes_its_add_on_unavailable(fleet, pods):
    """A sample and a policy watcher that are never ready belong to an add-on of their own, which has no credentials for the hub."""
    helm.install(fleet.hub, values={**CHANGED, "samples": {"static": {"enabled": True}}, "policyWatcher": {"enabled": True}})
    for kube in fleet.clusters.values():
        for name, container in BESIDE.items():
            spec = wait_until(lambda k=kube, n=name: deployed(k, NAMESPACE, n), f"{name} arrives", LONG)
            assert [c["name"] for c in spec["containers"]] == [container]
            assert not [v for v in spec.get("volumes", []) if "secret" in v], spec
            mark_available(kube, NAMESPACE, name, ready=0)

    def extras_are(status):
        for cluster in fleet.clusters:
            assert fleet.addon_condition(cluster, EXTRAS, "Available") == status
            assert fleet.addon_condition(cluster, ADDON, "Available") == "True"

    eventually(lambda: extras_are("False"), LONG)
    for kube in fleet.clusters.values():
        for name in BESIDE:
            mark_available(kube, NAMESPACE, name)
    eventually(lambda: extras_are("True"), LONG)
    helm.install(fleet.hub, values=CHANGED)
    for cluster, kube in fleet.clusters.items():
        for name in BESIDE:
            wait_until(lambda k=kube, n=name: not deployed(k, NAMESPACE, n), f"{name} is withdrawn", LONG)
        wait_until(lambda c=cluster: not fleet.addon(c, EXTRAS), "the add-on is gone", LONG)


def test_new_version_rolls_out(fleet, tmp_path):
    """Its AddOnTemplate has another name, and replaces the old one for the clusters. On the hub the old one stays, as a rollout
    may need it for long; the command of charts/README.md shows that no add-on names it any more."""
    chart = shutil.copytree(helm.CHART, tmp_path / "chart")
    (chart / "Chart.yaml").write_text(re.sub(r"(?m)^version: .*", "version: 99.0.0", (chart / "Chart.yaml").read_text()))
    helm.install(fleet.hub, chart=chart)
    template = f"{ADDON}-99.0.0"

    def rolled_out():
        for cluster in fleet.clusters:
            references = fleet.addon(cluster, ADDON)["status"]["configReferences"]
            applied = [r["lastAppliedConfig"]["name"] for r in references if r["resource"] == "addontemplates"]
            assert applied == [template]
            assert fleet.addon_condition(cluster, ADDON, "ManifestApplied") == "True"
            assert fleet.addon_condition(cluster, ADDON, "RegistrationApplied") == "True"

    eventually(rolled_out, LONG)
    templates = fleet.hub.call("GET", "apis/addon.open-cluster-management.io/v1alpha1/addontemplates")["items"]
    names = {t["metadata"]["name"] for t in templates}
    assert template in names and len([n for n in names if n.startswith(f"{ADDON}-0.")]) == 1, names
    command = re.search(r"^kubectl (get managedclusteraddons .*) \| sort -u$", README.read_text(), re.MULTILINE).group(1)
    done = fleet.hub.kubectl(*shlex.split(command))
    assert done.returncode == 0 and set(done.stdout.split()) & names == {template}, done.stdout + done.stderr


def stored(kube):
    """Everything on an API server: {"resource namespace/name"}, without Events and what Kubernetes deletes by itself."""
    found = set()
    groups = ["api/v1", *(f"apis/{g['preferredVersion']['groupVersion']}" for g in kube.call("GET", "apis")["groups"])]
    for path in groups:
        for resource in kube.call("GET", path)["resources"]:
            name = resource["name"]
            if {"list", "delete"} <= set(resource["verbs"]) and name not in PASSING:
                for o in kube.call("GET", f"{path}/{name}")["items"]:
                    found.add(f"{name} {o['metadata'].get('namespace', '')}/{o['metadata']['name']}")
    return found


PASSING = ("events", "certificatesigningrequests", "apiservices")
LEFT_ON_HUB = {
    "customresourcedefinitions /dynamicscorers.dynamic-scoring.open-cluster-management.io",
    "customresourcedefinitions /dynamicscoringconfigs.dynamic-scoring.open-cluster-management.io",
    f"dynamicscorers {HUB_NAMESPACE}/sample-scorer",
    f"leases {HUB_NAMESPACE}/dynamic-scoring-controller",
    f"namespaces /{HUB_NAMESPACE}",
}
LEFT_ON_CLUSTER = {
    f"configmaps {NAMESPACE}/dynamic-scoring-status",
    f"namespaces /{NAMESPACE}",
}
WORK_ROLE = f"clusterroles /{AGENT}-work"  # with which the work agent takes back rules and PodMonitors


def uninstall(fleet, pods):
    """As the documents say: the DynamicScoringConfig first, while the controller can withdraw what it distributed. The work agent's
    role stays where it was needed, after an upgrade with rules or PodMonitors."""
    hub = Hub(fleet.hub)
    left_on = {cluster: LEFT_ON_CLUSTER | ({WORK_ROLE} & stored(kube)) for cluster, kube in fleet.clusters.items()}
    done = hub.kubectl("delete", "dynamicscoringconfigs", "--all", f"--timeout={DEADLINE:.0f}s")
    assert done.returncode == 0, done.stderr
    for cluster in fleet.clusters:
        wait_until(lambda c=cluster: not fleet.hub.objects(c), f"the scores of {cluster} are gone", LONG)
    pods.controller.process.end()
    helm.uninstall(fleet.hub)

    def only_these_are_left():
        left = {o for o in stored(fleet.hub) - fleet.before["hub"] if not o.startswith("addontemplates /")}
        assert left == LEFT_ON_HUB
        for cluster, kube in fleet.clusters.items():
            assert stored(kube) - fleet.before[cluster] == left_on[cluster]

    eventually(only_these_are_left, LONG, every=1)


def test_uninstall_leaves_what_users_made(fleet, pods, source_port):
    uninstall(fleet, pods)
