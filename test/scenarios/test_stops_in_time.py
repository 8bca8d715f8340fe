"""SIGTERM stops the agent with exit status 0 whatever it is doing; slow clients get five seconds."""

import signal
import socket
import subprocess
import time

import pytest

from lib.agent import PROGRAM, summary
from lib.fake import hanging, results
from lib.process import Process


def stop(agent, number=signal.SIGTERM):
    agent.process.send(number)
    assert agent.process.wait() == 0
    assert "stopping" in agent.log() and "stopped" in agent.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_with_hanging_scorers_and_idle_clients(fake, start_agent, number):
    fake.on("/hangs", hanging)
    scorers = [
        summary(f"s{i}", fake.url + "/hangs", source=fake.url + "/hangs" if i % 2 else None, timeout="5m")
        for i in range(20)
    ]
    agent = start_agent({"summaries": scorers})
    agent.wait_until(lambda: len(fake.requests()) >= 20, "all rounds hang")
    idle = [socket.create_connection(("127.0.0.1", agent.port)) for _ in range(3)]
    idle[1].sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
    idle[2].sendall(b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert idle[2].recv(100)
    stop(agent, number)  # the rounds would take five minutes, the connections two
    for s in idle:
        s.close()


def test_with_a_scrape_that_is_not_read(fake, start_agent):
    """An unread response gets five seconds; one that is being read is completed."""
    pairs = [x for i in range(20000) for x in ({"node": str(i), "meta": "m" * 250, "pod": "p" * 250}, i)]
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results(*pairs)), interval=600)]})
    agent.wait_until(
        lambda: len(agent.get("/metrics").body) > 10_000_000, "the page is larger than what sockets hold"
    )
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", agent.port))
    slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert slow.recv(9) == b"HTTP/1.1 "
    with socket.create_connection(("127.0.0.1", agent.port)) as reader:
        reader.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        first = reader.recv(1000)
        agent.process.send(signal.SIGTERM)
        started, got = time.monotonic(), len(first)
        while part := reader.recv(1 << 20):
            got += len(part)
    assert got > 10_000_000
    assert agent.process.wait() == 0
    assert time.monotonic() - started > 1
    slow.close()


def test_while_it_starts(start_agent):
    """A signal at any moment ends it: with the default action until it is ready, then with its own."""
    agent = start_agent({"summaries": []}, start=False)
    for delay in (0, 0.01, 0.03, 0.1):
        process = Process(
            "agent",
            [PROGRAM, "agent", f"--config.file={agent.file}", "--web.listen-address=127.0.0.1:0"],
            agent.folder / "early.log",
        )
        time.sleep(delay)  # any moment will do
        process.send(signal.SIGTERM)
        try:
            assert process.wait() in (0, -signal.SIGTERM)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
