"""The names of services in a cluster, for programs that take an HTTP proxy: a proxy that knows where each name is."""

import contextlib
import http.client
import http.server
import threading
import urllib.parse

from lib.wait import DEADLINE

HOP_BY_HOP = {"connection", "proxy-connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def any_method(self):
        target = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        port = self.server.services.get(target.netloc)
        if port is None:
            self.send_error(502, f"no service {target.netloc} in this cluster")
            return
        path = urllib.parse.urlunsplit(("", "", target.path or "/", target.query, ""))
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        try:
            connection.request(self.command, path, body or None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.send_error(502, f"{target.netloc}: {error}")
            return
        finally:
            connection.close()
        self.send_response(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = any_method

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def names_of_a_cluster():
    """Yields (variables of a program's environment, {"name:port": local port}); the table may change at any time."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.services = True, {}
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield {"http_proxy": f"http://127.0.0.1:{server.server_address[1]}"}, server.services
    finally:
        server.shutdown()
        server.server_close()
