"""`check-scorer` finds nothing wrong with scoring APIs that are right, and exactly the broken rule of one that is not."""

import itertools
import json
import math
import re
import ssl
import time

import pytest

from lib.agent import PROGRAM
from lib.certificates import Authority
from lib.fake import answer, cut_off, flood, hanging, plain, redirect, running_fake
from lib.process import ROOT, free_port, run

QUERY = "sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total[1m]))"
SOURCE = {"type": "Prometheus", "host": "http://prometheus:9090", "params": {"query": QUERY, "range": 300, "step": 60}}
SCORING = {"path": "/scoring", "params": {"name": "my_score", "interval": 30}}
CONFIG = {"name": "my-scorer", "source": SOURCE, "scoring": SCORING}


def check(url, *flags):
    """The exit status and the JSON of a check."""
    ended = run(PROGRAM, "check-scorer", "--output=json", *flags, url)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def rules(found):
    return {f["rule"] for f in found["findings"]}


# ---- A scoring API, and ways to break it ----


def data_of(body):
    """Its series; of 10,000 only the labels are read, which saves most of the time of this file."""
    if len(body) < 1 << 20:
        return json.loads(body)["data"]
    return [{"metric": json.loads(m), "values": [[1, "0.5"], [2, "0.5"]]} for m in re.findall(rb'"metric":({[^}]*})', body)]


def mean(values):
    numbers = [v for v in (float(text) for _, text in values) if math.isfinite(v)]
    return sum(numbers) / len(numbers) if numbers else None


def scored(series):
    """(metric, score) of each series that has one."""
    return [(s["metric"], score) for s in series if (score := mean(s["values"])) is not None]


def replying(results=lambda pairs: [{"metric": m, "score": s} for m, s in pairs], reply=answer, pairs=scored):
    """A reply of POST /scoring. results: makes the list; reply: sends {"results": list}."""

    def send(connection, request):
        try:
            data = data_of(request.body)
        except ValueError:
            return answer({"error": "no JSON"}, 400)(connection, request)
        return reply({"results": results(pairs(data))})(connection, request)

    return send


def each(change):
    """Results of which `change(metric, score)` returns the members."""
    return replying(lambda pairs: [change(m, s) for m, s in pairs])


def when(condition, reply, otherwise=None):
    """Another reply for bodies that fulfil the condition."""
    otherwise = otherwise or replying()

    def send(connection, request):
        try:
            special = condition(data_of(request.body))
        except ValueError:
            special = False
        return (reply if special else otherwise)(connection, request)

    return send


def has_value(word):
    return lambda data: any(text == word for s in data for _, text in s["values"])


def shortest(n):
    return lambda data: bool(data) and min(len(s["values"]) for s in data) == n


def slow(connection, request):
    time.sleep(1.3)  # longer than the interval, shorter than the timeout
    replying()(connection, request)


def wrong_token(connection, request):
    status = 200 if request.token else 401
    reply = replying() if status == 200 else answer({"error": "no token"}, 401)
    reply(connection, request)


def checks_token(connection, request):
    right = request.token == "Bearer dummy-token-1234"
    (replying() if right else answer({"error": "wrong token"}, 401))(connection, request)


def config(**changes):
    """/config with some members changed; None: left out."""
    return answer({k: v for k, v in {**CONFIG, **changes}.items() if v is not None})


def changing_config():
    return [config(description=str(n)) for n in range(3)]


def params(**changes):
    return {**SCORING, "params": {k: v for k, v in {**SCORING["params"], **changes}.items() if v is not None}}


counter = itertools.count()
each_dropped = replying(lambda pairs: [])
ODD = lambda data: any("a_label_of_another_exporter" in s["metric"] for s in data)  # noqa: E731
ERROR = answer({"detail": "division by zero"}, 500)
PAGE = plain("<html>Sign in</html>", Content_Type="text/html")
HUGE = flood(b'{"results":[', b" ", 300, b"]}", announced=False)

BROKEN = {
    # The answer as a whole
    "a web page": ({"/scoring": PAGE}, {"json", "content-type"}),
    "another content type": ({"/scoring": replying(reply=lambda v: plain(json.dumps(v), Content_Type="text/plain"))}, {"content-type"}),
    "no path": ({"/scoring": plain("Not Found", 404)}, {"scoring"}),
    "an error": ({"/scoring": ERROR}, {"scoring"}),
    "elsewhere": ({"/scoring": redirect("http://127.0.0.1:9/scoring")}, {"scoring"}),
    "cut off": ({"/scoring": cut_off('{"results":[')}, {"scoring"}),
    "hanging": ({"/scoring": hanging}, {"scoring-time"}),
    "slow": ({"/scoring": [slow, replying()], "/config": config(scoring=params(interval=1))}, {"scoring-time"}),
    "slow with many": ({"/scoring": when(lambda data: len(data) > 1000, slow), "/config": config(scoring=params(interval=1))}, {"many-series"}),
    "endless": ({"/scoring": HUGE}, {"response-size"}),
    "needs a token": ({"/scoring": checks_token}, {"token-accepted"}),
    # Results
    "results are missing": ({"/scoring": answer({"scores": []})}, {"results"}),
    "results by name": ({"/scoring": answer({"results": {"a": 1}})}, {"results"}),
    "results are numbers": ({"/scoring": answer({"results": [1, 2]})}, {"results"}),
    "a bare list": ({"/scoring": replying(reply=lambda v: answer(v["results"]))}, {"results"}),
    "no results": ({"/scoring": each_dropped}, {"no-results"}),
    "a word": ({"/scoring": each(lambda m, s: {"metric": m, "score": "high"})}, {"score"}),
    "no score": ({"/scoring": each(lambda m, s: {"metric": m, "value": s})}, {"score"}),
    "NaN": ({"/scoring": each(lambda m, s: {"metric": m, "score": math.nan})}, {"score-finite"}),
    "percent": ({"/scoring": each(lambda m, s: {"metric": m, "score": s * 1000})}, {"score-range"}),
    "all below one": ({"/scoring": each(lambda m, s: {"metric": m, "score": s / 100})}, {"score-rounded"}),
    "labels dropped": ({"/scoring": each(lambda m, s: {"metric": {}, "score": s})}, {"labels-distinct"}),
    "the pod dropped": ({"/scoring": each(lambda m, s: {"metric": {"node": m["node"]}, "score": s})}, {"labels-distinct"}),
    "a number as a label": ({"/scoring": each(lambda m, s: {"metric": {**m, "device": 0}, "score": s})}, {"label-strings"}),
    "a list as a label": ({"/scoring": each(lambda m, s: {"metric": {**m, "app": ["a"]}, "score": s})}, {"label-strings"}),
    "metric is text": ({"/scoring": each(lambda m, s: {"metric": str(m), "score": s})}, {"label-strings"}),
    "a changing meta": (
        {"/scoring": each(lambda m, s: {"metric": {**m, "meta": str(next(counter))}, "score": s})},
        {"labels-stable"},
    ),
    "a long meta": ({"/scoring": each(lambda m, s: {"metric": {**m, "meta": "x" * 300}, "score": s})}, {"label-length"}),
    "lower case": (
        {"/scoring": each(lambda m, s: {"metric": {k: v.encode("ascii", "ignore").decode() for k, v in m.items()}, "score": s})},
        {"labels-kept"},
    ),
    # Bodies that agents also send
    "empty data": ({"/scoring": when(lambda data: not data, ERROR)}, {"empty-data"}),
    "no results for empty data": ({"/scoring": when(lambda data: not data, answer({}))}, {"empty-data"}),
    "one point": ({"/scoring": when(shortest(1), ERROR)}, {"short-series"}),
    "no points": ({"/scoring": when(shortest(0), ERROR)}, {"short-series"}),
    "null without points": (
        {"/scoring": when(shortest(0), replying(pairs=lambda data: [(s["metric"], mean(s["values"])) for s in data]))},
        {"short-series"},
    ),
    "NaN among the values": ({"/scoring": when(has_value("NaN"), ERROR)}, {"nan-values"}),
    "NaN stays NaN": (
        {"/scoring": replying(pairs=lambda data: [(s["metric"], sum(float(v) for _, v in s["values"]) / 100) for s in data])},
        {"nan-values"},
    ),
    "unusual labels": ({"/scoring": when(ODD, ERROR)}, {"labels-kept"}),
    "equal labels": (
        {"/scoring": when(lambda data: len(data) != len({str(s["metric"]) for s in data}), ERROR)},
        {"duplicate-series"},
    ),
    "10,000 series": ({"/scoring": when(lambda data: len(data) > 1000, plain("too large", 413))}, {"many-series"}),
    "takes any body": (
        {"/scoring": lambda c, r: (replying() if r.body.endswith(b"]}") else answer({"results": []}))(c, r)},
        {"malformed-body"},
    ),
    # /healthz and /config
    "no healthz": ({"/healthz": plain("", 404)}, {"healthz"}),
    "unhealthy": ({"/healthz": plain("loading", 503)}, {"healthz"}),
    "no config": ({"/config": plain("", 404)}, {"config"}),
    "config is a page": ({"/config": PAGE}, {"config", "content-type"}),
    "config is an error": ({"/config": answer({"error": "not ready"})}, {"config"}),
    "config has no name": ({"/config": config(scoring=params(name=None))}, {"config-name"}),
    "config has an interval of 0": ({"/config": config(scoring=params(interval=-1))}, {"config-fields"}),
    "config has an interval in words": ({"/config": config(scoring=params(interval="30s"))}, {"config-fields"}),
    "config has an unknown type": ({"/config": config(source={**SOURCE, "type": "Graphite"})}, {"config-fields"}),
    "config has no host": ({"/config": config(source={k: v for k, v in SOURCE.items() if k != "host"})}, {"config-source"}),
    "config has no source": ({"/config": config(source=None)}, {"config-source"}),
    "config changes": ({"/config": changing_config()}, {"config-stable"}),
    "config is refused the second time": ({"/config": [config(), plain("slow down", 429)]}, {"config"}),
}


def serve(fake, replies):
    for path, reply in {"/healthz": answer({"status": "ok"}), "/config": config(), "/scoring": replying(), **replies}.items():
        fake.on(path, *(reply if isinstance(reply, list) else [reply]))
    return fake.url


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_one_gets_exactly_its_rule(fake, case):
    replies, expected = BROKEN[case]
    status, found = check(serve(fake, replies), "--timeout=5s" if case == "hanging" else "--timeout=60s")
    # On a slow machine other calls may take more than the second, too.
    late = {"scoring-time", "many-series"} if case.startswith("slow") else set()
    assert rules(found) - late == expected - late and rules(found) >= expected, found["findings"]
    problems = {f["rule"] for f in found["findings"] if f["level"] == "problem"}
    assert (status, found["ok"], found["problems"]) == (int(bool(problems)), not problems, len(problems))
    assert all(f["mend"] and f["why"] and f["detail"] for f in found["findings"])


@pytest.mark.parametrize("path, rule", [("/config", "config"), ("/scoring", "json")])
def test_a_page_is_shown(fake, path, rule):
    found = check(serve(fake, {path: PAGE}))[1]
    detail = next(f["detail"] for f in found["findings"] if f["rule"] == rule)
    assert detail.endswith("; Content-Type: text/html, it begins with: <html>Sign in</html>"), detail


def test_a_second_config_that_fails_is_no_other_configuration(fake):
    found = check(serve(fake, {"/config": [config(), plain("slow down", 429)]}))[1]
    assert [f["detail"] for f in found["findings"]] == ["the second call: HTTP 429 Too Many Requests: slow down"]


def test_each_rule_is_broken_here_once():
    """Also those of tokens, below."""
    all_of_them = set(re.findall(r'^RULE\(\w+, \w+, "([^"]+)"', (ROOT / "controller/check/rules.def").read_text(), re.M))
    assert all_of_them - {"token-refused"} == set().union(*(expected for _, expected in BROKEN.values()))


def test_a_right_one(fake):
    status, found = check(serve(fake, {}), "--score-dimension-format=${cluster}/${pod}", "--cluster-name=c1")
    assert (status, found["findings"]) == (0, [])
    assert found["agent"]["series"] == found["agent"]["results"] == len(found["agent"]["items"]) == 10
    assert found["agent"]["items"][0] == {"name": "c1/pod-0", "value": 23}
    assert found["agent"]["addOnPlacementScore"] == "my-score"
    assert (found["summary"]["scoreName"], found["summary"]["sourceRange"]) == ("my_score", 300)
    sent = fake.requests("/scoring")
    first = sent[0].json["data"]
    assert [len(s["values"]) for s in first] == [6] * 10 and set(first[0]["metric"]) == {"node", "namespace", "pod"}
    assert sent[0].body == sent[1].body and max(len(r.body) for r in sent) > 1 << 20
    assert all(r.headers["Content-Type"] == "application/json" for r in sent)


def test_a_source_without_a_host(fake):
    """Agents have the series of type OpenTelemetry themselves."""
    source = {"type": "otlp", "params": {"query": "sum by (pod) (rate(requests_total[5m]))"}}
    found = check(serve(fake, {"/config": config(source=source)}))[1]
    assert found["findings"] == [] and found["summary"]["sourceType"] == "OpenTelemetry"
    assert set(fake.requests("/scoring")[0].json["data"][0]["metric"]) == {"pod"}


def test_the_name_of_the_api_is_the_last_resort(fake):
    found = check(serve(fake, {"/config": config(scoring=params(name=None))}))[1]
    assert found["summary"]["scoreName"] == "my-scorer" and "my-scorer" in found["findings"][0]["detail"]


def test_the_table(fake):
    broken = {"/scoring": each(lambda m, s: {"metric": {**m, "meta": str(next(counter))}, "score": s * 1000})}
    ended = run(PROGRAM, "check-scorer", serve(fake, broken))
    assert ended.returncode == 1
    for words in (
        "✓ GET /healthz",
        "✗ the same again",
        "✗ labels-stable: The same series get results with the same labels in each call.",
        'new in the second call: node="node-0", namespace="namespace-0", pod="pod-0", meta="',
        "! score-range: ",
        '"my_score" = 100',
        "10 series, 1 item of the AddOnPlacementScore my-score",
        f"{fake.url}/config: 1 problem, 1 warning",
    ):
        assert words in ended.stdout


def test_names_of_others_cannot_move_the_cursor(fake):
    evil = each(lambda m, s: {"metric": {**m, "pod": "s\x1b[31m\u009b\u202e"}, "score": s})
    ended = run(PROGRAM, "check-scorer", "--score-dimension-format=${pod}", serve(fake, {"/scoring": evil}))
    assert '"s\N{REPLACEMENT CHARACTER}[31m' in ended.stdout, ended.stdout
    assert not set("\x1b\u009b\u202e") & set(ended.stdout)


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/config", " {}/config "])
def test_forms_of_the_url(fake, form):
    assert check(form.format(serve(fake, {})))[1]["configURL"] == f"{fake.url}/config"


@pytest.mark.parametrize("form", ["{}/performance", "{}/performance/config"])
def test_a_path_before_config(fake, form):
    """As static-scorer has it: /healthz stays at the root."""
    of_none = {"source": {"type": "none"}, "scoring": {"path": "/performance/scoring", "params": {"name": "p", "interval": 30}}}
    fake.on("/healthz", answer({"status": "ok"}))
    fake.on("/performance/config", answer(of_none))
    fake.on("/performance/scoring", answer({"results": [{"metric": {"app": "app01", "device": "all"}, "score": 80}]}))
    status, found = check(form.format(fake.url), "--score-dimension-format=${app};${device}")
    assert (status, found["findings"]) == (0, [])
    assert found["agent"]["items"] == [{"name": "app01;all", "value": 80}]
    assert {r.body for r in fake.requests("/performance/scoring")} == {b'{"data":[]}'}


def test_another_host_in_config(fake):
    """Agents resolve it; the author's machine need not."""
    serve(fake, {"/config": config(scoring={**SCORING, "host": "http://my-scorer.dynamic-scoring.svc:8000"})})
    status, found = check(fake.url)
    assert (status, found["findings"]) == (0, [])
    assert found["scoringURL"] == "http://my-scorer.dynamic-scoring.svc:8000/scoring"


def test_tokens(fake, tmp_path):
    token = tmp_path / "token"
    token.write_text("dummy-token-1234\n")
    for reply, expected in ((checks_token, set()), (wrong_token, {"token-refused"}), (replying(), {"token-refused"})):
        assert rules(check(serve(fake, {"/scoring": reply}), f"--token-file={token}")[1]) == expected
    assert all(r.token is None for r in fake.requests("/config") + fake.requests("/healthz"))
    token.write_text("another-token")
    status, found = check(serve(fake, {"/scoring": checks_token}), f"--token-file={token}")
    assert (status, rules(found)) == (1, {"token-accepted"})
    assert "another-token" not in json.dumps(found)


def test_config_behind_the_token(fake, tmp_path):
    token = tmp_path / "token"
    token.write_text("dummy-token-1234")

    def config_with_token(connection, request):
        (config() if request.token else answer({}, 401))(connection, request)

    serve(fake, {"/scoring": checks_token, "/config": config_with_token})
    assert rules(check(fake.url, f"--token-file={token}")[1]) == set()


def test_the_server_is_verified(tmp_path):
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    with running_fake(context) as server:
        url = serve(server, {})
        assert check(url, f"--ca-file={authority.cert}")[0] == 0
        ended = run(PROGRAM, "check-scorer", url)
        assert (ended.returncode, ended.stdout) == (2, "") and "certificate" in ended.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "missing argument: URL"),
        (["http://a", "http://b"], "unexpected argument: http://b"),
        (["localhost:8000"], "expected an http or https URL without a user, got localhost:8000"),
        (["http://user:secret@localhost:8000"], "expected an http or https URL without a user"),
        (["--timeout=1", "http://localhost"], "a duration from 100ms to 5m"),
        (["--output=prom", "http://localhost"], "table or json"),
        (["--token-file=/nowhere/token", "http://localhost"], "/nowhere/token: No such file or directory"),
    ],
)
def test_usage(arguments, words):
    ended = run(PROGRAM, "check-scorer", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr


def test_unreachable():
    ended = run(PROGRAM, "check-scorer", f"http://127.0.0.1:{free_port()}")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "/config: " in ended.stderr and "connect" in ended.stderr.lower()
