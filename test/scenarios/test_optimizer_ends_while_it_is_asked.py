"""The optimizer ends in order while clients go on asking on connections that they keep: what its server still reads stays
valid until the server has stopped."""

import contextlib
import http.client
import threading
import time

from lib.optimizer import kubeconfig_of_nothing, running_optimizer

CLIENTS, ENDS = 6, 5
PATHS = ("/openapi.json", "/placements", "/plan", "/mcp", "/api/v1/status", "/no-such-path")


@contextlib.contextmanager
def asking(optimizer):
    """Asks for all paths on kept connections, until these end."""
    stopping = threading.Event()

    def run():
        connection = http.client.HTTPConnection("127.0.0.1", optimizer.port, timeout=10)
        while not stopping.is_set():
            for path in PATHS:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection.request("POST" if path in ("/plan", "/mcp") else "GET", path, body="{}" if path == "/plan" else None)
                    connection.getresponse().read()

    threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def test_it_ends(tmp_path):
    for _ in range(ENDS):
        with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer, asking(optimizer):
            time.sleep(0.3)
            optimizer.process.end()
