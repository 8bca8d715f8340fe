"""A scoring API that lives in each managed cluster, at an address that the hub cannot reach: it is distributed, and its
health is what agents report. With Open Cluster Management's own work agents; cluster1 is the hub itself, cluster2 has its
own API server."""

import contextlib
import sys

import pytest

from lib.agent import running_agent
from lib.hub import static_scorer
from lib.kube import SCORES, running_kube
from lib.ocm import work_agent
from lib.pod import namespaces_of_our_own
from lib.process import Process, free_port
from lib.scorers import wait_status
from lib.wait import LONG, eventually, wait_until
from test_hub_kubectl_columns import table

NAME = "scorer.ml.svc"  # as the DNS of each cluster resolves it
ADDRESSES = {"cluster1": "127.0.0.2", "cluster2": "127.0.0.3"}
WITH_HOSTS = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
SCORER = """
import http.server, sys
class Scorer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = b'{"results": [{"metric": {"node": "n1"}, "score": 42}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Scorer).serve_forever()
"""


@pytest.fixture(scope="module")
def managed():
    with running_kube() as server:
        yield server


class Clusters:
    def __init__(self, folder):
        self.folder, self.port, self.scorers = folder, free_port(), {}

    def start_scorer(self, cluster):
        command = [sys.executable, "-c", SCORER, ADDRESSES[cluster], self.port]
        self.scorers[cluster] = Process(f"scorer of {cluster}", command, self.folder / f"{cluster}.log")

    def kill_scorer(self, cluster):
        self.scorers[cluster].kill()

    @contextlib.contextmanager
    def agent(self, cluster, flags):
        """With the cluster's own name resolution."""
        hosts = self.folder / f"{cluster}.hosts"
        hosts.write_text(f"127.0.0.1 localhost\n{ADDRESSES[cluster]} {NAME}\n")
        flags = [f"--cluster-name={cluster}" if f.startswith("--cluster-name") else f for f in flags]
        with running_agent({}, *flags, start=False) as agent:
            agent.command = [*namespaces_of_our_own(), "sh", "-c", WITH_HOSTS, "-", hosts, *agent.command]
            agent.start()
            yield agent


@pytest.fixture
def clusters(hub, managed, tmp_path):
    world, kubes = Clusters(tmp_path), {"cluster1": hub.kube, "cluster2": managed}
    flags = {"cluster1": hub.kube.flags(), "cluster2": managed.flags(hub=hub.kube.kubeconfig())}
    with contextlib.ExitStack() as stack:
        for cluster, kube in kubes.items():
            hub.add_cluster(cluster)
            world.start_scorer(cluster)
            stack.callback(world.kill_scorer, cluster)
            stack.enter_context(work_agent(hub.kube, kube, cluster))
            stack.enter_context(world.agent(cluster, flags[cluster]))
        yield world


def spec(world, health_check):
    return static_scorer(f"http://{NAME}:{world.port}", "cpu", interval=1, healthCheck=health_check)


def wait_health(hub, health):
    return wait_status(hub, "s", lambda s: s.get("healthStatus") == health, f"its health is {health}", LONG)


def scores(hub, cluster):
    found = hub.kube.find(SCORES.format(cluster) + "/cpu") or {}
    return [s["value"] for s in found.get("status", {}).get("scores", [])]


def look(hub, message, **columns):
    (row,) = table(hub, "dynamicscorers")
    assert {name: row[name] for name in columns} == columns
    assert row["MESSAGE"].startswith(message), row


def test_from_hub_to_agents_to_none(hub, clusters, start_controller):
    hub.configure()
    hub.apply_scorer("s", spec(clusters, "Hub"))
    controller = start_controller("--unhealthy-threshold=1")
    hub.wait_scorer("s", "Healthy", "False", deadline=LONG, says=NAME)
    eventually(lambda: look(hub, f"http://{NAME}", READY="False", HEALTH="Inactive", CLUSTERS="2"))

    hub.apply_scorer("s", spec(clusters, "Agents"))
    for cluster in ADDRESSES:
        wait_until(lambda c=cluster: scores(hub, c) == [42], f"{cluster} has its score on the hub", LONG)
    wait_health(hub, "Active")
    eventually(lambda: look(hub, "scoring on 2 of 2 clusters", READY="True", HEALTH="Active", INTERVAL="1s"))
    sent = {cluster: hub.summaries(cluster) for cluster in ADDRESSES}

    # One cluster's scoring API is killed: that is said, and nothing else changes. So it is after a crash of the controller.
    clusters.kill_scorer("cluster1")
    wait_health(hub, "Degraded")
    where = f"cluster1: scoring failed, http://{NAME}:{clusters.port}/scoring: "
    message = hub.wait_scorer("s", "Healthy", "False", "UnhealthyOnClusters", says="; healthy on 1")[2]
    assert message.startswith(f"unhealthy on 1 of 2 clusters: {where}") and message.endswith("; healthy on 1")
    degraded = {"READY": "True", "HEALTH": "Degraded", "CLUSTERS": "2", "SCORING": "1", "FAILING": "1"}
    eventually(lambda: look(hub, f"failing on 1 of 2 clusters: {where}", **degraded))
    controller.kill()
    controller.start()
    controller.wait_metric_is(1, "dynamic_scoring_hub_scorer_healthy", scorer="s")
    controller.wait_metric_is(1, "dynamic_scoring_hub_scorer_clusters", scorer="s", state="failing")
    look(hub, f"failing on 1 of 2 clusters: {where}", **degraded)
    assert {cluster: hub.summaries(cluster) for cluster in ADDRESSES} == sent
    assert scores(hub, "cluster2") == [42]

    clusters.kill_scorer("cluster2")
    wait_health(hub, "Inactive")
    controller.wait_metric_is(0, "dynamic_scoring_hub_scorer_healthy", scorer="s")
    hub.wait_scorer("s", "Ready", "False", "ClustersFailing", LONG)
    assert {cluster: hub.summaries(cluster) for cluster in ADDRESSES} == sent
    for cluster in ADDRESSES:
        clusters.start_scorer(cluster)
    wait_health(hub, "Active")
    hub.wait_scorer("s", "Ready", "True", deadline=LONG)

    hub.apply_scorer("s", spec(clusters, "None"))
    hub.wait_scorer("s", "Healthy", "Unknown", "NotChecked")
    eventually(lambda: look(hub, "scoring on 2 of 2 clusters", READY="True", HEALTH="Unknown", CLUSTERS="2"))
    controller.wait_metric_is(None, "dynamic_scoring_hub_scorer_healthy", scorer="s")
    assert {cluster: hub.summaries(cluster) for cluster in ADDRESSES} == sent
