"""Prometheus can scrape the agent in every format that it may request, and returns exactly the same scores."""

import pytest

from lib.agent import labels, running_agent, summary
from lib.client import call
from lib.fake import plain, results, running_fake
from lib.prometheus import running_prometheus
from lib.wait import wait_until

HOSTILE = {
    "node": 'a "quoted" \\ back\\\\slash',
    "pod": "two\nlines\tand a tab",
    "app": "ünï ☃ 🎈",
    "meta": "x" * 300,
    "device": "\ufffd",
    "namespace": "}{,=# EOF",
}
ACCEPT = {
    "as_it_asks": None,
    "openmetrics_0": "application/openmetrics-text; version=0.0.1",
    "text": "text/plain; version=0.0.4",
    "anything": "*/*",
}
ENCODINGS = {"gzip": "gzip", "identity": "identity"}


def relay(agent, served):
    """A proxy between Prometheus and the agent that changes the request's headers and records the response's."""

    def send(connection, request):
        _, name, encoding = request.path.split("/")
        accept = ACCEPT[name] or request.headers["Accept"]
        answer = agent.get("/metrics", Accept=accept, Accept_Encoding=ENCODINGS[encoding])
        served[name, encoding] = (answer.headers["Content-Type"], answer.headers["Content-Encoding"])
        passed_on = {k: answer.headers[k] for k in ("Content-Type", "Content-Encoding") if answer.headers[k]}
        plain(answer.body, answer.status, **passed_on)(connection, request)

    return send


@pytest.fixture(scope="module", name="world")
def agent_and_prometheus():
    """One job that scrapes the agent directly, and one for each format and encoding."""
    with running_fake() as fake:
        odd = fake.on("/odd", results({"node": "n1"}, 1e-7, {"node": "n2"}, -2.5, HOSTILE, float("inf")))
        with running_agent({"summaries": [summary("odd score", odd)]}, "--cluster-name=k 1") as agent:
            agent.wait_scores("odd score")
            served, jobs = {}, [{"job_name": "agent", "static_configs": [{"targets": [agent.url[7:]]}]}]
            for name in ACCEPT:
                for encoding in ENCODINGS:
                    path = f"/{name}/{encoding}"
                    fake.on(path, relay(agent, served))
                    target = {"static_configs": [{"targets": [fake.url[7:]]}]}
                    jobs.append({"job_name": path, "metrics_path": path, **target})
            with running_prometheus(*jobs) as prometheus:
                yield agent, prometheus, served


def test_labels_and_values(world):
    agent, prometheus, _ = world
    found = prometheus.wait_query('dynamic_score{job="agent"}', "Prometheus has the scores")
    here = {"__name__": "dynamic_score", "job": "agent", "instance": agent.url[7:]}
    common = {"cluster": "k 1", "score_name": "odd score"}
    cut = {**HOSTILE, "meta": "x" * 256}
    expected = [
        (labels(**common, node="n1"), 1e-7),
        (labels(**common, node="n2"), -2.5),
        (labels(**common, **cut), float("inf")),
    ]
    expected = [({**here, **{k: v for k, v in l.items() if v}}, v) for l, v in expected]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    prometheus.wait_query('up{job="agent"} == 1', "the agent is up")


def test_own_metrics_come_along(world):
    _, prometheus, _ = world
    [(_, age)] = prometheus.wait_query(
        'time() - dynamic_score_timestamp_seconds{job="agent"}', "there is a timestamp"
    )
    assert -1 < age < 600
    query = 'histogram_quantile(0.5, dynamic_scoring_perform_duration_seconds_bucket{job="agent"})'
    [(_, seconds)] = prometheus.wait_query(query, "the histogram can be used")
    assert 0 < seconds < 300


def test_every_format_and_encoding(world):
    _, prometheus, served = world

    def all_up():
        up = {s["job"]: v for s, v in prometheus.query("up")}
        return len(up) == 9 and all(up.values())

    wait_until(all_up, "all jobs are up")
    prometheus.wait_query("count(count by (job) (dynamic_score)) == 9", "all jobs have the scores")
    prometheus.wait_query("count(count by (job) (dynamic_score) == 3) == 9", "all jobs have the three scores")
    text, openmetrics = "text/plain; version=0.0.4", "application/openmetrics-text; version="
    kinds = {
        "as_it_asks": openmetrics + "1.0.0",
        "openmetrics_0": openmetrics + "0.0.1",
        "text": text,
        "anything": text,
    }
    for (name, encoding), got in served.items():
        assert got == (kinds[name] + "; charset=utf-8", "gzip" if encoding == "gzip" else None), (name, encoding)


def test_prometheus_keeps_no_timestamp_of_ours(world):
    """An explicit timestamp would disable staleness."""
    _, prometheus, _ = world
    prometheus.wait_query('dynamic_score{job="agent"}', "Prometheus has the scores")
    metadata = call("GET", f"{prometheus.url}/api/v1/targets/metadata?metric=dynamic_score").json["data"]
    assert {m["type"] for m in metadata} == {"gauge"}
    agent, _, _ = world
    for accept in (None, ACCEPT["openmetrics_0"]):
        page = agent.get("/metrics", **({"Accept": accept} if accept else {})).text
        for line in page.splitlines():
            if line.startswith("dynamic_score{"):
                assert len(line.rsplit("}", 1)[1].split()) == 1, line
