"""The protocol's own conformance suite finds no fault with either generation, but for what the server leaves out, which
mcp/left_out_*.yaml names with the reason."""

import contextlib
import functools
import pathlib
import socket

import pytest

from lib.kube import script
from lib.process import BUILD, Process, environment, free_port, run
from lib.wait import LONG, wait_until

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
LEFT_OUT = pathlib.Path(__file__).parent / "mcp"


def accepts(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@functools.cache
def packages():
    return pathlib.Path(script("node-packages", "mcp"))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_requirements(tmp_path, revision):
    folder, port = packages(), free_port()
    fixture = Process("mcp-fixture", [BUILD / "test/mcp-fixture", f"127.0.0.1:{port}"], tmp_path / "fixture.log")
    try:
        wait_until(lambda: accepts(port), "the fixture listens")
        left_out = LEFT_OUT / f"left_out_{revision}.yaml"
        command = [folder / "node_modules/node/bin/node", folder / SUITE, "server", f"--url=http://127.0.0.1:{port}/mcp"]
        command += [f"--requirements={revision}", f"--expected-failures={left_out}"]
        done = run(*command, cwd=tmp_path, env=environment(), timeout=LONG)
        fixture.check_alive()
    finally:
        fixture.kill()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "✓ tools-list" in done.stdout and "✓ dns-rebinding-protection" in done.stdout
