"""A refused sample costs its series nothing but itself, the other series nothing at all, and a round one request more.

The receivers refuse requests with one series of eight: for 2.5 s, for ever, and every second round; at last a real Prometheus
does, which has a later sample of that series."""

import collections
import struct
import time
import urllib.request

import pytest
import snappy
from lib import remote, remote_wire
from lib.tsdb import Tsdb

SERIES = 8
BAD = "n00003"
ROUNDS = 12


def refusing(when, status=400):
    """A receiver that refuses each request with a sample of the bad series for which `when` is true."""

    def plan(arrival):
        bad = [s for s in arrival.write.series if dict(s.labels).get("ds_node") == BAD]
        refused = bad and when(arrival, remote_wire.double(bad[0].samples[0].bits))
        return remote.Answer(status, body=b"out of order, for now\n", written=False) if refused else 204

    return remote.Receiver(plan=plan)


def for_a_while():
    """2.5 s from the second round on."""
    began = []

    def when(arrival, score):
        if score >= 2 and not began:
            began.append(arrival.at)
        return bool(began) and arrival.at < began[0] + 2.5

    return when


def every_second_request():
    seen = []

    def when(*_):
        seen.append(1)
        return len(seen) % 2 == 0

    return when


# Each case: which samples are refused, by number of the round, and the most requests a round on average.
CASES = {
    "while": (for_a_while, {2, 3, 4, 5}, 3),
    "for-ever": (lambda: lambda *_: True, set(range(99)), 3),
    "every-second-round": (lambda: lambda _, score: score % 2 == 1, set(range(1, 99, 2)), 3),
    "every-second-request": (every_second_request, set(range(99)), 3.01),
}
PROTOCOLS = ["1.0", "2.0", "vm"]


def scores(stream, node):
    """The rounds that arrived of one series, by score."""
    found = [samples for labels, samples in stream.items() if dict(labels).get("ds_node") == node]
    return [int(remote_wire.double(s.bits)) for s in found[0] if s.bits != remote_wire.STALE] if found else []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_refused_samples_are_missing(tmp_path, protocol):
    receivers = {name: refusing(when()) for name, (when, _, _) in CASES.items()}
    listed = [remote.endpoint(r, name=name, protocol=protocol) for name, r in receivers.items()]
    with remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path, scoring, listed) as agent:
            remote.wait_for("rounds", lambda: len(scoring.served.get("t", [])) > ROUNDS, alive=agent.alive)
            agent.caught_up(scoring)
            rounds = range(len(scoring.served["t"]) - 2)
    for name, (_, may_miss, most) in CASES.items():
        receiver = receivers[name]
        for node in (f"n{i:05}" for i in range(SERIES)):
            arrived = scores(receiver.stream(), node)
            assert arrived == sorted(set(arrived)), f"{name}: {node} out of order or twice"
            missing = set(rounds) - set(arrived)
            assert missing <= (may_miss if node == BAD else set()), f"{name}: {node} lacks {missing}"
            tried = scores(receiver.stream(accepted=False), node)
            assert set(rounds) <= set(tried), f"{name}: {node} was withheld"
        requests = collections.Counter(
            a.write.series[0].samples[0].timestamp for a in receiver.with_samples()
        )
        assert sum(requests.values()) / len(requests) < most, f"{name}: {list(requests.values())}"
        receiver.__exit__(None)
    assert len(set(rounds) - set(scores(receivers["while"].stream(), BAD))) >= 2, "nothing was refused"


def push(hub, labels, value, at_ms):
    """Writes one sample to a receiver, as another sender would."""
    request = remote_wire.WriteRequest()
    series = request.timeseries.add()
    for name, content in labels:
        series.labels.add(name=name, value=content)
    series.samples.add(value=struct.unpack("<Q", struct.pack("<d", value))[0], timestamp=at_ms)
    headers = remote_wire.FORMS["1.0"] | {"user-agent": "test"}
    body = snappy.compress(request.SerializeToString())
    with urllib.request.urlopen(urllib.request.Request(hub.url(), body, headers), timeout=remote.DEADLINE) as answer:
        assert answer.status == 204


def test_a_real_prometheus_that_has_a_later_sample(tmp_path):
    with Tsdb("prometheus", tmp_path) as hub, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        with remote.Agent(tmp_path / "agent", scoring, [remote.endpoint(hub)]) as agent:
            remote.wait_for("two rounds", lambda: len(scoring.served.get("t", [])) >= 3, alive=agent.alive)
            later = time.time() + 2.5
            push(hub, remote.labels("t", node=BAD), -1, int(later * 1000))
            remote.wait_for("a refusal", lambda: agent.remote("samples_failed_total") >= 1)
            remote.wait_for("its end", lambda: time.time() > later)
            before = len(scoring.served["t"])
            remote.wait_for("rounds", lambda: len(scoring.served["t"]) >= before + 4, alive=agent.alive)
            agent.drained()
            refused = agent.remote("samples_failed_total")
            rounds = range(len(scoring.served["t"]) - 2)
        stored = hub.raw("dynamic_score")
    assert 1 <= refused <= 4
    assert len(stored) == SERIES
    for labels, samples in stored.items():
        missing = set(rounds) - {int(v) for _, v in samples}
        assert len(missing) <= (refused if dict(labels)["ds_node"] == BAD else 0), (dict(labels), missing)
        assert all(samples[i][0] < samples[i + 1][0] for i in range(len(samples) - 1))
