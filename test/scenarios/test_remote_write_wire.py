"""Each request conforms to the standard in each protocol: headers, compression, labels, numbers, metadata."""

import base64
import math
import time

import pytest
from lib import remote, remote_wire
from lib.wait import LONG

NUMBERS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e308, 5e-324, -2.2e-308, 0.1 + 0.2, 1 / 3, 2.0**53 + 2]
NAMES = ["plain", "zażółć gęślą 🦊", 'quote " and \\ backslash', "line\nend\ttab", "x" * 10240, "ü" * 5000, " ", "\x01"]
FORMS = ["1.0", "2.0", "vm"]


def scores():
    """All kinds of labels with all kinds of numbers; an empty value is no label."""
    found = [({"node": f"number-{i:02}", "pod": ""}, number) for i, number in enumerate(NUMBERS)]
    found += [({"node": name, "app": name}, i) for i, name in enumerate(NAMES)]
    every = {name: f"the {name}" for name in ("app", "container", "device", "meta", "namespace", "node", "pod")}
    return [*found, (every, 7), ({}, 8)]


def expected(results):
    return {remote.labels("t", **metric): remote_wire.bits(score) for metric, score in results}


@pytest.mark.parametrize("form", FORMS)
def test_labels_and_numbers_arrive_bit_by_bit(tmp_path, form):
    started = time.time() * 1000
    with remote.Receiver() as receiver, remote.Scoring(t=scores()) as scoring:
        limits = {"labelValueBytes": 20000}
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, protocol=form)], limits=limits) as agent:
            rounds = receiver.wait(2)[:2]
            agent.drained()
    wanted = expected(scores())
    for arrival in rounds:
        write = arrival.write
        assert write.form == form
        assert arrival.header("User-Agent").startswith("dynamic-scoring/")
        assert {tuple(s.labels): s.samples[0].bits for s in write.series} == wanted
        assert len(write.series) == len(wanted) and write.samples() == len(wanted)
        times = {s.samples[0].timestamp for s in write.series}
        assert len(times) == 1 and started <= times.pop() <= time.time() * 1000
    assert rounds[0].write.series[0].samples[0].timestamp < rounds[1].write.series[0].samples[0].timestamp
    assert rounds[0].connection == rounds[1].connection, "a new connection for each request"


def test_series_are_sorted_inside_a_request_and_the_request_is_bounded(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=lambda n: remote.counted(1000)(n)[::-1]) as scoring:
        section = remote.endpoint(receiver, queue_config={"max_samples_per_send": 300})
        with remote.Agent(tmp_path, scoring, [section]):
            writes = [arrival.write for arrival in receiver.wait(4)[:4]]
    assert [len(write.series) for write in writes][0] <= 300
    assert sum(len(write.series) for write in writes) == 1000, "more requests than needed"
    nodes = [dict(s.labels)["ds_node"] for write in writes for s in write.series]
    assert nodes == sorted(nodes)


@pytest.mark.parametrize("form", FORMS)
def test_metadata_tells_type_and_help_again_and_again(tmp_path, form):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        section = remote.endpoint(receiver, protocol=form, metadata_config={"send": True, "send_interval": "1s"})
        with remote.Agent(tmp_path, scoring, [section]):
            remote.wait_for("metadata", lambda: len(receiver.metadata()) >= 2)
            receiver.wait(2)
    found = {m for m in receiver.metadata() if m.family == "dynamic_score"}
    assert found == {remote_wire.Metadata(remote_wire.GAUGE, "dynamic_score", "Score returned by the scoring API.", "")}


def test_metadata_that_is_refused_costs_no_sample(tmp_path):
    def plan(arrival):
        return 204 if arrival.write.series else 400

    with remote.Receiver(plan=plan) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        section = remote.endpoint(receiver, metadata_config={"send": True, "send_interval": "1s"})
        with remote.Agent(tmp_path, scoring, [section]) as agent:
            receiver.wait(3)
            assert agent.remote("samples_dropped_total") == 0


def test_external_labels_and_relabelling(tmp_path):
    rules = [
        {"source_labels": ["ds_node"], "regex": "n00001", "action": "drop"},
        {"source_labels": ["ds_node"], "regex": "n(.*)", "target_label": "number", "replacement": "no-$1"},
        {"regex": "ds_cluster", "action": "labeldrop"},
    ]
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        section = remote.endpoint(receiver, external_labels={"zone": "z1", "a": "first"}, write_relabel_configs=rules)
        with remote.Agent(tmp_path, scoring, [section]):
            write = receiver.wait(1)[0].write
    assert [dict(s.labels) for s in write.series] == [
        {
            "__name__": "dynamic_score",
            "a": "first",
            "ds_node": f"n{i}",
            "ds_score_name": "t",
            "number": f"no-{i}",
            "zone": "z1",
        }
        for i in ("00000", "00002")
    ]


def test_an_empty_label_is_no_label(tmp_path):
    """As in Prometheus: an external label fills it, and rules neither map it nor copy it over another."""
    removed = {"target_label": "ds_node", "replacement": ""}
    cases = {
        "plain": {"external_labels": {"ds_app": "fallback", "ds_node": "never"}},
        "mapped": {"write_relabel_configs": [{"action": "labelmap", "regex": "ds_(.*)"}], "external_labels": {"app": "k"}},
        "removed": {
            "write_relabel_configs": [removed, {"action": "labelmap", "regex": "ds_node", "replacement": "k"}],
            "external_labels": {"k": "kept", "ds_app": "fallback"},
        },
    }
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(1)) as scoring:
        endpoints = [remote.endpoint(receiver, url=receiver.url(f"/{n}"), name=n, **more) for n, more in cases.items()]
        with remote.Agent(tmp_path, scoring, endpoints):
            remote.wait_for("all three", lambda: len({a.path for a in receiver.with_samples()}) == len(cases))
    sent = {a.path[1:]: dict(a.write.series[0].labels) for a in receiver.with_samples()}
    assert (sent["plain"]["ds_app"], sent["plain"]["ds_node"]) == ("fallback", "n00000")
    assert (sent["mapped"]["app"], sent["mapped"]["node"]) == ("k", "n00000")
    assert (sent["removed"]["k"], sent["removed"]["ds_app"]) == ("kept", "fallback")
    assert "ds_node" not in sent["removed"]


def test_own_metrics_travel_when_asked_for(tmp_path):
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, send_health_metrics=True)]):

            def names():
                return {dict(labels)["__name__"] for labels in receiver.stream()}

            remote.wait_for("own metrics", lambda: "dynamic_scoring_up" in names(), seconds=LONG)
    assert "dynamic_score" in names()
    remote.in_order(receiver.stream())


def test_users_headers_and_credentials(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("first-token\n")
    with remote.Receiver() as receiver, remote.Receiver() as other, remote.Scoring(t=remote.counted(2)) as scoring:
        basic = remote.endpoint(
            receiver,
            headers={"X-Scope-OrgID": "tenant-7", "x-empty-not": "a b"},
            basic_auth={"username": "user", "password": "pass:word"},
        )
        bearer = remote.endpoint(other, name="other", authorization={"credentials_file": str(secret)})
        with remote.Agent(tmp_path, scoring, [basic, bearer]) as agent:
            first, second = receiver.wait(1)[0], other.wait(1)[0]
            secret.write_text("second-token\n")
            remote.wait_for(
                "the new token",
                lambda: other.with_samples()[-1].header("Authorization") == "Bearer second-token",
            )
            page = agent.page("/metrics") + agent.page("/api/v1/status")
        said = page + agent.log()
    assert first.header("X-Scope-OrgID") == "tenant-7" and first.header("X-Empty-Not") == "a b"
    assert first.header("Authorization") == "Basic " + base64.b64encode(b"user:pass:word").decode()
    assert second.header("Authorization") == "Bearer first-token"
    assert not [word for word in ("pass:word", "first-token", "second-token") if word in said]


def test_credentials_in_the_url_are_not_shown(tmp_path):
    with remote.Receiver(503, 503) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        url = receiver.url("/write?key=sesame").replace("://", "://me:hunter2@")
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, url=url)]) as agent:
            first = receiver.wait(1)[0]
            agent.drained()
            said = agent.page("/metrics") + agent.page("/api/v1/status") + agent.log()
    assert first.path == "/write?key=sesame"
    assert first.header("Authorization") == "Basic " + base64.b64encode(b"me:hunter2").decode()
    assert "hunter2" not in said and "sesame" not in said


@pytest.mark.parametrize(
    "answer",
    [
        remote.Answer(200),
        remote.Answer(200, body=b"what is this?"),
        remote.Answer(200, body=b"x" * (1 << 20)),
        remote.Answer(202, headers={"Retry-After": "30"}),
        remote.Answer(204),
        remote.Answer(299, body=b'{"error":"ignored"}'),
    ],
    ids=lambda answer: f"{answer.status}-{len(answer.body)}",
)
def test_every_2xx_is_the_end_of_it(tmp_path, answer):
    with remote.Receiver(plan=lambda arrival: answer) as receiver, remote.Scoring(t=remote.counted(2)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver)]) as agent:
            receiver.wait(3)
            agent.drained()
            assert agent.remote("samples_failed_total") == agent.remote("samples_retried_total") == 0
    bodies = [arrival.body for arrival in receiver.arrivals]
    assert len(bodies) == len(set(bodies)), "sent again"
