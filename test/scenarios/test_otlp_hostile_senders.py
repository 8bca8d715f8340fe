"""Senders of requests that are small on the wire and large in memory do not keep others from sending."""

import gzip
import json
import os
import struct
import threading
import time

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


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed(number, value):
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def attribute(key, any_value):
    return field(1, key) + field(2, any_value)


def points(number, n, fields=b""):
    """Points of n series, each with an attribute of its own."""
    at = fixed(3, int(time.time()) * 10**9)
    return b"".join(field(1, at + fields + field(number, attribute(b"k", field(1, b"v%d" % i)))) for i in range(n))


def hostile(resource, name, kind, data):
    return gzip.compress(field(1, field(1, resource) + field(2, field(2, field(1, name) + field(kind, data)))))


def costly_requests():
    """Each is small, and would take minutes if what belongs to all series of a resource were made for each of them."""
    buckets = 395
    numbers = field(7, struct.pack(f"<{buckets}d", *map(float, range(buckets)))) + field(6, bytes(8 * (buckets + 1)))
    many = b"\x0a\x00" * 250_000
    large = field(1, attribute(b"service.name", field(6, field(1, b"") * 16_000)))
    yield hostile(many, b"h", 9, points(9, 100, numbers) + b"\x10\x02")
    yield hostile(many, b"g", 5, points(7, 10_000, fixed(6, 1)))
    yield hostile(large, b"g", 5, points(7, 100_000, fixed(6, 1)))


def test_scoring_goes_on_behind_costly_requests(fake):
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1/metrics"
    scorer = summary("s", fake.on("/s", results({}, 1)), sourceType="OpenTelemetry", sourceQuery="honest")
    with running_agent({"summaries": [scorer]}, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        threads = [
            threading.Thread(target=push, args=(url, body), kwargs={"Content_Type": PROTOBUF, "Content_Encoding": "gzip"})
            for body in costly_requests()
        ]
        for thread in threads:
            thread.start()
        try:
            assert push(url, request(gauge("honest", point(1)))).json == {}
            rounds = agent.status("s")["rounds"]
            agent.wait_rounds("s", rounds + 3)
            wait_until(lambda: fake.requests("/s")[-1].json["data"][0]["metric"] == {"__name__": "honest"}, "it is scored")
        finally:
            for thread in threads:
                thread.join()


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
