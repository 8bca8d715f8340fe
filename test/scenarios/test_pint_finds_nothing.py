"""pint finds nothing to complain about in alerts/, although it may ask a Prometheus that scrapes an agent, a controller, an
optimizer and a policy watcher: each metric is there, with these labels, joins match, and counters are used as counters."""

import json
import re

import pytest

from lib import remote
from lib.agent import summary
from lib.fake import plain, results
from lib.hub import HUB_NAMESPACE
from lib.kube import NAMESPACE, go_program
from lib.optimizer import running_optimizer
from lib.otlp import gauge, point, push, request
from lib.process import ROOT, free_port, run
from lib.prometheus import running_prometheus
from lib.scorers import full
from lib.wait import LONG, wait_until
from lib.watcher import CLAIMS, running_watcher, wait_claim

FILES = ("agent", "hub", "recording")
CONFIG = """
prometheus "live" {{
  uri     = "{url}"
  timeout = "30s"
}}
"""
# What kube-state-metrics says of a cluster with one node and one pod.
RESOURCES = """
# TYPE kube_node_status_allocatable gauge
kube_node_status_allocatable{node="a",resource="cpu",unit="core"} 8
kube_node_status_allocatable{node="a",resource="memory",unit="byte"} 16e9
# TYPE kube_node_status_condition gauge
kube_node_status_condition{node="a",condition="Ready",status="true"} 1
# TYPE kube_node_spec_unschedulable gauge
kube_node_spec_unschedulable{node="a"} 0
# TYPE kube_pod_status_phase gauge
kube_pod_status_phase{namespace="x",pod="p",uid="1",phase="Running"} 1
# TYPE kube_pod_container_resource_requests gauge
kube_pod_container_resource_requests{namespace="x",pod="p",uid="1",container="c",node="a",resource="cpu",unit="core"} 1
kube_pod_container_resource_requests{namespace="x",pod="p",uid="1",container="c",node="a",resource="memory",unit="byte"} 1e9
"""


def job(name, url, **labels):
    return {"job_name": name, "static_configs": [{"targets": [url.removeprefix("http://")], "labels": labels}]}


@pytest.fixture(name="agent")
def an_agent(hub, fake, prometheus, start_agent, tmp_path):
    """One scorer succeeds, one fails, one has too many series."""
    fake.on("/receive", plain("no", 503))
    many = results(*(x for i in range(3) for x in ({"node": f"n{i}"}, 1)))
    hub.kube.configure(
        summary("good", fake.on("/good", results({"node": "n1"}, 500)), source=prometheus.url, query="vector(1)"),
        summary("bad", fake.on("/bad", plain("no", 500))),
        summary("many", fake.on("/many", many)),
    )
    endpoint = {"name": "hub", "url": f"{fake.url}/receive"}
    config = {"remoteWrite": [endpoint], "limits": {"seriesPerScorer": 2, "otlpSeries": 1}}
    otlp = f"127.0.0.1:{free_port()}"
    web = tmp_path / "web.yml"
    web.write_text("http_server_config: {http2: false}\n")
    flags = ("--leader-elect", f"--storage.path={tmp_path}", f"--web.config.file={web}", f"--otlp.listen-address={otlp}")
    agent = start_agent(config, *hub.kube.flags(), *flags)
    push(f"http://{otlp}/v1/metrics", request(gauge("m", *(point(i, labels={"pod": f"p{i}"}) for i in range(2)))))
    agent.wait_metric("dynamic_scoring_otlp_points_rejected_total", reason="series_limit")
    agent.wait_metric("dynamic_scoring_consecutive_failures", **{"class": "http_5xx"})
    agent.wait_metric("dynamic_scoring_consecutive_failures", **{"class": "series_limit"})
    agent.wait_metric("dynamic_scoring_placement_writes_total", operation="status", result="ok")
    return agent


@pytest.fixture(name="controller")
def a_controller(hub, other_fake, start_controller):
    """One scoring API is healthy, but its /config is no JSON, and one is unhealthy."""
    other_fake.on("/healthz", plain("ok"))
    other_fake.on("/config", plain("no"))
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("no-config", full(f"{other_fake.url}/config"))
    hub.apply_scorer("unhealthy", full("http://127.0.0.1:1/config"))
    controller = start_controller("--leader-elect")
    controller.wait_metric("dynamic_scoring_hub_probes_total", probe="config", result="InvalidConfig")
    return controller


@pytest.fixture(name="watcher")
def a_policy_watcher(hub):
    with running_watcher(hub.kube, "--namespace=c1", "--claim=linted") as watcher:
        wait_claim(hub.kube, "linted", "empty")
        yield watcher
    hub.kube.delete(f"{CLAIMS}/linted")


@pytest.fixture(name="optimizer")
def an_optimizer(hub):
    with running_optimizer(hub.kube.kubeconfig()) as optimizer:
        optimizer.wait_ready()
        yield optimizer


@pytest.fixture(name="live")
def a_prometheus(agent, controller, optimizer, watcher, fake):
    fake.on("/metrics", plain(RESOURCES))
    jobs = (
        job("agent", agent.url, cluster="c1", namespace=NAMESPACE),
        job("controller", controller.url, cluster="hub", namespace=HUB_NAMESPACE),
        job("optimizer", optimizer.url, cluster="hub", namespace=HUB_NAMESPACE),
        job("policy-watcher", watcher.url, cluster="c1", namespace=NAMESPACE),
        job("kube-state-metrics", fake.url, cluster="c1"),
    )
    rules = {"rule_files": [str(ROOT / "alerts" / "recording.yaml")]}
    with running_prometheus(*jobs, **rules) as server:
        wait_until(lambda: len(server.query("up == 1")) == len(jobs), "all is scraped", LONG)
        for query in ("cluster_memory_free", "dynamic_score:age:intervals", "dynamic_scoring_hub_scorer_config_synced"):
            server.wait_query(query, query)
        yield server


def lint(tmp_path, url, *files):
    config = tmp_path / "pint.hcl"
    config.write_text(CONFIG.format(url=url))
    return run(go_program("pint"), "--no-color", f"--config={config}", "lint", "--min-severity=info", *files)


def test_pint_finds_nothing(live, tmp_path):
    check = lint(tmp_path, live.url, *(str(ROOT / "alerts" / f"{name}.yaml") for name in FILES))
    assert check.returncode == 0 and "Problems found" not in check.stderr + check.stdout, check.stdout + check.stderr


def test_it_would_find_something(prometheus, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps({"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "no_such_metric > 0"}]}]}))
    check = lint(tmp_path, prometheus.url, str(rules))
    assert re.search(r"promql/series", check.stdout + check.stderr), check.stdout + check.stderr
