"""A request for the optimizer is judged while it is read: what its schema refuses is never built in memory, and the largest
that it allows has a ceiling."""

import re

import pytest

from lib.optimizer import STATEFUL, kubeconfig_of_nothing, running_optimizer

BODY = 16 << 20
TREE_MIB = 400  # of a tree of five million objects, AddressSanitizer or not, several times as many


def peak_mib(optimizer):
    text = open(f"/proc/{optimizer.process.popen.pid}/status", encoding="ascii").read()
    return int(re.search(r"VmHWM:\s+(\d+) kB", text).group(1)) >> 10


def filled(head, unit, tail):
    """Head and tail, and between them as many units as fit into 16 MiB."""
    n = (BODY - len(head) - len(tail)) // (len(unit) + 1)
    return head + (unit + b",") * (n - 1) + unit + tail


@pytest.mark.parametrize("unit", [b"{}", b"[]", b"0", b'""'])
def test_what_the_schema_does_not_know(tmp_path, unit):
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"x":['
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer:
        before = peak_mib(optimizer)
        answer = optimizer.post("/plan", filled(b'{"x":[', unit, b"]}"))
        assert (answer.status, answer.json["detail"]) == (422, "x: unknown field")
        answer = optimizer.post("/plan", filled(b'{"clusters":[', unit, b"]}"))
        assert answer.status == 422 and answer.json["field"].startswith("clusters[0]")
        body = filled(call, unit, b']},"name":"plan"}}')
        result = optimizer.post("/mcp", body, MCP_Protocol_Version=STATEFUL).json["result"]
        assert result["isError"] and result["content"][0]["text"] == "x: unknown field"
        body = filled(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[', unit, b"]}}")
        assert optimizer.post("/mcp", body, MCP_Protocol_Version=STATEFUL).json == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert peak_mib(optimizer) - before < TREE_MIB


def test_the_largest_requests(tmp_path):
    """200,000 workloads are promised. Millions of names where each list keeps its limit are refused with a word."""
    head = b'{"preference":{"addonPlacementScore":"s","scoreDimensionFormat":"${app}"},"clusters":[{"name":"c","availablePolicies"'
    head += b':[{"name":"p"}]}],'
    workloads = b",".join(b'{"name":"workload-%06d","replicas":2}' % i for i in range(200000))
    pins = b",".join([b'{"workload":"w","clusters":[%s]}' % b",".join([b'"c"'] * 10000)] * 410)
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer:
        answer = optimizer.post("/plan", head + b'"targetWorkloads":[' + workloads + b"]}")
        assert answer.status in (503, 504), answer.text  # there is no API server to read
        assert len(pins) < BODY - 1000
        answer = optimizer.post("/plan", head + b'"targetWorkloads":[{"name":"w"}],"pin":[' + pins + b"]}")
        assert (answer.status, answer.json["detail"]) == (413, "the request would take more than 320 MiB of memory")
        answer = optimizer.post("/plan", head + b'"targetWorkloads":[' + workloads + b',{"name":"one-more"}]}')
        assert answer.json["detail"] == "targetWorkloads: must have at most 200000 elements"
