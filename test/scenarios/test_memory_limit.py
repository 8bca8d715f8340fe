"""limits.memory bounds the responses of all scorers together: those that hold too much fail by name, others score on."""

from lib.agent import summary
from lib.fake import flood, hanging, results, series

LIMIT = 16 << 20


def stuck(megabytes):
    """That much of a response, and then nothing."""

    def send(connection, request):
        connection.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        block = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        for _ in range(megabytes):
            connection.wfile.write(block)
        hanging(connection, request)

    return send


def test_others_go_on(fake, start_agent):
    good = flood(b'{"results":[{"metric":{},"score":1}', b" ", 2, b"]}")
    scorers = [summary(f"stuck_{i}", fake.on(f"/stuck/{i}", stuck(10)), timeout="60s") for i in range(4)]
    scorers.append(summary("too_large", fake.on("/too_large", flood(b"[", b" ", 20, b"]")), timeout="60s"))
    scorers.append(summary("source", fake.on("/s", results({}, 1)), source=fake.url, timeout="60s"))
    scorers.append(summary("good", fake.on("/good", good), timeout="60s"))
    scorers.append(summary("small", fake.on("/small", results({}, 2)), timeout="60s"))
    fake.on("/api/v1/query_range", series({"node": "n"}))
    agent = start_agent({"summaries": scorers, "limits": {"memory": "16MiB"}})
    for name in ("good", "small", "source"):
        before = agent.wait_rounds(name)["rounds"]
        status = agent.wait_rounds(name, before + 3)
        assert status["error"] is None, status["error"]
    error = agent.wait_rounds("too_large")["error"]
    assert error["class"] == "memory" and "limits.memory" in error["hint"], error
    assert "over limits.memory (16 MiB): the response does not fit" in error["text"]

    def one_is_ended():
        errors = [agent.status(f"stuck_{i}")["error"] for i in range(4)]
        return any(e and "over limits.memory (16 MiB): other responses are waiting" in e["text"] for e in errors)

    agent.wait_until(one_is_ended, "a response that does not end has been given up")
    agent.wait_metric("dynamic_scoring_limit_hits_total", limit="memory", score_name="too_large")
    assert agent.metric("dynamic_scoring_response_memory_limit_bytes") == LIMIT
    assert agent.metric("dynamic_scoring_response_memory_bytes") <= LIMIT
