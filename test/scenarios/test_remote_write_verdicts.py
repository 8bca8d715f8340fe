"""The status is the verdict, whatever happens to the body, and a request is answered once and for all.

Each case has an endpoint of its own at one agent, so that a whole table costs one start. The same table runs with a real
Prometheus behind the faults: the status and the headers are its own."""

import dataclasses
import http.client
import urllib.parse

from lib import remote, remote_wire
from test_remote_write_hubs import Hub, section

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

    with Hub("prometheus", tmp_path) as hub, remote.Scoring(t=remote.counted(SERIES)) as scoring:
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
