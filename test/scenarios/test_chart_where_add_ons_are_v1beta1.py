"""Where the hub serves add-ons in v1beta1 only, the chart installs itself, and the controller sees that an agent's add-on is not
available."""

import pytest

from lib import helm
from lib.client import call
from lib.hub import ADDON, HUB_NAMESPACE, Hub
from lib.kube import running_kube
from lib.pod import deployed, running_pod
from lib.wait import LONG, wait_until

API = "apis/addon.open-cluster-management.io/v1beta1"
CRDS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WHY = "no replica of dynamic-scoring-agent is available"


def serve_only_v1beta1(kube, kind):
    path = f"{CRDS}/{kind}.addon.open-cluster-management.io"
    spec = kube.call("GET", path)["spec"]
    versions = [{**v, "storage": True} for v in spec["versions"] if v["name"] == "v1beta1"]
    kube.delete(path)
    wait_until(lambda: not kube.find(path), f"the CRD of {kind} is gone")
    kube.apply(CRDS, path.rpartition("/")[2], {"spec": {**spec, "versions": versions}})
    wait_until(lambda: kube.find(f"{API}/{kind}"), f"{kind} are served")


@pytest.fixture(scope="module")
def hub():
    with running_kube("ocm") as kube:
        for kind in ("clustermanagementaddons", "managedclusteraddons", "addondeploymentconfigs"):
            serve_only_v1beta1(kube, kind)
        yield Hub(kube)


def test_the_chart_and_the_controller_use_it(hub):
    kube, values = hub.kube, {"policyWatcher": {"enabled": True}}
    helm.install(kube, values=values)
    for addon in (ADDON, f"{ADDON}-extras"):
        configs = kube.call("GET", f"{API}/clustermanagementaddons/{addon}")["spec"]["defaultConfigs"]
        for config in configs:
            where = API.replace("v1beta1", "v1alpha1") if config["resource"] == "addontemplates" else API
            where += f"/namespaces/{config['namespace']}" if "namespace" in config else ""
            assert kube.find(f"{where}/{config['resource']}/{config['name']}"), config
        assert len(configs) == 2
    hub.add_cluster("cluster1")
    path = f"{API}/namespaces/cluster1/managedclusteraddons"
    hub.put(path, "ManagedClusterAddOn", ADDON, {})
    told = {"type": "Available", "status": "False", "reason": "Told", "message": WHY, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    hub.patch(f"{path}/{ADDON}/status", {"status": {"conditions": [told]}})
    spec = deployed(kube, HUB_NAMESPACE, f"{ADDON}-controller")
    with running_pod(kube, HUB_NAMESPACE, spec, "controller-0") as controller:

        def addon_unavailable():
            clusters = call("GET", controller.url("http-metrics") + "/api/v1/clusters").json["clusters"]
            return [c["addonUnavailable"] for c in clusters]

        wait_until(lambda: addon_unavailable() == [WHY], "the add-on is seen", LONG)
        assert "kind not installed" not in controller.log()
    notes = helm.install(kube, values=values)  # an upgrade finds its own objects
    assert f"an add-on of its own, {ADDON}-extras" in notes
