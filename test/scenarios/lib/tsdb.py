"""Debian's Prometheus or VictoriaMetrics as the TSDB of a hub: a receiver of remote write, on a free port."""

import json
import shutil
import subprocess
import time
import urllib.parse

from lib import remote
from lib.process import free_port, missing


class Tsdb:
    """Debian's Prometheus or VictoriaMetrics with an API that both share."""

    def __init__(self, program, folder):
        if not shutil.which(program):
            missing(f"no {program} here")
        self.port = free_port()
        self.folder = folder / program
        self.folder.mkdir()
        address = f"127.0.0.1:{self.port}"
        if program == "prometheus":
            (self.folder / "config.yml").write_text("{}\n")
            self.command = [
                program,
                f"--config.file={self.folder}/config.yml",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address={address}",
                "--web.enable-remote-write-receiver",
            ]
        else:
            self.command = [
                program,
                f"-storageDataPath={self.folder}/data",
                f"-httpListenAddr={address}",
                "-retentionPeriod=1y",
            ]
        self.process = None

    def start(self):
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=remote.ENVIRONMENT)
        remote.wait_for("the TSDB", lambda: remote.get(self.url("/-/healthy")), alive=lambda: self.process.poll() is None)

    def stop(self):
        self.process.terminate()
        self.process.wait(remote.DEADLINE)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def url(self, path="/api/v1/write"):
        return f"http://127.0.0.1:{self.port}{path}"

    def raw(self, selector):
        """All samples of the last hour: labels → [(seconds, value)], in the TSDB's own order."""
        if self.command[0] == "victoria-metrics":
            remote.get(self.url("/internal/force_flush"))  # else samples are seen seconds later, and a later one sooner
        query = urllib.parse.urlencode({"query": f"{selector}[1h]", "nocache": 1, "time": time.time() + 1})
        found = json.loads(remote.get(self.url(f"/api/v1/query?{query}")))["data"]["result"]
        return {tuple(sorted(one["metric"].items())): [(t, float(v)) for t, v in one["values"]] for one in found}
