"""Real receivers return exactly the samples that were sent."""

import json
import math
import urllib.parse

import pytest
from lib import remote, remote_wire
from lib.tsdb import Tsdb
from lib.wait import LONG

SERIES = 300


@pytest.fixture(name="hub", params=["prometheus", "victoria-metrics"])
def running_hub(request, tmp_path):
    with Tsdb(request.param, tmp_path) as hub:
        yield hub


def section(hub, **more):
    queue = {"min_backoff": "30ms", "max_backoff": "200ms"}
    return {"url": hub.url(), "name": "hub", "queue_config": queue, **more}


def same(hub, recorder, scoring, rounds):
    """The hub has the same samples and timestamps as a receiver of our own for these rounds."""
    del scoring

    def complete(series):
        return series if series and min(map(len, series.values())) >= rounds else None

    def recorded():
        series = recorder.stream().items()
        return {labels: [s for s in samples if s.bits != remote_wire.STALE] for labels, samples in series}

    # Either of the two may be a round behind the other, as no endpoint waits for another.
    stored = remote.wait_for("every series in the hub", lambda: complete(hub.raw("dynamic_score")))
    sent = remote.wait_for("every series at the recorder", lambda: complete(recorded()))
    assert set(stored) == set(sent)
    for labels, values in sent.items():
        wanted = [(s.timestamp / 1000, remote_wire.double(s.bits)) for s in values[:rounds]]
        assert len(wanted) == rounds
        for (t, v), (wanted_t, wanted_v) in zip(stored[labels], wanted):
            assert (t, v) == (wanted_t, wanted_v) or (math.isnan(v) and math.isnan(wanted_v)), dict(labels)


@pytest.mark.parametrize("protocol", ["1.0", "2.0", "vm", "auto"])
def test_every_sample_can_be_asked_for(tmp_path, hub, protocol):
    """No hub of Debian 12 or 13 knows all of them: downgrades are real. Scores are eighths, because VictoriaMetrics stores
    decimals."""

    def results(n):
        return [({"node": f"n{i:05} żółw \"q\" \\", "pod": "p"}, n + i / 8) for i in range(SERIES)]

    with remote.Receiver() as recorder, remote.Scoring(t=results) as scoring:
        endpoints = [section(hub, protocol=protocol), remote.endpoint(recorder, name="recorder")]
        with remote.Agent(tmp_path / "agent", scoring, endpoints) as agent:
            recorder.wait(4)
            agent.drained()
            assert agent.remote("samples_dropped_total") == agent.remote("samples_failed_total") == 0
            same(hub, recorder, scoring, 4)


def test_numbers_of_every_kind(tmp_path, hub):
    numbers = [0.0, -1.5, math.inf, -math.inf, 1e308, 0.1 + 0.2, 1 / 3, 2.0**53 + 2]
    if hub.command[0] == "victoria-metrics":
        numbers = [0.0, -1.5, 0.1, 1e15, 2.0**52]  # it keeps decimals
    else:
        numbers.append(math.nan)  # VictoriaMetrics takes any NaN for a marker
    with remote.Receiver() as recorder:
        with remote.Scoring(t=[({"node": f"n{i}"}, number) for i, number in enumerate(numbers)]) as scoring:
            endpoints = [section(hub), remote.endpoint(recorder, name="recorder")]
            with remote.Agent(tmp_path / "agent", scoring, endpoints) as agent:
                recorder.wait(3)
                agent.drained()
                same(hub, recorder, scoring, 3)


def test_metadata_is_known_to_prometheus(tmp_path):
    """Prometheus accepts it; this version of VictoriaMetrics ignores it."""
    with Tsdb("prometheus", tmp_path) as hub, remote.Scoring(t=remote.counted(2)) as scoring:
        sends = section(hub, metadata_config={"send": True, "send_interval": "1s"})
        with remote.Agent(tmp_path / "agent", scoring, [sends]) as agent:
            remote.wait_for("metadata", lambda: agent.remote("metadata_total") > 1)
            assert agent.remote("metadata_failed_total") == 0


def test_a_series_that_ends_is_gone_at_once(tmp_path, hub):
    """Because of the marker, an instant query right afterwards does not return the old value."""
    gone = set()

    def results(n):
        return [({"node": f"n{i}"}, n) for i in range(3) if i not in gone]

    def now():
        query = urllib.parse.urlencode({"query": "dynamic_score", "nocache": 1})
        found = json.loads(remote.get(hub.url(f"/api/v1/query?{query}")))["data"]["result"]
        return {one["metric"]["ds_node"] for one in found}

    with remote.Scoring(t=results) as scoring:
        with remote.Agent(tmp_path / "agent", scoring, [section(hub)]):
            remote.wait_for("three series", lambda: now() == {"n0", "n1", "n2"}, seconds=LONG)
            gone.add(1)
            remote.wait_for("two series", lambda: now() == {"n0", "n2"}, seconds=LONG)
        remote.wait_for("no series", lambda: now() == set(), seconds=LONG)


def test_kill_9_and_outages_leave_no_gap_and_no_complaint(tmp_path, hub):
    """Prometheus rejects samples that are out of order, or another value at the same time: nothing may be rejected.
    Each endpoint stores a round for itself: after a kill, one may have it and the other not."""
    kills = 2
    with remote.Receiver() as recorder, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        endpoints = [section(hub), remote.endpoint(recorder, name="recorder")]
        with remote.Agent(tmp_path / "agent", scoring, endpoints) as agent:
            for _ in range(kills):
                before = len(scoring.served.get("t", []))
                remote.wait_for("rounds", lambda: len(scoring.served.get("t", [])) >= before + 2)
                agent.kill()
                agent.start()
            hub.__exit__()
            before = len(scoring.served["t"])
            remote.wait_for("rounds without a hub", lambda: len(scoring.served["t"]) >= before + 3)
            hub.__enter__()
            remote.wait_for("a round", lambda: len(scoring.served["t"]) >= before + 5)
            agent.drained()
            assert agent.remote("samples_dropped_total") == agent.remote("samples_failed_total") == 0
            kept = hub.raw("dynamic_score")
        sent = recorder.stream()
        assert len(kept) == SERIES
        for labels, samples in kept.items():
            recorded = {s.timestamp / 1000: remote_wire.double(s.bits) for s in sent[labels]}
            times = [at for at, _ in samples]
            assert times == sorted(times) and len(set(times)) >= 4 + kills, dict(labels)  # a kill may end a round
            # A kill may send the request in flight again. Prometheus keeps it once, VictoriaMetrics as often as it comes.
            assert len(times) - len(set(times)) <= kills, dict(labels)
            assert all(recorded.get(at, value) == value for at, value in samples), dict(labels)
            of_one = {at for at in recorded if at <= times[-1]} ^ set(times)
            assert len(of_one) <= kills, (dict(labels), of_one)
