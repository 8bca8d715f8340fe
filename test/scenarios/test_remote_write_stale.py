"""A series that ends gets exactly one stale marker, later than its last value, whatever ended it."""

import time

from lib import remote, remote_wire
from lib.faketime import preload


def ends(samples):
    """How often the series ended: each marker must follow a value."""
    remote.in_order({(): samples})
    kinds = [s.bits == remote_wire.STALE for s in dict.fromkeys(samples)]
    assert not kinds[0] and not [i for i in range(1, len(kinds)) if kinds[i] and kinds[i - 1]], "a marker after a marker"
    return sum(kinds)


def ended(receiver, name, node):
    samples = receiver.stream().get(remote.labels(name, node=node))
    return samples and samples[-1].bits == remote_wire.STALE


def values(receiver, name, node):
    return [s.bits for s in receiver.stream()[remote.labels(name, node=node)] if s.bits != remote_wire.STALE]


def test_a_series_that_disappears_and_comes_back(tmp_path):
    def results(n):
        return [({"node": "steady"}, n), *([({"node": "guest"}, n)] if n % 4 < 2 else []), ({"node": "nan"}, float("nan"))]

    with remote.Receiver() as receiver, remote.Scoring(t=results) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("seven rounds", lambda: len(scoring.served.get("t", [])) >= 7)
            agent.drained()
            stream = receiver.stream()
            assert ends(stream[remote.labels("t", node="guest")]) >= 1
            assert ends(stream[remote.labels("t", node="steady")]) == 0
            nan = stream[remote.labels("t", node="nan")]
            assert {s.bits for s in nan} == {remote_wire.NAN}, "an ordinary NaN has bits of its own"
        assert values(receiver, "t", "guest")[:4] == [remote_wire.bits(n) for n in (0, 1, 4, 5)]


def test_a_series_that_disappears_while_the_receiver_is_down(tmp_path):
    with remote.Receiver() as receiver:
        receiver.down()
        present = {"guest": True}

        def results(n):
            return [({"node": name}, n) for name in ("steady", *(["guest"] if present["guest"] else []))]

        with remote.Scoring(t=results) as scoring:
            with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
                remote.wait_for("two rounds", lambda: len(scoring.served.get("t", [])) >= 2)
                present["guest"] = False
                remote.wait_for("two rounds", lambda: len(scoring.served.get("t", [])) >= 5)
                receiver.up()
                remote.wait_for("the marker", lambda: ended(receiver, "t", "guest"), alive=agent.alive)
        assert ends(receiver.stream()[remote.labels("t", node="guest")]) == 1


def test_a_scorer_that_is_removed(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(a=remote.counted(3), b=remote.counted(3)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("both", lambda: len(receiver.stream()) == 6)
            agent.config["summaries"] = [scoring.summary("a")]
            agent.reload()
            for i in range(3):
                remote.wait_for("a marker", lambda i=i: ended(receiver, "b", f"n0000{i}"))
                assert not ended(receiver, "a", f"n0000{i}")
            agent.config["summaries"] = [scoring.summary("a"), scoring.summary("b")]
            agent.reload()
            remote.wait_for("its return", lambda: not ended(receiver, "b", "n00000"))
        for i in range(3):
            assert ends(receiver.stream()[remote.labels("b", node=f"n0000{i}")]) == 2


def test_a_scorer_that_fails_until_its_scores_are_too_old(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(1)
            scoring.of["t"] = None
            for i in range(3):
                remote.wait_for("a marker", lambda i=i: ended(receiver, "t", f"n0000{i}"))
            assert agent.page("/metrics").count("\ndynamic_score{") == 0
        for samples in receiver.stream().values():
            assert ends(samples) == 1, "stopping ends nothing twice"


def test_own_metrics_that_are_switched_off(tmp_path):
    """They are sent every 15 s; the agent's clock is fast."""
    rate = 20
    fast = {"LD_PRELOAD": preload(), "FAKETIME": f"+0 x{rate}", "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def own(receiver):
        return [samples for labels, samples in receiver.stream().items() if dict(labels)["__name__"] != "dynamic_score"]

    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        agent = remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, send_health_metrics=True)])
        agent.environment = agent.environment | fast
        agent.config["summaries"] = [scoring.summary("t") | {"scoringInterval": rate}]
        agent.write_config()
        with agent:
            remote.wait_for("own metrics", lambda: own(receiver), alive=agent.alive)
            agent.config["remoteWrite"] = [remote.endpoint(receiver)]
            agent.reload()
            remote.wait_for(
                "the markers",
                lambda: all(samples[-1].bits == remote_wire.STALE for samples in own(receiver)),
                alive=agent.alive,
            )
            assert not ended(receiver, "t", "n00000")
        for samples in own(receiver):
            assert ends(samples) == 1


def test_a_clean_stop_ends_every_series(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(50)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(2)
            agent.stop()
            assert [ends(samples) for samples in receiver.stream().values()] == [1] * 50
            assert all(samples[-1].bits == remote_wire.STALE for samples in receiver.stream().values())
            agent.start()
            remote.wait_for("its return", lambda: not ended(receiver, "t", "n00000"))
        assert [ends(samples) for samples in receiver.stream().values()] == [2] * 50


def test_a_stop_while_the_receiver_is_down(tmp_path):
    """The markers wait in the spool before the values of the next start."""
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(5)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(2)
            receiver.down()
            before = len(scoring.served["t"])
            remote.wait_for("a round", lambda: len(scoring.served["t"]) > before)
            agent.stop()
            receiver.up()
            agent.start()
            remote.wait_for("its return", lambda: len(scoring.served["t"]) > before + 2)
            agent.drained()
        assert [ends(samples) for samples in receiver.stream().values()] == [2] * 5


def test_after_kill_9_what_is_gone_ends_and_what_lives_goes_on(tmp_path):
    gone = set()

    def results(n):
        return [({"node": f"n{i}"}, n) for i in range(20) if i not in gone]

    with remote.Receiver() as receiver, remote.Scoring(t=results) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(2)
            agent.kill()
            gone |= {3, 11}
            before = len(scoring.served["t"])
            agent.start()
            for i in gone:
                remote.wait_for("the marker", lambda i=i: ended(receiver, "t", f"n{i}"))
            remote.wait_for("two rounds", lambda: len(scoring.served["t"]) >= before + 2)
            agent.drained()
            for labels, samples in receiver.stream().items():
                assert ends(samples) == (int(dict(labels)["ds_node"][1:]) in gone), labels
            assert len(receiver.stream()) == 20


def test_kill_9_while_series_come_and_go(tmp_path):
    """Of what is active, only the changes are stored in each round; each start finds all of it."""
    steady, guests, last = 280, 20, []

    def results(n):
        n = last[0] if last else n
        return [({"node": f"n{i}"}, n) for i in range(steady + guests) if i < steady or (n + i) % 5 < 3]

    with remote.Receiver() as receiver, remote.Scoring(t=results) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            for life in range(3):
                before = len(scoring.served.get("t", []))
                remote.wait_for("rounds", lambda b=before: len(scoring.served.get("t", [])) >= b + 4, alive=agent.alive)
                assert list(agent.storage.rglob("active.changes")), "the changes were not stored alone"
                agent.kill()
                if life == 2:
                    last.append(len(scoring.served["t"]) + 2)
                agent.start()
            before = len(scoring.served["t"])
            remote.wait_for("two rounds", lambda: len(scoring.served["t"]) >= before + 2, alive=agent.alive)
            agent.drained()
            stream = receiver.stream()
        lives = {metric["node"] for metric, _ in results(0)}
        assert len(stream) == steady + guests
        for labels, samples in stream.items():
            remote.in_order({labels: samples})
            has_ended = samples[-1].bits == remote_wire.STALE
            assert has_ended == (dict(labels)["ds_node"] not in lives), labels


def test_a_scorer_that_is_gone_after_kill_9(tmp_path):
    """Removed from the configuration while the agent was down: nothing will ever publish its series again. Their grace is five
    minutes; the second agent's clock is fast."""
    rate, grace = 20, 300
    with remote.Receiver() as receiver, remote.Scoring(a=remote.counted(2), b=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("both", lambda: len(receiver.stream()) == 4)
            agent.kill()
            agent.config["summaries"] = [scoring.summary("a") | {"scoringInterval": rate}]
            agent.write_config()
            fast = {"LD_PRELOAD": preload(), "FAKETIME": f"+0 x{rate}", "ASAN_OPTIONS": "verify_asan_link_order=0"}
            agent.environment = agent.environment | fast
            started = time.monotonic()
            agent.start()
            for i in range(2):
                remote.wait_for("the marker", lambda i=i: ended(receiver, "b", f"n0000{i}"), alive=agent.alive)
            assert time.monotonic() - started >= grace / rate, "the marker came before the end of the grace"
            assert not ended(receiver, "a", "n00000")
