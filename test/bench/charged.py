"""What the kernel charges a container for its memory: that of a process in a memory cgroup of its own.

The working set is what kubelet evicts by and `kubectl top` shows: all that is charged, less the file pages that were not used
lately. Pages of files that were in memory before count for whoever read them first: of the program's own, most are not in it.
Where no cgroup can be made, for want of rights or of the controller, there is only the anonymous memory of the process.
"""

import contextlib
import os
import pathlib
import re
import time

ROOT = pathlib.Path("/sys/fs/cgroup")
# By version of cgroups: the folder of a group, the file with all that is charged, the line of memory.stat with what is not counted.
VERSIONS = [(ROOT, "", "memory.current", "inactive_file"),
            (ROOT / "memory", "memory", "memory.usage_in_bytes", "total_inactive_file")]


def own_group(controller):
    """The path of this process's group; "" is the controller of version 2."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    return None


class Group:
    """A memory cgroup below that of this process."""

    def __init__(self, folder, usage, inactive):
        self.folder, self.usage, self.inactive = folder, folder / usage, inactive

    def command(self, *command):
        """The command as one that runs in the group from its first instruction."""
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', self.folder / "cgroup.procs", *command]

    def working_set(self):
        inactive = int(re.search(rf"^{self.inactive} (\d+)$", (self.folder / "memory.stat").read_text(), re.M)[1])
        return int(self.usage.read_text()) - inactive


@contextlib.contextmanager
def group():
    """A new group; None where none can be made."""
    for top, controller, usage, inactive in VERSIONS:
        own = own_group(controller)
        folder = top / (own or "") / f"bench.{os.getpid()}.{time.monotonic_ns()}"
        try:
            if own is None:
                continue
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / usage).exists() and os.access(folder / "cgroup.procs", os.W_OK):
                yield Group(folder, usage, inactive)
                return
        finally:
            remove(folder)
    yield None


def remove(folder):
    """The process has ended, but the kernel may still have it in the group for a moment."""
    for _ in range(100):
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.02)


def anonymous(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(re.search(r"^Anonymous:\s+(\d+) kB", text, re.M)[1])
