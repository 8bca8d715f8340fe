"""A real API server, by test/kube-apiserver, and what the scenarios do with it as its admin."""

import base64
import calendar
import contextlib
import http
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from lib.process import ROOT, environment, run
from lib.wait import DEADLINE, wait_until

CLUSTER, NAMESPACE = "cluster1", "dynamic-scoring"
SCORES = "apis/cluster.open-cluster-management.io/v1alpha1/namespaces/{}/addonplacementscores"
MERGE_PATCH = "application/merge-patch+json"
DOMAIN = "dynamic-scoring.open-cluster-management.io"
BUILD_DEADLINE = 3600  # the first time, it is built
AGAIN = 0.5  # seconds until a request that was refused as one too many is sent again


def script(name, *words, env=None):
    """Runs a script in test/ and returns its output. Skips the test if the script says that it cannot run here."""
    done = subprocess.run(
        [ROOT / "test" / name, *words], env=env, capture_output=True, text=True, check=False, timeout=BUILD_DEADLINE
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def go_program(name):
    """The path of a program that test/go-program builds, such as kubectl."""
    return script("go-program", name)


def go_crds(name):
    """The folder of CRDs that test/go-crds has from another project."""
    return script("go-crds", name)


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status


class Kube:
    def __init__(self, folder, crds="ours"):
        self.folder = pathlib.Path(folder)
        self.env = environment(
            KUBE_APISERVER_DIR=str(self.folder / "kube"), CLUSTER=CLUSTER, KUBE_APISERVER_CRDS=crds
        )

    def script(self, *words):
        return script("kube-apiserver", *words, env=self.env)

    def start(self):
        self.state = pathlib.Path(self.script("start"))
        self.port = int((self.state / "port").read_text())
        admin = self.state / "users" / "admin"
        self.tls = ssl.create_default_context(cafile=admin / "ca.crt")
        self.tls.load_cert_chain(admin / "tls.crt", admin / "tls.key")
        self.connections = threading.local()

    def kubeconfig(self, user="admin"):
        return pathlib.Path(self.script("kubeconfig", user))

    def own_kubeconfig(self, user, folder):
        """A copy that a test may change."""
        copy = pathlib.Path(folder) / user
        shutil.copytree(self.kubeconfig(user).parent, copy)
        return copy / "kubeconfig"

    def kubectl(self, *args, user="admin"):
        """Runs the real kubectl: .returncode, .stdout, .stderr."""
        more = (f"--kubeconfig={self.kubeconfig(user)}", f"--cache-dir={self.folder / 'kubectl'}")
        return run(go_program("kubectl"), *more, *args)

    def pause(self, signal="-KILL"):
        self.script("pause", signal)

    def resume(self):
        self.script("resume")

    def back_up(self):
        self.pause()
        self.script("backup")
        self.resume()

    def restore(self):
        """Everything is as it was at the backup, resourceVersions included."""
        self.pause()
        self.script("restore")
        self.resume()

    def text(self, method, path, body=None, content_type="application/json"):
        text = None if body is None else json.dumps(body)
        end = time.monotonic() + DEADLINE
        while True:
            answer, data = self.exchange(method, "/" + path, text, {"Content-Type": content_type} if text else {})
            # The server is busy, or has just got a CRD ("storage is (re)initializing"), and has done nothing.
            if answer.status != http.HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > end:
                break
            time.sleep(AGAIN)
        if answer.status >= 300:
            raise Refused(answer.status, data)
        return data

    def exchange(self, *request):
        """(response, its body), by this thread's connection: a new one costs the API server more than most requests."""
        own = self.connections.__dict__.setdefault("own", http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.tls, timeout=DEADLINE))
        was_open = own.sock is not None
        try:
            own.request(*request)
            answer = own.getresponse()
            return answer, answer.read().decode(errors="replace")
        except (ConnectionError, ssl.SSLError):
            own.close()
            if not was_open:
                raise
            return self.exchange(*request)  # the server ended the connection since
        except Exception:
            own.close()
            raise

    def call(self, *args, **more):
        return json.loads(self.text(*args, **more))

    def find(self, path):
        """The object, or None."""
        try:
            return self.call("GET", path)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def apply(self, path, name, body):
        """Creates or replaces."""
        body = {**body, "metadata": {"name": name, **body.get("metadata", {})}}
        if self.find(f"{path}/{name}") is None:
            return self.call("POST", path, body)
        return self.call("PUT", f"{path}/{name}", body)

    def delete(self, path):
        try:
            self.call("DELETE", path)
        except Refused as refused:
            if refused.status != 404:
                raise

    # ---- What the agent is about ----

    def configure(self, *summaries, text=None, adjustments=None):
        """The ConfigMap as the hub delivers it."""
        data = {"summaries": json.dumps(list(summaries)) if text is None else text}
        if adjustments is not None:
            data["adjustments"] = json.dumps(adjustments)
        path = f"api/v1/namespaces/{NAMESPACE}/configmaps"
        return self.apply(path, "dynamic-scoring-config", {"data": data})

    def configmap(self, name):
        return self.find(f"api/v1/namespaces/{NAMESPACE}/configmaps/{name}")

    def secret(self, name, kind="Opaque", annotations=None, **values):
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        body = {"type": kind, "metadata": {"annotations": annotations or {}}, "data": data}
        return self.apply(f"api/v1/namespaces/{NAMESPACE}/secrets", name, body)

    def report(self):
        """The contents of the ConfigMap dynamic-scoring-status; empty without it."""
        found = self.configmap("dynamic-scoring-status")
        return json.loads(found["data"]["status"]) if found else {}

    def reported(self, score_name):
        return next((s for s in self.report().get("scorers", []) if s["scoreName"] == score_name), {})

    def objects(self, cluster=CLUSTER):
        return {o["metadata"]["name"]: o for o in self.call("GET", SCORES.format(cluster))["items"]}

    def object(self, name, cluster=CLUSTER):
        return self.find(SCORES.format(cluster) + "/" + name)

    def items(self, name):
        """{item: value} of an object; None without it or its scores."""
        found = self.object(name)
        scores = found and found.get("status", {}).get("scores")
        return None if scores is None else {s["name"]: s.get("value", 0) for s in scores}

    def condition(self, name, kind):
        """(status, reason, message), or None."""
        found = self.object(name) or {}
        for c in found.get("status", {}).get("conditions", []):
            if c["type"] == kind:
                return c["status"], c["reason"], c["message"]
        return None

    def wait_items(self, name, items, deadline=DEADLINE):
        return wait_until(lambda: self.items(name) == items, f"{name} has {items}", deadline)

    def wait_condition(self, name, kind, status, deadline=DEADLINE):
        return wait_until(
            lambda: (c := self.condition(name, kind)) and c[0] == status and c,
            f"{name} is {kind}={status}",
            deadline,
        )

    def wait_gone(self, name):
        wait_until(lambda: self.object(name) is None, f"{name} is gone")

    def clean(self):
        self.call("DELETE", SCORES.format(CLUSTER))
        for kind in ("configmaps", "secrets"):
            self.call("DELETE", f"api/v1/namespaces/{NAMESPACE}/{kind}")
        wait_until(lambda: not self.objects(), "the scores of the last test are gone")

    def flags(self, hub=None, managed=None):
        return (
            f"--hub-kubeconfig={hub or self.kubeconfig('hub')}",
            f"--managed-kubeconfig={managed or self.kubeconfig('managed')}",
            f"--cluster-name={CLUSTER}",
            f"--addon-namespace={NAMESPACE}",
            "--addon-name=dynamic-scoring",
        )


def seconds_until(text):
    """From now to a timestamp of Kubernetes."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) - time.time()


@contextlib.contextmanager
def running_kube(crds="ours"):
    """crds="reference": with CRDs for dynamic scoring as the reference implementation has them. "ocm": without either, and without
    the rights and namespaces of ours: a cluster before the installation."""
    with tempfile.TemporaryDirectory() as folder:
        kube = Kube(folder, crds)
        try:
            kube.start()
            yield kube
        finally:
            kube.script("stop")
