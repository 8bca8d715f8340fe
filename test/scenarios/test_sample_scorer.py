"""The sample scorer keeps the contract of scoring APIs: its responses, its errors, and large requests."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from lib.wait import DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("DS_BUILD", ROOT / "build")) / "sample-scorer"


@contextlib.contextmanager
def running(*options, listen="127.0.0.1:0"):
    """The scorer on a free port; yields the process with .port set."""
    process = subprocess.Popen([PROGRAM, "--listen", listen, *options], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("sample-scorer: listening on http://"), line
        process.port = int(line.rsplit(":", 1)[1])
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(DEADLINE)
    assert status == 0


@pytest.fixture(scope="module", name="scorer")
def shared_scorer():
    with running() as process:
        yield process


def call(scorer, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", scorer.port, timeout=DEADLINE)
    with contextlib.closing(connection):
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.headers["Content-Type"] == "application/json"
        return answer, json.loads(text) if text else None


def score(scorer, data):
    answer, body = call(scorer, "POST", "/scoring", json.dumps({"data": data}), Content_Type="application/json")
    assert answer.status == 200, body
    return body["results"]


def test_healthz(scorer):
    answer, body = call(scorer, "GET", "/healthz")
    assert (answer.status, body) == (200, {"status": "ok"})


def test_head_has_no_body(scorer):
    answer, body = call(scorer, "HEAD", "/config")
    assert (answer.status, body) == (200, None)


def test_config_carries_the_options():
    query = 'sum by (pod) (rate(x{a!="b"}[1m]))'
    with running("--name", "other_score", "--prometheus", "http://prom:9090", "--query", query) as scorer:
        _, body = call(scorer, "GET", "/config")
    assert body == {
        "name": "sample-scorer",
        "description": "A sample score for time series data",
        "source": {
            "type": "Prometheus",
            "host": "http://prom:9090",
            "path": "/api/v1/query_range",
            "params": {"query": query, "range": 3600, "step": 60},
        },
        "scoring": {"path": "/scoring", "params": {"name": "other_score", "interval": 30}},
    }


def test_mean_of_each_series_in_their_order(scorer):
    results = score(
        scorer,
        [
            {"metric": {"pod": "z", "node": "ñ"}, "values": [[1, "1"], [2.5, "2.5"], [3, "-0.5"]]},
            {"metric": {"pod": "a"}, "values": [[1, "1e308"], [2, "1e308"], [3, "-1e308"], [4, "-1e308"]]},
            {"metric": {}, "value": [1, 7]},
        ],
    )
    assert results == [
        {"metric": {"pod": "z", "node": "ñ", "meta": "mean"}, "score": 1.0},
        {"metric": {"pod": "a", "meta": "mean"}, "score": 0.0},
        {"metric": {"meta": "mean"}, "score": 7.0},
    ]


def test_samples_that_are_not_finite_do_not_count(scorer):
    data = [
        {"metric": {"pod": "a"}, "values": [[1, "NaN"], [2, "+Inf"], [3, "4"], [4, "-Inf"], [5, "1e999"]]},
        {"metric": {"pod": "b"}, "values": [[1, "NaN"]]},
        {"metric": {"pod": "c"}, "values": []},
    ]
    assert score(scorer, data) == [{"metric": {"pod": "a", "meta": "mean"}, "score": 4.0}]


def test_no_data_gives_no_results(scorer):
    assert score(scorer, []) == []


@pytest.mark.parametrize(
    "body, why",
    [
        (b"", "line 1, column 0: "),
        (b'{"data":\n [}', "line 2, column 3: "),
        (b'{"data":[]} x', "line 1, column 13: "),
        (b'{"data":["\xff"]}', "line 1, column 10: "),
        (b"[" * 100000, "line 1, column 2049: "),
        (b"[]", 'expected an object with an array "data"'),
        (b"{}", 'expected an object with an array "data"'),
        (b'{"data":{}}', 'expected an object with an array "data"'),
        (b'{"data":[1]}', 'data[0]: expected an object with "metric" and "values"'),
        (b'{"data":[{"values":[]}]}', 'data[0]: expected an object with "metric" and "values"'),
        (b'{"data":[{"metric":{}}]}', 'data[0]: expected an object with "metric" and "values"'),
        (b'{"data":[{"metric":[],"values":[]}]}', 'data[0]: expected an object with "metric" and "values"'),
        (b'{"data":[{"metric":{},"values":[[1,"2"],[1]]}]}', 'data[0].values[1]: expected [time, "value"]'),
        (b'{"data":[{"metric":{},"values":[["1","2"]]}]}', 'data[0].values[0]: expected [time, "value"]'),
        (b'{"data":[{"metric":{},"values":[[1,"2x"]]}]}', 'data[0].values[0]: expected [time, "value"]'),
        (b'{"data":[{"metric":{},"values":[[1,""]]}]}', 'data[0].values[0]: expected [time, "value"]'),
        (b'{"data":[{"metric":{},"values":[[1,null]]}]}', 'data[0].values[0]: expected [time, "value"]'),
        (b'{"data":[{"metric":{},"value":[1]}]}', 'data[0].value: expected [time, "value"]'),
    ],
)
def test_a_bad_body_is_refused_with_its_place(scorer, body, why):
    answer, error = call(scorer, "POST", "/scoring", body)
    assert answer.status == 400
    assert error["error"].startswith(why)


def test_unknown_path(scorer):
    answer, body = call(scorer, "GET", "/score")
    assert (answer.status, body) == (404, {"error": "there is nothing at this path"})


@pytest.mark.parametrize("method, path, allow", [("GET", "/scoring", "POST"), ("POST", "/config", "GET, HEAD")])
def test_wrong_method(scorer, method, path, allow):
    answer, _ = call(scorer, method, path)
    assert (answer.status, answer.headers["Allow"]) == (405, allow)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_64_mib_is_refused(scorer, chunked):
    mib = b" " * (1 << 20)
    body = (mib for _ in range(65)) if chunked else mib * 65
    answer, error = call(scorer, "POST", "/scoring", body)
    assert (answer.status, error) == (413, {"error": "the body is over 64 MiB"})
    assert call(scorer, "GET", "/healthz")[0].status == 200


def test_token(tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with running("--token-file", str(token)) as scorer:

        def status(authorization=None, path="/scoring"):
            headers = {"Authorization": authorization} if authorization else {}
            method = "POST" if path == "/scoring" else "GET"
            return call(scorer, method, path, '{"data":[]}' if method == "POST" else None, **headers)[0]

        for wrong in (None, "s3cret", "Basic s3cret", "Bearer ", "Bearer s3cre", "Bearer s3crets3cret", "Bearer S3cret"):
            answer = status(wrong)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), wrong
        assert status("Bearer s3cret").status == 200
        assert status("bearer s3cret").status == 200
        assert status(path="/healthz").status == status(path="/config").status == 200

        token.write_text("other")
        assert status("Bearer s3cret").status == 401
        assert status("Bearer other").status == 200
        token.write_text("")
        assert status("Bearer ").status == 503
        token.unlink()
        assert status("Bearer other").status == 503


def test_ten_thousand_series_a_call(scorer):
    values = [[1700000000 + 60 * i, f"{i}.5"] for i in range(60)]
    data = [{"metric": {"pod": f"pod-{i}", "node": "n" * 40}, "values": values} for i in range(10000)]
    results = score(scorer, data)  # about 0.6 s in a release build
    assert [r["metric"]["pod"] for r in results] == [f"pod-{i}" for i in range(10000)]
    assert {r["score"] for r in results} == {30.0}


def test_a_call_under_way_outlives_the_signal():
    body = b'{"data":[]}'
    with running() as scorer, socket.create_connection(("127.0.0.1", scorer.port), DEADLINE) as s:
        s.sendall(b"POST /scoring HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        for _ in range(2):  # one thread: once it answered these, it has read the headers above
            assert call(scorer, "GET", "/healthz")[0].status == 200
        scorer.send_signal(signal.SIGTERM)
        s.sendall(body)
        assert b'{"results":[]}' in s.makefile("rb").read()


def test_a_port_in_use_is_said():
    with running() as scorer:
        second = subprocess.run(
            [PROGRAM, "--listen", f"127.0.0.1:{scorer.port}"], capture_output=True, text=True, timeout=DEADLINE
        )
    assert second.returncode == 1
    assert second.stderr == f"sample-scorer: cannot listen on 127.0.0.1:{scorer.port}: Address already in use\n"


@pytest.mark.parametrize("options", [["--unknown"], ["extra"], ["--listen"]])
def test_bad_options_show_the_usage(options):
    run = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=DEADLINE)
    assert run.returncode == 2
    assert "usage: sample-scorer" in run.stderr


def test_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as why:
        pytest.skip(f"no IPv6 here: {why}")
    with running(listen="[::1]:0") as scorer:
        connection = http.client.HTTPConnection("::1", scorer.port, timeout=DEADLINE)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
