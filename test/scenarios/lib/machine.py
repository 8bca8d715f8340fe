"""A Debian machine for a package: systemd as process 1, in namespaces of its own."""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from lib.client import call
from lib.process import ROOT, Process, run
from lib.wait import wait_until

CLONE_NEWNET = 0x40000000


def debian_root(*release):
    """The folder of a Debian system, by default of this machine's release, or a skip with the reason."""
    made = subprocess.run([ROOT / "test/debian-root", "run", *release], capture_output=True, text=True, check=False)
    if made.returncode == 77:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


class Machine:
    def __init__(self, process, pid):
        self.process, self.pid = process, pid

    def call(self, *command):
        env = {"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run("nsenter", "-t", self.pid, "--all", "--wdns=/", *command, env=env, stdin=subprocess.DEVNULL)

    def run(self, *command, status=0):
        """What a command in the machine prints; it must exit with that status."""
        ended = self.call(*command)
        assert ended.returncode == status, (command, ended.returncode, ended.stdout, ended.stderr)
        return ended.stdout + ended.stderr

    def is_up(self):
        return self.call("systemctl", "is-system-running").stdout.strip() == "running"

    def path(self, name):
        """A file of the machine as this process sees it."""
        return pathlib.Path(f"/proc/{self.pid}/root{name}")

    def inside(self, function, *args, **more):
        """Calls the function in a thread that uses the machine's network, and returns the result."""
        results = []

        def enter():
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{self.pid}/ns/net", "rb") as net:
                assert libc.setns(net.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            results.append(function(*args, **more))

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert results, f"{function.__name__} failed in the machine"
        return results[0]

    def get(self, path):
        return self.inside(answer_or_error, f"http://127.0.0.1:8080{path}")


def answer_or_error(url):
    """None if nobody listens."""
    try:
        return call("GET", url)
    except OSError:
        return None


def child_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]


def remove_group(group):
    """systemd leaves empty cgroups behind."""
    script = 'mount -t cgroup2 cgroup2 "$1" && { [ ! -d "$1/$2" ] || find "$1/$2" -depth -type d -exec rmdir {} +; }'
    with tempfile.TemporaryDirectory() as folder:
        wait_until(
            lambda: run("unshare", "--mount", "sh", "-c", script, "-", folder, group).returncode == 0,
            f"the cgroup {group} is removed",
        )


@contextlib.contextmanager
def running_machine(*release):
    root = debian_root(*release)
    with tempfile.TemporaryDirectory() as folder:
        group = f"machine-{pathlib.Path(folder).name}"
        boot = [ROOT / "test/scenarios/lib/boot-machine", root, folder, group]
        process = Process("machine", ["unshare", "--mount", *boot], f"{folder}/log")
        try:

            def booted():
                process.check_alive()
                machine = Machine(process, child_of(process.popen.pid))
                return machine.is_up() and machine

            yield wait_until(booted, "the machine has booted")
        finally:
            process.kill()
            remove_group(group)
