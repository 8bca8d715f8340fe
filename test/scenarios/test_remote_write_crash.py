"""kill -9 at random moments while the receiver is up, down and flapping: every accepted sample arrives, once and in order,
and each series that ends gets a marker.

Accepted are the samples of each round before the last one before a kill, and everything that the spool exports after it.
DS_CRASH_SECONDS sets the duration, DS_CRASH_SEED repeats a run.
"""

import os
import random
import threading
import time

import pytest
from lib import remote, remote_wire
from lib.outage import export, segments

SECONDS = float(os.environ.get("DS_CRASH_SECONDS", "60" if os.environ.get("CI") == "true" else "20"))
SEED = int(os.environ.get("DS_CRASH_SEED", time.time_ns() % 100000))
SETTLE = 1.0  # seconds
STEADY = 40  # series of each scorer that are always there
GUESTS = 20  # and those that come and go


class World:
    """Scorers whose guest series change from round to round, and a receiver that changes its behavior."""

    def __init__(self, rng):
        self.rng = rng
        self.end = time.monotonic() + SECONDS
        self.mood = "up"
        self.receiver = remote.Receiver(plan=self.answer)
        names = ["a", "b", "c"]
        self.scoring = remote.Scoring(**{name: lambda n, name=name: self.results(n) for name in names})
        self.kills = []  # monotonic times

    def results(self, n):
        guests = self.rng.sample(range(GUESTS), self.rng.randrange(GUESTS))
        if time.monotonic() > self.end:
            guests = []  # so that every guest has ended
        return [({"node": f"n{i}"}, n) for i in range(STEADY)] + [({"node": f"guest{i}"}, n) for i in guests]

    def answer(self, _):
        fate = self.rng.random()
        if self.mood == "calm":
            return remote.Answer()
        if self.mood == "up" or fate < 0.5:
            return remote.Answer(delay=self.rng.random() * 0.1)
        if fate < 0.7:
            return remote.Answer(self.rng.choice([500, 503, 429]))
        if fate < 0.8:
            return remote.Answer(cut=self.rng.choice(["reset", "headers"]))
        return remote.Answer(delay=self.rng.random())

    def flap(self):
        """In a thread: changes the receiver's behavior every now and then."""
        while time.monotonic() < self.end:
            mood = self.rng.choice(["up", "down", "flapping"])
            if mood == "down":
                self.receiver.down()
            elif not self.receiver.server:
                self.receiver.up()
            self.mood = mood
            time.sleep(self.rng.uniform(0.2, 4))
        self.mood = "calm"  # what has piled up by now would take a minute at the pace before
        if not self.receiver.server:
            self.receiver.up()


def check_everything(world, told):
    arrived = world.receiver.stream(accepted=False)
    accepted = world.receiver.stream()
    # In order: nothing ever goes back, sent again or not, and one timestamp is one value for ever.
    remote.in_order(arrived)
    # Once: what came is what the scoring API gave, round for round, after deduplication.
    for labels, samples in accepted.items():
        values = [remote_wire.double(s.bits) for s in dict.fromkeys(samples) if s.bits != remote_wire.STALE]
        assert values == sorted(set(values)), f"{dict(labels)}: {values}"
    # All that the spools told of after the kills.
    for labels, samples in told.items():
        came = {s.timestamp for s in accepted.get(labels, [])}
        assert not samples - came, f"{dict(labels)} lost what was in the spool: {sorted(samples - came)}"
    # All that was given a while before a kill.
    for name, served in world.scoring.served.items():
        sets = {labels: {s.bits for s in samples} for labels, samples in accepted.items()}
        for n, (at, results) in enumerate(served):
            after = [at for at, _ in served[n + 1 : n + 2]]  # a round has ended when the next has begun
            if any(at <= kill <= max([at + SETTLE, *after]) for kill in [*world.kills, world.stopped]):
                continue
            for metric, _ in results:
                found = sets.get(remote.labels(name, **metric), ())
                assert remote_wire.bits(n) in found, f"round {n} of {name}: {metric} is missing"
    # What ends says so.
    for labels, samples in accepted.items():
        kinds = [s.bits == remote_wire.STALE for s in dict.fromkeys(samples)]
        assert kinds[-1], f"{dict(labels)} has no last marker: {samples[-3:]}"
        steady = accepted[remote.labels(dict(labels)["ds_score_name"], node="n0")]
        remote.gaps_are_marked(dict(labels), list(dict.fromkeys(samples)), steady)


def test_whatever_happens_every_accepted_sample_arrives_once(tmp_path):
    print(f"DS_CRASH_SEED={SEED} DS_CRASH_SECONDS={SECONDS}")
    rng = random.Random(SEED)
    world = World(rng)
    told = {}
    queue = {"max_samples_per_send": 25}
    with world.receiver as receiver, world.scoring as scoring:
        mood = threading.Thread(target=world.flap, daemon=True)
        mood.start()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, queue_config=queue)]) as agent:
            while time.monotonic() < world.end:
                time.sleep(rng.choice([rng.uniform(0, 0.3), rng.uniform(0.5, 4)]))
                agent.kill()
                world.kills.append(time.monotonic())
                if segments(agent):
                    for labels, samples in export(segments(agent)[0].parent).items():
                        told.setdefault(labels, set()).update(t for _, t in samples)
                agent.start(ready=rng.random() < 0.7)
            mood.join()
            before = {name: len(served) for name, served in scoring.served.items()}
            for name, n in before.items():
                remote.wait_for("rounds", lambda name=name, n=n: len(scoring.served[name]) >= n + 2, alive=agent.alive)
            agent.drained()
            world.stopped = time.monotonic()
            agent.stop()
        check_everything(world, told)
        again = sum(len(s) for s in receiver.stream().values()) - sum(len(set(s)) for s in receiver.stream().values())
        print(f"{len(world.kills)} kills, {len(receiver.with_samples())} requests, {again} samples came twice")


@pytest.mark.parametrize("blow", ["torn", "flipped", "truncated", "garbage"])
def test_damage_between_the_runs(tmp_path, blow):
    """With damage after each kill, samples may be lost, but never arrive with two values or out of order."""
    rng = random.Random(SEED)
    world = World(rng)
    world.end = time.monotonic() + min(SECONDS / 4, 8)
    with world.receiver as receiver, world.scoring as scoring:
        mood = threading.Thread(target=world.flap, daemon=True)
        mood.start()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            while time.monotonic() < world.end:
                time.sleep(rng.uniform(0.3, 2))
                agent.kill()
                for path in segments(agent):
                    n = path.stat().st_size
                    if n == 0 or rng.random() < 0.3:
                        continue
                    if blow == "torn":
                        os.truncate(path, n - rng.randrange(min(n, 100)))
                    elif blow == "truncated":
                        os.truncate(path, rng.randrange(n))
                    elif blow == "garbage":
                        with open(path, "ab") as f:
                            f.write(rng.randbytes(rng.randrange(1, 500)))
                    else:
                        with open(path, "r+b") as f:
                            at = rng.randrange(n)
                            f.seek(at)
                            byte = f.read(1)[0]
                            f.seek(at)
                            f.write(bytes([byte ^ (1 << rng.randrange(8))]))
                agent.start(ready=False)
            mood.join()
            before = len(scoring.served["a"])
            remote.wait_for("rounds", lambda: len(scoring.served["a"]) >= before + 2, alive=agent.alive)
            agent.drained()
            agent.stop()
        for labels, samples in receiver.stream(accepted=False).items():
            values = {}
            for s in samples:
                assert values.setdefault(s.timestamp, s.bits) == s.bits, dict(labels)
        last = [samples[-1].bits for samples in receiver.stream().values()]
        assert last.count(remote_wire.STALE) >= 3 * STEADY
