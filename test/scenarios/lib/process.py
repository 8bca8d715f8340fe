"""Programs under test: on free ports, with their log in a file, ended with the test that started them."""

import collections
import functools
import os
import pathlib
import random
import signal
import socket
import subprocess

import pytest

from lib.wait import DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("DS_BUILD", ROOT / "build")).resolve()
LOG_TAIL = 8000

running = []  # their logs are shown when a test fails
given_ports = collections.deque(maxlen=500)


def missing(why):
    """Skips a test that needs what cannot be had here. In CI, where everything can, the test fails."""
    assert os.environ.get("CI") != "true", why
    pytest.skip(why)


def own_ports():
    """Outside the kernel's range for outgoing connections; every other worker of this run has others."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return range(10240, 32000)[worker::workers]


def free_port():
    """Stays free until it is used: it is no other worker's, and none that was given away not long ago."""
    while True:
        port = random.choice(own_ports())
        if port in given_ports:
            continue
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        given_ports.append(port)
        return port


def environment(**more):
    """Our environment without the variables that affect HTTP clients."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("SSL_CERT_")}
    return {"UBSAN_OPTIONS": "print_stacktrace=1", **kept, **more}


@functools.cache
def steady_addresses():
    """These sanitizers crash under strong address space randomization."""
    try:
        ok = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        ok = False
    return ["setarch", "-R"] if ok else []


def run(*command, env=None, **more):
    """Runs a command until it exits."""
    return subprocess.run(
        [*steady_addresses(), *map(str, command)],
        **{"capture_output": True, "text": True, "timeout": 2 * DEADLINE, "env": env or environment(), **more},
    )


class Process:
    def __init__(self, name, command, log, env=None):
        self.name, self.log_file = name, pathlib.Path(log)
        with self.log_file.open("ab") as out:
            self.popen = subprocess.Popen(
                [*steady_addresses(), *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=env or environment(),
            )
        running.append(self)

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def check_alive(self):
        status = self.popen.poll()
        assert status is None, f"{self.name} has ended with status {status}:\n{self.log()[-LOG_TAIL:]}"

    def send(self, number):
        self.popen.send_signal(number)

    def wait(self, deadline=DEADLINE):
        """The exit status; negative for a signal."""
        status = self.popen.wait(deadline)
        self.forget()
        return status

    def forget(self):
        if self in running:
            running.remove(self)

    def end(self, status=0):
        """SIGTERM, and a check of the exit status."""
        if self.popen.poll() is None:
            self.send(signal.SIGTERM)
            try:
                got = self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} does not stop:\n{self.log()[-LOG_TAIL:]}") from None
            assert got == status, f"{self.name} ended with status {got}:\n{self.log()[-LOG_TAIL:]}"
        self.forget()

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        self.forget()
