"""The agent listens on all configured addresses; a port in use is a clear error and exit status 1."""

import socket

import pytest

from lib.agent import PROGRAM, summary
from lib.client import call
from lib.fake import results
from lib.process import free_port, run


def test_two_addresses(fake, start_agent):
    port = free_port()
    agent = start_agent(
        {"summaries": [summary("s", fake.on("/s", results({}, 1)))]}, f"--web.listen-address=127.0.0.2:{port}"
    )
    agent.wait_scores("s")
    assert call("GET", f"http://127.0.0.2:{port}/-/ready").status == 200
    assert "\ndynamic_score{" in call("GET", f"http://127.0.0.2:{port}/metrics").text


def test_of_the_file(start_agent):
    """The flag takes precedence, so the agent runs without it."""
    port = free_port()
    agent = start_agent({"summaries": [], "listenAddresses": [f"localhost:{port}"]}, start=False)
    agent.command = [PROGRAM, "agent", f"--config.file={agent.file}"]
    agent.launch()
    agent.wait_until(lambda: call("GET", f"http://127.0.0.1:{port}/-/ready").status == 200, "it is ready")


@pytest.mark.parametrize("host", ["127.0.0.1", "", "[::1]"])
def test_a_port_in_use(start_agent, host):
    family = socket.AF_INET6 if host != "127.0.0.1" else socket.AF_INET
    try:
        taken = socket.create_server((host.strip("[]"), 0), family=family)
    except OSError as why:
        pytest.skip(f"no IPv6 here: {why}")
    with taken:
        port = taken.getsockname()[1]
        agent = start_agent({"summaries": []}, start=False)
        ended = run(PROGRAM, "agent", f"--config.file={agent.file}", f"--web.listen-address={host}:{port}")
    assert ended.returncode == 1
    assert f"listen on {host}:{port}: address already in use" in ended.stderr


@pytest.mark.parametrize(
    "address, words",
    [
        ("no-such-host.invalid:80", "could not resolve host"),
        ("127.0.0.1:65536", "port must be a number from 0 to 65535"),
        ("192.0.2.1:8080", "cannot assign requested address"),
    ],
)
def test_where_nobody_can_listen(start_agent, address, words):
    agent = start_agent({"summaries": []}, start=False)
    ended = run(PROGRAM, "agent", f"--config.file={agent.file}", f"--web.listen-address={address}")
    assert ended.returncode == 1
    assert f"listen on {address}: {words}" in ended.stderr
