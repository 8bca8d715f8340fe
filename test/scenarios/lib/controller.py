"""The controller under test."""

import contextlib
import pathlib
import tempfile

from lib.agent import PROGRAM
from lib.client import call
from lib.exposition import Samples
from lib.process import Process, free_port
from lib.wait import DEADLINE, wait_until


class Controller:
    """`dynamic-scoring controller` with the documented permissions."""

    def __init__(self, kube, folder, flags=(), kubeconfig=None, env=None):
        self.folder, self.env = pathlib.Path(folder), env
        self.port, self.health_port = free_port(), free_port()
        self.url, self.health_url = (f"http://127.0.0.1:{p}" for p in (self.port, self.health_port))
        self.command = [
            PROGRAM,
            "controller",
            f"--kubeconfig={kubeconfig or kube.kubeconfig('controller')}",
            f"--metrics-bind-address={self.url[7:]}",
            f"--health-probe-bind-address={self.health_url[7:]}",
        ]
        if not any(str(f).startswith("--health-check-interval") for f in flags):
            flags = (*flags, "--health-check-interval=1s")
        self.flags = flags
        self.process = None

    def launch(self):
        self.process = Process("controller", [*self.command, *self.flags], self.folder / "controller.log", self.env)

    def start(self):
        self.launch()
        self.wait_until(lambda: call("GET", self.health_url + "/readyz").status == 200, "the controller is ready")

    def wait_until(self, condition, what, deadline=DEADLINE):
        def alive_and():
            self.process.check_alive()
            return condition()

        return wait_until(alive_and, what, deadline)

    def get(self, path, **headers):
        return call("GET", self.url + path, **headers)

    def health(self, path="/healthz"):
        return call("GET", self.health_url + path)

    def log(self):
        return self.process.log()

    def status(self):
        return self.get("/api/v1/status").json

    def metrics(self):
        return Samples(self.get("/metrics").text)

    def metric(self, name, **with_labels):
        return self.metrics().value(name, **with_labels)

    def wait_metric(self, name, at_least=1, **with_labels):
        self.wait_until(
            lambda: (self.metric(name, **with_labels) or 0) >= at_least, f"{name}{with_labels} is at least {at_least}"
        )

    def wait_metric_is(self, value, name, **with_labels):
        self.wait_until(lambda: self.metric(name, **with_labels) == value, f"{name}{with_labels} is {value}")

    def stop(self):
        """SIGTERM; it must exit with status 0."""
        self.process.end()

    def kill(self):
        self.process.kill()


@contextlib.contextmanager
def running_controller(kube, *flags, kubeconfig=None, env=None, start=True):
    """start=False: does not start it. Flags take precedence over the defaults here, except the addresses."""
    with tempfile.TemporaryDirectory() as folder:
        controller = Controller(kube, folder, flags, kubeconfig, env)
        try:
            if start:
                controller.start()
            yield controller
            if controller.process:
                controller.stop()
        finally:
            if controller.process:
                controller.kill()
