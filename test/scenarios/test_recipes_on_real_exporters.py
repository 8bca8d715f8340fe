"""The queries of the recipes in charts/samples/recipes, on the exporters themselves: node exporter and blackbox exporter of Debian, and
kube-state-metrics on a real API server with Kueue's CRDs. test_recipes_rank_clusters.py has the way from the query to a Placement."""

import contextlib
import json
import shutil

import pytest
import yaml

from lib.fake import plain
from lib.helm import CHART
from lib.kube import MERGE_PATCH, go_crds, running_kube
from lib.ocm import running
from lib.process import Process, free_port, missing
from lib.prometheus import running_prometheus
from lib.wait import DEADLINE, LONG, eventually, wait_until

RECIPES = CHART.parent / "samples" / "recipes"
QUEUES = "apis/kueue.x-k8s.io/v1beta2/clusterqueues"
ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "100"}
# {name: (cpu, memory, phase)}: two requests count, and one has ended.
PODS = {"cart": ("1500m", "4Gi", "Running"), "late": ("500m", "4Gi", "Pending"), "done": ("6", "24Gi", "Succeeded")}


def queries(recipe):
    """{name of the score: query}"""
    found = [o["spec"] for o in yaml.safe_load_all((RECIPES / f"{recipe}.yaml").read_text()) if o["kind"] == "DynamicScorer"]
    return {spec["scoring"]["params"]["name"]: spec["source"]["params"]["query"] for spec in found}


def answers(prometheus, recipe):
    """{name of the score: [(labels, value)]}"""
    return {name: prometheus.query(query) for name, query in queries(recipe).items()}


def job(name, port, **more):
    return {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}], **more}


@contextlib.contextmanager
def running_exporter(tmp_path, name, *flags):
    """The port of an exporter of Debian."""
    if not shutil.which(name):
        missing(f"needs {name}")
    port = free_port()
    process = Process(name, [name, f"--web.listen-address=127.0.0.1:{port}", *flags], tmp_path / f"{name}.log")
    try:
        yield port
        process.check_alive()
    finally:
        process.kill()


def test_node_exporter(tmp_path):
    collectors = ("--collector.disable-defaults", "--collector.cpu", "--collector.meminfo")
    with (
        running_exporter(tmp_path, "prometheus-node-exporter", *collectors) as port,
        running_prometheus(job("node-exporter", port)) as prometheus,
    ):
        prometheus.wait_query(queries("free")["free_cpu"], "there is a rate")
        for name, found in answers(prometheus, "free").items():
            [(labels, value)] = found
            assert labels == {} and 0 <= value <= 100, (name, found)
        for name, found in answers(prometheus, "free-openshift").items():
            [(labels, value)] = found
            assert labels["node"] == f"127.0.0.1:{port}" and 0 <= value <= 100, (name, found)


def test_blackbox_exporter(fake, tmp_path):
    """A target that answers takes as long as it takes, one that fails a second, and with both it is the mean."""
    config = tmp_path / "blackbox.yml"
    config.write_text(json.dumps({"modules": {"http_2xx": {"prober": "http", "http": {"preferred_ip_protocol": "ip4"}}}}))
    good, bad = fake.on("/good", plain("ok")), fake.on("/bad", plain("ok"))
    with running_exporter(tmp_path, "prometheus-blackbox-exporter", f"--config.file={config}") as port:
        probe = {
            "job_name": "latency",
            "metrics_path": "/probe",
            "params": {"module": ["http_2xx"]},
            "static_configs": [{"targets": [good, bad]}],
            "relabel_configs": [
                {"source_labels": ["__address__"], "target_label": "__param_target"},
                {"source_labels": ["__param_target"], "target_label": "instance"},
                {"target_label": "__address__", "replacement": f"127.0.0.1:{port}"},
            ],
        }
        with running_prometheus(probe) as prometheus:

            def latency():
                [(labels, value)] = answers(prometheus, "latency")["latency"]
                assert labels == {}
                return value

            wait_until(lambda: len(prometheus.query("probe_success == 1")) == 2, "both targets answer")
            assert 0 < latency() < 1
            fake.on("/bad", plain("no", 500))
            wait_until(lambda: prometheus.query("probe_success == 0"), "one target fails")
            assert 0.5 < latency() < 1
            fake.on("/good", plain("no", 500))
            wait_until(lambda: latency() == 1, "both targets fail")


@pytest.fixture(scope="module", name="cluster")
def cluster_with_pods():
    """A real API server with a node, pods and a ClusterQueue."""
    crds = go_crds("kueue")
    with running_kube("ocm") as kube:
        done = kube.kubectl("apply", "--server-side", "-f", crds)
        assert done.returncode == 0, done.stderr
        done = kube.kubectl("wait", "--for=condition=Established", f"--timeout={DEADLINE}s", "crd", "--all")
        assert done.returncode == 0, done.stderr
        kube.call("POST", "api/v1/nodes", {"metadata": {"name": "n1"}})
        status = {"status": {"allocatable": ALLOCATABLE, "capacity": ALLOCATABLE}}
        kube.call("PATCH", "api/v1/nodes/n1/status", status, MERGE_PATCH)
        for name, (cpu, memory, phase) in PODS.items():
            add_pod(kube, name, {"cpu": cpu, "memory": memory}, phase)
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "batch"}}
        kube.call("POST", QUEUES, {**queue, "spec": {"namespaceSelector": {}}})
        set_pending(kube, 7)
        yield kube


def add_pod(kube, name, requests, phase):
    container = {"name": "c", "image": "pause", "resources": {"requests": requests}}
    spec = {"containers": [container], **({} if phase == "Pending" else {"nodeName": "n1"})}
    pods = "api/v1/namespaces/default/pods"
    kube.call("POST", pods, {"metadata": {"name": name}, "spec": spec})
    kube.call("PATCH", f"{pods}/{name}/status", {"status": {"phase": phase}}, MERGE_PATCH)


def set_pending(kube, workloads):
    kube.call("PATCH", f"{QUEUES}/batch/status", {"status": {"pendingWorkloads": workloads}}, MERGE_PATCH)


def test_kube_state_metrics(cluster, tmp_path):
    """With the recipe's own values for custom resources."""
    values = yaml.safe_load((RECIPES / "custom-resource-values.yaml").read_text())["kube-state-metrics"]
    config = tmp_path / "custom.yaml"
    config.write_text(json.dumps(values["customResourceState"]["config"]))
    port = free_port()
    flags = (f"--port={port}", "--host=127.0.0.1", f"--telemetry-port={free_port()}", "--telemetry-host=127.0.0.1")
    flags += ("--resources=nodes,pods", f"--custom-resource-state-config-file={config}")
    with (
        running("kube-state-metrics", cluster, "kube-state-metrics", *flags),
        running_prometheus(job("kube-state-metrics", port, honor_labels=True)) as prometheus,
    ):

        def check(recipe, **expected):
            found = answers(prometheus, recipe)
            assert found == {name: [({}, pytest.approx(value))] for name, value in expected.items()}

        eventually(lambda: check("requests", unrequested_cpu=75, unrequested_memory=75), LONG)
        eventually(lambda: check("pending", pending_pods=1))
        eventually(lambda: check("custom-resource", queued_workloads=7), LONG)
        set_pending(cluster, 12)
        eventually(lambda: check("custom-resource", queued_workloads=12))


def test_kube_state_metrics_may_read_what_it_exports():
    """The values grant what the configuration names, and no more."""
    values = yaml.safe_load((RECIPES / "custom-resource-values.yaml").read_text())["kube-state-metrics"]
    kinds = [r["groupVersionKind"] for r in values["customResourceState"]["config"]["spec"]["resources"]]
    granted = {(g, r, v) for rule in values["rbac"]["extraRules"] for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
    named = {("apiextensions.k8s.io", "customresourcedefinitions")} | {(k["group"], f"{k['kind'].lower()}s") for k in kinds}
    assert granted == {(*one, verb) for one in named for verb in ("list", "watch")}
