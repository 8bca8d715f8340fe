"""The commands of runbooks and of alerts' texts work as they stand: against a real API server, agents, a controller, an
optimizer and Prometheus, while a scorer fails. Only what needs a kubelet has a stand-in: kubectl logs, exec and top."""

import re
import socket

import pytest
from lib import page
from lib.hub import HUB_NAMESPACE
from lib.kube import MERGE_PATCH, NAMESPACE, running_kube
from lib.monitoring import kubectl_shell, running_world
from lib.process import ROOT
from lib.rules import alerts, filled_in, first_command
from lib.wait import LONG, eventually, wait_until

RUNBOOKS = sorted((ROOT / "alerts/runbooks").glob("*.md"))
FUNCTIONS = re.compile(r"^agent\(\) \{.*?(?=^```$)", re.M | re.S)


def host_address():
    """An address of this machine that an API server may proxy to; it refuses loopback addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            address = s.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        pytest.skip("this machine has only loopback addresses")
    return address


def make_service(kube, namespace, name, deployment, url, **labels):
    """A Service with one pod at this address, and its Deployment."""
    host, port = url.removeprefix("http://").split(":")
    core = f"api/v1/namespaces/{namespace}"
    pod = {"containers": [{"name": "c", "image": "i"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    kube.apply(f"apis/apps/v1/namespaces/{namespace}/deployments", deployment, {"spec": spec})
    kube.apply(f"{core}/pods", deployment, {"metadata": {"labels": labels}, "spec": {**pod, "nodeName": "n"}})
    status = {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}
    kube.call("PATCH", f"{core}/pods/{deployment}/status", {"status": status}, MERGE_PATCH)
    ports = [{"name": "http-metrics", "port": int(port)}]
    kube.apply(f"{core}/services", name, {"spec": {"ports": ports}})
    reference = {"kind": "Pod", "name": deployment, "namespace": namespace}
    subset = {"addresses": [{"ip": host, "targetRef": reference}], "ports": ports}
    kube.apply(f"{core}/endpoints", name, {"subsets": [subset]})


def make_others(hub):
    """What else there is to see on a hub and a cluster."""
    kube = hub.kube
    leases = "apis/coordination.k8s.io/v1/namespaces/{}/leases"
    for namespace, name in ((NAMESPACE, "dynamic-scoring-framework-agent"), (HUB_NAMESPACE, "dynamic-scoring-controller")):
        kube.apply(leases.format(namespace), name, {"spec": {"holderIdentity": "one"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    kube.apply("apis/rbac.authorization.k8s.io/v1/namespaces/c1/rolebindings", "one", {"roleRef": role})
    hub.put("apis/cluster.open-cluster-management.io/v1beta1/namespaces/c1/placements", "Placement", "one", {})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kube.apply(f"api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims", "one", {"spec": claim})


@pytest.fixture(scope="module", name="shell")
def on_call(prometheus, tmp_path_factory):
    """With an API server of its own: Deployments and Services that look like the chart's would be in the way of its tests."""
    folder, host = tmp_path_factory.mktemp("on-call"), host_address()
    with running_kube() as api_server, running_world(folder, api_server, prometheus.url, host) as world:
        kube = world.hub.kube
        agent, controller = "dynamic-scoring-agent", "dynamic-scoring-framework-controller"
        make_service(kube, NAMESPACE, f"{agent}-service", agent, world.agents["c1"].url, app=agent)
        labels = {"app.kubernetes.io/component": "controller", "app.kubernetes.io/name": "dynamic-scoring-framework"}
        make_service(kube, HUB_NAMESPACE, controller, controller, world.controller.url, **labels)
        labels = {"app.kubernetes.io/component": "optimizer", "app.kubernetes.io/name": "dynamic-scoring-framework"}
        optimizer = "dynamic-scoring-framework-mcp"
        make_service(kube, HUB_NAMESPACE, optimizer, optimizer, world.optimizer.url, **labels)
        make_others(world.hub)
        world.apply_scorer("broken", "sum(rate(")
        world.hub.set_addon("c1", "True")
        world.policies.put("one", "NonCompliant")
        wait_until(lambda: world.agents["c1"].status("broken")["state"] == "stale", "it fails", LONG)
        of_alert = {"HUB": "hub", "SPOKE": "spoke", "CLUSTER": "c1", "SCORE": "broken", "SCORER": "broken"}
        shell = kubectl_shell(world, folder, PROMETHEUS=world.prometheus.url, **of_alert)
        shell.run(FUNCTIONS.search((ROOT / "alerts/runbooks/README.md").read_text())[0])
        yield shell


@pytest.mark.parametrize("runbook", RUNBOOKS, ids=lambda path: path.stem)
def test_commands(shell, runbook):
    for _, commands, _ in page.steps(runbook):
        if commands.startswith("export "):
            continue  # the variables of an example
        eventually(lambda c=commands: prints_something(shell, c))


def test_commands_of_texts(shell):
    """Up to a pipe: it searches a log."""
    labels = {"cluster": "c1", "scorer": "broken"}
    texts = [filled_in(rule["annotations"]["description"], labels) for rule in alerts().values()]
    for command in sorted({first_command(text).split(" | ")[0] for text in texts}):
        eventually(lambda c=command: prints_something(shell, c))


def prints_something(shell, commands):
    assert shell.run(commands).strip() not in ("", "null"), f"nothing printed by\n{commands}"
