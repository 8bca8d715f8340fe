"""Samples of a series arrive in order, whatever the receiver does; a failing endpoint does not affect the others."""

import random
import time

import pytest
from lib import remote, remote_wire
from lib.faketime import DAY, HOUR, Clock

SCORERS = 4
SERIES = 250  # of each
SECONDS = 12


def whole(receiver, scoring, until):
    """All rounds that were served before `until` have arrived, for every series, in order."""
    stream = receiver.stream()
    remote.in_order(receiver.stream(accepted=False))
    for labels, samples in stream.items():
        name = dict(labels)["ds_score_name"]
        found = [s.bits for s in samples if s.bits != remote_wire.STALE]
        wanted = [remote_wire.bits(n) for n, (at, _) in enumerate(scoring.served[name]) if at < until]
        assert list(dict.fromkeys(found))[: len(wanted)] == wanted, f"{dict(labels)}"


def test_a_thousand_series_with_random_delays_and_trouble(tmp_path):
    rng = random.Random(20)

    def plan(arrival):
        fate = rng.random()
        if time.monotonic() > end:
            return 204
        return remote.Answer(503 if fate < 0.1 else 204, delay=rng.random(), cut="reset" if fate > 0.95 else "")

    end = time.monotonic() + SECONDS
    names = [f"s{i}" for i in range(SCORERS)]
    with remote.Receiver(plan=plan) as receiver:
        with remote.Scoring(**{name: remote.counted(SERIES) for name in names}) as scoring:
            section = remote.endpoint(receiver, queue_config={"max_samples_per_send": 100})
            with remote.Agent(tmp_path, scoring, [section]) as agent:
                time.sleep(max(0, end - time.monotonic()))
                assert agent.remote("samples_pending") > 0, "the delays made no backlog"
                remote.wait_for("little left", lambda: agent.remote("samples_pending") <= SCORERS * SERIES)
                until = agent.caught_up(scoring)
        assert len(receiver.stream()) == SCORERS * SERIES
        whole(receiver, scoring, until)


def test_fresh_scorers_do_not_wait_behind_a_backlog(tmp_path):
    """After an outage, a new scorer gets through while the backlog of the old ones drains, each in order."""
    slow = {"delay": 0.15}
    with remote.Receiver(plan=lambda arrival: remote.Answer(**slow)) as receiver:
        receiver.down()
        with remote.Scoring(old=remote.counted(SERIES)) as scoring:
            scoring.of["fresh"] = remote.counted(1)
            section = remote.endpoint(receiver, queue_config={"max_samples_per_send": 10})
            agent = remote.Agent(tmp_path, scoring, [section])
            agent.config["summaries"] = [scoring.summary("old")]
            agent.write_config()
            with agent:
                remote.wait_for("a backlog", lambda: agent.remote("samples_pending") >= 4 * SERIES)
                receiver.up()
                agent.config["summaries"] = [scoring.summary("old"), scoring.summary("fresh")]
                agent.reload()
                remote.wait_for("the fresh one", lambda: remote.labels("fresh", node="n00000") in receiver.stream())
                assert agent.remote("samples_pending") >= 2 * SERIES, "the backlog had drained already"
                slow["delay"] = 0
                remote.wait_for("little left", lambda: agent.remote("samples_pending") <= 2 * SERIES)
                until = agent.caught_up(scoring)
            whole(receiver, scoring, until)


def test_small_scorers_share_requests_after_an_outage(tmp_path):
    names, series, most = [f"s{i:02}" for i in range(20)], 5, 60
    with remote.Receiver() as receiver:
        receiver.down()
        with remote.Scoring(**{name: remote.counted(series) for name in names}) as scoring:
            section = remote.endpoint(receiver, queue_config={"max_samples_per_send": most})
            with remote.Agent(tmp_path, scoring, [section]) as agent:
                waiting = 5 * len(names) * series
                remote.wait_for("a backlog", lambda: agent.remote("samples_pending") >= waiting, alive=agent.alive)
                receiver.up()
                remote.wait_for("it has come", lambda: sum(sizes(receiver)) >= waiting, alive=agent.alive)
                found = sizes(receiver)
                assert max(found) <= most
                assert sum(found) / len(found) >= 4 * series, "a request for each scorer and round"
                until = agent.caught_up(scoring)
            whole(receiver, scoring, until)


def sizes(receiver):
    return [arrival.write.samples() for arrival in receiver.with_samples()]


@pytest.mark.parametrize("trouble", ["slow", "down", "refusing", "silent"])
def test_an_endpoint_in_trouble_delays_no_other(tmp_path, trouble):
    plans = {
        "slow": lambda arrival: remote.Answer(delay=20),
        "down": None,
        "refusing": lambda arrival: 503,
        "silent": lambda arrival: remote.Answer(delay=30),
    }
    with remote.Receiver(plan=plans[trouble]) as bad, remote.Receiver() as good:
        if trouble == "down":
            bad.down()
        with remote.Scoring(t=remote.counted(SERIES)) as scoring:
            endpoints = [remote.endpoint(bad, name="bad"), remote.endpoint(good, name="good")]
            with remote.Agent(tmp_path, scoring, endpoints) as agent:
                good.wait(6)
                remote.wait_for("none", lambda: agent.remote("samples_pending", remote_name="good") <= SERIES)
                remote.wait_for("a queue", lambda: agent.remote("samples_pending", remote_name="bad") >= SERIES)
                # Six rounds have gone to the one before a single request of the other was answered well.
                assert not [a for a in bad.arrivals if a.status // 100 == 2 and a.done < good.with_samples()[5].at]
                bad.plan = lambda arrival: 204


def test_stopping_takes_no_longer_than_its_deadline(tmp_path):
    """If the receiver never responds, the rest stays in the spool and is sent after the next start."""
    with remote.Receiver(plan=lambda arrival: remote.Answer(delay=600)) as receiver:
        with remote.Scoring(t=remote.counted(SERIES)) as scoring:
            agent = remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, remote_timeout="10m")])
            with agent:
                remote.wait_for("a backlog", lambda: agent.remote("samples_pending") >= 2 * SERIES)
                until, before = time.monotonic(), len(scoring.served["t"])
                remote.wait_for("two rounds", lambda: len(scoring.served["t"]) >= before + 2)
                agent.stop()  # its patience is shorter than the receiver's delay
                receiver.plan = lambda arrival: 204
                before = len(scoring.served["t"])
                agent.start()
                remote.wait_for("new rounds", lambda: len(scoring.served["t"]) >= before + 2)
                agent.drained()
            whole(receiver, scoring, until)


def test_no_signal_of_life_from_the_receiver_is_shown(tmp_path):
    """In the metrics that the stock alerts use."""
    with remote.Receiver(plan=lambda arrival: remote.Answer(503, body=b"out of space on device 7")) as receiver:
        with remote.Scoring(t=remote.counted(SERIES)) as scoring:
            with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
                receiver.wait(5)
                labels = {"remote_name": "hub", "url": receiver.url()}
                behind = "queue_highest_timestamp_seconds", "queue_highest_sent_timestamp_seconds"
                remote.wait_for("a backlog", lambda: agent.remote("samples_pending", **labels) >= 2 * SERIES)
                assert agent.remote(behind[0], **labels) > time.time() - 600
                assert agent.remote(behind[1], **labels) == 0
                assert agent.remote("samples_retried_total", **labels) > 0
                assert agent.remote("max_samples_per_send", **labels) > 0
                assert agent.remote("shards", **labels) == 1
                assert agent.remote("shard_capacity", **labels) > 0
                assert "out of space on device 7" in agent.page("/api/v1/status")
                receiver.plan = lambda arrival: 204
                agent.drained()
                remote.wait_for("no error", lambda: "device 7" not in agent.page("/api/v1/status"))
                assert agent.remote("samples_total", **labels) >= 2 * SERIES
                assert agent.remote("bytes_total", **labels) > 0
                assert agent.remote(behind[1], **labels) > time.time() - 600
                assert agent.remote("sent_batch_duration_seconds_count", **labels) > 0


def test_order_holds_after_a_clock_in_the_future(tmp_path):
    """A clock that was a day ahead is corrected; when it goes back by seconds later, timestamps do not, also after a
    restart."""
    clock = Clock(tmp_path, monotonic=False)

    def more(what, later_than_ms, n=3):
        """Waits for n more samples, some of them with a timestamp from then on."""
        before = len(samples())

        def came():
            found = samples()
            return len(found) >= before + n and found[-1].timestamp >= later_than_ms

        remote.wait_for(what, came, alive=agent.alive)

    def samples():
        return next(iter(receiver.stream().values()), [])

    def drift():
        highest = agent.remote("queue_highest_timestamp_seconds"), agent.remote("queue_highest_sent_timestamp_seconds")
        return max(abs(seconds - time.time()) for seconds in highest)

    clock.move(DAY)
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(1)) as scoring:
        agent = remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)])
        agent.environment = {**agent.environment, **clock.env}
        with agent:
            more("samples of the future", (time.time() + DAY - HOUR) * 1000)
            clock.move(0)
            remote.wait_for("the metrics of today", lambda: drift() < HOUR, alive=agent.alive)
            more("samples of today", 0)
            agent.stop()
            agent.start()
            more("samples after the restart", 0)
            clock.move(-30)
            more("samples of an earlier time", 0, n=5)
        found = [s.timestamp for s in samples()]
    steps = [(before - after) / 1000 for before, after in zip(found, found[1:]) if after <= before]
    assert len(steps) == 1 and steps[0] > DAY - HOUR, f"timestamps go back by {steps} s"
