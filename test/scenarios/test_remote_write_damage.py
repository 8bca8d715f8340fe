"""Damage of the spool on disk costs only the damaged records; what cannot be read is kept."""

import os
import re

import pytest
from lib import remote, remote_wire
from lib.outage import Outage, SERIES, export, folder_of, segments, spool, state


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


def test_a_fifo_in_the_place_of_a_file_hangs_nothing(tmp_path):
    """Neither the start, nor the sending, nor the end, which recover() waits for."""
    with Outage(tmp_path) as outage:
        folder = folder_of(outage.agent)
        for path in [p for p in outage.agent.storage.rglob("*") if p.is_file() and p.suffix != ".seg"]:
            path.unlink()
            os.mkfifo(path)
            os.mkfifo(path.with_name("new." + path.name))
        os.mkfifo(folder / "000000000777.seg")
        outage.recover()
        assert outage.rounds()[-1] > outage.before - 1, "nothing new came"
