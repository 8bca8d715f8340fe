"""A fake HTTP server whose answers are scripted: as a scoring API, a Prometheus, a proxy, and as none of them.

A reply is a function of (connection, request) that sends something; the builders below make the usual ones.
"""

import contextlib
import gzip
import http.server
import json
import socket
import struct
import threading
import time
import urllib.parse
from dataclasses import dataclass, field

JSON = {"Content-Type": "application/json"}
WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error"}


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: bytes
    peer: str | None = None  # common name of the client's certificate
    at: float = field(default_factory=time.monotonic)

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def arguments(self):
        """The parameters of the query string or of a form."""
        text = urllib.parse.urlsplit(self.path).query or self.body.decode()
        return dict(urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=True))

    @property
    def token(self):
        return self.headers.get("Authorization")


# ---- Replies ----


def raw(data):
    """These bytes, then closes the connection."""

    def send(connection, _):
        connection.wfile.write(data)
        connection.close_connection = True

    return send


def plain(body, status=200, **headers):
    body = body.encode() if isinstance(body, str) else body

    def send(connection, _):
        head = {"Content-Length": str(len(body)), **JSON, **{k.replace("_", "-"): v for k, v in headers.items()}}
        lines = [f"HTTP/1.1 {status} {WORDS.get(status, 'Word')}", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        connection.wfile.write("\r\n".join(lines).encode() + body)

    return send


def answer(value, status=200, **headers):
    return plain(json.dumps(value), status, **headers)


def results(*pairs):
    """A scoring answer: results({"node": "n1"}, 1.5, {"node": "n2"}, 2)."""
    return answer({"results": [{"metric": m, "score": s} for m, s in zip(pairs[::2], pairs[1::2])]})


def series(*metrics, kind="matrix", **more):
    """A query's answer: one series of two samples for each of the metrics."""
    found = [{"metric": m, "values": [[1, "1"], [2, "3"]]} for m in metrics]
    return answer({"status": "success", "data": {"resultType": kind, "result": found}, **more})


def compressed(body):
    return plain(gzip.compress(body.encode()), Content_Encoding="gzip")


def redirect(url, status=307):
    return plain(b"", status, Location=url)


def dripping(body):
    """Chunks of one byte, each in a packet of its own."""

    def send(connection, _):
        connection.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in body.encode():
            connection.wfile.write(b"1\r\n" + bytes([byte]) + b"\r\n")
        connection.wfile.write(b"0\r\n\r\n")

    return send


def cut_off(body):
    """Announces more than it sends, then resets the connection."""

    def send(connection, _):
        connection.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + body.encode())
        connection.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close_connection = True

    return send


def flood(begin, filler, megabytes, end, announced=True):
    """A large response; announced=False: in chunks, without its length."""
    block = filler * (1 << 20)
    length = len(begin) + megabytes * len(block) + len(end)
    kind = f"Content-Length: {length}" if announced else "Transfer-Encoding: chunked"

    def send(connection, _):
        connection.wfile.write(f"HTTP/1.1 200 OK\r\n{kind}\r\n\r\n".encode())
        for part in (begin, *[block] * megabytes, end):
            connection.wfile.write(part if announced else b"%x\r\n%s\r\n" % (len(part), part))
        if not announced:
            connection.wfile.write(b"0\r\n\r\n")

    return send


def hanging(connection, _):
    """No response until the test ends."""
    connection.server.fake.closing.wait()
    connection.close_connection = True


# ---- The server ----


def peer_name(connection):
    found = getattr(connection, "getpeercert", dict)() or {}
    return next((value for names in found.get("subject", ()) for key, value in names if key == "commonName"), None)


class Connection(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def any_method(self):
        fake = self.server.fake
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, dict(self.headers), body, peer_name(self.connection))
        with contextlib.suppress(ConnectionError):  # the other side may have lost its patience
            fake.take(request)(self, request)

    do_GET = do_POST = do_HEAD = do_CONNECT = any_method

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def handle_error(self, *_):
        pass  # a client that goes away is part of the play


class Fake:
    def __init__(self, tls=None):
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self.scripts, self.seen = {}, []
        self.server = Server(("127.0.0.1", 0), Connection)
        self.server.fake = self
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def on(self, path, *replies):
        """From now on, requests of this path get each of the replies in turn, and then the last one. Returns its
        URL."""
        with self.lock:
            self.scripts[path] = list(replies)
        return self.url + path

    def take(self, request):
        path = request.path if request.path in self.scripts else urllib.parse.urlsplit(request.path).path
        with self.lock:
            self.seen.append(request)
            script = self.scripts.get(path, [plain(b"no such path", 404)])
            return script.pop(0) if len(script) > 1 else script[0]

    def requests(self, path=None):
        with self.lock:
            return [r for r in self.seen if path in (None, r.path, urllib.parse.urlsplit(r.path).path)]

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def running_fake(tls=None):
    fake = Fake(tls)
    try:
        yield fake
    finally:
        fake.close()
