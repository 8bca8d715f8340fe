"""The spool on disk survives restarts; damage costs only the damaged records; what cannot be read is kept; limits are
kept; what is dropped or could not be stored is counted."""

import json
import os
import re
import resource
import shutil
import subprocess
import time

import pytest
from lib import remote, remote_wire
from lib.wait import LONG

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


def test_what_waits_survives_kill_9(tmp_path):
    with Outage(tmp_path) as outage:
        waiting = export(folder_of(outage.agent))
        assert len(waiting) == SERIES and min(map(len, waiting.values())) >= 5
        assert spool("verify", folder_of(outage.agent)).returncode == 0
        listing = spool("ls", outage.agent.storage)
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
    (tmp_path / "x.seg").write_bytes(b"no segment at all")
    done = spool("verify", tmp_path)
    assert done.returncode != 0 and f"{tmp_path}/x.seg: does not begin as a segment" in done.stderr
    with open(tmp_path / "y.seg", "wb") as f:
        f.truncate(300 << 20)
    assert f"{tmp_path}/y.seg: too large for a segment" in spool("ls", tmp_path).stderr
    (tmp_path / "storage/remote-write").mkdir(parents=True)
    (tmp_path / "storage/remote-write/file").write_text("not an endpoint's folder")
    done = spool("ls", tmp_path / "storage")
    assert done.returncode != 0 and "remote-write/file: Not a directory" in done.stderr
    assert spool("explode", tmp_path).returncode != 0


# ---- Damage ----


def size(path):
    return path.stat().st_size


def tear(path, n):
    os.truncate(path, size(path) - n)


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 0x10]))


@pytest.mark.parametrize("cut", [1, 17, 200])
def test_a_torn_tail_costs_the_tail(tmp_path, cut):
    with Outage(tmp_path) as outage:
        tear(segments(outage.agent)[-1], cut)
        outage.recover()
        rounds = outage.rounds()
        # Numbers of rounds go on where they were; the last before the kill, and only it, is lost.
        assert rounds[:4] == list(range(4))
        missing = set(range(outage.before)) - set(rounds)
        assert missing and missing <= {outage.before - 1, outage.before - 2}, rounds


def test_garbage_at_the_tail_costs_nothing(tmp_path):
    with Outage(tmp_path) as outage:
        with open(segments(outage.agent)[-1], "ab") as f:
            f.write(os.urandom(3000))
        outage.recover()
        assert outage.rounds()[:5] == list(range(5))


@pytest.mark.parametrize("part", [0.1, 0.35, 0.5, 0.77])
def test_a_flipped_bit_costs_its_record(tmp_path, part):
    with Outage(tmp_path, rounds=6) as outage:
        path = segments(outage.agent)[0]
        flip(path, int(size(path) * part))
        done = spool("verify", path.parent)
        assert done.returncode != 0 and path.name in done.stdout + done.stderr, done.stdout
        outage.recover()
        rounds = outage.rounds()
        missing = set(range(6)) - set(rounds)
        assert len(missing) == 1, rounds
        remote.in_order(outage.receiver.stream(accepted=False))
        assert path.with_name(path.name + ".damaged").exists() and not path.exists()
        lost = re.search(r'samples_dropped_total\{reason="damaged".*\} (\d+)', outage.metrics)
        assert int(lost[1]) == SERIES
    assert re.search(r'level=warn msg="spool read".* samples_lost=100 damaged_bytes=[1-9]', outage.agent.log())


def state(agent):
    return json.loads(agent.page("/api/v1/status"))["remoteWrite"][0]


def block(path):
    """It cannot be opened (ELOOP), even by root; returns what ends that."""
    away = path.with_name("away")
    path.rename(away)
    path.symlink_to(path.name)
    return lambda: away.rename(path)


def test_a_segment_that_cannot_be_read_stays_and_is_sent_later(tmp_path):
    with Outage(tmp_path) as outage:
        agent, path = outage.agent, segments(outage.agent)[0]
        waiting = export(path.parent)
        unblock = block(path)
        done = spool("ls", path.parent)
        assert done.returncode != 0 and f"{path}: Too many levels" in done.stderr
        outage.receiver.up()
        with agent:
            remote.wait_for("new rounds", lambda: len(outage.receiver.with_samples()) >= 2)
            unread = remote.wait_for("it on the page", lambda: state(agent)["spoolUnread"]["files"] and state(agent))
            assert f"cannot read spool segment {path}: Too many levels of symbolic links" == unread["spoolError"]
            assert unread["samplesDropped"] == 0
            unblock()
            remote.wait_for("its samples", lambda: min(map(len, outage.receiver.stream().values())) >= outage.before)
            agent.drained()
            remote.wait_for("the end", lambda: not state(agent)["spoolError"])
        for labels, samples in waiting.items():
            assert {t for _, t in samples} <= {s.timestamp for s in outage.receiver.stream()[labels]}
        assert len(re.findall('level=error msg="cannot read a spool segment', agent.log())) == 1, "once"
        assert not path.exists() and not path.with_suffix(".done").exists()


def test_a_segment_of_another_version_is_set_aside(tmp_path):
    with Outage(tmp_path) as outage:
        path = segments(outage.agent)[0]
        path.write_bytes(b"DSRWSEG2" + path.read_bytes()[8:])
        done = spool("verify", path.parent)
        assert done.returncode != 0 and f"{path}: segment of another version" in done.stderr
        outage.recover()
        aside = path.with_name(path.name + ".unknown")
        assert aside.read_bytes().startswith(b"DSRWSEG2") and not path.exists()
        bytes_aside = re.search(r'spool_idle_bytes\{.*state="unknown".*\} (\d+)', outage.metrics)
        assert int(bytes_aside[1]) == size(aside)
        assert f"{aside}  {size(aside)} bytes  set aside" in spool("ls", outage.agent.storage).stdout


def test_a_ruined_head_costs_no_start(tmp_path):
    with Outage(tmp_path) as outage:
        flip(segments(outage.agent)[0], 2)
        outage.recover()
        assert outage.rounds()[-1] > outage.before - 1, "nothing new came"


@pytest.mark.parametrize("n", [0, 3, 8, 20])
def test_a_segment_cut_to_almost_nothing(tmp_path, n):
    with Outage(tmp_path) as outage:
        os.truncate(segments(outage.agent)[-1], n)
        outage.recover()
        assert outage.rounds()[-1] > outage.before - 1, "nothing new came"


@pytest.mark.parametrize("how", ["garbage", "empty", "gone"])
def test_ruined_positions_and_memories_cost_no_sample(tmp_path, how):
    """Without positions, the remaining samples are sent again, unchanged; without the active set, only markers are
    missing."""
    with Outage(tmp_path) as outage:
        for path in [p for p in outage.agent.storage.rglob("*") if p.is_file() and p.suffix != ".seg"]:
            if how == "gone":
                path.unlink()
            else:
                path.write_bytes(os.urandom(100) if how == "garbage" else b"")
        stream = outage.recover()
        for samples in stream.values():
            by_time = {}
            for s in samples:
                assert by_time.setdefault(s.timestamp, s.bits) == s.bits
        assert outage.rounds()[:5] == list(range(5))


def test_random_damage_never_stops_the_agent(tmp_path):
    """After twenty random bit flips in all files of the folder, new rounds still arrive, and nothing wrong is sent."""
    with Outage(tmp_path, rounds=6) as outage:
        good = {k: set(v) for k, v in export(folder_of(outage.agent)).items()}
        paths = [p for p in outage.agent.storage.rglob("*") if p.is_file() and size(p) > 0]
        for i in range(20):
            path = paths[i % len(paths)]
            flip(path, int.from_bytes(os.urandom(4), "big") % size(path))
        stream = outage.recover()
        last = outage.before - 1
        began = min(a.write.series[0].samples[0].timestamp for a in outage.receiver.with_samples()[-2:])
        for labels, samples in stream.items():
            known = {(float(v), t) for v, t in good[labels]}
            for s in samples:
                value = (remote_wire.double(s.bits), s.timestamp)
                assert value in known or s.bits == remote_wire.STALE or s.timestamp >= began or value[0] >= last


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
                assert sum(map(size, segments(agent))) <= (96 << 10) * 1.5
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


# ---- A disk that fails ----


@pytest.fixture(name="small_disk")
def mounted(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_reported_and_survived_in_memory(tmp_path, small_disk):
    rows = 2000
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(rows)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path / "a", scoring, [remote.endpoint(receiver)], storage=small_disk) as agent:
            remote.wait_for("a full disk", lambda: "o space" in agent.log())
            full = len(scoring.served["t"])
            remote.wait_for("more rounds", lambda: len(scoring.served["t"]) >= full + 4)
            lines = [line for line in agent.log().splitlines() if "o space" in line and "level=debug" not in line]
            assert len(lines) <= 3, "once a burst"
            receiver.up()
            until = agent.caught_up(scoring)
            assert agent.remote("samples_dropped_total") == 0
        remote.in_order(receiver.stream(accepted=False))
        served = [n for n, (at, _) in enumerate(scoring.served["t"]) if at < until]
        for samples in receiver.stream().values():
            assert set(served) <= set(numbers(samples))


def last_words(agent):
    """The samples that wait and that are lost, as the log says at the end."""
    waits = re.findall(r'level=info msg="samples remain in the spool for the next start".* samples=(\d+)', agent.log())
    lost = re.findall(r'level=warn msg="samples lost: not stored in the spool".* samples=(\d+)', agent.log())
    return int(waits[-1]) if waits else 0, int(lost[-1]) if lost else 0


def exported(folder):
    return sum(map(len, export(folder).values()))


def test_the_last_words_of_a_full_disk_are_true(tmp_path, small_disk):
    (small_disk / "ballast").write_bytes(b"x" * (150 << 10))
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2000)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path / "a", scoring, [remote.endpoint(receiver)], storage=small_disk) as agent:
            remote.wait_for("samples in memory", lambda: state(agent)["samplesUnsaved"] > 4000)
            assert "No space left" in state(agent)["spoolError"]
            assert agent.values("dynamic_scoring_remote_write_spool_up") == [0.0]
            assert agent.values("dynamic_scoring_remote_write_spool_limit_bytes") == [2.0**30]
            agent.stop()
        waits, lost = last_words(agent)
        assert waits > 0 and lost > 4000 and exported(folder_of(agent)) == waits


def test_the_last_words_of_a_file_size_limit_are_true(tmp_path):
    """One scorer's records are larger than the limit, the other's are not."""
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(4000), u=remote.counted(2)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (50 << 10, 50 << 10))
            remote.wait_for("samples in memory", lambda: state(agent)["samplesUnsaved"] > 8000)
            remote.wait_for("samples on disk", lambda: len(scoring.served["u"]) >= 4)
            agent.stop()
        waits, lost = last_words(agent)
        assert waits > 0 and lost > 8000 and exported(folder_of(agent)) == waits


def test_a_folder_that_is_removed_is_made_anew(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 3 * SERIES)
            shutil.rmtree(agent.storage)
            before = len(scoring.served["t"])
            remote.wait_for("a new folder", lambda: "spool opened" in agent.log())
            remote.wait_for("rounds", lambda: len(scoring.served["t"]) >= before + 2)
            remote.wait_for("all on disk", lambda: state(agent)["spool"] and not state(agent)["samplesUnsaved"])
            agent.stop()
            waits, lost = last_words(agent)
            assert lost == 0 and exported(folder_of(agent)) == waits >= (before + 2) * SERIES
            receiver.up()
            agent.start()
            agent.drained()
        assert len(re.findall('level=error msg="spool folder was removed', agent.log())) == 1
        for samples in receiver.stream().values():
            assert numbers(samples)[: before + 2] == list(range(before + 2))


def test_samples_lost_by_a_reload_are_counted(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)], storage=None) as agent:
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 3 * SERIES)
            agent.config["remoteWrite"] = [remote.endpoint(receiver, headers={"X-Other": "1"})]
            agent.reload()
            remote.wait_for("the count", lambda: agent.remote("samples_dropped_total", reason="unsaved") >= 3 * SERIES)
            lost = re.findall(r'level=warn msg="samples lost: no spool".* samples=(\d+)', agent.log())
            assert [float(n) for n in lost] == [agent.remote("samples_dropped_total", reason="unsaved")]


def test_a_disk_that_has_room_again_is_used_again(tmp_path, small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (270 << 10))
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(1000)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path / "a", scoring, [remote.endpoint(receiver)], storage=small_disk) as agent:
            remote.wait_for("a complaint", lambda: "o space" in agent.log())
            ballast.unlink()
            before = len(scoring.served["t"])
            remote.wait_for("more rounds", lambda: len(scoring.served["t"]) >= before + 4)
            remote.wait_for("a segment", lambda: segments(agent) and sum(map(size, segments(agent))) > 30000, seconds=LONG)
            agent.kill()
            receiver.up()
            agent.start()
            agent.drained()
            for samples in receiver.stream().values():
                assert before + 2 in numbers(samples), "what was taken after there was room again did not survive"


def test_a_folder_that_cannot_be_written_is_found_at_the_start(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        agent = remote.Agent(tmp_path / "a", scoring, [remote.endpoint(receiver)], storage=None)
        agent.config["storagePath"] = f"{blocked}/storage"
        agent.write_config()
        with agent:
            receiver.wait(2)
        assert re.search(r"level=(warn|error).*(Not a directory|cannot)", agent.log())
