"""Debian's Prometheus, on a free port and an empty store."""

import contextlib
import json
import pathlib
import tempfile
import urllib.parse

from lib.client import call
from lib.process import Process, free_port, run
from lib.wait import wait_until

ITSELF = "itself:9090"


class Prometheus:
    def __init__(self, process, port, scheme="http"):
        self.process = process
        self.url = f"{scheme}://127.0.0.1:{port}"

    def query(self, text):
        """[(labels, value)] of an instant query."""
        answer = call("GET", f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": text})).json
        assert answer["status"] == "success", answer
        return [(s["metric"], float(s["value"][1])) for s in answer["data"]["result"]]

    def samples(self, selector):
        """[(labels, [(Unix time, text of the value), ...])] of a range selector, as they are stored."""
        answer = call("GET", f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": selector})).json
        assert answer["status"] == "success", answer
        return [(s["metric"], [(t, v) for t, v in s["values"]]) for s in answer["data"]["result"]]

    def wait_query(self, text, what):
        """Waits until a query has a result."""
        return wait_until(lambda: self.query(text), what)


def backfill(folder, samples):
    lines = [f"{series} {value} {t}" for series, points in samples.items() for t, value in points]
    text = pathlib.Path(f"{folder}.openmetrics")
    text.write_text("\n".join([*lines, "# EOF", ""]))
    done = run("promtool", "tsdb", "create-blocks-from", "openmetrics", text, folder)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def running_prometheus(*jobs, receiver=False, program="prometheus", flags=(), samples=None, web=(None, {}), **more):
    """Each job an object as in scrape_configs, with the target ITSELF for this Prometheus; receiver: takes remote write; more: other parts of the configuration.
    program: go_program("prometheus3") for a newer one than Debian's. samples: {series: [(time, value)]} that it has from the
    start. web: (the SSLContext of a client, the headers of its requests), for a --web.config.file."""
    tls, headers = web
    with tempfile.TemporaryDirectory() as folder:
        file, port = pathlib.Path(folder) / "prometheus.yml", free_port()
        scraping = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs, **more}
        file.write_text(json.dumps(scraping).replace(ITSELF, f"localhost:{port}"))
        if samples:
            backfill(f"{folder}/tsdb", samples)
        process = Process(
            "prometheus",
            [
                program,
                f"--config.file={file}",
                f"--storage.tsdb.path={folder}/tsdb",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
                *["--web.enable-remote-write-receiver"] * receiver,
                *flags,
            ],
            f"{folder}/prometheus.log",
        )
        server = Prometheus(process, port, "https" if tls else "http")
        try:
            wait_until(
                lambda: process.check_alive() or call("GET", f"{server.url}/-/ready", tls=tls, **headers).status == 200,
                "Prometheus is ready",
            )
            yield server
        finally:
            process.kill()
