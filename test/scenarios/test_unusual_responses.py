"""Responses that are transferred or written in an unusual way yield the scores that they mean."""

import math

import pytest

from lib.agent import running_agent, summary
from lib.fake import compressed, dripping, flood, plain, raw, redirect, running_fake

GOOD = '{"results":[{"metric":{"node":"ñ1"},"score":1.5}]}'
AS_GOOD = [({"node": "ñ1"}, 1.5)]


def one(metric="{}", score="1", more=""):
    return plain(f'{{"results":[{{"metric":{metric},"score":{score}{more}}}]}}'.encode())


def scored(text):
    return one(score=text), [({}, float(text))]


def labelled(text, value):
    return one(metric=f'{{"node":{text}}}'), [({"node": value} if value else {}, 1)]


# name: (reply, the scores)
CASES = {
    "plain": (plain(GOOD), AS_GOOD),
    "gzip": (compressed(GOOD), AS_GOOD),
    "byte_by_byte": (dripping(GOOD), AS_GOOD),
    "until_the_end": (raw(b"HTTP/1.0 200 OK\r\n\r\n" + GOOD.encode()), AS_GOOD),
    "redirected": (redirect("/plain"), AS_GOOD),
    "created_201": (plain(GOOD, 201), AS_GOOD),
    "as_text": (plain(GOOD, Content_Type="text/html"), AS_GOOD),
    "100_mb": (flood(b'{"filler":"', b"x", 100, b'","results":[{"metric":{},"score":7}]}'), [({}, 7)]),
    "blank_space": (plain("\n\t " + GOOD.replace(":", " : ").replace(",", "\r\n,") + "\n"), AS_GOOD),
    "unknown_fields": (
        plain('{"a":[{}],"results":[{"b":null,"score":1,"metric":{"c":{},"node":"n"}}]}'),
        [({"node": "n"}, 1)],
    ),
    "null_results": (plain('{"results":null}'), []),
    "no_metric": (plain('{"results":[{"score":2}]}'), [({}, 2)]),
    "null_metric": (one(metric="null"), [({}, 1)]),
    "label_twice": (one(metric='{"node":"a","node":"b"}'), [({"node": "b"}, 1)]),
    "score_twice": (plain('{"results":[{"score":1,"score":2}]}'), [({}, 2)]),
    "good_among_bad": (
        plain('{"results":[null,{"score":"x"},{"metric":7,"score":1},{"metric":{"node":[]},"score":1},{"score":3}]}'),
        [({}, 3)],
    ),
    "all_labels": (
        one(
            metric='{"node":"1","pod":"2","container":"3","device":"4","namespace":"5","app":"6","meta":"7","x":"8"}'
        ),
        [({"node": "1", "pod": "2", "container": "3", "device": "4", "namespace": "5", "app": "6", "meta": "7"}, 1)],
    ),
    "zero": scored("0"),
    "minus_zero": scored("-0"),
    "17_digits": scored("0.12345678901234568"),
    "many_digits": scored("3." + "14159265358979323846" * 20),
    "smallest": scored("5e-324"),
    "too_small": scored("1e-999"),
    "largest": scored("1.7976931348623157e308"),
    "long_integer": scored("9007199254740993"),
    "nan": scored("NaN"),
    "infinity": scored("Infinity"),
    "minus_infinity": scored("-Infinity"),
    "string": (one(score='"1.25"'), [({}, 1.25)]),
    "string_inf": (one(score='"+Inf"'), [({}, math.inf)]),
    "number_label": labelled("7", "7"),
    "true_label": labelled("true", "true"),
    "null_label": labelled("null", ""),
    "escapes": labelled(r'"\u00e9\ud83c\udf88\n\\\"\/"', 'é🎈\n\\"/'),
    "half_surrogate": labelled(r'"a\ud83cb"', "a\ufffdb"),
    "nul": labelled(r'"a\u0000b"', "a\ufffdb"),
    "cut": labelled('"' + "x" * 300 + '"', "x" * 256),
    "cut_at_a_character": labelled('"' + "x" + "é" * 200 + '"', "x" + "é" * 127),
    "cut_at_a_wide_character": labelled('"' + "🎈" * 65 + '"', "🎈" * 64),
}


def ill_formed(data, value):
    return plain(b'{"results":[{"metric":{"node":"' + data + b'"},"score":1}]}'), [({"node": value}, 1)]


CASES["not_utf8"] = ill_formed(b"a\xffb", "a\ufffdb")
CASES["overlong"] = ill_formed(b"\xc0\x80", "\ufffd\ufffd")
CASES["ends_in_a_character"] = ill_formed(b"a\xe2\x82", "a\ufffd")


@pytest.fixture(scope="module", name="world")
def agent_with_all_of_them():
    with running_fake() as fake:
        scorers = [summary(name, fake.on(f"/{name}", reply), interval=60) for name, (reply, _) in CASES.items()]
        with running_agent({"summaries": scorers}) as agent:
            yield agent, agent.wait_all()


@pytest.mark.parametrize("name", CASES)
def test_understood(world, name):
    agent, status = world
    assert (status[name]["state"], status[name]["error"]) == ("ok" if CASES[name][1] else "empty", None)
    found, expected = agent.scores(name), CASES[name][1]
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    for (_, value), (_, wanted) in zip(found, expected):
        assert value == wanted or (math.isnan(value) and math.isnan(wanted))
        assert math.copysign(1, value) == math.copysign(1, wanted)


def test_what_was_changed_is_counted(world):
    agent, status = world
    agent.wait_metric("dynamic_scoring_labels_changed_total", reason="cut", score_name="cut_at_a_character")
    agent.wait_metric("dynamic_scoring_labels_changed_total", reason="ill_formed", score_name="not_utf8")
    agent.wait_metric("dynamic_scoring_limit_hits_total", limit="label_value_bytes", score_name="cut")
    agent.wait_metric("dynamic_scoring_results_dropped_total", 4, reason="invalid", score_name="good_among_bad")
    assert status["good_among_bad"]["lastRound"]["firstInvalid"].startswith("results[0]: expected an object")
