"""Whatever goes wrong with a scoring API fails the round with a stage, a class and a helpful message."""

import gzip
import json
import re
import signal
import threading
import time

import pytest

from lib.agent import running_agent, summary
from lib.fake import compressed, cut_off, flood, hanging, plain, raw, redirect, results, running_fake
from lib.process import free_port
from lib.wait import LONG

GOOD = '{"results":[{"metric":{"node":"n"},"score":1}]}'
PACKED = gzip.compress(GOOD.encode())
HEAD = b"HTTP/1.1 200 OK\r\n"

# name: (reply, class, words in the reason)
CASES = {
    "json_500": (
        plain('{"error": "model not loaded"}', 500),
        "http_5xx",
        "500 Internal Server Error: .*model not loaded",
    ),
    "text_503": (plain("overloaded\n\x1b[31m", 503), "http_5xx", "503.*overloaded"),
    "no_words_500": (plain("", 500), "http_5xx", "500"),
    "many_429": (plain("slow down", 429, Retry_After="1"), "http_5xx", "429.*slow down"),
    "not_found": (plain("<h1>not found</h1>", 404), "http_4xx", "404.*not found"),
    "gone_304": (plain("", 304), "http_other", "304"),
    "half_way": (cut_off(GOOD[:20]), "broken", ""),
    "no_answer": (raw(b""), "broken", ""),
    "not_http": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "broken", "does not speak HTTP; if it is an https port"),
    "bad_chunk": (raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"), "broken", ""),
    "bad_gzip": (plain(b"\x1f\x8b not gzip", Content_Encoding="gzip"), "broken", "its body is not gzip"),
    "short_gzip": (plain(PACKED[:-9], Content_Encoding="gzip"), "broken", "gzip, but its body ends early"),
    "no_trailer_gzip": (plain(PACKED[:-1], Content_Encoding="gzip"), "broken", "gzip, but its body ends early"),
    "more_than_gzip": (plain(PACKED + b" ", Content_Encoding="gzip"), "broken", "gzip, but its body is followed by other data"),
    "zstd": (plain(b"\x28\xb5\x2f\xfd", Content_Encoding="zstd"), "broken", "zstd, an encoding that was not asked for"),
    "brotli": (plain(b"\x0b\x02\x80{}\x03", Content_Encoding="br"), "broken", "br, an encoding that was not asked for"),
    "zstd_503": (plain(b"\x28\xb5\x2f\xfd", 503, Content_Encoding="zstd"), "http_5xx", "503"),
    "gzip_bomb": (compressed(" " * (3 << 20) + GOOD), "too_large", "limit of 2097152 bytes"),
    "many_headers": (raw(HEAD + b"X-Filler: %s\r\n" % (b"x" * 900) * 400), "too_large", "headers"),
    "loop": (redirect("/loop"), "broken", "redirect"),
    "to_file": (redirect("file:///etc/passwd"), "broken", ""),
    "hangs": (hanging, "timeout", r"timed out after [345]\.[0-9] s with 0 bytes received"),
    "begins_and_hangs": (
        lambda c, r: (c.wfile.write(HEAD + b"Content-Length: 9\r\n\r\n{"), hanging(c, r)),
        "timeout",
        r"timed out after [345]\.[0-9] s with 1 bytes received",
    ),
    "large_100_mb": (
        flood(b'{"results":[', b" ", 100, b"]}"),
        "too_large",
        "104857614 bytes exceeds the limit of 2097152 bytes",
    ),
    "endless_100_mb": (
        flood(b'{"results":[', b" ", 100, b"]}", announced=False),
        "too_large",
        "limit of 2097152 bytes",
    ),
    "empty": (plain(""), "json", "not JSON.*the body is empty"),
    "truncated": (plain(GOOD[:-3]), "json", "line 1, column"),
    "two_values": (plain(GOOD + GOOD), "json", "line 1, column 48"),
    "deep": (plain('{"results":' + "[" * 100000), "json", ""),
    "html": (
        plain("<html>\n<title>Log in</title>" + "\x1b[31m" + "x" * 80, Content_Type="text/html"),
        "json",
        "line 1, column 1: .*; Content-Type: text/html, it begins with: <html> <title>Log in</title>.*x…$",
    ),
    "not_an_object": (plain("[1]"), "shape", "invalid scoring response"),
    "no_results": (plain('{"result":[]}'), "shape", 'missing "results"'),
    "results_twice": (plain('{"results":[],"results":[]}'), "shape", 'duplicate "results"'),
    "results_object": (plain('{"results":{}}'), "shape", ""),
    "no_score": (plain('{"results":[{"metric":{}}]}'), "shape", r"results\[0\].score: missing"),
    "huge_score": (plain('{"results":[{"score":1e999}]}'), "shape", "too large for a double"),
    "null_score": (plain('{"results":[{"score":null}]}'), "shape", "got null"),
    "too_many": (
        results(*[x for i in range(6) for x in ({"node": str(i)}, i)]),
        "series_limit",
        "limits.seriesPerScorer is 5",
    ),
}


@pytest.fixture(scope="module", name="world")
def agent_with_all_of_them():
    with running_fake() as fake:
        scorers = [summary(name, fake.on(f"/{name}", reply), timeout="60s") for name, (reply, _, _) in CASES.items()]
        for one in scorers:
            if "hangs" in one["scoreName"]:
                one["timeout"] = "5s"
        scorers.append(summary("refused", f"http://127.0.0.1:{free_port()}/", timeout="60s"))
        scorers.append(summary("unknown_host", "http://no-such-host.invalid/", timeout="60s"))
        scorers.append(summary("good", fake.on("/good", plain(GOOD)), timeout="60s"))
        limits = {"responseBytes": "2MiB", "seriesPerScorer": 5}
        with running_agent({"summaries": scorers, "limits": limits}) as agent:
            yield agent, agent.wait_all()


@pytest.mark.parametrize("name", CASES)
def test_failing(world, name):
    agent, status = world
    _, kind, words = CASES[name]
    error = status[name]["error"]
    assert status[name]["state"] == "failing" and error["stage"] == "scoring"
    assert not kind or error["class"] == kind, error
    assert error["text"] and error["text"].isprintable(), error
    assert error["url"].startswith("http://127.0.0.1:")
    assert re.search(words, error["text"]), error
    agent.wait_metric(
        "dynamic_scoring_round_errors_total", **{"score_name": name, "stage": "scoring", "class": error["class"]}
    )
    agent.wait_metric_is(0, "dynamic_scoring_up", score_name=name)
    agent.wait_metric("dynamic_scoring_requests_total", score_name=name, status="failure")
    assert not agent.scores(name)


def test_unreachable(world):
    _, status = world
    refused, unknown = status["refused"]["error"], status["unknown_host"]["error"]
    assert refused["class"] == "connect" and "could not connect to 127.0.0.1:" in refused["text"]
    assert unknown["class"] == "dns" and "could not resolve host: no-such-host.invalid" in unknown["text"]


def test_limits_are_counted(world):
    agent, _ = world
    for name, limit in (
        ("large_100_mb", "response_bytes"),
        ("gzip_bomb", "response_bytes"),
        ("too_many", "series_per_scorer"),
        ("hangs", "round_time"),
    ):
        agent.wait_metric("dynamic_scoring_limit_hits_total", limit=limit, score_name=name)


def test_the_good_one_among_them(world):
    agent, _ = world
    assert agent.wait_scores("good") == [({"node": "n"}, 1)]
    json.loads(agent.get("/api/v1/status").text)


def test_an_answer_that_waited_for_an_agent_that_stood_still(fake, start_agent):
    """Stopped, or on a machine that slept: nobody can say how old such scores are."""
    asked, stopped = threading.Event(), threading.Event()

    def late(connection, request):
        asked.set()
        stopped.wait()
        plain(GOOD)(connection, request)

    agent = start_agent({"summaries": [summary("late", fake.on("/late", late), interval=600, timeout="2s")]})
    assert asked.wait(LONG)
    agent.process.send(signal.SIGSTOP)
    stopped.set()
    time.sleep(3)
    agent.process.send(signal.SIGCONT)
    error = agent.wait_rounds("late")["error"]
    assert error["class"] == "timeout" and not agent.scores("late"), error
