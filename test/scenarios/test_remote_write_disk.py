"""A disk that fails costs nothing while the agent runs, and what could not be stored is counted."""

import re
import resource
import shutil
import subprocess

import pytest
from lib import remote
from lib.outage import SERIES, export, folder_of, numbers, segments, state
from lib.process import missing
from lib.wait import LONG


@pytest.fixture(name="small_disk")
def mounted(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        missing("mounting a tmpfs is not allowed here")
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
            # That the third has begun says that two have ended.
            remote.wait_for("rounds", lambda: len(scoring.served["t"]) >= before + 3)
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
            remote.wait_for("a segment", lambda: segments(agent) and sum(s.stat().st_size for s in segments(agent)) > 30000, seconds=LONG)
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
