"""Senders of requests that are small on the wire and large in memory do not keep others from sending."""

import gzip
import json
import os
import threading

from lib.agent import running_agent, summary
from lib.fake import results
from lib.otlp import gauge, point, push, request
from lib.process import free_port
from lib.wait import wait_until

PROTOBUF = "application/x-protobuf"
HOSTILE = 40
# 32 million empty messages: 63 KB.
BOMB = gzip.compress(b"\x0a\x00" * (32 << 20))


def test_honest_senders_are_answered_meanwhile():
    port, end, answers = free_port(), threading.Event(), []
    url = f"http://127.0.0.1:{port}/v1/metrics"

    def attack():
        while not end.is_set():
            answers.append(push(url, BOMB, Content_Type=PROTOBUF, Content_Encoding="gzip"))

    with running_agent({"summaries": []}, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        threads = [threading.Thread(target=attack) for _ in range(HOSTILE)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(answers) > HOSTILE, "the attack goes on")
            for i in range(20):
                body = gzip.compress(json.dumps(request(gauge("m", *(point(k, labels={"pod": f"p{k}"}) for k in range(50))))).encode())
                assert push(url, body, Content_Encoding="gzip").status == 200, i
        finally:
            end.set()
            for thread in threads:
                thread.join()
        assert {a.status for a in answers} <= {413, 503}
        refused = [a for a in answers if a.status == 503]
        assert refused and all(a.headers["Retry-After"] for a in refused)
        assert agent.status()["otlp"]["series"] == 50


def test_too_many_fields():
    port = free_port()
    with running_agent({"summaries": []}, f"--otlp.listen-address=127.0.0.1:{port}"):
        url = f"http://127.0.0.1:{port}/v1/metrics"
        for encoding, body in ((PROTOBUF, b"\x0a\x00" * 4_000_001), ("application/json", b'{"resourceMetrics":[' + b"{}," * 4_000_001)):
            answer = push(url, body, Content_Type=encoding)
            assert answer.status == 413
            assert "more than 4000000 fields; send smaller batches" in answer.text


def test_an_endless_query_holds_nothing(fake):
    """200,000 separators, and a query that is far too long: their scorers fail, the other one goes on."""
    port = free_port()
    sources = {"sourceType": "OpenTelemetry", "sourceRange": 60, "sourceStep": 1}
    config = {
        "summaries": [
            summary("separators", fake.on("/a", results({}, 1)), **{**sources, "sourceQuery": ";" * 200_000 + "m"}),
            summary("good", fake.on("/c", results({}, 1)), **{**sources, "sourceQuery": "m"}),
        ]
    }
    with running_agent(config, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        assert push(f"http://127.0.0.1:{port}/v1/metrics", request(gauge("m", point(1)))).json == {}
        assert agent.wait_scores("good") and agent.wait_scores("separators")
        config["summaries"][0]["sourceQuery"] = "m" + "+m" * 20_000
        for query, why in (
            ("m" + "+m" * 20_000, "query of 40001 bytes; sourceType OpenTelemetry takes at most 16384"),
            ("(" * 10_000, "more than 50 nested expressions"),
        ):
            config["summaries"][0]["sourceQuery"] = query
            agent.write(config)
            agent.reload()
            agent.wait_log(why)
            assert agent.scores("good")


def test_a_fifo_in_the_storage_folder_holds_nothing(tmp_path):
    """Under the name of the file that earlier versions loaded."""
    os.mkfifo(tmp_path / "otlp-series")
    port = free_port()
    with running_agent({"summaries": []}, f"--otlp.listen-address=127.0.0.1:{port}", f"--storage.path={tmp_path}"):
        assert push(f"http://127.0.0.1:{port}/v1/metrics", request(gauge("m", point(1)))).json == {}
