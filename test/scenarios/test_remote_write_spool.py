"""The spool on disk survives restarts; limits are kept, and what is dropped is counted."""

import fcntl
import re
import shutil
import threading
import time

import pytest
from lib import remote, remote_wire
from lib.outage import Outage, SERIES, export, folder_of, numbers, segments, spool, state
from lib.wait import LONG


def test_what_waits_survives_kill_9(tmp_path):
    with Outage(tmp_path) as outage:
        waiting = export(folder_of(outage.agent))
        assert len(waiting) == SERIES and min(map(len, waiting.values())) >= 5
        assert spool("verify", folder_of(outage.agent)).returncode == 0
        listing = spool("ls", outage.agent.storage)
        for of_endpoints in (folder_of(outage.agent).parent, f"{folder_of(outage.agent)}/.."):
            assert spool("ls", of_endpoints).stdout.splitlines()[-1] == listing.stdout.splitlines()[-1]
        assert listing.returncode == 0 and "hub" in listing.stdout + str(folder_of(outage.agent))
        stream = outage.recover()
        remote.in_order(outage.receiver.stream(accepted=False))
        for labels, samples in waiting.items():
            arrived = [(remote_wire.double(s.bits), s.timestamp) for s in stream[labels]]
            assert [(float(v), t) for v, t in samples] == arrived[: len(samples)]
        rounds = outage.rounds()
        assert rounds[:5] == list(range(5)), "a gap"


def test_a_spool_in_use_can_be_looked_at(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 9)
            assert min(map(len, export(folder_of(agent)).values())) >= 3
            assert spool("ls", agent.storage).returncode == 0
            receiver.up()
            agent.drained()
        for samples in receiver.stream().values():
            assert samples[0].bits == 0


def test_the_spool_command_on_what_is_no_spool(tmp_path):
    for what in ("ls", "verify", "export"):
        done = spool(what, tmp_path / "nowhere")
        assert done.returncode != 0 and done.stderr.strip()
    assert f"{tmp_path}: no segments" in spool("ls", tmp_path).stderr
    (tmp_path / "delivered.seg").symlink_to("gone")  # as if it were delivered while the command runs
    assert spool("verify", tmp_path).returncode == 0
    (tmp_path / "x.seg").write_bytes(b"no segment at all")
    done = spool("verify", tmp_path)
    assert done.returncode != 0 and f"{tmp_path}/x.seg: does not begin as a segment" in done.stderr
    with open(tmp_path / "y.seg", "wb") as f:
        f.truncate(300 << 20)
    assert f"{tmp_path}/y.seg: too large for a segment" in spool("ls", tmp_path).stderr
    of_that_name = tmp_path / "remote-write"  # a storage path that is called as the folder in it
    (of_that_name / "remote-write/hub").mkdir(parents=True)
    (of_that_name / "remote-write/hub/x.seg").write_bytes(b"no segment at all")
    assert "hub/x.seg: does not begin as a segment" in spool("verify", of_that_name).stderr
    (tmp_path / "storage/remote-write").mkdir(parents=True)
    (tmp_path / "storage/remote-write/file").write_text("not an endpoint's folder")
    done = spool("ls", tmp_path / "storage")
    assert done.returncode != 0 and "remote-write/file: Not a directory" in done.stderr
    assert spool("explode", tmp_path).returncode != 0


# ---- Ceilings ----


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
@pytest.mark.parametrize("storage", [True, None])
def test_the_ceiling_is_kept_and_every_drop_is_counted(tmp_path, policy, storage):
    rows = 1000
    queue = {"max_spool_bytes": "96KiB", "full_policy": policy}
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(rows)) as scoring:
        receiver.down()
        section = remote.endpoint(receiver, queue_config=queue)
        with remote.Agent(tmp_path, scoring, [section], storage=storage) as agent:
            remote.wait_for("drops", lambda: agent.remote("samples_dropped_total") >= 5 * rows)
            if storage:
                assert sum(s.stat().st_size for s in segments(agent)) <= (96 << 10) * 1.5
            reasons = "full_oldest" if policy == "drop_oldest" else "full_newest"
            assert agent.remote("samples_dropped_total", reason=reasons) == agent.remote("samples_dropped_total")
            lines = [x for x in agent.log().splitlines() if "drop" in x and "level=debug" not in x and "hub" in x]
            assert 1 <= len(lines) <= 3, "once a burst"
            receiver.up()
            agent.drained()
            full = len(scoring.served["t"])
            remote.wait_for("rounds after it", lambda: len(scoring.served["t"]) >= full + 3)
            scoring.of["t"] = None  # no more rounds
            remote.wait_for("a failed round", lambda: agent.values("dynamic_scoring_up") == [0.0])
            agent.drained()
            dropped = agent.remote("samples_dropped_total")
        stream = receiver.stream()
        remote.in_order(receiver.stream(accepted=False))
        served = range(len(scoring.served["t"]))
        came = [set(numbers(samples)) for samples in stream.values()]
        whole = set.intersection(*came) if len(stream) == rows else set()
        # The request under way when it became full, the first, may live on.
        assert (1 in whole) == (policy == "drop_newest")
        assert served[-1] in whole, "what is fresh after the outage must come"
        arrived = sum(map(len, came))
        assert arrived + dropped == len(served) * rows, "a sample is neither delivered nor counted"


def test_the_age_limit(tmp_path):
    queue = {"sample_age_limit": "3s"}
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, queue_config=queue)]) as agent:
            remote.wait_for("drops", lambda: agent.remote("samples_dropped_total", reason="too_old") >= 4 * SERIES)
            remote.wait_for("a short queue", lambda: agent.remote("samples_pending") <= 5 * SERIES)
            receiver.up()
            now = time.time() * 1000
            agent.drained()
        # The request under way since the beginning may be old, what waited behind it is not.
        for samples in receiver.stream().values():
            assert samples[1].timestamp >= now - 5000


def test_without_a_storage_path_it_says_so(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)], storage=None) as agent:
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 3 * SERIES)
            receiver.up()
            agent.drained()
        lines = [line for line in agent.log().splitlines() if "memory" in line and "level=debug" not in line]
        assert len(lines) == 1, "once, at the start"
        assert all(samples[0].bits == 0 for samples in receiver.stream().values())


def test_two_agents_do_not_share_a_folder(tmp_path):
    with remote.Receiver() as receiver, remote.Receiver() as other, remote.Scoring(t=remote.counted(3)) as scoring:
        receiver.down()
        other.down()
        with remote.Agent(tmp_path / "a", scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 6)
            second = remote.Agent(tmp_path / "b", scoring, [remote.endpoint(other)], storage=agent.storage)
            with second:
                # It says so and goes on in memory.
                words = re.compile(r"level=(warn|error).*(in use|busy|another)", re.IGNORECASE)
                remote.wait_for("a complaint", lambda: words.search(second.log()))
                other.up()
                other.wait(2)
                assert not [a for a in other.with_samples() if a.at < 0]
                receiver.up()
                agent.drained()
                agent.stop()
                # What it has kept in memory goes to the folder as soon as that is free.
                remote.wait_for("the folder", lambda: "spool opened" in second.log(), seconds=LONG)
                remote.wait_for("its lock", lambda: state(second)["spool"])
        assert all(samples[0].bits == 0 for samples in receiver.stream().values())


# ---- A folder that opens while a request is in flight ----


class Gate:
    """A receiver's plan that keeps each request until the test lets it through."""

    def __init__(self):
        self.held, self.tickets = [], threading.Semaphore(0)

    def plan(self, arrival):
        self.held.append(arrival)
        assert self.tickets.acquire(timeout=LONG)
        return remote.Answer()

    def hold_several_scorers(self):
        """Lets requests through until one of several scorers is in flight."""

        def found():
            last = self.held[-1]
            return len({dict(series.labels).get("ds_score_name") for series in last.write.series}) > 1

        while not found():
            before = len(self.held)
            self.tickets.release()
            remote.wait_for("a request", lambda n=before: len(self.held) > n)

    def open(self):
        self.tickets.release(10**6)


@pytest.mark.parametrize("how", ["locked at the start", "removed"])
def test_what_is_in_flight_when_the_folder_opens_is_sent_once(tmp_path, how):
    """Also what shares a request with it. Another process holds the folder, as in a rolling update, or someone
    removes it."""
    names = "abcdef"
    gate = Gate()
    folder = tmp_path / "storage/remote-write/hub"
    folder.mkdir(parents=True)
    with remote.Receiver(plan=gate.plan) as receiver, open(folder / "lock", "w", encoding="utf-8") as lock:
        if how == "locked at the start":
            fcntl.flock(lock, fcntl.LOCK_EX)
        with remote.Scoring(**{name: remote.counted(5) for name in names}) as scoring:
            with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, remote_timeout="10m")]) as agent:
                waiting = 5 * len(names)
                remote.wait_for("a queue", lambda: gate.held and agent.remote("samples_pending") >= waiting)
                gate.hold_several_scorers()
                if how == "removed":
                    shutil.rmtree(folder)
                fcntl.flock(lock, fcntl.LOCK_UN)
                remote.wait_for("the folder", lambda: "spool opened" in agent.log(), seconds=LONG)
                gate.open()
                agent.caught_up(scoring)
        for labels, samples in receiver.stream(accepted=False).items():
            times = [s.timestamp for s in samples]
            assert len(set(times)) == len(times), f"{dict(labels)}: sent twice"
            assert numbers(samples)[:3] == [0, 1, 2]
        remote.in_order(receiver.stream(accepted=False))
