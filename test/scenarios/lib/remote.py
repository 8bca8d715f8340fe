"""A remote-write receiver that answers as a test says, a scoring API that a test fills, and the agent between them."""

import contextlib
import dataclasses
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.request

from lib import remote_wire
from lib.process import free_port
from lib.wait import DEADLINE, NOT_YET

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("DS_BUILD", ROOT / "build")) / "dynamic-scoring"
CLUSTER = "c1"
ENVIRONMENT = {**os.environ, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def wait_for(what, ready, seconds=DEADLINE, alive=lambda: True):
    """Returns the result of ready() once it is true. Failing connections and missing parts count as not true."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(*NOT_YET, ValueError):
            if found := ready():
                return found
        assert alive(), f"the process ended while waiting for {what}"
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.03)


def get(url, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=DEADLINE) as answer:
        return answer.read().decode()


# ---- Receiver ----


@dataclasses.dataclass
class Answer:
    status: int = 204
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    delay: float = 0  # seconds
    cut: str = ""  # "reset": no answer; "status", "headers" or "body": one that breaks off there, "body reset": so too
    drip: float = 0  # seconds between two bytes of the body
    written: bool = True  # with the headers that say what was written, to 2.0 and when it was


@dataclasses.dataclass
class Arrival:
    """One request."""

    at: float  # monotonic seconds
    path: str
    headers: list  # pairs as they came
    body: bytes
    connection: int
    write: remote_wire.Write = None
    problem: str = None  # which rule it breaks
    status: int = 0  # what was answered; 0: cut
    done: float = 0  # when it was answered

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        receiver = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        arrival = Arrival(time.monotonic(), self.path, list(self.headers.items()), body, self.client_address[1])
        try:
            arrival.write = remote_wire.decode(arrival.headers, body)
            remote_wire.check(arrival.write, self.command, arrival.headers, body)
        except Exception as e:  # pylint: disable=broad-except # what a sender sends may be anything
            arrival.problem = f"{type(e).__name__}: {e}"
        answer = receiver.take(arrival)
        time.sleep(answer.delay)
        if answer.cut == "reset":
            self.reset()
        else:
            arrival.status = 0 if answer.cut else answer.status
            self.reply(answer, arrival)
        arrival.done = time.monotonic()

    do_GET = do_PUT = do_POST

    def reply(self, answer, arrival):
        headers = {"Content-Length": len(answer.body), **answer.headers}
        if answer.written and arrival.write and arrival.write.form == "2.0" and answer.status // 100 == 2:
            headers["X-Prometheus-Remote-Write-Samples-Written"] = arrival.write.samples()
            headers["X-Prometheus-Remote-Write-Histograms-Written"] = 0
            headers["X-Prometheus-Remote-Write-Exemplars-Written"] = 0
        if answer.status == 204:
            del headers["Content-Length"]
        text = f"HTTP/1.1 {answer.status} Scripted\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        whole = text.encode() + b"\r\n" + answer.body
        if answer.drip:
            self.drip(whole[: len(text) + 2], answer)
            return
        if answer.cut:
            half = len(text) + 2 + len(answer.body) // 2
            whole = whole[: {"status": 10, "headers": len(text) - 2}.get(answer.cut, half)]
            self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(whole)
            if answer.cut == "body reset":
                time.sleep(0.02)  # a reset overtakes what the peer has not read yet
                self.reset()

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def drip(self, head, answer):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(head)
            for byte in answer.body:
                time.sleep(answer.drip)
                self.wfile.write(bytes([byte]))

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


class Server6(Server):
    address_family = socket.AF_INET6


class Receiver:
    """Receives remote writes on a port of its own; down() and up() use the same one. With an SSL context: by HTTPS."""

    def __init__(self, *script, plan=None, host="127.0.0.1", context=None):
        self.script = list(script)  # answers to the next requests, each an Answer or a status
        self.plan = plan or (lambda arrival: Answer())  # for those after the script
        self.arrivals = []
        self.lock = threading.Lock()
        self.server = None
        self.reserved = None  # the port while the server is down
        self.host, self.port = host, 0
        self.context = context
        self.up()

    def up(self):
        kind = Server6 if ":" in self.host else Server
        if self.reserved:
            self.reserved.close()
            self.reserved = None
        self.server = kind((self.host, self.port), Handler)
        self.server.owner = self
        if self.context:  # the handshake is the handler's, so that a failing one stops no other
            self.server.socket = self.context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self):
        """Refuses connections; open ones last until their next request."""
        server, self.server = self.server, None
        if server:
            server.shutdown()
            server.server_close()
            # Bound, but not listening: nobody else gets the port meanwhile.
            self.reserved = socket.socket(server.address_family)
            self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.reserved.bind((self.host, self.port))

    def url(self, path="/api/v1/write"):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.context else ''}://{host}:{self.port}{path}"

    def take(self, arrival):
        if not self.server:
            return Answer(cut="reset")
        with self.lock:
            answer = self.script.pop(0) if self.script else self.plan(arrival)
            self.arrivals.append(arrival)
        return answer if isinstance(answer, Answer) else Answer(answer)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.down()
        problems = [arrival.problem for arrival in self.arrivals if arrival.problem]
        assert kind or not problems, problems[:3]

    def with_samples(self):
        """The requests with samples, without those that only contain metadata."""
        return [a for a in list(self.arrivals) if a.write and a.write.series]

    def wait(self, n, what="requests with samples"):
        wait_for(f"{n} {what}", lambda: len(self.with_samples()) >= n)
        return self.with_samples()

    def stream(self, accepted=True):
        """The samples of each series in order of arrival; accepted: only those answered with 2xx."""
        found = {}
        for arrival in self.with_samples():
            if not accepted or arrival.status // 100 == 2:
                for series in arrival.write.series:
                    found.setdefault(tuple(series.labels), []).extend(series.samples)
        return found

    def metadata(self):
        return [m for a in list(self.arrivals) if a.write for m in a.write.metadata]


def in_order(stream):
    """Asserts that no series goes backwards and that one timestamp has one value."""
    for labels, samples in stream.items():
        for before, after in zip(samples, samples[1:]):
            assert before.timestamp <= after.timestamp, f"{dict(labels)} goes back: {before} then {after}"
            assert before.timestamp < after.timestamp or before == after, f"{dict(labels)} changes: {before}, {after}"


def gaps_are_marked(labels, samples, steady):
    """If a series was missing in rounds of `steady`, the samples of one that never is, between two of its values, then there
    is a marker between them. The score is the number of the round."""
    rounds = {s.bits for s in steady}
    for before, after in zip(samples, samples[1:]):
        if remote_wire.STALE not in (before.bits, after.bits):
            first, second = int(remote_wire.double(before.bits)), int(remote_wire.double(after.bits))
            between = [n for n in range(first + 1, second) if remote_wire.bits(n) in rounds]
            assert not between, f"{labels}: no marker although rounds {between} came without it"


# ---- Scoring API ----


class Scoring:
    """A scoring API with a path for each score. `of[name]` is its results: a list of (metric, score), a function of the
    number of the round (from 0), or None for a failure."""

    def __init__(self, **of):
        self.of = dict(of)
        self.served = {}  # name: list of (monotonic time, results)
        owner = self

        class ScoringHandler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = owner.answer(self.path.lstrip("/"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), ScoringHandler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, name):
        served = self.served.setdefault(name, [])
        results = self.of.get(name)
        if callable(results):
            results = results(len(served))
        if results is None:
            return 503, b"no scores to give"
        served.append((time.monotonic(), results))
        return 200, json.dumps({"results": [{"metric": m, "score": s} for m, s in results]}).encode()

    def summary(self, name, **more):
        endpoint = f"http://127.0.0.1:{self.server.server_address[1]}/{name}"
        return {"scoreName": name, "sourceType": "None", "scoringEndpoint": endpoint, "scoringInterval": 1, **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def counted(series, prefix="n"):
    """Results whose score is the number of the round."""
    return lambda n: [({"node": f"{prefix}{i:05}"}, n) for i in range(series)]


def labels(score_name, external=(), **values):
    """The labels of a score as they must arrive."""
    found = {"__name__": "dynamic_score", "ds_cluster": CLUSTER, "ds_score_name": score_name, **dict(external)}
    found |= {f"ds_{name}": value for name, value in values.items()}
    return tuple(sorted(((k, v) for k, v in found.items() if v), key=lambda pair: pair[0].encode()))


# ---- Agent ----


class Agent:
    """The agent with a folder of its own; start() after stop() or kill() uses the same storage."""

    def __init__(self, folder, scoring, remote_write, storage=True, **more):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.storage = self.folder / "storage" if storage is True else storage
        self.program, self.process, self.environment = PROGRAM, None, ENVIRONMENT
        self.started = 0
        self.port = free_port()
        self.summaries = [scoring.summary(name) for name in scoring.of]
        self.config = {"clusterName": CLUSTER, "summaries": self.summaries, **more}
        if remote_write:
            self.config["remoteWrite"] = remote_write
        self.write_config()

    def write_config(self):
        (self.folder / "config.json").write_text(json.dumps(self.config, indent=1))

    def reload(self):
        self.write_config()
        get(f"http://127.0.0.1:{self.port}/-/reload", "POST")

    def start(self, ready=True):
        command = [self.program, "agent", f"--config.file={self.folder}/config.json"]
        command += [f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=debug", "--web.enable-lifecycle"]
        if self.storage:
            self.storage.mkdir(exist_ok=True)
            command.append(f"--storage.path={self.storage}")
        self.started = time.time()
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        if ready:
            wait_for("the agent", lambda: self.page("/-/ready"), alive=self.alive)
        return self

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(DEADLINE)
        self.process = None
        assert status == 0, f"exit status {status}: {self.log()[-3000:]}"

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE)
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if self.process and kind:
            print(self.log()[-5000:])
            self.kill()
        elif self.process:
            self.stop()
        assert "Sanitizer" not in self.log() and "runtime error" not in self.log(), self.log()[-5000:]

    def log(self, level=None):
        text = (self.folder / "log").read_text(errors="replace")
        return "\n".join(line for line in text.splitlines() if level is None or f"level={level}" in line)

    def page(self, path):
        return get(f"http://127.0.0.1:{self.port}{path}")

    def values(self, name, **wanted):
        """The samples with these labels."""
        found = []
        for line in self.page("/metrics").splitlines():
            match = re.match(r"([a-z_:]+)(?:\{(.*)\})? (\S+)$", line)
            if match and match[1] == name:
                given = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
                if wanted.items() <= given.items():
                    found.append(float(match[3]))
        return found

    def remote(self, what, **wanted):
        """The sum over all endpoints with these labels."""
        return sum(self.values(f"prometheus_remote_storage_{what}", **wanted))

    def drained(self):
        """Waits until every endpoint has sent a round since the start and has nothing pending."""

        def done():
            sent = self.values("prometheus_remote_storage_queue_highest_sent_timestamp_seconds")
            return sent and min(sent) >= self.started and self.remote("samples_pending") == 0

        wait_for("an empty queue", done, alive=self.alive)

    def caught_up(self, scoring):
        """Waits until everything that the scoring API has served so far was sent; returns the monotonic time of "so
        far". A round has ended when the next one has begun."""
        until, before = time.monotonic(), {name: len(served) for name, served in scoring.served.items()}
        for name, n in before.items():
            wait_for("two more rounds", lambda name=name, n=n: len(scoring.served[name]) >= n + 2, alive=self.alive)
        self.drained()
        return until


def endpoint(receiver, **more):
    """A remoteWrite entry with short back-offs that sends nothing but samples."""
    queue = {"min_backoff": "30ms", "max_backoff": "200ms", **more.pop("queue_config", {})}
    defaults = {"url": receiver.url(), "name": "hub", "remote_timeout": "30s", "metadata_config": {"send": False}}
    return {**defaults, "queue_config": queue, **more}
