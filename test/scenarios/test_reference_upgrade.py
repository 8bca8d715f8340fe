"""From the reference implementation to ours, by the very commands of charts/README.md#from-the-reference, with Open
Cluster Management's own controllers: no score is ever lost, everything becomes ours, and a deletion works."""

import json
import os
import re

import pytest
import yaml

from lib import reference
from lib.fake import answer, plain, results, series
from lib.fleet import running_fleet
from lib.helm import CHART, RELEASE, succeed
from lib.hub import CONFIG, CONFIGS, HUB_NAMESPACE, SCORERS, Hub
from lib.kube import DOMAIN, go_program
from lib.pod import deployed, mark_available, running_pod
from lib.process import ROOT, environment, run
from lib.scorers import FINALIZER, api_config, full, source
from lib.wait import LONG, wait_until
from lib.work import WORK

CLUSTER = "worker01"
CRDS = ROOT / "test" / "reference"
RBAC = "apis/rbac.authorization.k8s.io/v1"
WORKS = f"apis/work.open-cluster-management.io/v1/namespaces/{CLUSTER}/manifestworks"
SETS = "apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"
ADDON_WORK = "addon-dynamic-scoring-framework-deploy-0"
ADDON_ROLE = "open-cluster-management:dynamic-scoring-framework:agent"
VALUES = {"hubSetting": {"namespace": HUB_NAMESPACE}, "spokeSetting": {"namespace": "dynamic-scoring"}}
OF_ADMIN = f"{RBAC}/clusterrolebindings/dynamic-scoring-agent"  # to cluster-admin
AGENT = "apis/apps/v1/namespaces/dynamic-scoring/deployments/dynamic-scoring-agent"


def steps():
    """The commands of the page, by the number of their step."""
    page = (ROOT / "charts" / "README.md").read_text().partition("## From the reference\n")[2].partition("\n## ")[0]
    found = re.split(r"^\*\*(\d)\. ", page, flags=re.M)[1:]
    return {int(n): re.findall(r"```sh\n(.*?)```", text, re.S) for n, text in zip(found[::2], found[1::2], strict=True)}


class Shell:
    """Runs commands of the documents as the hub's admin, in a folder."""

    def __init__(self, hub, folder):
        self.folder = folder
        for name in ("kubectl", "helm"):
            (folder / name).symlink_to(go_program(name))
        homes = {f"HELM_{kind}_HOME": str(folder) for kind in ("CACHE", "CONFIG", "DATA")}
        path = f"{folder}:{os.environ['PATH']}"
        self.env = environment(PATH=path, KUBECONFIG=str(hub.kubeconfig()), **homes)

    def __call__(self, script):
        script = script.replace("charts/dynamic-scoring-framework", str(CHART))
        done = run("sh", "-e", "-c", script, env=self.env, cwd=self.folder)
        assert done.returncode == 0, f"{script}{done.stderr}"
        return done.stdout


@pytest.fixture(name="fleet", scope="module")
def fleet_with_the_reference():
    with running_fleet(CLUSTER) as fleet:
        yield fleet


def leave_scores(hub, fake):
    """A scorer with a token and no host, a config with a finalizer, a work and a score."""
    url = fake.on("/config", answer(api_config("sample_my_score", source=source(f"{fake.url}/prom"))))
    fake.on("/healthz", plain("ok"))
    auth = {"tokenSecretRef": {"name": "api-auth-secret", "key": "token"}}
    names = "${node};${namespace};${pod}"
    hub.apply_scorer("ai-workload", full(url, source={"auth": auth}, scoreDimensionFormat=names))
    hub.patch(f"{SCORERS}/ai-workload/status", {"status": {"healthStatus": "Active"}})
    hub.configure(masks=[])
    hub.patch(f"{CONFIGS}/{CONFIG}", {"metadata": {"finalizers": [reference.FINALIZER]}})
    work = reference.add_work(hub.kube, CLUSTER, [])
    return work, reference.add_score(hub.kube, CLUSTER, "sample-my-score", {reference.ITEM: 0})


def install_reference(fleet, folder):
    """By helm, some of it by hand, and what its add-on controller makes."""
    hub = Hub(fleet.hub)
    for crd in sorted(CRDS.glob("*.yaml")):
        assert fleet.hub.kubectl("create", "-f", crd).returncode == 0
    fleet.hub.apply("api/v1/namespaces", HUB_NAMESPACE, {})
    by_hand, by_helm = [], []
    for o in reference.chart_objects():
        (by_hand if o["kind"] in ("ServiceAccount", "AddOnDeploymentConfig") else by_helm).append(o)
    (folder / "by-hand.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": by_hand}))
    assert fleet.hub.kubectl("create", "-f", folder / "by-hand.json").returncode == 0
    chart = reference.write_chart(folder / "reference", by_helm)
    succeed("install", RELEASE, chart, f"--namespace={HUB_NAMESPACE}", kube=fleet.hub)
    addon = wait_until(lambda: fleet.addon(CLUSTER, RELEASE), "the add-on is selected", LONG)["metadata"]
    owner = {
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "ManagedClusterAddOn",
        "name": addon["name"],
        "uid": addon["uid"],
    }
    labels = {"open-cluster-management.io/addon-name": RELEASE}
    metadata = {"name": ADDON_WORK, "labels": labels, "ownerReferences": [owner]}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dynamic-scoring"}}
    spec = {"workload": {"manifests": [namespace, *reference.agent_objects()]}}
    addon_work = reference.thing("work.open-cluster-management.io/v1", "ManifestWork", ADDON_WORK, spec=spec)
    fleet.hub.call("POST", WORKS, {**addon_work, "metadata": metadata})
    everything = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    hub.kube.apply(f"{RBAC}/namespaces/{CLUSTER}/roles", ADDON_ROLE, everything)
    cluster = fleet.cluster(CLUSTER)
    wait_until(lambda: cluster.find(AGENT) and cluster.find(OF_ADMIN), "the reference's agent is there", LONG)
    return hub


def image_of(fleet):
    return fleet.cluster(CLUSTER).find(AGENT)["spec"]["template"]["spec"]["containers"][0]["image"]


def status_of(hub, score):
    return hub.object(score, CLUSTER)["status"]


def check_hub_is_ours(fleet):
    """Nothing of the reference is left but what people made."""
    hub = fleet.hub
    own = f"apis/apps/v1/namespaces/{HUB_NAMESPACE}/deployments"
    assert [d["metadata"]["name"] for d in hub.call("GET", own)["items"]] == [f"{RELEASE}-controller"]
    for path in (f"{RBAC}/clusterroles/dynamic-scoring-addon", f"{RBAC}/namespaces/{CLUSTER}/roles/{ADDON_ROLE}"):
        assert hub.find(path) is None, path
    placements = f"apis/cluster.open-cluster-management.io/v1beta1/namespaces/{HUB_NAMESPACE}/placements"
    assert [p["metadata"]["name"] for p in hub.call("GET", placements)["items"]] == ["dynamic-scoring-placement"]


def test_every_step_of_the_page(fleet, fake, tmp_path):
    hub = install_reference(fleet, tmp_path)
    work, score = leave_scores(hub, fake)
    cluster = fleet.cluster(CLUSTER)
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(VALUES))
    page, shell = steps(), Shell(fleet.hub, tmp_path)
    assert sorted(page) == [1, 2, 3, 4, 5, 6]

    look, patch = page[1]
    assert re.search(r"^ai-workload +api-auth-secret +<none>$", shell(look), re.M)
    shell(patch.replace("http://prometheus.monitoring.svc:9090", fake.url))
    (stop,), (crds,), (install,) = page[2], page[3], page[4]
    shell(stop)
    shell(crds)
    assert hub.scorer("ai-workload")["status"]["healthStatus"] == "Active"
    shell(install)
    ours = "quay.io/open-cluster-management/dynamic-scoring:"
    wait_until(lambda: image_of(fleet).startswith(ours), "our agent arrives", LONG)
    wait_until(lambda: cluster.find(OF_ADMIN) is None, "the agent is not cluster-admin any more", LONG)
    fleet.wait_registered(CLUSTER, RELEASE)
    found = {"node": "worker01-control-plane", "namespace": "n", "pod": "p"}
    fake.on("/prom/api/v1/query_range", series(found))
    fake.on("/scoring", results(found, 5))
    cluster.secret("api-auth-secret", token="dummy-token-1234")
    controller = deployed(fleet.hub, HUB_NAMESPACE, f"{RELEASE}-controller")
    agent = deployed(cluster, "dynamic-scoring", reference.AGENT)
    with (
        running_pod(fleet.hub, HUB_NAMESPACE, controller, "controller-0"),
        running_pod(cluster, "dynamic-scoring", agent, "agent-0"),
    ):
        mark_available(cluster, "dynamic-scoring", reference.AGENT)
        scores = [{"name": "worker01-control-plane;n;p", "value": 5}]
        wait_until(lambda: status_of(fleet.hub, "sample-my-score")["scores"] == scores, "it scores", LONG)
        reference.check_never_lost(fleet.hub, CLUSTER, score)
        hub.wait_scorer("ai-workload", "Ready", "True", deadline=LONG)
        scorers, scores = [shell(line) for line in page[5][0].splitlines()]
        assert re.search(r"^ai-workload +True +Ready +Active ", scorers, re.M)
        assert re.search(r"^worker01 +sample-my-score .* agent$", scores, re.M)
        assert hub.work(CLUSTER)["metadata"]["uid"] == work["metadata"]["uid"]
        assert hub.work(CLUSTER)["metadata"]["labels"][f"{DOMAIN}/managed-by"] == "controller"
        assert hub.config()["metadata"]["finalizers"] == [FINALIZER]
        shell(page[6][0])
        check_hub_is_ours(fleet)
        shell(f"kubectl -n {HUB_NAMESPACE} delete dynamicscoringconfig {CONFIG} --timeout=60s")
        assert fleet.hub.find(f"{WORKS}/{WORK}") is None
        wait_until(lambda: not fleet.hub.objects(CLUSTER), "the agent deletes its scores", LONG)
