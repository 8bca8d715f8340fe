"""Clients that hold connections stop nothing: scorers keep their rounds, and probes are answered."""

import pytest

from lib.agent import summary
from lib.attack import connections, drip, is_closed
from lib.client import call
from lib.fake import results
from lib.scorers import full, serve
from lib.wait import DEADLINE, wait_until

IDLE, SLOW, READERS = 1100, 1300, 40
READ_SLOWLY = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
CUT = "dynamic_scoring_http_readers_cut_total"


def with_open_files(program, soft):
    """The soft limit of many systems; the hard one stays."""
    program.command = ["prlimit", f"--nofile={soft}:", *program.command]


def test_idle_ones(fake, start_agent):
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)))]}, start=False)
    with_open_files(agent, 1024)
    agent.start()
    with connections(agent.port, IDLE):
        rounds = agent.wait_rounds("s")["rounds"]
        agent.wait_rounds("s", rounds + 3)
        assert agent.status("s")["state"] == "ok"
        assert agent.get("/-/healthy").status == 200
    assert agent.metric("process_max_fds") > 1024


def test_those_that_send_a_byte_now_and_then(fake, start_agent):
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)))]})
    with connections(agent.port, SLOW, b"G") as held:
        for _ in range(5):
            drip(held)
            assert agent.get("/-/healthy").status == 200
        rounds = agent.wait_rounds("s")["rounds"]
        agent.wait_rounds("s", rounds + 2)

        def all_closed():
            drip(held)
            assert agent.get("/-/healthy").status == 200
            return all(is_closed(s) for s in held)

        wait_until(all_closed, "none of them is left", every=0.5)


def read_slowly(agent, s):
    """Reads a response while the page changes twice; True if it is whole."""
    came = b""
    for _ in range(2):
        agent.wait_rounds("s", agent.status("s")["rounds"] + 1)
        came += s.recv(1000)
    head, _, body = came.partition(b"\r\n\r\n")
    [length] = [int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")]
    got = len(body)
    while got < length and (data := s.recv(1 << 16)):
        got += len(data)
    return got == length


def test_those_that_do_not_read(fake, start_agent):
    """Each holds a page of 9 MB that is not shown any more. One that reads, however slowly, is not cut."""
    pairs = [x for i in range(8000) for x in ({k: f"{i:0250}" for k in ("node", "namespace", "pod", "app")}, i)]
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results(*pairs)), timeout="60s")]})
    agent.wait_scores("s")
    with connections(agent.port, 1, READ_SLOWLY) as [reader]:
        assert read_slowly(agent, reader)
    assert agent.metric(CUT) == 0
    with connections(agent.port, READERS, receive_buffer=4096) as held:
        for n, s in enumerate(held):
            s.sendall(READ_SLOWLY)
            if n < 6:
                agent.wait_rounds("s", agent.status("s")["rounds"] + 1)
        agent.wait_metric(CUT)
        assert len(agent.scores("s")) == 8000
        assert agent.get("/-/healthy").status == 200


def test_on_the_controller(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    controller = start_controller(start=False)
    with_open_files(controller, 1024)
    controller.start()
    with (
        connections(controller.port, IDLE),
        connections(controller.port, READERS, b"GET /api/v1/pairs HTTP/1.1\r\n"),
        connections(controller.health_port, SLOW, b"G") as slow,
    ):
        hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
        hub.wait_scores("c1", "cpu")
        for path in ("/healthz", "/readyz"):
            drip(slow)
            assert controller.health(path).status == 200
        assert controller.get("/api/v1/status").status == 200
        assert controller.metric("process_max_fds") > 1024


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_probes_on_an_address_of_their_own(fake, start_agent, host, unused_port):
    probes = f"http://{host}:{unused_port(host)}"
    agent = start_agent(
        {"summaries": [summary("s", fake.on("/s", results({}, 1)))]}, f"--health-probe-bind-address={probes[7:]}"
    )
    with connections(agent.port, IDLE, READ_SLOWLY):
        for path in ("/-/healthy", "/-/ready"):
            assert call("GET", probes + path).status == 200
        assert call("GET", probes + "/metrics").status == 404
        assert call("GET", probes + "/-/reload").status == 404
    agent.wait_until(lambda: agent.get("/-/healthy").status == 200, "it answers on all addresses", DEADLINE)
