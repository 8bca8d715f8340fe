"""Debian's Alertmanager, and what it sends to a webhook."""

import contextlib
import json
import pathlib
import tempfile

from lib.client import call
from lib.fake import plain
from lib.process import Process, free_port
from lib.wait import wait_until


class Alertmanager:
    """Sends each alert by itself to a fake server; inhibit_rules: as in its configuration."""

    def __init__(self, fake, folder, inhibit_rules=()):
        self.fake, self.folder = fake, pathlib.Path(folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        route = {"receiver": "fake", "group_by": ["..."], "group_wait": "1s", "group_interval": "1s"}
        receiver = {"name": "fake", "webhook_configs": [{"url": fake.on("/alerts", plain("ok"))}]}
        config = {"route": route, "receivers": [receiver], "inhibit_rules": list(inhibit_rules)}
        (self.folder / "alertmanager.yml").write_text(json.dumps(config))
        self.process = None

    def start(self):
        command = [
            "prometheus-alertmanager",
            f"--config.file={self.folder}/alertmanager.yml",
            f"--storage.path={self.folder}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ]
        self.process = Process("alertmanager", command, self.folder / "alertmanager.log")
        wait_until(
            lambda: self.process.check_alive() or call("GET", self.url + "/-/ready").status == 200,
            "Alertmanager is ready",
        )

    def received(self):
        """The newest notification of each alert, by its labels: {(("alertname", ...), ...): alert}"""
        alerts = [a for r in self.fake.requests("/alerts") for a in r.json["alerts"]]
        return {tuple(sorted(a["labels"].items())): a for a in alerts}

    def firing(self):
        """[alert], with labels and annotations."""
        return [a for a in self.received().values() if a["status"] == "firing"]


@contextlib.contextmanager
def running_alertmanager(fake, **more):
    with tempfile.TemporaryDirectory() as folder:
        alertmanager = Alertmanager(fake, folder, **more)
        try:
            alertmanager.start()
            yield alertmanager
        finally:
            if alertmanager.process:
                alertmanager.process.kill()
