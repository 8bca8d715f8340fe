"""The OTLP receiver answers as OTLP/HTTP asks: in the encoding of the request, with partial success, and with a status
that tells the client whether to try again."""

import gzip
import json
import time

import pytest

from lib.agent import running_agent
from lib.browser import shared_browser  # noqa: F401 (a fixture)
from lib.certificates import Authority
from lib.client import call
from lib.otlp import DELTA, counter, gauge, histogram, point, push, request
from lib.process import free_port
from lib.web import BASIC, client_context, web_file

PROTOBUF = "application/x-protobuf"


class Receiver:
    def __init__(self, agent, port):
        self.agent, self.url = agent, f"http://127.0.0.1:{port}/v1/metrics"

    def push(self, body, **headers):
        return push(self.url, body, **headers)


@pytest.fixture(scope="module")
def receiver():
    port = free_port()
    with running_agent({"summaries": []}, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        yield Receiver(agent, port)


def field(number, content):
    """A field of bytes in protobuf, shorter than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def test_all_points_stored(receiver):
    answer = receiver.push(request(gauge("plain", point(1), point(2, labels={"a": "b"}))))
    assert (answer.status, answer.json) == (200, {})
    assert answer.headers["Content-Type"] == "application/json"


def test_protobuf_is_answered_in_protobuf(receiver):
    number = b"\x19" + (int(time.time()) * 10**9).to_bytes(8, "little") + b"\x31" + (7).to_bytes(8, "little")
    metric = field(1, b"in.protobuf") + field(5, field(1, number))
    answer = receiver.push(field(1, field(2, field(2, metric))), Content_Type=PROTOBUF)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"] == PROTOBUF
    refused = receiver.push(field(1, field(2, field(2, metric)))[:-1], Content_Type=PROTOBUF)
    assert refused.status == 400
    assert refused.headers["Content-Type"] == PROTOBUF
    assert refused.body.startswith(b"\x08\x03\x12")  # google.rpc.Status: code INVALID_ARGUMENT, message
    assert b"invalid protobuf: malformed field at byte 0" in refused.body


@pytest.mark.parametrize("coding", ["gzip", "identity", ""])
def test_codings(receiver, coding):
    body = json.dumps(request(gauge("packed", point(1)))).encode()
    answer = receiver.push(gzip.compress(body) if coding == "gzip" else body, Content_Encoding=coding)
    assert (answer.status, answer.json) == (200, {})


def test_rejected_points_are_told_and_counted(receiver):
    now = time.time()
    counts = {"count": "3", "bucketCounts": ["1", "1", "1"], "explicitBounds": [1]}
    answer = receiver.push(
        request(
            gauge("rejected", point(1, now), point(2, now - 5), point(3, now), point(4, now + 3600)),
            gauge("rejected.old", point(5, 1)),
            counter("rejected.sum", point(1, now), temporality=0),
            histogram("rejected.histogram", point(None, now, **counts)),
            gauge("", point(1, now)),
            counter("deltas", point(5, now - 10, now - 20), point(6, now - 10, now - 20), temporality=DELTA),
        )
    )
    assert answer.status == 200
    partial = answer.json["partialSuccess"]
    assert partial["rejectedDataPoints"] == "8"
    assert partial["errorMessage"] == (
        "8 of 10 data points rejected: out_of_order 1, duplicate 1, too_old 1, too_new 1, bad_labels 1, invalid 1, "
        "temporality 1, overlap 1; the first one is of the metric rejected"
    )
    for reason in ("out_of_order", "duplicate", "too_old", "too_new", "bad_labels", "invalid", "temporality", "overlap"):
        receiver.agent.wait_metric_is(1, "dynamic_scoring_otlp_points_rejected_total", reason=reason)


@pytest.mark.parametrize(
    "body, headers, status, why",
    [
        (b"{}", {"Content_Type": "text/plain"}, 415, "unsupported Content-Type"),
        (b"{}", {"Content_Encoding": "br"}, 415, "unsupported Content-Encoding"),
        (b"{", {}, 400, "invalid JSON: line 1, column 2"),
        (b"plain", {"Content_Encoding": "gzip"}, 400, "body has Content-Encoding gzip, but is not gzip"),
        (gzip.compress(b"{}")[:-3], {"Content_Encoding": "gzip"}, 400, "ends early"),
        (gzip.compress(bytes(65 << 20)), {"Content_Encoding": "gzip"}, 413, "exceeds the limit of 67108864 bytes"),
        (b'{"resourceMetrics":[{"resource":{"attributes":[{"value":' + b'{"arrayValue":{"values":[' * 99, {}, 400, "deep"),
        (b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{"asInt":1.5', {}, 400, "integer"),
    ],
    ids=["media type", "coding", "cut", "not gzip", "cut gzip", "too large", "deep", "not an integer"],
)
def test_refused_requests(receiver, body, headers, status, why):
    answer = receiver.push(body, **headers)
    assert answer.status == status
    assert why in answer.text
    if answer.headers["Content-Type"] == "application/json":
        assert set(answer.json) == {"code", "message"}


def test_only_metrics_are_there(receiver):
    assert call("GET", receiver.url).status == 405
    assert push(receiver.url.replace("metrics", "traces"), {}).status == 404
    assert call("GET", receiver.url.replace("/v1/metrics", "/metrics")).status == 404


def test_requests_and_points_are_shown(receiver):
    receiver.push(request(gauge("shown", point(1))))
    status = receiver.agent.status()["otlp"]
    assert status["address"] in receiver.url
    assert status["points"] >= 1 and status["series"] >= 1 and status["receivedAt"]
    receiver.agent.wait_metric("dynamic_scoring_http_requests_total", code="200", handler="/v1/metrics")


def test_the_page_shows_them(receiver, browser):
    receiver.push(request(gauge("seen", point(1)), gauge("seen.late", point(1, 1))))
    browser.open(receiver.agent.url)
    text = browser.document_text()
    assert "OpenTelemetry" in text and "Points stored" in text and "too_old" in text


def test_the_web_configuration_applies(tmp_path):
    """TLS, and users: without a password nothing is taken."""
    authority, port = Authority(tmp_path / "ca"), free_port()
    web, tls = web_file(tmp_path, authority.issue("server"), users=True), client_context(authority)
    flags = f"--otlp.listen-address=127.0.0.1:{port}", f"--web.config.file={web}"
    with running_agent({"summaries": []}, *flags, tls=tls, headers=BASIC) as agent:
        url, body = f"https://127.0.0.1:{port}/v1/metrics", json.dumps(request(gauge("g", point(1)))).encode()
        kind = {"Content_Type": "application/json"}
        assert call("POST", url, body, tls=tls, **kind).status == 401
        assert agent.status()["otlp"]["points"] == 0
        assert call("POST", url, body, tls=tls, **kind, **BASIC).status == 200
        assert agent.status()["otlp"]["points"] == 1
