"""dynamic-scoring scorer: the model mean answers as the sample of the documents does, the model static from its tables,
and both refuse what is wrong, with its place."""

import contextlib
import gzip
import http.client
import json
import signal
import socket
import subprocess
import threading
import time

import pytest

from lib.client import call
from lib.process import BUILD, ROOT, environment, free_port, run
from lib.scoring_api import running_scorer
from lib.wait import DEADLINE, wait_until

META = "my_something_meta_by_sample_scorer"
# The documents' data.json and what they print.
SAMPLES = [[1718600000, "5"], [1718600060, "10"], [1718600120, "15"]]
METRICS = [{"__name__": "my_metric_query_name", "instance": i} for i in ("localhost:9090", "other")]
DATA = {"data": [{"metric": m, "values": SAMPLES} for m in METRICS]}
QUERY = 'sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))'
CONFIG = {
    "name": "sample-scorer",
    "description": "A sample score for time series data",
    "source": {
        "type": "Prometheus",
        "host": "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090",
        "path": "/api/v1/query_range",
        "params": {"query": QUERY, "range": 3600, "step": 60},
    },
    "scoring": {"path": "/scoring", "params": {"name": "sample_my_score", "interval": 30}},
}
TABLE = [("app01", "all", 80, 20), ("app02", "all", 80, 10), ("app01", "3g.48gb", 60, 30), ("app02", "3g.48gb", 55, 55)]
TABLE += [("app01", "2g.24gb", 10, 80), ("app02", "2g.24gb", 15, 90)]


@pytest.fixture(scope="module", name="mean")
def running_mean(tmp_path_factory):
    with running_scorer(tmp_path_factory.mktemp("mean")) as scorer:
        yield scorer


def post(scorer, body, path="/scoring", **headers):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return call("POST", scorer.url + path, text, Content_Type="application/json", **headers)


def series(n, samples=60):
    values = [[1700000000 + 60 * i, f"{i}.5"] for i in range(samples)]
    return {"data": [{"metric": {"pod": f"pod-{i}", "node": "n" * 40}, "values": values} for i in range(n)]}


# ---- The model mean ----


def test_a_native_histogram_is_left_out_and_counted(mean):
    histogram = {"metric": {"__name__": "h"}, "histograms": [[1718600000, {"count": "2", "sum": "3", "buckets": []}]]}
    answer = post(mean, {"data": [histogram, DATA["data"][0]]})
    assert answer.status == 200
    assert [r["metric"]["__name__"] for r in answer.json["results"]] == ["my_metric_query_name"]
    metrics = call("GET", mean.url + "/metrics").text
    assert 'dynamic_scoring_scorer_left_out_total{path="/scoring",reason="no_values"} 1' in metrics


def test_the_documents_script(mean):
    sample = ROOT / "charts/samples/sample-scorer"
    done = run(sample / "hack/test_scoring.sh", mean.url, sample / "static/data.json")
    assert json.loads(done.stdout) == {"results": [{"metric": {**m, "meta": META}, "score": 10.0} for m in METRICS]}, done.stderr
    assert json.loads((sample / "static/data.json").read_text()) == DATA


def test_the_documents_sample(mean, tmp_path):
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    command = ["curl", "-sS", "-X", "POST", "-H", "Content-Type: application/json", "-d", f"@{tmp_path}/data.json"]
    done = run(*command, f"{mean.url}/scoring")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"score":10.0') == 2
    assert json.loads(done.stdout) == {"results": [{"metric": {**m, "meta": META}, "score": 10.0} for m in METRICS]}


def test_config_and_health(mean):
    assert call("GET", mean.url + "/healthz").json == {"status": "ok"}
    answer = call("GET", mean.url + "/config")
    assert (answer.json, answer.headers["Content-Type"]) == (CONFIG, "application/json")
    assert call("HEAD", mean.url + "/config").body == b""


def test_series_without_numbers(mean):
    data = [
        {"metric": {"pod": "none"}, "values": []},
        {"metric": {"pod": "some"}, "values": [[1, "NaN"], [2, "+Inf"], [3, "4"], [4, "-Inf"], [5, "1e999"]]},
        {"metric": {"pod": "not one"}, "values": [[1, "NaN"]]},
        {"metric": {"pod": "instant", "meta": "replaced"}, "value": [1, "7"]},
    ]
    answer = post(mean, {"data": data})
    found = {r["metric"]["pod"]: r["score"] for r in answer.json["results"]}
    assert found == {"none": 0.0, "some": 4.0, "instant": 7.0}
    assert {r["metric"]["meta"] for r in answer.json["results"]} == {META}
    metrics = call("GET", mean.url + "/metrics").text
    assert 'dynamic_scoring_scorer_left_out_total{path="/scoring",reason="not_finite"} 1' in metrics
    assert post(mean, {"data": []}).json == {"results": []}


LARGEST = 1.7976931348623157e308
MEANS = [
    ([1e308, 1e308, -1e308], 1e308 / 3),  # whose sum is no double on the way
    ([LARGEST] * 7, LARGEST),
    ([-LARGEST] * 3 + [5e-324], -LARGEST * 0.75),
    ([1e16, 1, -1e16, 1], 0.5),  # whose small ones are lost when each sum is rounded
    ([0.1] * 10, 0.1),
    ([0.1, 0.2, 0.3], 0.2),
    ([5e-324, 5e-324], 5e-324),
]


def test_means_neither_overflow_nor_lose_digits(mean):
    data = [{"metric": {"pod": str(i)}, "values": [[j, str(v)] for j, v in enumerate(v)]} for i, (v, _) in enumerate(MEANS)]
    found = {r["metric"]["pod"]: r["score"] for r in post(mean, {"data": data}).json["results"]}
    assert found == {str(i): expected for i, (_, expected) in enumerate(MEANS)}


def test_compressed_bodies(mean):
    body = json.dumps(DATA).encode()
    packed = gzip.compress(body)
    assert post(mean, packed, Content_Encoding="gzip").json == post(mean, body).json
    for bad, why in (
        (packed[:-9], "the body ends early"),
        (packed + b"x", "the body is followed by other data"),
        (body, "the body is not gzip"),
    ):
        answer = post(mean, bad, Content_Encoding="gzip")
        assert answer.status == 400 and answer.json["error"].startswith(why), answer.json
    assert post(mean, body, Content_Encoding="br").status == 415
    bomb = gzip.compress(b" " * (65 << 20))
    answer = post(mean, bomb, Content_Encoding="gzip")
    assert (answer.status, answer.json) == (413, {"error": "the decoded body is larger than 64 MiB"})


@pytest.mark.parametrize(
    "body, why",
    [
        (b"", "line 1, column 1: unexpected end"),
        (b"[" * 100000, 'expected an object with a list "data"'),
        (b'{"data":[{"metric":{},"values":[]},{"metric":{},"values":[[1,"2"],[1]]}]}', "data[1].values[1]: expected "),
        (b'{"data":[{"metric":{},"value":[1]}]}', "data[0].value: expected "),
        (b'{"data":[{"metric":"x","values":[]}]}', "data[0].metric: expected an object"),
    ],
)
def test_a_bad_body_is_refused_with_its_place(mean, body, why):
    answer = post(mean, body)
    assert answer.status == 400 and answer.json["error"].startswith(why), answer.text
    status = call("GET", mean.url + "/api/v1/status").json["endpoints"][0]
    assert status["lastFailure"]["error"].startswith(why)


def test_ten_thousand_series_a_call(mean):
    """And /healthz answers while they are scored."""
    body = json.dumps(series(10000)).encode()
    answers = []
    caller = threading.Thread(target=lambda: answers.append(post(mean, body)))
    caller.start()
    while caller.is_alive():
        assert call("GET", mean.url + "/healthz").status == 200
        time.sleep(0.02)
    caller.join()
    results = answers[0].json["results"]
    assert [r["metric"]["pod"] for r in results] == [f"pod-{i}" for i in range(10000)]
    assert {r["score"] for r in results} == {30.0}


def test_a_huge_body_is_refused(mean):
    mib = b" " * (1 << 20)
    port = int(mean.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as s:
        s.sendall(b"POST /scoring HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000000\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 413 ")
    with contextlib.suppress(OSError, http.client.HTTPException):  # without a length it is cut off
        assert call("POST", mean.url + "/scoring", (mib for _ in range(66))).status == 413
    assert call("GET", mean.url + "/healthz").status == 200


def test_a_slow_client_delays_nobody(mean):
    port = int(mean.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as slow:
        slow.sendall(b"POST /scoring HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert post(mean, DATA).status == 200


def test_metrics_pass_promtool(mean):
    post(mean, DATA)
    text = call("GET", mean.url + "/metrics").text
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    for family in ("requests_total", "duration_seconds_count", "series_total", "results_total"):
        assert f"dynamic_scoring_scorer_{family}{{" in text


def test_wrong_paths_and_methods(mean):
    assert call("GET", mean.url + "/score").status == 404
    assert call("GET", mean.url + "/scoring").headers["Allow"] == "POST"
    assert call("POST", mean.url + "/config", b"").status == 405
    assert call("POST", mean.url + "/reset", b"").status == 404


# ---- Tokens ----


def test_token_of_a_file(tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with running_scorer(tmp_path, f"--token-file={token}") as scorer:

        def status(authorization=None, method="POST", path="/scoring"):
            headers = {"Authorization": authorization} if authorization else {}
            body = b'{"data":[]}' if method == "POST" else None
            return call(method, scorer.url + path, body, **headers)

        for wrong in (None, "s3cret", "Basic s3cret", "Bearer ", "Bearer s3cre", "Bearer s3crets3cret", "Bearer S3cret"):
            answer = status(wrong)
            assert (answer.status, answer.headers["WWW-Authenticate"].split()[0]) == (401, "Bearer"), wrong
        assert status("Bearer s3cret").status == status("bearer s3cret").status == 200
        for path in ("/healthz", "/config", "/metrics", "/"):
            assert status(method="GET", path=path).status == 200
        assert status(method="GET", path="/api/v1/status").status == 401
        token.write_text("other")
        assert status("Bearer s3cret").status == 401
        assert status("Bearer other").status == 200
        token.write_text("")
        assert status("Bearer other").status == 503
        token.unlink()
        assert status("Bearer other").status == 503
        assert "s3cret" not in scorer.log() and "refusing calls" in scorer.log()


def test_token_of_the_environment(tmp_path):
    with running_scorer(tmp_path, env={"SCORING_TOKEN": "s3cret"}) as scorer:
        assert post(scorer, DATA).status == 401
        assert post(scorer, DATA, Authorization="Bearer s3cret").status == 200
    both = run(BUILD / "dynamic-scoring", "scorer", "mean", "--token-file=x", env=environment(SCORING_TOKEN="x"))
    assert both.returncode == 2 and "exclude each other" in both.stderr
    web = tmp_path / "web.yml"
    web.write_text(f"basic_auth_users: {{x: $2y$10${'A' * 21}OcIsL8zXqM0jxbnSbmWqUVtd3bQ5wYnC}}")
    done = run(BUILD / "dynamic-scoring", "scorer", "mean", f"--web.config.file={web}", env=environment(SCORING_TOKEN="x"))
    assert done.returncode == 1 and "basic_auth_users: cannot be combined with" in done.stderr


# ---- Settings ----


def test_settings_by_file_environment_and_flag(tmp_path):
    file = tmp_path / "mean.yaml"
    file.write_text("sourceHost: http://file\nsourceQuery: file\nscoringInterval: 1m\nsourceStep: 15\n")
    env = {"SOURCE_QUERY": "environment", "SCORE_NAME": "environment", "SCORING_INTERVAL": ""}
    with running_scorer(tmp_path, f"--config.file={file}", "--score-name=flag", "--source-range=1h", env=env) as scorer:
        found = call("GET", scorer.url + "/config").json
    assert found["source"]["host"] == "http://file"
    assert found["source"]["params"] == {"query": "environment", "range": 3600, "step": 15}
    assert found["scoring"]["params"] == {"name": "flag", "interval": 60}


@pytest.mark.parametrize(
    "text, env, words",
    [
        ("sourceStep: 0", {}, ["bad.yaml line=1 column=13", "sourceStep: expected a duration in whole seconds"]),
        ("sourceStap: 5", {}, ["did you mean", "sourceStep"]),
        ("[1]", {}, ["expected an object"]),
        ("", {"SOURCE_STEP": "x"}, ["SOURCE_STEP: expected a duration", '\\"x\\"']),
    ],
)
def test_bad_settings_are_named(tmp_path, text, env, words):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    done = run(BUILD / "dynamic-scoring", "scorer", "mean", f"--config.file={file}", env=environment(**env))
    assert done.returncode == 1
    assert all(word in done.stderr for word in words), done.stderr


def test_help_lists_the_models_and_their_flags():
    program = BUILD / "dynamic-scoring"
    assert run(program, "scorer", "--help").stdout.count("  mean ") == 1
    assert "--performance.score-name" in run(program, "scorer", "static", "--help").stdout
    for wrong in ([], ["mode"], ["mean", "extra"], ["mean", "--source-step=x"], ["mean", "--unknown"]):
        done = run(program, "scorer", *wrong)
        assert done.returncode == 2 and "scorer" in done.stderr, wrong


# ---- The model static ----


def rows(scorer, path, body=b""):
    results = call("POST", f"{scorer.url}{path}/scoring", body).json["results"]
    return [(r["metric"]["app"], r["metric"]["device"], r["score"]) for r in results]


def test_the_static_tables(tmp_path):
    with running_scorer(tmp_path, model="static") as scorer:
        for body in (b"", b"nonsense", b'{"data":[]}'):
            assert rows(scorer, "/performance", body) == [(a, d, s) for a, d, s, _ in TABLE]
            assert rows(scorer, "/powerconsumption", body) == [(a, d, s) for a, d, _, s in TABLE]
        for path, name, about in (
            ("/performance", "example_performance_score", "An example performance score"),
            ("/powerconsumption", "example_powerconsumption_score", "An example power consumption score"),
        ):
            found = call("GET", f"{scorer.url}{path}/config").json
            assert (found["description"], found["source"]) == (about, {"type": "None"})
            assert found["scoring"] == {"path": f"{path}/scoring", "params": {"name": name, "interval": 30}}
        assert call("GET", scorer.url + "/config").status == 404


def test_own_static_tables(tmp_path):
    file = tmp_path / "static.yaml"
    file.write_text("performance:\n- metric: {app: a, device: 'x,\"y'}\n  score: 1.5\n- {metric: {app: b}, score: -2}\n")
    flags = [f"--config.file={file}", "--powerconsumption=app=c,device=all 3;app=d,device=e=f 4"]
    with running_scorer(tmp_path, *flags, model="static") as scorer:
        found = call("POST", scorer.url + "/performance/scoring", b"").json["results"]
        assert found == [{"metric": {"app": "a", "device": 'x,"y'}, "score": 1.5}, {"metric": {"app": "b"}, "score": -2}]
        assert rows(scorer, "/powerconsumption") == [("c", "all", 3), ("d", "e=f", 4)]
    file.write_text("performance: [{metric: {app: a}, score: x}, {score: 1}]")
    done = run(BUILD / "dynamic-scoring", "scorer", "static", f"--config.file={file}")
    assert done.returncode == 1
    assert "performance[0].score: expected a number" in done.stderr and "performance[1]" in done.stderr
    done = run(BUILD / "dynamic-scoring", "scorer", "static", "--performance=app 5")
    assert done.returncode == 1 and "expected labels and a score" in done.stderr


# ---- Life ----


def test_a_call_under_way_outlives_the_signal(tmp_path):
    body = json.dumps(series(4000, 200)).encode()
    with running_scorer(tmp_path) as scorer:
        connection = http.client.HTTPConnection(scorer.url[7:], timeout=DEADLINE)
        with contextlib.closing(connection):
            connection.request("POST", "/scoring", body)
            begun = ("dynamic_scoring_scorer_calls_in_progress 1", 'requests_total{code="200",path="/scoring"} 1')

            def has_begun():
                metrics = call("GET", scorer.url + "/metrics").text
                return any(sign in metrics for sign in begun)

            wait_until(has_begun, "the call is being scored, or has been")
            scorer.send(signal.SIGTERM)
            answer = connection.getresponse()
            assert answer.status == 200 and len(json.loads(answer.read())["results"]) == 4000
            assert scorer.wait() == 0


def test_killed_and_started_again(tmp_path):
    port = free_port()
    with running_scorer(tmp_path, port=port) as scorer:
        scorer.send(signal.SIGKILL)
        assert scorer.wait() == -signal.SIGKILL
    with running_scorer(tmp_path, port=port) as scorer:
        assert post(scorer, DATA).status == 200
        second = run(BUILD / "dynamic-scoring", "scorer", "mean", f"--web.listen-address=127.0.0.1:{port}")
        assert second.returncode == 1 and f"127.0.0.1:{port}" in second.stderr and "in use" in second.stderr
