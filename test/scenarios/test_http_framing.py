"""A request that a proxy in front might read in another way is refused, and its connection is closed."""

import pytest

from lib.agent import running_agent
from lib.attack import exchange
from lib.client import call

CLOSE = b"Connection: close\r\n\r\n"
SECOND = b"GET /-/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(fields, body=b""):
    return b"POST /-/reload HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n" + body


BAD = {
    "length_and_coding": post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + SECOND),
    "coding_and_length": post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n" + SECOND),
    "two_lengths": post(b"Content-Length: 0\r\nContent-Length: 50\r\n", SECOND),
    "space_before_the_colon": post(b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n" + SECOND),
    "folded_coding": post(b"Transfer-Encoding: chunked\r\n x\r\n", b"0\r\n\r\n" + SECOND),
    "empty_name": post(b"X: y\r\n: x\r\n", SECOND),
    "two_hosts": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n" + SECOND,
    "nul_in_the_path": b"GET /metrics\0 HTTP/1.1\r\nHost: localhost\r\n\r\n" + SECOND,
    "coded_nul_in_the_path": b"GET /metrics%00 HTTP/1.1\r\nHost: localhost\r\n\r\n" + SECOND,
    "nul_in_a_field": b"GET /metrics HTTP/1.1\r\nHost: localhost\0.evil.example\r\n\r\n" + SECOND,
}


def is_refused(name, port, host):
    status, came = exchange(port, BAD[name], host)
    # libmicrohttpd 1.0 closes the connection without an answer if there is a NUL in the first line.
    return (status, came.count(b"HTTP/1.1 ")) in [(400, 1)] + [(None, 0)] * (name == "nul_in_the_path")


def check(port, host="127.0.0.1"):
    assert [name for name in BAD if not is_refused(name, port, host)] == []
    many = b"&".join(b"a%d=%d" % (i, i) for i in range(100))
    status, _ = exchange(port, b"GET /api/v1/status?" + many + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE, host)
    assert status == 200
    status, _ = exchange(port, b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n" + CLOSE, host)
    assert status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_by_the_agent(host, unused_port):
    address = f"[{host}]" if ":" in host else host
    port = unused_port(address)
    with running_agent({"summaries": []}, f"--web.listen-address={address}:{port}") as agent:
        check(port, host)
        assert call("GET", f"http://{address}:{port}/-/healthy").status == 200
        assert agent.get("/-/healthy").status == 200


def test_by_the_controller(start_controller):
    controller = start_controller()
    check(controller.port)
    assert [name for name in BAD if not is_refused(name, controller.health_port, "127.0.0.1")] == []
    assert controller.health().status == 200
