"""The receiver's response decides: a retry sends the same bytes, a rejected request is never sent again, and everything
else continues."""

import email.utils
import json
import time

import pytest
from lib import remote, remote_wire

SERIES = 64


def bodies(receiver):
    return [arrival.body for arrival in receiver.with_samples()]


def check_all_rounds(receiver, scoring, until):
    """All rounds that the scoring API served before `until` have arrived completely."""
    rounds = [n for n, (at, _) in enumerate(scoring.served["t"]) if at < until]
    for samples in receiver.stream().values():
        found = {s.bits for s in samples}
        assert not [n for n in rounds if remote_wire.bits(n) not in found]
    remote.in_order(receiver.stream(accepted=False))


# ---- Sent again ----

TROUBLE = {
    "500": remote.Answer(500),
    "502": remote.Answer(502, body=b"<html>bad gateway</html>"),
    "503": remote.Answer(503),
    "504": remote.Answer(504),
    "429": remote.Answer(429),
    "304": remote.Answer(304),
    "reset": remote.Answer(cut="reset"),
    "half of the status": remote.Answer(200, cut="status"),
    "half of the error": remote.Answer(500, body=b"x" * 1000, cut="body"),
}


@pytest.mark.parametrize(
    "protocol, trouble",
    [*(("1.0", trouble) for trouble in TROUBLE), ("2.0", "503"), ("vm", "503"), ("2.0", "reset"), ("vm", "reset")],
)
def test_trouble_is_met_with_the_very_same_bytes(tmp_path, protocol, trouble):
    with remote.Receiver(*[TROUBLE[trouble]] * 3) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, protocol=protocol)]) as agent:
            receiver.wait(5)
            until = agent.caught_up(scoring)
            assert agent.remote("samples_retried_total", remote_name="hub") >= SERIES
            assert agent.remote("samples_dropped_total") == agent.remote("samples_failed_total") == 0
    assert len(set(bodies(receiver)[:4])) == 1, "what is sent again must be the same, bit by bit"
    assert len({a.write.form for a in receiver.with_samples()}) == 1
    check_all_rounds(receiver, scoring, until)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_honoured(tmp_path, status, as_date):
    def plan(arrival):
        if len(receiver.arrivals) > 1:
            return 204
        # A date has whole seconds: of three asked for, more than two are sure.
        when = email.utils.formatdate(time.time() + 3, usegmt=True) if as_date else "2"
        return remote.Answer(status, {"Retry-After": when})

    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        receiver.plan = plan
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]):
            first, second = receiver.wait(2)[:2]
    assert second.at - first.at >= 1.95
    assert first.body == second.body


@pytest.mark.parametrize("nonsense", ["soon", "-5", "1e9", "Thu, 01 Jan 1970 00:00:00 GMT", "", "99999999999999999999"])
def test_a_senseless_retry_after_costs_an_hour_at_most(tmp_path, nonsense):
    """A number counts up to an hour; everything else is ignored."""
    answer = remote.Answer(503, {"Retry-After": nonsense})
    with remote.Receiver(answer) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            if nonsense == "99999999999999999999":
                receiver.wait(1)
                assert agent.alive()
            else:
                receiver.wait(2)  # an hour is more than its patience


def test_the_pause_grows_with_jitter_up_to_its_end(tmp_path):
    queue = {"min_backoff": "100ms", "max_backoff": "800ms"}
    with remote.Receiver(*[503] * 9) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, queue_config=queue)]):
            arrivals = receiver.wait(10)[:10]
    gaps = [after.at - before.at for before, after in zip(arrivals, arrivals[1:])]
    whole = [min(0.1 * 2**n, 0.8) for n in range(9)]
    assert all(gap >= w / 2 - 0.01 for w, gap in zip(whole, gaps)), gaps
    assert len({round(gap, 3) for gap in gaps[3:]}) > 3, f"no jitter: {gaps}"


def test_a_time_out_is_trouble_too(tmp_path):
    with remote.Receiver(remote.Answer(delay=20)) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, remote_timeout="1s")]) as agent:
            first, second = receiver.wait(2)[:2]
            agent.drained()
        assert first.body == second.body
        assert 0.95 <= second.at - first.at and (not first.done or second.at < first.done)
        remote.in_order(receiver.stream())


def test_refused_connections_lose_nothing(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        receiver.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("rounds", lambda: len(scoring.served.get("t", [])) >= 3)
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 2 * SERIES)
            assert receiver.arrivals == []
            assert "refused" in agent.page("/api/v1/status").lower()
            receiver.up()
            until = agent.caught_up(scoring)
        check_all_rounds(receiver, scoring, until)


def test_a_name_that_does_not_resolve(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        lost = remote.endpoint(receiver, name="lost", url="http://no-such-host.invalid/write")
        with remote.Agent(tmp_path, scoring, [lost, remote.endpoint(receiver)]) as agent:
            receiver.wait(3)
            remote.wait_for("retries", lambda: agent.remote("samples_retried_total", remote_name="lost") > 0)
            remote.wait_for("a queue", lambda: agent.remote("samples_pending", remote_name="lost") >= 4)
            remote.wait_for("none", lambda: agent.remote("samples_pending", remote_name="hub") <= 2)
            assert "no-such-host.invalid" in agent.page("/api/v1/status")
            lines = [line for line in agent.log().splitlines() if "lost" in line and "level=debug" not in line]
            assert lines and len(lines) < 10, "one line a burst"


def test_a_connection_that_the_peer_closed_costs_no_pause(tmp_path):
    queue = {"min_backoff": "60s", "max_backoff": "60s"}
    with remote.Receiver(204, remote.Answer(cut="reset")) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, queue_config=queue)]):
            first, second, third = receiver.wait(3)[:3]
    assert first.connection == second.connection != third.connection
    assert second.body == third.body and third.at - second.at < 25, "of 30 s at least"


# ---- Refused for good ----


@pytest.mark.parametrize("status", [401, 403, 404, 405, 409, 410, 999])
def test_what_is_refused_never_comes_again(tmp_path, status):
    with remote.Receiver(remote.Answer(status, body=b"no: go away\n")) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(3)
            agent.drained()
            dropped = agent.remote("samples_dropped_total", remote_name="hub")
            assert dropped == agent.remote("samples_failed_total", remote_name="hub") == SERIES
        lines = [line for line in agent.log().splitlines() if f"status {status}" in line]
    assert len(lines) == 1 and "hub" in lines[0], lines
    assert "go away" in lines[0]
    assert len(set(bodies(receiver))) == len(bodies(receiver))
    times = [arrival.write.series[0].samples[0].timestamp for arrival in receiver.with_samples()[:3]]
    assert len(set(times)) == 3, "a timestamp came again"


@pytest.mark.parametrize("status", [401, 403, 404, 400, 422, 200])
def test_an_endpoint_that_refuses_everything_is_down(tmp_path, status):
    """Whatever the status, also 2xx that has written nothing; until it accepts something again. Some series that are
    refused among others do not make it down."""
    protocol = "2.0" if status == 200 else "1.0"
    nothing = {f"X-Prometheus-Remote-Write-{k}-Written": 0 for k in ("Samples", "Histograms", "Exemplars")}
    refusal = remote.Answer(status, body=b"not for you", headers=nothing if status == 200 else {}, written=False)
    plans = {"all": lambda arrival: refusal, "none": lambda arrival: remote.Answer()}

    def some(arrival):
        return remote.Answer(400) if "n00001" in str(arrival.write.series) else remote.Answer()

    def seen():
        endpoint = json.loads(agent.page("/api/v1/status"))["remoteWrite"][0]
        return endpoint["state"] == "failing", agent.values("dynamic_scoring_remote_write_up") == [0.0]

    with remote.Receiver(plan=plans["none"]) as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, protocol=protocol)]) as agent:
            receiver.wait(1)
            remote.wait_for("it is up", lambda: seen() == (False, False), alive=agent.alive)
            receiver.plan = plans["all"]
            remote.wait_for("it is down", lambda: seen() == (True, True), alive=agent.alive)
            assert agent.remote("samples_failed_total") > 0 or agent.remote("samples_dropped_total") > 0
            # Nor is it up between two requests.
            before = len(receiver.arrivals)
            remote.wait_for("more requests", lambda: seen() != (True, True) or len(receiver.arrivals) > before + 2)
            assert seen() == (True, True)
            receiver.plan = plans["none"]
            remote.wait_for("it is up again", lambda: seen() == (False, False), alive=agent.alive)
            if protocol == "1.0":
                receiver.plan = some
                rejected = agent.remote("samples_failed_total")
                remote.wait_for("refused series", lambda: agent.remote("samples_failed_total") >= rejected + 2)
                remote.wait_for("it is up all the same", lambda: seen() == (False, False), alive=agent.alive)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_whole_batch_that_is_refused_ends_too(tmp_path, status):
    def plan(arrival):
        return status if arrival.write.series[0].samples[0].bits == remote_wire.bits(0) else 204

    with remote.Receiver(plan=plan) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            remote.wait_for("what follows", lambda: len(receiver.stream()) == SERIES)
            remote.wait_for("its end", lambda: agent.remote("samples_dropped_total", remote_name="hub") == SERIES)
    refused = [arrival for arrival in receiver.with_samples() if arrival.status == status]
    assert len(refused) <= 2 * SERIES - 1
    assert len({arrival.body for arrival in refused}) == len(refused), "the same bytes came again"


@pytest.mark.parametrize("protocol", ["1.0", "2.0", "vm"])
@pytest.mark.parametrize("status", [400, 422])
def test_one_bad_series_costs_itself_alone(tmp_path, status, protocol):
    """The request is bisected until the series is alone; the log names it with the receiver's message, and it is
    counted."""

    def plan(arrival):
        bad = any(dict(s.labels).get("ds_node") == "n00041" for s in arrival.write.series)
        return remote.Answer(status, body=b"label value is bad luck\n") if bad else 204

    with remote.Receiver(plan=plan) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, protocol=protocol)]) as agent:
            remote.wait_for("three rounds", lambda: len(scoring.served.get("t", [])) >= 3)
            until = agent.caught_up(scoring)
            # Two scrapes, between which a round may be sent.
            remote.wait_for(
                "the same in both counters",
                lambda: 2
                <= agent.remote("samples_dropped_total", remote_name="hub", reason="rejected")
                == agent.remote("samples_failed_total", remote_name="hub"),
            )
        lines = [line for line in agent.log().splitlines() if "n00041" in line and "level=debug" not in line]
    assert lines and all("bad luck" in line and "hub" in line for line in lines)
    assert "n00040" not in agent.log() and "n00042" not in agent.log()
    found = receiver.stream()
    assert len(found) == SERIES - 1
    check_all_rounds(receiver, scoring, until)
    assert all(len(set(samples)) == len(samples) for samples in found.values()), "taken twice"
    first = receiver.with_samples()[0].write.series[0].samples[0].timestamp
    tries = [a for a in receiver.with_samples() if a.write.series[0].samples[0].timestamp == first]
    assert len(tries) <= 1 + 2 * 6 + (protocol != "1.0"), "more than bisecting takes, and one try in a simpler form"


def test_a_redirect_is_not_followed(tmp_path):
    """It is a mistake in the URL that someone will fix: the samples wait."""
    with remote.Receiver() as elsewhere, remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        receiver.script = [remote.Answer(s, {"Location": elsewhere.url()}) for s in (301, 302, 307, 308)]
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(6)
        assert elsewhere.arrivals == []
        assert len(set(bodies(receiver)[:5])) == 1
    assert "redirect" in agent.log()


@pytest.mark.parametrize("status", [500, 401])
def test_a_megabyte_of_complaint_is_one_short_line(tmp_path, status):
    body = (b"the beginning\nlevel=error msg=forged \x1b[31m\x00\xff " * 40000)[: 1 << 20]
    with remote.Receiver(remote.Answer(status, body=body)) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(2)
            agent.drained()
        log = agent.log()
    assert "the beginning" in log
    assert max(map(len, log.splitlines())) < 2000
    assert "\x1b" not in log and not [line for line in log.splitlines() if line.startswith("level=error msg=forged")]


def test_an_answer_that_never_ends_is_cut_off(tmp_path):
    """Headers that promise ten gigabytes, or never end, neither exhaust the memory nor stop the queue."""
    answers = [
        remote.Answer(500, {"Content-Length": str(10 << 30)}, body=b"x" * (4 << 20)),
        remote.Answer(500, {f"X-{i}": "y" * 1000 for i in range(2000)}),
    ]
    with remote.Receiver(*answers) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, remote_timeout="2s")]) as agent:
            remote.wait_for("what follows", lambda: len(receiver.stream()) == 2)
            agent.drained()
    remote.in_order(receiver.stream(accepted=False))
