"""The optimizer under test, and its assistants' side."""

import contextlib
import json
import pathlib
import tempfile

from lib.agent import PROGRAM
from lib.client import call
from lib.exposition import Samples
from lib.process import Process, free_port
from lib.wait import DEADLINE, wait_until

STATELESS, STATEFUL = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"


class Optimizer:
    """`dynamic-scoring optimizer`."""

    def __init__(self, kubeconfig, folder, flags=(), host="127.0.0.1"):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        address = f"--web.listen-address={host}:{self.port}"
        self.command = [PROGRAM, "optimizer", f"--kubeconfig={kubeconfig}", address, *flags]
        self.process = None

    def start(self):
        self.process = Process("optimizer", self.command, self.folder / "optimizer.log")
        self.wait_until(self.answers, "the optimizer serves")

    def answers(self):
        try:
            return call("GET", self.url + "/healthz").status in (200, 401)
        except OSError:
            return False

    def wait_until(self, condition, what, deadline=DEADLINE):
        def alive_and():
            self.process.check_alive()
            return condition()

        return wait_until(alive_and, what, deadline)

    def wait_ready(self):
        self.wait_until(lambda: self.get("/readyz").status == 200, "the optimizer has listed all kinds")

    def get(self, path, **headers):
        return call("GET", self.url + path, **headers)

    def post(self, path, body, **headers):
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return call("POST", self.url + path, body, **{"Content_Type": "application/json", **headers})

    def metrics(self):
        return Samples(self.get("/metrics").text)

    def log(self):
        return self.process.log()

    # ---- As an assistant ----

    def ask(self, method, params=None, version=STATELESS, **headers):
        """A request of the Model Context Protocol: the HTTP answer."""
        params = dict(params or {})
        headers = {"Accept": "application/json, text/event-stream", "MCP_Protocol_Version": version, **headers}
        if version == STATELESS:
            params["_meta"] = {META + "protocolVersion": version, META + "clientCapabilities": {}}
            headers = {"Mcp_Method": method, **headers}
            if "name" in params:
                headers = {"Mcp_Name": params["name"], **headers}
        return self.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, **headers)

    def tools(self, **more):
        return self.ask("tools/list", **more).json["result"]["tools"]

    def use(self, name, version=STATELESS, **arguments):
        """Calls a tool: its result."""
        return self.ask("tools/call", {"name": name, "arguments": arguments}, version).json["result"]

    def kill(self):
        if self.process:
            self.process.kill()


@contextlib.contextmanager
def running_optimizer(kubeconfig, *flags, **more):
    with tempfile.TemporaryDirectory() as folder:
        optimizer = Optimizer(kubeconfig, folder, flags, **more)
        try:
            optimizer.start()
            yield optimizer
            optimizer.process.end()
        finally:
            optimizer.kill()


def kubeconfig_of_nothing(folder):
    """A kubeconfig of an API server that is not there: all but the hub's objects works without."""
    path = pathlib.Path(folder) / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
    path.write_text(json.dumps({**config, "users": [{"name": "u", "user": {}}], "current-context": "c"}))
    return path
