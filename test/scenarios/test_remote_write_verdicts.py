"""The status is the verdict, whatever happens to the body, and a request is answered once and for all.

Each case has an endpoint of its own at one agent, so that a whole table costs one start. The same table runs with a real
Prometheus behind the faults: the status and the headers are its own."""

import dataclasses
import http.client
import urllib.parse

from lib import remote, remote_wire
from lib.tsdb import Tsdb
from test_remote_write_hubs import section

SERIES = 4

# What happens to a body of 100 bytes after the headers.
FAULTS = {
    "whole": {},
    "truncated": {"cut": "body"},
    "reset": {"cut": "body reset"},
    "stalled": {"drip": 30},
    "slow": {"drip": 0.3},
    "falsely gzipped": {"headers": {"Content-Encoding": "gzip"}},
    "unknown encoding": {"headers": {"Content-Encoding": "rot13"}},
    "chunked": {"headers": {"Transfer-Encoding": "chunked"}},  # and no chunk in it
    "longer than read": {"body": b"y" * 100000},
}
BODY = b"x" * 100


def faulty(status, fault, **more):
    return dataclasses.replace(remote.Answer(status, body=BODY, **more), **FAULTS[fault])


def endpoints(receivers, **more):
    return [remote.endpoint(r, name=name.replace(" ", "-"), **more) for name, r in receivers.items()]


def close(receivers):
    for receiver in receivers.values():
        receiver.__exit__(None)


def unique(receiver):
    bodies = [arrival.body for arrival in receiver.with_samples()]
    return len(set(bodies)) == len(bodies)


def test_a_status_that_has_arrived_is_the_verdict(tmp_path):
    """After 2xx and 4xx nothing is sent again; after 503 the same bytes are, when Retry-After has passed."""
    receivers = {}
    for fault in FAULTS:
        for protocol in ("1.0", "2.0"):
            receivers[f"200 {fault} {protocol}"] = remote.Receiver(plan=lambda _, f=fault: faulty(200, f))
        receivers[f"401 {fault}"] = remote.Receiver(plan=lambda _, f=fault: faulty(401, f))
    later = {fault: remote.Receiver(faulty(503, fault)) for fault in FAULTS}
    for receiver, fault in zip(later.values(), FAULTS):
        receiver.script[0].headers = {**receiver.script[0].headers, "Retry-After": "1"}
        assert fault
    with remote.Scoring(t=remote.counted(SERIES)) as scoring:
        listed = [
            remote.endpoint(r, name=name.replace(" ", "-"), protocol=name[-3:] if name[-3:] == "2.0" else "1.0")
            for name, r in receivers.items()
        ]
        with remote.Agent(tmp_path / "a", scoring, listed) as agent:
            for name, receiver in receivers.items():
                receiver.wait(3, f"requests with samples to {name}")
            assert agent.remote("samples_retried_total") == 0
            for name, receiver in receivers.items():
                wanted = "samples_failed_total" if name.startswith("401") else "samples_total"
                assert agent.remote(wanted, remote_name=name.replace(" ", "-")) >= 2 * SERIES, name
        with remote.Agent(tmp_path / "b", scoring, endpoints(later)):
            for name, receiver in later.items():
                first, second = receiver.wait(2, f"requests with samples to {name}")[:2]
                assert first.body == second.body and second.at - first.at >= 1, name
    for name, receiver in receivers.items():
        assert unique(receiver), f"{name}: sent again"
        assert receiver.arrivals[0].header("Accept") is receiver.arrivals[0].header("Accept-Encoding") is None
    close({**receivers, **later})


def test_the_verdict_of_a_real_prometheus_counts_too(tmp_path):
    """The faults between the agent and a real Prometheus: every round is stored, and sent once."""

    def forward(arrival, fault):
        to = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=remote.DEADLINE)
        to.request("POST", arrival.path, arrival.body, dict(arrival.headers))
        answer = to.getresponse()
        answer.read()
        return dataclasses.replace(faulty(200 if answer.status == 204 else answer.status, fault), written=False)

    with Tsdb("prometheus", tmp_path) as hub, remote.Scoring(t=remote.counted(SERIES)) as scoring:
        receivers = {fault: remote.Receiver(plan=lambda a, f=fault: forward(a, f)) for fault in FAULTS}
        listed = [
            {**entry, "external_labels": {"fault": fault}}
            for entry, fault in zip(endpoints(receivers), receivers)
        ]
        with remote.Agent(tmp_path / "agent", scoring, listed) as agent:
            for name, receiver in receivers.items():
                receiver.wait(4, f"requests with samples to {name}")
            assert agent.remote("samples_retried_total") == agent.remote("samples_failed_total") == 0
        stored = hub.raw("dynamic_score")
        log = (hub.folder / "log").read_text()
    for name, receiver in receivers.items():
        assert unique(receiver), f"{name}: sent again"
    assert len(stored) == SERIES * len(FAULTS)
    for labels, samples in stored.items():
        assert [v for _, v in samples][:4] == [0, 1, 2, 3], dict(labels)
    assert "level=error" not in log and "level=warn" not in log, log
    close(receivers)


# ---- What a response teaches ----

NODES = 16
BAD = "n00007"


def is_bad(arrival):
    return any(dict(s.labels).get("ds_node") == BAD for s in arrival.write.series)


def partial(status, written, body=b"one series is bad luck\n"):
    headers = {"X-Prometheus-Remote-Write-Samples-Written": str(written)}
    return lambda arrival: remote.Answer(status, headers, body, written=False)


def metadata_refused(status):
    return lambda arrival: 204 if arrival.write.series else remote.Answer(status, {"Retry-After": "1"})


RENAME = [{"source_labels": ["ds_node"], "regex": "n0000(.)", "target_label": "__name__", "replacement": "score_$1"}]
BAD_NAME = [
    {"source_labels": ["ds_node"], "regex": BAD, "target_label": "__name__", "replacement": "bad name"},
    {"regex": "ds_cluster", "action": "labelmap", "replacement": "a_b"},
]
OFTEN = {"send": True, "send_interval": "1s"}

# Each case: the receiver's plan, the endpoint's settings.
LESSONS = {
    "partial": (partial(400, NODES - 1), {"protocol": "2.0"}),
    "nothing-written": (partial(200, 0, b""), {"protocol": "2.0"}),
    "bad-series": (lambda a: remote.Answer(400, body=b"bad luck\n") if is_bad(a) else 204, {}),
    "too-large": (lambda a: 413 if len(a.write.series) > 4 else 204, {}),
    "all-bad": (lambda a: 400, {}),
    "metadata-503": (metadata_refused(503), {"metadata_config": OFTEN}),
    "metadata-404": (metadata_refused(404), {"metadata_config": OFTEN}),
    "metadata-stalled": (lambda a: 204 if a.write.series else remote.Answer(delay=30), {"metadata_config": OFTEN}),
    "renamed": (lambda a: 204, {"protocol": "2.0", "write_relabel_configs": RENAME}),
    "renamed-1.0": (lambda a: 204, {"write_relabel_configs": RENAME, "metadata_config": OFTEN}),
    "bad-name": (lambda a: 204, {"write_relabel_configs": BAD_NAME}),
    "flapping": (lambda a: 503 if a.at * 10 % 4 < 2 else 204, {}),
}


def rounds(receiver):
    """The requests of each round, by timestamp."""
    found = {}
    for arrival in receiver.with_samples():
        found.setdefault(arrival.write.series[0].samples[0].timestamp, []).append(arrival)
    return list(found.values())


def test_each_response_is_learnt_from(tmp_path):
    receivers = {name: remote.Receiver(plan=plan) for name, (plan, _) in LESSONS.items()}
    listed = [remote.endpoint(receivers[name], name=name, **more) for name, (_, more) in LESSONS.items()]
    with remote.Scoring(t=remote.counted(NODES)) as scoring:
        with remote.Agent(tmp_path, scoring, listed) as agent:
            for name, receiver in receivers.items():
                remote.wait_for(f"rounds of {name}", lambda r=receiver: len(rounds(r)) >= 5, alive=agent.alive)

            def count(what, name, **more):
                return agent.remote(what, remote_name=name, **more)

            remote.wait_for("metadata", lambda: count("metadata_retried_total", "metadata-503") >= 2)
            remote.wait_for("metadata", lambda: count("metadata_failed_total", "metadata-404") >= 2)
            assert count("metadata_failed_total", "metadata-503") == count("metadata_total", "metadata-404") == 0
            assert count("samples_dropped_total", "bad-name", reason="invalid") >= 4, "samples, not series"
            assert count("samples_total", "partial") >= 4 * (NODES - 1)
            assert 4 <= count("samples_dropped_total", "partial", reason="rejected") <= len(receivers["partial"].arrivals)
            assert count("samples_total", "nothing-written") == 0
            assert count("samples_dropped_total", "nothing-written", reason="rejected") >= 4 * NODES
        log = agent.log()
    for name in ("partial", "nothing-written"):
        assert unique(receivers[name]) and {a.write.form for a in receivers[name].with_samples()} == {"2.0"}, name
        assert all(len(requests) == 1 for requests in rounds(receivers[name])[:4]), f"{name}: in pieces"
    assert "one series is bad luck" in log
    for name, requests in {"bad-series": 2, "too-large": NODES // 4, "all-bad": 1}.items():
        assert [len(found) for found in rounds(receivers[name])[1:4]] == [requests] * 3, name
    assert {m.family for m in receivers["renamed"].metadata()} >= {"score_1", "score_9", "dynamic_score"}
    assert {m.family for m in receivers["renamed-1.0"].metadata()} >= {"score_1", "score_9", "dynamic_score"}
    assert len([line for line in log.splitlines() if "bad name" in line and "level=warn" in line]) == 1
    lines = [line for line in log.splitlines() if "remote_name=flapping" in line and "level=debug" not in line]
    assert len(lines) <= 3, lines
    close(receivers)


def test_a_real_prometheus_learns_of_nothing_wrong(tmp_path):
    """What Debian's Prometheus can show of the table: `auto`, names after relabelling, metadata."""
    more = {
        "auto": {"protocol": "auto"},
        "renamed": {"write_relabel_configs": RENAME, "metadata_config": OFTEN},
        "bad-name": {"write_relabel_configs": BAD_NAME},
    }
    stored = {"auto": NODES, "renamed": NODES, "bad-name": NODES - 1}
    with Tsdb("prometheus", tmp_path) as hub, remote.Scoring(t=remote.counted(NODES)) as scoring:
        listed = [remote.endpoint(hub, name=n, external_labels={"case": n}, **m) for n, m in more.items()]
        with remote.Agent(tmp_path / "agent", scoring, listed) as agent:
            for name, series in stored.items():
                remote.wait_for(
                    f"rounds of {name}",
                    lambda n=name, least=3 * series: agent.remote("samples_total", remote_name=n) >= least,
                )
            remote.wait_for("metadata", lambda: agent.remote("metadata_total", remote_name="renamed") >= 1)
            assert agent.remote("samples_dropped_total", remote_name="bad-name", reason="invalid") >= 3
            assert agent.remote("samples_failed_total") == 0
        assert {n: len(hub.raw(f'{{case="{n}"}}')) for n in more} == stored
        log = (hub.folder / "log").read_text()
    assert "level=error" not in log and "level=warn" not in log, log
