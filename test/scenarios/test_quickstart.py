"""charts/quickstart.md, line by line, as the documents of the framework have it: helm, OCM's own controllers, two
clusters, Prometheus and VictoriaMetrics. Then the blog article's DynamicScorer.

Stand-ins: an HTTP proxy for the names of services in a cluster, processes for pods, curl here for curl in a pod.
"""

import contextlib
import json
import os
import stat
import time

import pytest
from lib import ocm, page
from lib.client import call
from lib.fake import plain, results
from lib.fleet import running_fleet
from lib.hub import SCORERS
from lib.kube import SCORES, go_program
from lib.names import names_of_a_cluster
from lib.pod import deployed, mark_available, running_pod
from lib.process import ROOT, environment
from lib.prometheus import running_prometheus
from lib.scoring_api import start_scorer, wait_healthy
from lib.tsdb import Tsdb
from lib.wait import LONG, wait_until

RELEASE = "dynamic-scoring-framework"
HUB_NAMESPACE, AGENT_NAMESPACE = "open-cluster-management", "dynamic-scoring"
NODE_IP = "172.18.0.3"
PROMETHEUS = "kube-prometheus-kube-prome-prometheus.monitoring.svc:9090"
POD = "klusterlet-work-agent-6477c8c976-bk9nt"
KUBECTL = """#!/bin/sh
# kubectl, but `exec POD ... -- COMMAND` runs the command here, with the names of the context's cluster
if [ "$1" = exec ]; then
    while [ "$1" != -- ]; do [ "$1" != --context ] || context=$2; shift; done
    shift
    eval "export http_proxy=\\$proxy_${{context#kind-}}"
    exec "$@"
fi
exec {kubectl} "$@"
"""
ARTICLE = """
apiVersion: dynamic-scoring.open-cluster-management.io/v1alpha1
kind: DynamicScorer
metadata:
  name: cpu-predictor
  namespace: open-cluster-management
spec:
  name: cpu-predictor
  scoreDimensionFormat: "${node};${namespace};${pod}"
  source:
    type: Prometheus
    endpoint:
      host: http://prometheus.monitoring.svc:9090
      path: /api/v1/query_range
    query:
      query: "rate(container_cpu_usage_seconds_total[5m])"
      range: 3600
      step: 60
  scoring:
    endpoint:
      host: http://cpu-predictor-api.default.svc:8000
      path: /scoring
    params:
      model: "linear_regression"
      horizon: 3600
"""


def containers(cluster):
    """What cAdvisor shows: a container that uses 0.0145 of a CPU on worker01, and twice as much on worker02."""
    cpus = 0.029 if cluster == "worker02" else 0.0145
    labels = f'node="{cluster}-control-plane",namespace="open-cluster-management-agent",pod="{POD}",container="c"'
    return lambda *request: plain(f"container_cpu_usage_seconds_total{{{labels}}} {cpus * time.time()}\n")(*request)


class World:
    """The clusters and what runs in them."""

    def __init__(self, fleet, stack, folder, fake):
        self.fleet, self.stack, self.folder, self.fake = fleet, stack, folder, fake
        self.kubes = {"hub01": fleet.hub, **fleet.clusters}
        self.env, self.services, self.agents, self.prometheus = {}, {}, {}, {}
        for name in self.kubes:
            self.env[name], self.services[name] = stack.enter_context(names_of_a_cluster())
        self.shell = page.Shell(ROOT / "charts", self.environment(), folder / "state")

    def environment(self):
        tools = self.folder / "bin"
        tools.mkdir()
        kubectl = tools / "kubectl"
        kubectl.write_text(KUBECTL.format(kubectl=go_program("kubectl")))
        kubectl.chmod(stat.S_IRWXU)
        (tools / "helm").symlink_to(go_program("helm"))
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(self.contexts()))
        proxies = {f"proxy_{name}": env["http_proxy"] for name, env in self.env.items()}
        path = f"{tools}:{os.environ['PATH']}"
        return environment(PATH=path, HOME=str(self.folder), KUBECONFIG=str(kubeconfig), **proxies)

    def contexts(self):
        found = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
        for cluster, kube in self.kubes.items():
            name, admin = f"kind-{cluster}", kube.kubeconfig().parent
            server = {"server": f"https://127.0.0.1:{kube.port}", "certificate-authority": f"{admin}/ca.crt"}
            user = {"client-certificate": f"{admin}/tls.crt", "client-key": f"{admin}/tls.key"}
            found["clusters"].append({"name": name, "cluster": server})
            found["users"].append({"name": name, "user": user})
            found["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        return found

    def everywhere(self, service, port):
        for services in self.services.values():
            services[service] = port

    # ---- What kubelet does ----

    def start_pod(self, cluster, namespace, deployment):
        kube = self.kubes[cluster]
        spec = wait_until(lambda: deployed(kube, namespace, deployment), f"{deployment} is deployed to {cluster}", LONG)
        env = [{"name": k, "value": v} for k, v in self.env[cluster].items()]
        spec["containers"][0].setdefault("env", []).extend(env)
        pod = self.stack.enter_context(running_pod(kube, namespace, spec, f"{deployment} of {cluster}"))
        mark_available(kube, namespace, deployment)
        return pod

    def start_pods(self):
        self.start_pod("hub01", HUB_NAMESPACE, f"{RELEASE}-controller")
        for cluster in self.fleet.clusters:
            self.fleet.wait_registered(cluster, RELEASE)
            self.agents[cluster] = self.start_pod(cluster, AGENT_NAMESPACE, "dynamic-scoring-agent")

    # ---- What else runs there ----

    def start_monitoring(self):
        """Prometheus on each cluster scrapes the containers and the agent, and writes to VictoriaMetrics on the hub."""
        (self.folder / "tsdb").mkdir()
        tsdb = self.stack.enter_context(Tsdb("victoria-metrics", self.folder / "tsdb"))
        self.everywhere("vm-hub.monitoring.svc:8428", tsdb.port)
        for cluster, agent in self.agents.items():
            self.fake.on(f"/{cluster}/metrics", containers(cluster))
            jobs = [
                job("cadvisor", f"127.0.0.1:{self.fake.port}", metrics_path=f"/{cluster}/metrics"),
                job("agent", agent.url("http-metrics")[7:]),
            ]
            write = {"url": "http://vm-hub.monitoring.svc:8428/api/v1/write", "proxy_url": self.env[cluster]["http_proxy"]}
            queue = {"batch_send_deadline": "1s"}
            found = self.stack.enter_context(running_prometheus(*jobs, remote_write=[{**write, "queue_config": queue}]))
            found.wait_query("rate(container_cpu_usage_seconds_total[1m])", f"{cluster}'s Prometheus has two samples")
            self.services[cluster][PROMETHEUS] = self.services[cluster]["prometheus.monitoring.svc:9090"] = port_of(found)

    def start_scorer(self, *options):
        """As its image starts, on worker01; a new one replaces the old."""
        scorer = start_scorer(self.folder, *options)
        self.stack.callback(scorer.kill)
        wait_healthy(scorer)
        self.everywhere(f"{NODE_IP}:30007", port_of(scorer))

    def share_scorer(self):
        self.everywhere("sample-scorer.dynamic-scoring.svc:8000", self.services["hub01"][f"{NODE_IP}:30007"])

    def add_node(self):
        kube = self.kubes["worker01"]
        kube.call("POST", "api/v1/nodes", {"metadata": {"name": "worker01-control-plane"}})
        status = {"addresses": [{"type": "InternalIP", "address": NODE_IP}]}
        path = "api/v1/nodes/worker01-control-plane/status"
        kube.call("PATCH", path, {"status": status}, "application/merge-patch+json")

    def items(self, cluster, name):
        found = self.fleet.hub.find(f"{SCORES.format(cluster)}/{name}") or {}
        return {s["name"]: s["value"] for s in found.get("status", {}).get("scores", [])}


def job(name, target, **more):
    return {"job_name": name, "static_configs": [{"targets": [target]}], **more}


def port_of(server):
    return int(server.url.rsplit(":", 1)[1])


def last_round(agent):
    found = call("GET", agent.url("http-metrics") + "/api/v1/status").json["scorers"]
    return next(s for s in found if s["scoreName"] == "sample_my_score")


@pytest.fixture
def world(tmp_path, fake):
    with contextlib.ExitStack() as stack:
        fleet = stack.enter_context(running_fleet("worker01", "worker02"))
        yield World(fleet, stack, tmp_path, fake)


def test_line_by_line(world, fake):
    world.add_node()
    token = world.folder / "token"
    token.write_text("dummy-token-1234")
    before = {  # what happens in the clusters before a command, by heading and number
        ("Install", 1): lambda: (world.start_pods(), world.start_monitoring()),
        ("A scoring API", 1): lambda: (wait_deployed(world), world.start_scorer()),
        ("A token for the scoring API", 0): lambda: world.start_scorer("--token-file", token),
        ("The scoring API by Skupper", 0): lambda: (wait_scoring(world), world.share_scorer()),
    }
    headings = []
    for heading, commands, printed in page.steps(ROOT / "charts/quickstart.md"):
        before.pop((heading, headings.count(heading)), lambda: None)()
        headings.append(heading)
        if printed:
            world.shell.expect(commands, printed[0], printed[1].replace("<NODE_IP>", NODE_IP))
        else:
            world.shell.run(commands)
    assert not before, f"no such commands: {list(before)}"
    scores = [world.items(cluster, "sample-my-score")["sample_my_score"] for cluster in ("worker01", "worker02")]
    assert -100 <= scores[0] < scores[1] < 0, scores
    check_tokens(world)
    check_article(world, fake)


def wait_deployed(world):
    """The work agent has brought the sample scorer to worker01."""
    for path in ("apis/apps/v1/namespaces/{}/deployments", "api/v1/namespaces/{}/services"):
        where = f"{path.format(AGENT_NAMESPACE)}/sample-scorer"
        wait_until(lambda w=where: world.kubes["worker01"].find(w), f"{where} is on worker01", LONG)


def wait_scoring(world):
    """The scoring API refuses requests without the token; both clusters have it."""
    for cluster, agent in world.agents.items():
        wait_until(lambda a=agent: last_round(a)["state"] == "ok", f"{cluster} scores with the token", LONG)


def check_tokens(world):
    """charts/tokens.md: the agents use the token that it brings, without a restart."""
    with ocm.work_manager(world.fleet.hub):
        for _, commands, printed in page.steps(ROOT / "charts/tokens.md"):
            if printed:
                world.shell.expect(commands, *printed)
            else:
                world.shell.run(commands)
        token = world.folder / "new-token"
        token.write_text("dummy-token-5678")
        world.start_scorer("--token-file", token)
        world.share_scorer()
        for cluster, agent in world.agents.items():
            rounds = last_round(agent)["rounds"]
            wait_until(
                lambda a=agent, n=rounds: (s := last_round(a))["rounds"] > n and s["state"] == "ok",
                f"{cluster} scores with the new token",
                LONG,
            )


def check_article(world, fake):
    """Its shape of a DynamicScorer; what it prints: one item for each pod."""
    answers = [{"node": f"node-{i}", "namespace": f"namespace-{s}", "pod": f"pod-{p}"} for i, s, p in ((1, "a", "x"), (2, "b", "y"))]
    fake.on("/scoring", results(answers[0], 85, answers[1], 92))
    world.everywhere("cpu-predictor-api.default.svc:8000", fake.port)
    fake.on("/healthz", plain("ok"))
    file = world.folder / "article.yaml"
    file.write_text(ARTICLE)
    world.shell.run(f"kubectl apply -f {file} --context kind-hub01")
    expected = {"node-1;namespace-a;pod-x": 85, "node-2;namespace-b;pod-y": 92}
    wait_until(lambda: world.items("worker01", "cpu-predictor") == expected, "the article's scores", LONG)
    assert fake.requests("/scoring")[-1].arguments == {"model": "linear_regression", "horizon": "3600"}
    assert world.fleet.hub.find(f"{SCORERS}/cpu-predictor")
