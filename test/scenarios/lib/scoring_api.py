"""A scoring API of our own, on a free port."""

import contextlib

from lib.client import call
from lib.process import BUILD, Process, environment, free_port
from lib.wait import wait_until


def start_scorer(folder, *flags, model="mean", port=None, env=None, program=BUILD / "dynamic-scoring"):
    """The process, with .url; the caller ends it. It listens on all addresses, as in a pod: on a loopback address it would
    refuse the names of Services."""
    port = port or free_port()
    command = [program, "scorer", model, f"--web.listen-address=:{port}", *flags]
    process = Process(f"scorer {model}", command, folder / f"scorer-{port}.log", environment(**(env or {})))
    process.url = f"http://127.0.0.1:{port}"
    return process


def wait_healthy(scorer):
    def healthy():
        scorer.check_alive()
        with contextlib.suppress(OSError):
            return call("GET", scorer.url + "/healthz").status == 200

    wait_until(healthy, f"{scorer.name} is healthy")


@contextlib.contextmanager
def running_scorer(folder, *flags, **more):
    scorer = start_scorer(folder, *flags, **more)
    try:
        wait_healthy(scorer)
        yield scorer
        scorer.end()
    finally:
        scorer.kill()
