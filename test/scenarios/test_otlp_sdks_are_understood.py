"""OpenTelemetry's own SDKs and generator send their metrics to the agent, which keeps what Prometheus 3 makes of them."""

import contextlib
import http.server
import pathlib
import threading

import pytest

from lib.agent import running_agent
from lib.client import call
from lib.kube import go_program, script
from lib.process import BUILD, environment, free_port, run
from lib.prometheus import running_prometheus
from test_otlp_names_are_those_of_prometheus import parse_dump, series_of

SDK = pathlib.Path(__file__).parent / "sdk"


def read_chunks(stream):
    body = b""
    while size := int(stream.readline(), 16):
        body += stream.read(size)
        stream.readline()
    stream.readline()
    return body


class Relay:
    """Passes requests on to the agent and keeps them."""

    def __init__(self, port):
        self.target = f"http://127.0.0.1:{port}"
        self.requests = []

    def take(self, handler):
        chunked = "Content-Length" not in handler.headers
        body = read_chunks(handler.rfile) if chunked else handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {k: handler.headers[k] for k in ("Content-Type", "Content-Encoding") if handler.headers[k]}
        passed_on = iter([body]) if chunked else body  # what it sends in chunks arrives in chunks
        answer = call("POST", self.target + handler.path, passed_on, **{k.replace("-", "_"): v for k, v in headers.items()})
        self.requests.append((headers, body, answer))
        handler.send_response(answer.status)
        handler.send_header("Content-Type", answer.headers["Content-Type"])
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        handler.wfile.write(answer.body)


@contextlib.contextmanager
def running_relay(port):
    relay = Relay(port)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            relay.take(self)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        relay.port = server.server_port
        relay.url = f"http://127.0.0.1:{relay.port}/v1/metrics"
        yield relay
        server.shutdown()


@pytest.fixture
def relay():
    port = free_port()
    with running_agent({"summaries": []}, f"--otlp.listen-address=127.0.0.1:{port}") as agent, running_relay(port) as r:
        r.agent = agent
        yield r


def python_sdk(relay):
    env = environment(PYTHONPATH=script("python-packages", "opentelemetry"))
    return run("/usr/bin/python3", SDK / "metrics.py", relay.url, env=env)


def javascript_sdk(exporter):
    def start(relay):
        folder = script("node-packages", "opentelemetry")
        return run(f"{folder}/node_modules/node/bin/node", SDK / "metrics.js", relay.url, exporter, cwd=folder)

    return start


def telemetrygen(kind):
    def start(relay):
        words = ["--otlp-http", "--otlp-insecure", f"--otlp-endpoint=127.0.0.1:{relay.port}", f"--metric-type={kind}"]
        more = ["--metrics=3", "--unique-timeseries", "--rate=10", "--interval=100ms", '--telemetry-attributes=zone="a"']
        return run(go_program("telemetrygen"), "metrics", *words, *more)

    return start


# The program, and series that must be among those it sends.
PROGRAMS = {
    "python": (python_sdk, {"orders_placed_total", "stock_items", "order_duration_seconds_bucket", "load", "disk_io_bytes_total",
                            "target_info"}),
    "javascript-json": (javascript_sdk("http"), {"cart_hits_total", "cart_size_bytes_sum", "cart_fill_ratio", "cart_open"}),
    "javascript-protobuf": (javascript_sdk("proto"), {"cart_hits_total", "cart_size_bytes_sum", "cart_fill_ratio"}),
    "telemetrygen-gauge": (telemetrygen("Gauge"), {"gen"}),
    "telemetrygen-sum": (telemetrygen("Sum"), {"gen_total"}),
    "telemetrygen-histogram": (telemetrygen("Histogram"), {"gen_bucket", "gen_count"}),
}


def theirs(requests):
    with running_prometheus(program=go_program("prometheus3"), flags=["--web.enable-otlp-receiver"]) as p:
        for headers, body, _ in requests:
            call("POST", f"{p.url}/api/v1/otlp/v1/metrics", body, **{k.replace("-", "_"): v for k, v in headers.items()})
        return series_of(p.samples('{__name__=~".+"}[1h]'))


def ours(folder, requests):
    files = []
    for i, (headers, body, _) in enumerate(requests):
        kind = "json" if "json" in headers["Content-Type"] else "pb"
        files.append(folder / f"{i}.{kind}{'.gz' if headers.get('Content-Encoding') == 'gzip' else ''}")
        files[-1].write_bytes(body)
    done = run(BUILD / "otlp-dump", *files)
    assert done.returncode == 0, done.stderr
    return series_of(parse_dump(done.stdout))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(relay, tmp_path, name):
    start, expected = PROGRAMS[name]
    done = start(relay)
    assert done.returncode == 0, done.stdout + done.stderr
    assert relay.requests
    assert [(a.status, a.text) for _, _, a in relay.requests if a.status != 200 or a.body not in (b"", b"{}")] == []
    mine = ours(tmp_path, relay.requests)
    assert expected <= {dict(labels)["__name__"] for labels in mine}
    assert relay.agent.status()["otlp"]["series"] == len(mine)
    assert mine == theirs(relay.requests)
