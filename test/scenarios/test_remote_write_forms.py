"""The protocol is downgraded when the receiver does not understand a form, never after a success, and no sample is
lost."""

import pytest
from lib import remote, remote_wire

SERIES = 8


def only(*forms, status=415):
    """A receiver's plan that rejects all other forms."""
    return lambda arrival: 204 if arrival.write.form in forms else remote.Answer(status, body=b"cannot read this")


def run(tmp_path, protocol, plan, rounds=4):
    """Waits for that many rounds; returns the requests with samples, the status and the agent's log."""
    with remote.Receiver(plan=plan) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, protocol=protocol)]) as agent:
            remote.wait_for(
                "rounds",
                lambda: receiver.stream() and min(map(len, receiver.stream().values())) >= rounds,
                alive=agent.alive,
            )
            agent.drained()
            assert agent.remote("samples_dropped_total") == agent.remote("samples_failed_total") == 0
            status = agent.page("/api/v1/status")
        stream = receiver.stream()
        remote.in_order(stream)
        for samples in stream.values():
            assert [s.bits for s in samples[:rounds]] == [remote_wire.bits(n) for n in range(rounds)], "a round is missing"
        return receiver.with_samples(), status, agent.log()


@pytest.mark.parametrize("status", [415, 400])
@pytest.mark.parametrize("protocol", ["2.0", "vm"])
def test_what_is_not_understood_comes_again_in_1_0_and_from_then_on(tmp_path, protocol, status):
    """check() verifies that all headers change with the form. 400 may have other causes: 1.0 must be accepted first."""
    arrivals, page, log = run(tmp_path, protocol, only("1.0", status=status))
    first, second, *others = arrivals
    assert (first.write.form, second.write.form) == (protocol, "1.0")
    assert sorted(second.write.series) == sorted(first.write.series), "other samples than those refused"
    assert {arrival.write.form for arrival in others} == {"1.0"}
    assert '"1.0"' in page
    assert [line for line in log.splitlines() if "1.0" in line and "hub" in line], "it does not say so"


def test_a_2xx_that_says_nothing_was_written_is_no_success(tmp_path):
    """An old receiver decodes an empty message and answers 200: without the Written headers it has stored nothing."""

    def plan(arrival):
        return remote.Answer(200, written=False)

    with remote.Receiver(plan=plan) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, protocol="2.0")]) as agent:
            first, second, *others = receiver.wait(4)
            agent.drained()
    assert (first.write.form, second.write.form) == ("2.0", "1.0")
    assert sorted(second.write.series) == sorted(first.write.series)
    assert {arrival.write.form for arrival in others} == {"1.0"}


@pytest.mark.parametrize("protocol", ["1.0", "2.0", "vm"])
def test_success_never_changes_the_form(tmp_path, protocol):
    arrivals, page, _ = run(tmp_path, protocol, lambda arrival: 204)
    assert {arrival.write.form for arrival in arrivals} == {protocol}
    assert f'"{protocol}"' in page


@pytest.mark.parametrize("trouble", [500, 503, 429])
def test_trouble_never_changes_the_form(tmp_path, trouble):
    answers = [trouble] * 4

    def plan(arrival):
        return answers.pop() if answers else 204

    arrivals, _, _ = run(tmp_path, "2.0", plan)
    assert {arrival.write.form for arrival in arrivals} == {"2.0"}


@pytest.mark.parametrize("takes", [("1.0",), ("1.0", "vm"), ("1.0", "2.0"), ("1.0", "vm", "2.0")])
@pytest.mark.parametrize("status", [415, 400])
def test_auto_finds_what_the_receiver_takes(tmp_path, takes, status):
    """Whoever takes zstd is VictoriaMetrics, which every response shows; only then is it tried."""

    def plan(arrival):
        taken = arrival.write.form in takes
        headers = {"X-Server-Hostname": "vm"} if "vm" in takes else {}
        return remote.Answer(204 if taken else status, headers)

    arrivals, _, _ = run(tmp_path, "auto", plan, rounds=6)
    assert arrivals[0].write.form == "2.0"
    assert "vm" in takes or "vm" not in {arrival.write.form for arrival in arrivals}, "an error in the receiver's log"
    assert arrivals[-1].write.form in takes
    if len(takes) > 1:
        assert arrivals[-1].write.form != "1.0", "a better form is at hand"
    assert len([arrival for arrival in arrivals if arrival.status // 100 != 2]) <= 3, "it keeps trying"


def test_415_to_the_simplest_form_is_a_refusal(tmp_path):
    with remote.Receiver(415) as receiver, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(3)
            remote.wait_for("a refusal", lambda: agent.remote("samples_dropped_total", remote_name="hub") == SERIES)
    bodies = [arrival.body for arrival in receiver.with_samples()]
    assert len(set(bodies)) == len(bodies)


def test_a_form_that_is_refused_later_is_given_up_then(tmp_path):
    """A hub is rolled back to an older version."""
    taken = []

    def plan(arrival):
        taken.append(arrival)
        return 204 if arrival.write.form == "1.0" or len(taken) <= 2 else 415

    arrivals, _, _ = run(tmp_path, "2.0", plan, rounds=5)
    assert [arrival.write.form for arrival in arrivals[:4]] == ["2.0", "2.0", "2.0", "1.0"]
    assert {arrival.write.form for arrival in arrivals[3:]} == {"1.0"}
