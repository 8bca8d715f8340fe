"""In a clock that is a hundred times too fast, with kill -9, standstills, a clock that is set back, and a source, scorers and a
receiver that fail: what /metrics showed is at the receiver, in order, and what ended has a marker.

It shares nothing with test/universe: the program runs as it is, and libfaketime makes its time. DS_SLOW=1 runs a hundred hours,
in ten minutes. DS_HOURS_SEED repeats a run's plan, though not its timing.
"""

import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import threading
import time

from lib import remote, remote_wire
from lib.fake import answer, cut_off, running_fake, series
from lib.faketime import preload
from lib.wait import DEADLINE, NOT_YET

SLOW = "DS_SLOW" in os.environ
RATE = 600 if SLOW else 100
HOURS = 100 if SLOW else 0.4
SEED = int(os.environ.get("DS_HOURS_SEED", time.time_ns() % 100000))
MINUTE, HOUR = 60, 3600
PACE = (30 if SLOW else 2) * MINUTE  # between two things that happen, about
SETTLE = DEADLINE / 60  # real seconds in which what is shown reaches the disk
STEADY, GUESTS = 10, 10  # series of each scorer that are always there, and those that come and go
INTERVALS = {"a": MINUTE, "b": MINUTE, "c": 3 * MINUTE}
SKEW = 20 * MINUTE  # how far the agent's clock may be off; after a step of an hour or more the earlier time was wrong
STORM = 100  # requests to one server in ten minutes; the busiest of a hundred hours had 35
GROWTH = 2048  # KiB


class World:
    """The other side. Its times are the agent's: seconds, counted from the start, of which RATE are a real one."""

    def __init__(self, source):
        self.source, self.rng = source, random.Random(f"answers {SEED}")
        self.began, self.base = time.monotonic(), time.time() + HOUR
        self.end = HOURS * HOUR
        self.mood, self.calm, self.ended = "up", False, False
        self.receiver = remote.Receiver(plan=self.receive)
        self.scoring = remote.Scoring(**{name: lambda n, name=name: self.score(n) for name in INTERVALS})
        self.asked = []  # when the source was
        source.on("/api/v1/query_range", self.query)

    def now(self):
        return (time.monotonic() - self.began) * RATE

    def sleep(self, seconds):
        time.sleep(max(0, min(seconds, self.end - self.now())) / RATE)

    def bad_luck(self):
        """Three requests in a hundred are slow, and ten fail."""
        fate = self.rng.random()
        if fate < 0.03 and not self.calm:
            time.sleep(self.rng.uniform(0, 10 * MINUTE) / RATE)
        return fate > 0.9 and not self.calm

    def query(self, connection, request):
        self.asked.append(self.now())
        good = series({"node": "n0"})
        (self.rng.choice([answer({}, 503), cut_off('{"status":')]) if self.bad_luck() else good)(connection, request)

    def score(self, n):
        if self.ended or self.bad_luck():
            return None
        guests = self.rng.sample(range(GUESTS), self.rng.randrange(GUESTS))
        return [({"node": f"n{i}"}, n) for i in range(STEADY)] + [({"node": f"guest{i}"}, n) for i in guests]

    def receive(self, _):
        fate = 1 if self.calm else self.rng.random()
        if self.mood == "flapping" and fate < 0.6:
            return self.rng.choice([500, 503, 429, remote.Answer(cut="reset"), remote.Answer(cut="headers")])
        return remote.Answer(delay=self.rng.uniform(0, 10 * MINUTE) / RATE if fate < 0.05 else 0)

    def flap(self):
        """In a thread: the receiver goes away and comes back."""
        rng = random.Random(f"receiver {SEED}")
        while self.now() < self.end:
            self.mood = rng.choice(["up", "down", "flapping"])
            if self.mood == "down":
                self.receiver.down()
            elif not self.receiver.server:
                self.receiver.up()
            self.sleep(rng.expovariate(1 / PACE))
        self.calm = True
        if not self.receiver.server:
            self.receiver.up()


class FastAgent(remote.Agent):
    """Its clock goes on when it is started again, and it is watched by one who notes what /metrics shows."""

    def __init__(self, folder, world):
        summary = {"sourceType": "Prometheus", "sourceEndpoint": world.source.url, "sourceQuery": "up", "timeout": "10m"}
        endpoint = {"url": world.receiver.url(), "name": "hub", "remote_timeout": "10m", "metadata_config": {"send": False}}
        super().__init__(folder, world.scoring, [endpoint])
        for one in self.summaries:
            one |= {**summary, "scoringInterval": INTERVALS[one["scoreName"]]}
        self.write_config()
        self.world, self.skew = world, 0
        self.shown = collections.defaultdict(dict)  # labels: value: when it was first seen
        self.deaths, self.breaks, self.rss = [], [], []

    def start(self, ready=True):
        fake = f"{self.world.base + self.world.now() + self.skew - time.time():+.3f} x{RATE}"
        self.environment = {
            **remote.ENVIRONMENT,
            "LD_PRELOAD": preload(),
            "FAKETIME": fake,
            "ASAN_OPTIONS": "verify_asan_link_order=0",
        }
        self.breaks.append(time.monotonic())
        return super().start(ready)

    def stop(self):
        self.breaks.append(time.monotonic())
        super().stop()

    def die(self):
        pid = self.process.pid
        self.deaths.append(time.monotonic())
        self.kill()
        for left in pathlib.Path("/dev/shm").glob(f"*faketime*_{pid}"):
            left.unlink()

    def watch(self):
        while not self.world.ended:
            with contextlib.suppress(*NOT_YET, AttributeError):
                self.look()
            time.sleep(0.02)

    def look(self):
        now, page = time.monotonic(), self.page("/metrics")
        for node, name, value in re.findall(r'\ndynamic_score\{.*ds_node="(\w+)".*ds_score_name="(\w+)".*\} (\d+)', page):
            self.shown[remote.labels(name, node=node)].setdefault(int(value), now)
        rss = re.search(r"VmRSS:\s+(\d+)", (pathlib.Path("/proc") / str(self.process.pid) / "status").read_text())
        self.rss.append((self.world.now(), self.process.pid, int(rss[1])))


def suffer(world, agent):
    """What happens to the agent until the last quarter of the time, which it has for itself."""
    happened, rng = collections.Counter(), random.Random(f"plan {SEED}")
    while world.now() < world.end * 0.75:
        world.sleep(rng.expovariate(1 / PACE))
        what = rng.choice(["kill", "kill", "stand still", "kill while it stands still", "stop", "reload"])
        happened[what] += 1
        if what == "reload":
            agent.config["summaries"] = agent.summaries[: rng.randrange(1, 4)]
            agent.reload()
            continue
        if "still" in what:
            agent.deaths.append(time.monotonic())
            agent.process.send_signal(signal.SIGSTOP)
            world.sleep(rng.uniform(0, PACE))
            if what == "stand still":
                agent.process.send_signal(signal.SIGCONT)
                continue
        if what == "stop":
            agent.stop()
        else:
            agent.die()
        world.sleep(rng.choice([0, rng.uniform(0, PACE)]))
        agent.skew = rng.uniform(-SKEW, SKEW)
        agent.start()
    agent.config["summaries"] = agent.summaries
    agent.reload()
    return happened


def living(receiver):
    return [labels for labels, samples in receiver.stream().items() if samples[-1].bits != remote_wire.STALE]


def check_samples(world, agent):
    accepted = world.receiver.stream()
    remote.in_order(world.receiver.stream(accepted=False))
    for labels, samples in accepted.items():
        samples = list(dict.fromkeys(samples))
        values = [int(remote_wire.double(s.bits)) for s in samples if s.bits != remote_wire.STALE]
        assert values == sorted(values), f"{dict(labels)}: {values}"  # the same again while there is no newer one
        assert samples[0].bits != remote_wire.STALE, dict(labels)
        steady = accepted[remote.labels(dict(labels)["ds_score_name"], node="n0")]
        remote.gaps_are_marked(dict(labels), samples, steady)
    for labels, seen in agent.shown.items():
        came = {s.bits for s in accepted.get(labels, [])}
        owed = [n for n, at in seen.items() if not any(at <= death <= at + SETTLE for death in agent.deaths)]
        lost = [n for n in owed if remote_wire.bits(n) not in came]
        assert not lost, f"{dict(labels)}: /metrics showed {lost}, which did not arrive"
    times = [s.timestamp / 1000 for samples in accepted.values() for s in samples]
    assert len(agent.shown) >= STEADY and max(times) - min(times) > world.end / 2, "the agent's clock is not fast"
    return f"{sum(map(len, agent.shown.values()))} samples seen, {len(times)} came"


def busiest(times):
    return max(collections.Counter(int(at / (10 * MINUTE)) for at in times).values())


def check_pauses(arrivals, breaks):
    """After each failure in a row the pause is twice as long, up to a minute, less a half at random; another half is for what
    the agent's loop, whose time stands still in a turn, does not see of a fast clock. libcurl repeats a request at once if it
    was cut on a connection that was used before."""
    failures = 0
    for before, after in zip(arrivals, arrivals[1:]):
        if before.status // 100 == 2 or any(before.at < at < after.at for at in breaks):
            failures = 0
        elif before.status:
            failures, pause = failures + 1, (after.at - before.at) * RATE
            assert pause >= min(2 ** (failures - 1), MINUTE) / 4, f"{pause} s after {failures} failures"


def check_load(world, agent):
    asked = {name: busiest((at - world.began) * RATE for at, _ in served) for name, served in world.scoring.served.items()}
    asked["source"] = busiest(world.asked)
    assert max(asked.values()) <= STORM, asked
    check_pauses(world.receiver.arrivals, agent.breaks)
    if SLOW:
        check_memory([kib for at, pid, kib in agent.rss if pid == agent.process.pid and at > world.end * 0.8])
    return f"at most {asked} requests in ten minutes"


def check_memory(rss):
    third = len(rss) // 3
    early, late = max(rss[:third]), max(rss[-third:])
    assert late <= early + GROWTH, f"the RSS grew from {early} to {late} KiB"
    print(f"RSS {early} KiB, and {late} KiB at the end")


def test_what_metrics_showed_arrives(tmp_path):
    print(f"DS_HOURS_SEED={SEED}")
    with running_fake() as source:
        world = World(source)
        with world.receiver, world.scoring, FastAgent(tmp_path, world) as agent:
            threads = [threading.Thread(target=target, daemon=True) for target in (world.flap, agent.watch)]
            for thread in threads:
                thread.start()
            happened = suffer(world, agent)
            threads[0].join()
            agent.drained()
            world.ended = True
            threads[1].join()
            remote.wait_for("the marker of every series", lambda: not living(world.receiver), alive=agent.alive)
            print(f"{dict(happened)}; {check_samples(world, agent)}; {check_load(world, agent)}")
