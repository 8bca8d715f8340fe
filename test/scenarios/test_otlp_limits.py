"""The limits of the series received by OTLP: new series are refused, or the oldest samples evicted, and counted."""

import random
import time

from lib.agent import running_agent, summary
from lib.fake import results
from lib.otlp import gauge, point, push, request
from lib.process import free_port


def test_new_series_are_refused_until_the_limit_is_raised(fake):
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1/metrics"
    scorer = summary("s", fake.on("/s", results({}, 1)), sourceType="OpenTelemetry", sourceQuery="sum(m)")
    config = {"summaries": [scorer], "limits": {"otlpSeries": 2}}
    with running_agent(config, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        answer = push(url, request(gauge("m", *(point(i, labels={"pod": f"p{i}"}) for i in range(3)))))
        assert answer.json["partialSuccess"]["rejectedDataPoints"] in (1, "1")
        agent.wait_metric_is(1, "dynamic_scoring_otlp_points_rejected_total", reason="series_limit")
        assert agent.metric("dynamic_scoring_otlp_series") == agent.metric("dynamic_scoring_otlp_series_limit") == 2
        agent.wait_log("new OTLP series refused")
        assert "limit=limits.otlpSeries" in agent.log()
        agent.wait_metric("dynamic_scoring_source_warnings_total", score_name="s")
        assert "because limits.otlpSeries was reached" in agent.status("s")["warnings"]["first"]
        agent.apply({"summaries": [scorer], "limits": {"otlpSeries": 3}})
        assert push(url, request(gauge("m", point(7, labels={"pod": "p2"})))).json == {}
        agent.wait_metric_is(3, "dynamic_scoring_otlp_series")


def test_the_oldest_samples_are_evicted_and_no_score_is_computed_without_them(fake):
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1/metrics"
    scorer = summary("s", fake.on("/s", results({}, 1)), sourceType="OpenTelemetry", sourceQuery="m", sourceRange=600)
    config = {"summaries": [scorer], "limits": {"otlpMemory": "1MiB"}}
    with running_agent(config, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        start = time.time() - 300
        for part in range(0, 160000, 20000):
            points = [point(random.random(), start + (part + i) / 1000) for i in range(20000)]
            assert push(url, request(gauge("m", *points))).json == {}
        agent.wait_metric("dynamic_scoring_otlp_samples_evicted_total")
        assert agent.metric("dynamic_scoring_otlp_memory_limit_bytes") == 1 << 20
        assert agent.metric("dynamic_scoring_otlp_memory_bytes") <= 1 << 20
        assert push(url, request(gauge("new", point(1)))).json["partialSuccess"]["rejectedDataPoints"] in (1, "1")
        agent.wait_metric("dynamic_scoring_otlp_points_rejected_total", reason="bytes_limit")
        agent.wait_log("OTLP samples evicted before their time")
        agent.wait_log("samples of the time range were evicted: limits.otlpMemory (1048576 bytes) is reached")
        agent.wait_metric_is(0, "dynamic_scoring_up", score_name="s")
