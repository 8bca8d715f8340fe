"""The policy watcher under test, and Policies as Open Cluster Management replicates them into a cluster's namespace."""

import contextlib
import pathlib
import tempfile
import time

from lib.agent import PROGRAM
from lib.client import call
from lib.exposition import Samples
from lib.kube import CLUSTER, MERGE_PATCH
from lib.process import Process, environment, free_port
from lib.wait import wait_until

POLICIES = "apis/policy.open-cluster-management.io/v1/namespaces/{}/policies"
CLAIMS = "apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims"
PREFIX = "dynamic_scoring_policy"


class Watcher:
    def __init__(self, folder, kubeconfig, flags, env):
        self.url = f"http://127.0.0.1:{free_port()}"
        command = [PROGRAM, "policy-watcher", f"--kubeconfig={kubeconfig}", f"--web.listen-address={self.url[7:]}", *flags]
        self.process = Process("policy watcher", command, pathlib.Path(folder) / "watcher.log", environment(**env))

    def get(self, path):
        return call("GET", self.url + path)

    def wait_ready(self):
        wait_until(lambda: self.get("/readyz").status == 200, "the watcher is ready")
        return self

    def metric(self, name, **labels):
        return Samples(self.get("/metrics").text).value(name, **labels)

    def log(self):
        return self.process.log()


@contextlib.contextmanager
def running_watcher(kube, *flags, kubeconfig=None, env=None, ready=True):
    with tempfile.TemporaryDirectory() as folder:
        watcher = Watcher(folder, kubeconfig or kube.kubeconfig(), flags, env or {})
        try:
            yield watcher.wait_ready() if ready else watcher
            watcher.process.end()
        finally:
            watcher.process.kill()


class Policies:
    """Of one namespace."""

    def __init__(self, kube, namespace=CLUSTER):
        self.kube, self.path = kube, POLICIES.format(namespace)

    def put(self, name, compliant=None, disabled=False):
        spec = {"disabled": disabled, "policy-templates": []}
        body = {"apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy", "spec": spec}
        self.kube.apply(self.path, name, {**body, "metadata": {"name": name}})
        if compliant:
            self.set(name, compliant)

    def set(self, name, compliant):
        """As Open Cluster Management's status sync does."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        found = self.kube.find(f"{self.path}/{name}")
        details = found.get("status", {}).get("details", [{}])
        history = [{"lastTimestamp": now, "message": f"{compliant}; as the test wants it"}, *details[0].get("history", [])]
        status = {"compliant": compliant, "details": [{"compliant": compliant, "history": history[:10]}]}
        self.kube.call("PATCH", f"{self.path}/{name}/status", {"status": status}, MERGE_PATCH)

    def edit(self, name, spec):
        self.kube.call("PATCH", f"{self.path}/{name}", {"spec": spec}, MERGE_PATCH)

    def delete(self, name):
        self.kube.delete(f"{self.path}/{name}")

    def clear(self):
        self.kube.call("DELETE", self.path)


def claim(kube, name):
    return (kube.find(f"{CLAIMS}/{name}") or {}).get("spec", {}).get("value")


def wait_claim(kube, name, value):
    wait_until(lambda: claim(kube, name) == value, f"the claim {name} is {value}")
