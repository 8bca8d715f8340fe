"""The spool of an agent that was killed while its receiver was away: what it holds, and what arrives of it afterwards."""

import json
import re
import subprocess

from lib import remote, remote_wire

SERIES = 100


def spool(*arguments):
    command = [remote.PROGRAM, "spool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=remote.DEADLINE, check=False)


def export(folder):
    """The contents of the spool as the program exports them: labels → samples."""
    done = spool("export", folder)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"([a-zA-Z_:]\w*)\{(.*)\} (\S+) (\d+)", line)
        assert match, line
        labels = [(k, v) for k, v in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2])]
        key = tuple(sorted([("__name__", match[1]), *labels]))
        found.setdefault(key, []).append((match[3], int(match[4])))
    return found


def segments(agent):
    return sorted(agent.storage.rglob("*.seg"))


def folder_of(agent):
    return segments(agent)[0].parent


def numbers(samples):
    """The rounds that the samples come from: counted() uses their numbers as scores."""
    return [int(remote_wire.double(s.bits)) for s in samples if s.bits != remote_wire.STALE]


class Outage:
    """An agent that was killed after some rounds without a receiver; a test then damages its spool."""

    def __init__(self, tmp_path, rounds=5, **queue_config):
        self.receiver = remote.Receiver()
        self.receiver.down()
        self.scoring = remote.Scoring(t=remote.counted(SERIES))
        self.agent = remote.Agent(tmp_path, self.scoring, [remote.endpoint(self.receiver, queue_config=queue_config)])
        with self.agent:
            remote.wait_for("a queue", lambda: self.agent.remote("samples_pending") >= rounds * SERIES)
            self.agent.kill()
        self.before = len(self.scoring.served["t"])

    def __enter__(self):
        return self

    def recover(self):
        """Starts it again with a receiver; returns what arrived, by series, once there were new rounds."""
        self.receiver.up()
        with self.agent:
            enough = self.before + 2
            remote.wait_for("rounds", lambda: len(self.scoring.served["t"]) >= enough, alive=self.agent.alive)
            self.agent.drained()
            self.metrics = self.agent.page("/metrics")
        return self.receiver.stream()

    def rounds(self):
        """The rounds of each series; they must be the same for all."""
        found = {tuple(numbers(samples)) for samples in self.receiver.stream().values()}
        assert len(found) == 1, found
        return list(found.pop())

    def __exit__(self, kind, *_):
        self.scoring.__exit__()
        self.receiver.__exit__(kind)


def state(agent):
    return json.loads(agent.page("/api/v1/status"))["remoteWrite"][0]
