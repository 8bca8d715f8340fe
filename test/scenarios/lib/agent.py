"""The agent under test, and the summaries that configure it."""

import contextlib
import json
import pathlib
import tempfile

from lib.client import call
from lib.exposition import Samples
from lib.process import BUILD, Process, free_port
from lib.wait import DEADLINE, wait_until

PROGRAM = BUILD / "dynamic-scoring"
LABELS = ("app", "cluster", "container", "device", "meta", "namespace", "node", "pod", "score_name")


def summary(score_name, scoring, source=None, query="up", interval=1, **more):
    """One scorer; without a source its type is None."""
    from_source = {"sourceEndpoint": source, "sourceQuery": query} if source else {"sourceType": "None"}
    return {"scoreName": score_name, "scoringEndpoint": scoring, "scoringInterval": interval, **from_source, **more}


def labels(**given):
    """All labels of a score: labels(node="n1", score_name="s")."""
    return {f"ds_{name}": given.get(name, "") for name in LABELS}


class Agent:
    def __init__(self, folder, flags=(), env=None, tls=None, headers=None):
        self.folder = pathlib.Path(folder)
        self.file = self.folder / "config"
        self.port = free_port()
        self.tls, self.headers = tls, headers or {}
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.command = [PROGRAM, "agent", f"--config.file={self.file}", f"--web.listen-address=127.0.0.1:{self.port}"]
        self.command.append("--web.enable-lifecycle")
        self.flags, self.env = flags, env
        self.process = None

    def write(self, config):
        """config: an object, a list (as in the ConfigMap) or text. An object without a cluster name gets one."""
        if isinstance(config, dict):
            config = {"clusterName": "c1", **config}
        text = config if isinstance(config, str) else json.dumps(config, indent=1)
        fresh = self.folder / "config.new"
        fresh.write_text(text)
        fresh.rename(self.file)

    def launch(self):
        self.process = Process("agent", [*self.command, *self.flags], self.folder / "agent.log", self.env)

    def start(self):
        self.launch()
        self.wait_until(lambda: self.get("/-/ready").status == 200, "the agent is ready")

    def wait_until(self, condition, what, deadline=DEADLINE):
        def alive_and():
            self.process.check_alive()
            return condition()

        return wait_until(alive_and, what, deadline)

    def holds_until(self, condition, end, what):
        """The condition must hold each time that it is checked until end() is true."""

        def look():
            assert condition(), f"it did not hold until {what}"
            return end()

        self.wait_until(look, what)

    def get(self, path, **headers):
        return call("GET", self.url + path, tls=self.tls, **self.headers, **headers)

    def reload(self):
        return call("POST", self.url + "/-/reload", tls=self.tls, **self.headers)

    def apply(self, config):
        self.write(config)
        answer = self.reload()
        assert answer.status == 200, answer.text

    def log(self):
        return self.process.log()

    def wait_log(self, words):
        self.wait_until(lambda: words in self.log(), f"the log says: {words}")

    def wait_metric_is(self, value, name, **with_labels):
        self.wait_until(lambda: self.metric(name, **with_labels) == value, f"{name}{with_labels} is {value}")

    def metrics(self):
        return Samples(self.get("/metrics").text)

    def metric(self, name, **with_labels):
        return self.metrics().value(name, **with_labels)

    def wait_metric(self, name, at_least=1, **with_labels):
        """Waits until a metric exists and is that large."""
        self.wait_until(
            lambda: (self.metric(name, **with_labels) or 0) >= at_least, f"{name}{with_labels} is at least {at_least}"
        )

    def scores(self, score_name):
        """[({"node": ...}, value)] in the order of the page: labels that are set, except score name and cluster."""
        found = self.metrics().all("dynamic_score", ds_score_name=score_name)
        hidden = ("ds_score_name", "ds_cluster")
        return [({k[3:]: x for k, x in have.items() if x and k not in hidden}, v) for have, v in found]

    def status(self, score_name=None):
        """/api/v1/status, or one scorer's part of it."""
        whole = self.get("/api/v1/status").json
        if score_name is None:
            return whole
        return next((s for s in whole["scorers"] if s["scoreName"] == score_name), None)

    def wait_rounds(self, score_name, n=1):
        """Waits for that many rounds in total; returns the scorer's status."""
        return self.wait_until(
            lambda: (s := self.status(score_name)) and s["rounds"] >= n and s, f"{score_name} has ended {n} rounds"
        )

    def wait_all(self):
        """Waits until each scorer has completed a round; returns their status by score name."""

        def all_done():
            scorers = self.status()["scorers"]
            return all(s["rounds"] for s in scorers) and scorers

        return {s["scoreName"]: s for s in self.wait_until(all_done, "each scorer has ended a round")}

    def wait_scores(self, score_name):
        return self.wait_until(lambda: self.scores(score_name), f"{score_name} has scores")


@contextlib.contextmanager
def running_agent(config, *flags, env=None, start=True, tls=None, headers=None):
    """start=False: only writes the configuration. tls: the SSLContext of a client; headers: those of each request."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(folder, flags, env, tls, headers)
        agent.write(config)
        try:
            if start:
                agent.start()
            yield agent
            if agent.process:
                agent.process.end()
        finally:
            if agent.process:
                agent.process.kill()
