"""A hub and two clusters that are monitored: agents, a controller, an optimizer and a policy watcher on a real API server, a
Prometheus with the rules of alerts/ that scrapes them, Alertmanager, and VictoriaMetrics on the hub. The work agent is a stand-in."""

import contextlib
import json
import os
import stat

from lib import page
from lib.agent import PROGRAM, running_agent
from lib.alertmanager import running_alertmanager
from lib.controller import running_controller
from lib.fake import plain, results, running_fake
from lib.hub import HUB_NAMESPACE, clean_hub
from lib.kube import NAMESPACE, go_program
from lib.optimizer import running_optimizer
from lib.process import environment, free_port
from lib.prometheus import running_prometheus
from lib.rules import write_shortened
from lib.scoring_api import start_scorer
from lib.scorers import own, scoring, source
from lib.tsdb import Tsdb
from lib.wait import LONG, wait_until
from lib.watcher import CLAIMS, Policies, running_watcher
from lib.work import FakeWorkAgent

CLUSTERS = {"c1": NAMESPACE, "c2": f"{NAMESPACE}-c2"}  # of their agents, on the one API server
SCORERS = ("killed", "broken", "unhealthy")
KUBECTL = """#!/bin/sh
# kubectl, but processes are what has logs, and where commands are run
case $* in
logs*-c2*) exec cat {folder}/c2.log ;;
logs*agent*) exec cat {folder}/c1.log ;;
logs*optimizer*) exec cat {folder}/optimizer.log ;;
logs*) exec cat {folder}/controller.log ;;
exec*" -- /dynamic-scoring "*) exec {program} $(echo "$*" | sed 's#.* -- /dynamic-scoring ##; s#/var/lib/dynamic-scoring#{storage}#') ;;
top*) exec echo no metrics ;;
esac
exec {kubectl} "$@"
"""
QUERY = 'label_replace(vector(42), "node", "n1", "", "")'


class World:
    """Three scorers: the scoring API of "killed" is a process of its own, the query of "broken" can be changed, and the
    scoring API of "unhealthy" is the one that the hub probes. host: an address of this machine that agents and
    controller use instead of loopback."""

    def __init__(self, stack, folder, kube, source_url, host=None):
        self.stack, self.folder, self.hub, self.source_url = stack, folder, clean_hub(kube), source_url
        self.inbox, self.healthy, self.unhealthy = (stack.enter_context(running_fake()) for _ in range(3))
        self.alertmanager = stack.enter_context(running_alertmanager(self.inbox))
        self.tsdb = stack.enter_context(Tsdb("victoria-metrics", folder))
        self.scorer_port, self.scorer = free_port(), None
        self.start_scorer()
        self.distribute()
        self.controller = self.start_controller(host)
        self.agents = {cluster: self.start_agent(cluster, host) for cluster in CLUSTERS}
        for cluster, agent in self.agents.items():
            for name in SCORERS:
                agent.wait_until(lambda a=agent, n=name: a.status(n)["state"] == "ok", f"{name} scores on {cluster}", LONG)
        self.watcher = self.start_watcher()
        self.optimizer = self.start_optimizer(host)
        self.prometheus = self.start_prometheus()

    # ---- What scores ----

    def start_scorer(self):
        """The scoring API of "killed"."""
        self.scorer = start_scorer(self.folder, port=self.scorer_port)
        self.stack.callback(self.scorer.kill)

    def apply_scorer(self, name, query=QUERY):
        fake = self.unhealthy if name == "unhealthy" else self.healthy
        host = f"http://127.0.0.1:{self.scorer_port}" if name == "killed" else fake.url
        scored = scoring(name, host=host, params={"name": name, "interval": 1})
        self.hub.apply_scorer(name, own(name, fake.url, source=source(self.source_url, query), scoring=scored))

    def distribute(self):
        for fake in (self.healthy, self.unhealthy):
            fake.on("/healthz", plain("ok"))
            fake.on("/scoring", results({"node": "n1"}, 42))
        for cluster in CLUSTERS:
            self.hub.add_cluster(cluster)
        self.hub.configure()
        for name in SCORERS:
            self.apply_scorer(name)
        of_clusters = {c: (self.hub.kube, namespace) for c, namespace in CLUSTERS.items()}
        self.stack.enter_context(FakeWorkAgent(self.hub, of_clusters))

    def start_controller(self, host):
        """host: an address of this machine; None: loopback."""
        if not host:
            return self.stack.enter_context(running_controller(self.hub.kube))
        address = f"{host}:{free_port()}"
        controller = self.stack.enter_context(running_controller(self.hub.kube, f"--metrics-bind-address={address}"))
        controller.url = f"http://{address}"
        return controller

    def start_agent(self, cluster, host):
        queue = {"min_backoff": "100ms", "max_backoff": "1s"}
        endpoint = {"name": "hub", "url": self.tsdb.url(), "queue_config": queue}
        admin = self.hub.kube.kubeconfig()
        of_cluster = (
            f"--hub-kubeconfig={admin}",
            f"--managed-kubeconfig={admin}",
            f"--cluster-name={cluster}",
            f"--addon-namespace={CLUSTERS[cluster]}",
            f"--storage.path={self.folder / cluster}",
            f"--otlp.listen-address=127.0.0.1:{free_port()}",
        )
        if not host:
            return self.stack.enter_context(running_agent({"remoteWrite": [endpoint]}, *of_cluster))
        address = f"{host}:{free_port()}"
        flags = (*of_cluster, f"--web.listen-address={address}")
        agent = self.stack.enter_context(running_agent({"remoteWrite": [endpoint]}, *flags))
        agent.url = f"http://{address}"
        return agent

    def start_watcher(self):
        """Of c1, without Policies."""
        kube = self.hub.kube
        self.policies = Policies(kube, "c1")
        self.stack.callback(self.policies.clear)
        self.stack.callback(kube.delete, f"{CLAIMS}/policy-watcher-claim")
        return self.stack.enter_context(running_watcher(kube, "--namespace=c1"))

    def start_optimizer(self, host):
        """host: an address of this machine; None: loopback."""
        admin, everywhere = self.hub.kube.kubeconfig(), {"host": ""} if host else {}
        optimizer = self.stack.enter_context(running_optimizer(admin, **everywhere))
        optimizer.wait_ready()
        optimizer.url = f"http://{host or '127.0.0.1'}:{optimizer.port}"
        return optimizer

    # ---- What watches ----

    def start_prometheus(self):
        agents = [target(a.url, cluster=c, namespace=CLUSTERS[c]) for c, a in self.agents.items()]
        controller = target(self.controller.url, cluster="hub", namespace=HUB_NAMESPACE)
        optimizer = target(self.optimizer.url, cluster="hub", namespace=HUB_NAMESPACE)
        watcher = target(self.watcher.url, cluster="c1", namespace=NAMESPACE)
        jobs = [
            {"job_name": "dynamic-scoring-agent", "static_configs": agents},
            {"job_name": "dynamic-scoring-controller", "static_configs": [controller]},
            {"job_name": "dynamic-scoring-optimizer", "static_configs": [optimizer]},
            {"job_name": "policy-watcher", "static_configs": [watcher]},
        ]
        patient = {"scrape_interval": "2s", "scrape_timeout": "2s"}
        alerting = {"alertmanagers": [{"static_configs": [target(self.alertmanager.url)]}]}
        more = {"global": patient, "rule_files": [write_shortened(self.folder)], "alerting": alerting}
        return self.stack.enter_context(running_prometheus(*jobs, **more))

    def wait_quiet(self):
        """Until all is scraped and no alert is pending or firing."""
        wait_until(lambda: len(self.prometheus.query("up == 1")) == 5, "all targets are up", LONG)
        wait_until(lambda: self.prometheus.query("ALERTS") == [], "no alert is active", LONG, every=0.5)


def kubectl_shell(world, folder, **variables):
    """A shell with kubectl as the admin of hub and clusters: contexts hub, the default, and spoke."""
    kubectl = folder / "kubectl"
    parts = {"folder": folder, "kubectl": go_program("kubectl"), "program": PROGRAM, "storage": world.folder / "c1"}
    kubectl.write_text(KUBECTL.format(**parts))
    kubectl.chmod(stat.S_IRWXU)
    for name, program in (*world.agents.items(), ("controller", world.controller), ("optimizer", world.optimizer)):
        (folder / f"{name}.log").symlink_to(program.process.log_file)
    kube = world.hub.kube
    admin = kube.kubeconfig().parent
    server = {"server": f"https://127.0.0.1:{kube.port}", "certificate-authority": f"{admin}/ca.crt"}
    user = {"client-certificate": f"{admin}/tls.crt", "client-key": f"{admin}/tls.key"}
    contexts = [{"name": name, "context": {"cluster": "it", "user": "admin"}} for name in ("hub", "spoke")]
    config = {"apiVersion": "v1", "kind": "Config", "contexts": contexts, "current-context": "hub"}
    config.update(clusters=[{"name": "it", "cluster": server}], users=[{"name": "admin", "user": user}])
    (folder / "kubeconfig").write_text(json.dumps(config))
    path = f"{folder}:{os.environ['PATH']}"
    env = environment(PATH=path, HOME=str(folder), KUBECONFIG=f"{folder}/kubeconfig", **variables)
    return page.Shell(folder, env, folder / "state")


def target(url, **labels):
    return {"targets": [url.removeprefix("http://")], "labels": labels}


@contextlib.contextmanager
def running_world(folder, kube, source_url, host=None):
    with contextlib.ExitStack() as stack:
        yield World(stack, folder, kube, source_url, host)
