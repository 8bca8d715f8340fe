"""Whatever a source returns, the agent survives it, reports what is wrong, and never sends invalid JSON to a scoring
API."""

import json
import re

import pytest

from lib.agent import running_agent, summary
from lib.fake import compressed, cut_off, dripping, flood, plain, redirect, results, running_fake


def matrix(result, more=""):
    return f'{{"status":"success","data":{{"resultType":"matrix","result":{result}}}{more}}}'


SERIES = '[{"metric":{"node":"n"},"values":[[1,"2"]]}]'
LIKE_SERIES = json.loads(SERIES)

# name: (reply, class, words in the reason)
BAD = {
    "two_data": (
        plain('{"status":"success","data":{"result":[]},"data":{"result":[]}}'),
        "shape",
        'duplicate "data"$',
    ),
    "error_400": (
        plain('{"status":"error","errorType":"bad_data","error":"parse\\nerror: \\"x\\""}', 400),
        "query",
        '^bad_data: parse error: "x"$',
    ),
    "error_422": (
        plain('{"status":"error","errorType":"execution","error":"many"}', 422),
        "query",
        "^execution: many$",
    ),
    "error_503": (
        plain('{"status":"error","errorType":"timeout","error":"slow"}', 503),
        "http_5xx",
        "^timeout: slow$",
    ),
    "error_200": (plain('{"status":"error","errorType":"internal","error":"odd"}'), "query", "^internal: odd$"),
    "proxy_502": (plain("<html>bad gateway</html>", 502), "http_5xx", "502 Bad Gateway: .*bad gateway"),
    "html": (plain("<html>log in</html>"), "json", "line 1, column 1"),
    "empty": (plain(""), "json", ""),
    "truncated": (plain(matrix(SERIES)[:-4]), "json", "line 1, column"),
    "trailing": (plain(matrix(SERIES) + "x"), "json", ""),
    "deep": (plain(matrix("[" * 100000)), "json", ""),
    "not_utf8": (plain(matrix('[{"metric":{"a":"\xff"}}]').encode("latin-1")), "json", "UTF-8"),
    "bad_number": (plain(matrix("[{},01]")), "json", ""),
    "no_data": (plain('{"status":"success"}'), "shape", "data.result"),
    "result_object": (plain(matrix("{}")), "shape", "data.result"),
    "not_series": (plain(matrix("[1,2]")), "shape", r"data.result\[0\]: expected an object"),
    "array": (plain("[]"), "shape", "invalid query response"),
    "cut_off": (cut_off(matrix(SERIES)), "broken", ""),
    "large": (
        flood(b'{"data":{"result":[', b" ", 100, b"]}}"),
        "too_large",
        "104857622 bytes exceeds the limit of 4194304 bytes",
    ),
    "gzip_bomb": (compressed(matrix("[" + " " * (5 << 20) + "]")), "too_large", "limit of 4194304 bytes"),
    "loop": (redirect("/loop"), "broken", "redirect"),
}

# name: (reply, the data that the scoring API gets)
GOOD = {
    "matrix": (plain(matrix(SERIES)), LIKE_SERIES),
    "gzip": (compressed(matrix(SERIES)), LIKE_SERIES),
    "byte_by_byte": (dripping(matrix(SERIES)), LIKE_SERIES),
    "redirected": (redirect("/matrix"), LIKE_SERIES),
    "null": (plain(matrix("null")), []),
    "spaces": (plain(matrix(" [ \n ] ")), []),
    "no_type": (plain('{"data":{"result":' + SERIES + "}}"), LIKE_SERIES),
    "keys_twice": (plain(matrix('[{"metric":{"a":"1","a":"2"}}]')), [{"metric": {"a": "2"}}]),
    "odd_values": (
        plain(matrix('[{"values":[[1e999,"NaN"],[-0,"1e999"]]}]')),
        [{"values": [[float("inf"), "NaN"], [0, "1e999"]]}],
    ),
    "escaped_key": (plain('{"d\\u0061ta":{"resultType":"matrix","result":' + SERIES + "}}"), LIKE_SERIES),
    "histogram": (plain(matrix(SERIES).replace("matrix", "vector").replace("values", "histogram")), []),
}


@pytest.fixture(scope="module", name="world")
def agent_with_all_of_them():
    with running_fake() as fake:
        scorers = []
        for name, (reply, *_) in {**BAD, **GOOD}.items():
            scoring = fake.on(f"/scoring/{name}", results({}, 1))
            scorers.append(summary(name, scoring, source=fake.on(f"/{name}", reply), interval=10, timeout="60s"))
        with running_agent({"summaries": scorers, "limits": {"responseBytes": "4MiB"}}) as agent:
            yield fake, agent, agent.wait_all()


@pytest.mark.parametrize("name", BAD)
def test_bad(world, name):
    fake, agent, status = world
    _, kind, words = BAD[name]
    error = status[name]["error"]
    assert (error["stage"], error["class"]) == ("source", kind), error
    assert error["text"].isprintable() and re.search(words, error["text"]), error
    assert not fake.requests(f"/scoring/{name}")
    labels = {"class": kind, "score_name": name, "stage": "source"}
    agent.wait_metric("dynamic_scoring_round_errors_total", **labels)
    agent.wait_metric("dynamic_scoring_requests_total", score_name=name, status="failure")
    assert agent.metric("dynamic_scoring_requests_total", score_name=name, status="success") is None


@pytest.mark.parametrize("name", GOOD)
def test_good(world, name):
    fake, _, status = world
    assert status[name]["error"] is None
    request = fake.requests(f"/scoring/{name}")[0]
    assert request.json == {"data": GOOD[name][1]}
    assert len(request.body) == int(request.headers["Content-Length"])


def test_the_very_bytes(world):
    """The scoring API gets the source's bytes: numbers and escapes are not rewritten."""
    fake, _, _ = world
    assert fake.requests("/scoring/matrix")[0].body == b'{"data":[' + SERIES[1:-1].encode() + b"]}"
