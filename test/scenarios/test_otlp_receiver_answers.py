"""The OTLP receiver answers as OTLP/HTTP asks: in the encoding of the request, with partial success, and with a status
that tells the client whether to try again."""

import contextlib
import gzip
import http.client
import json
import time
import zlib

import pytest

from lib.agent import running_agent
from lib.browser import shared_browser  # noqa: F401 (a fixture)
from lib.certificates import Authority
from lib.client import Answer, call
from lib.otlp import DELTA, counter, gauge, histogram, point, push, request
from lib.process import free_port
from lib.wait import DEADLINE, wait_until
from lib.web import BASIC, client_context, web_file

PROTOBUF = "application/x-protobuf"


class Receiver:
    def __init__(self, agent, port):
        self.agent, self.port, self.url = agent, port, f"http://127.0.0.1:{port}/v1/metrics"

    def push(self, body, **headers):
        return push(self.url, body, **headers)


@pytest.fixture(scope="module")
def receiver():
    port = free_port()
    with running_agent({"summaries": []}, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        yield Receiver(agent, port)


def answer_of(connection):
    response = connection.getresponse()
    return Answer(response.status, response.headers, response.read())


def refusal(receiver, encoding):
    """The answer to a request of ten bytes, which are not valid; None if they were read."""
    answer = receiver.push(bytes(10), Content_Type=encoding)
    return None if answer.status == 400 else answer


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


def check_status(answer, status, code, why, encoding):
    """The answer's body is a google.rpc.Status in this encoding."""
    assert (answer.status, answer.headers["Content-Type"]) == (status, encoding)
    if encoding == PROTOBUF:
        assert answer.body == bytes([8, code]) + field(2, why.encode())
    else:
        assert answer.json == {"code": code, "message": why}


ENCODINGS = pytest.mark.parametrize("encoding", [PROTOBUF, "application/json"])


@ENCODINGS
def test_only_metrics_are_there(receiver, encoding):
    kind = {"Content_Type": encoding}
    check_status(call("PUT", receiver.url, b"", **kind), 405, 12, "method not allowed for this path", encoding)
    traces = push(receiver.url.replace("metrics", "traces"), b"", **kind)
    check_status(traces, 404, 5, "not found. Available paths:\nPOST /v1/metrics", encoding)


def test_a_browser_gets_json(receiver):
    check_status(call("GET", receiver.url), 405, 12, "method not allowed for this path", "application/json")


@contextlib.contextmanager
def sending(receiver, announced, sent, encoding):
    """A request whose body is sent in part."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=DEADLINE)) as connection:
        connection.putrequest("POST", "/v1/metrics")
        connection.putheader("Content-Type", encoding)
        connection.putheader("Content-Length", str(announced))
        connection.endheaders(bytes(sent))
        yield connection


@ENCODINGS
def test_too_long_body(receiver, encoding):
    with sending(receiver, (16 << 20) + 1, 0, encoding) as connection:
        answer = answer_of(connection)
    check_status(answer, 413, 8, "request body exceeds the limit of 16777216 bytes", encoding)


def test_too_many_bodies(receiver):
    """Four bodies of 16 MiB that lack a byte leave four bytes."""
    with contextlib.ExitStack() as others:
        for _ in range(4):
            others.enter_context(sending(receiver, 16 << 20, (16 << 20) - 1, PROTOBUF))
        for encoding in (PROTOBUF, "application/json"):
            refused = wait_until(lambda e=encoding: refusal(receiver, e), "a body is refused")
            check_status(refused, 503, 14, "no memory for the request body", encoding)
            assert refused.headers["Retry-After"]


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
        check_status(call("POST", url, body, tls=tls, **kind), 401, 16, "user and password required", "application/json")
        assert agent.status()["otlp"]["points"] == 0
        assert call("POST", url, body, tls=tls, **kind, **BASIC).status == 200
        assert agent.status()["otlp"]["points"] == 1


@ENCODINGS
def test_over_the_limit_of_requests(tmp_path, encoding):
    port, web = free_port(), tmp_path / "web.yml"
    web.write_text("rate_limit:\n  interval: 1h\n  burst: 1\n")
    flags = f"--otlp.listen-address=127.0.0.1:{port}", f"--web.config.file={web}"
    with running_agent({"summaries": []}, *flags, start=False) as agent:
        agent.launch()
        url = f"http://127.0.0.1:{port}/v1/metrics"
        refused = wait_until(lambda: over_the_limit(push(url, b"", Content_Type=encoding)), "the limit is reached")
        check_status(refused, 429, 8, "over the limit of requests", encoding)
        assert refused.headers["Retry-After"] == "3600"


def over_the_limit(answer):
    return answer if answer.status == 429 else None


def test_members_in_snake_case_are_ignored_and_named(receiver):
    """As the specification asks, but not without a word; `{}` needs none."""
    snake = {"resource_metrics": [{"scope_metrics": [{"metrics": []}]}]}
    answer = receiver.push(snake)
    expected = 'no data points found: unknown member "resource_metrics", expected resourceMetrics'
    assert answer.status == 200
    assert answer.json["partialSuccess"] == {"rejectedDataPoints": "0", "errorMessage": expected}
    assert receiver.push({}).json == {}
    assert receiver.push(snake).status == 200
    receiver.agent.wait_metric_is(2, "dynamic_scoring_otlp_requests_without_points_total")
    assert receiver.agent.log().count("OTLP request without data points") == 1


def test_deflate_is_called_deflate(receiver):
    body = json.dumps(request(gauge("deflated", point(1)))).encode()
    assert receiver.push(zlib.compress(body), Content_Encoding="deflate").json == {}
    refused = receiver.push(zlib.compress(body)[:-9], Content_Encoding="deflate")
    assert refused.status == 400
    assert "body has Content-Encoding deflate, but" in refused.json["message"]
