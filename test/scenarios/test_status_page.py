"""The agent's page in a real browser: complete and readable at every width, in light and dark; it refreshes by itself, filters and
sorts; and nothing that a scorer says becomes markup."""

import collections
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from lib.browser import FAINT, VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.process import free_port
from lib.wait import DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("DS_BUILD", ROOT / "build")) / "dynamic-scoring"
FILES = ("", "ui/app.js", "ui/dom.js", "ui/table.js", "ui/plot.js", "ui/agent.js", "ui/hub.js", "ui/scorer.js", "ui/style.css", "ui/icon.svg", "ui/icon-bad.svg")

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
REASON = "HTTP 502 Bad Gateway: the model <b>is not</b> loaded: " + "no such file; " * 20 + "end of the reason"
WARNING = "PromQL warning: <i>metric</i> might not be a counter"
SUMMARIES = """
clusterName: "prod-eu-1 <i>x</i>"
summaries:
- {{name: node-load, scoreName: node_load, sourceEndpoint: "http://u:hunter2@127.0.0.1:{port}", scoringInterval: 60,
   sourceQuery: "sum by (node) (rate(node_cpu_seconds_total{{mode!=\\"idle\\"}}[5m])); warn",
   scoringEndpoint: "http://127.0.0.1:{port}/many"}}
- {{name: hostile, scoreName: hostile_score, sourceType: None, scoringEndpoint: "http://127.0.0.1:{port}/hostile"}}
- {{name: failing, scoreName: gpu_fragmentation, sourceEndpoint: "http://127.0.0.1:{port}", sourceQuery: up,
   scoringEndpoint: "http://127.0.0.1:{port}/fail", scoringInterval: 600}}
- {{name: idle, scoreName: idle_pods, sourceEndpoint: "http://127.0.0.1:{port}", sourceQuery: empty,
   scoringEndpoint: "http://127.0.0.1:{port}/none"}}
- {{name: refused, scoreName: query_refused, sourceEndpoint: "http://127.0.0.1:{port}", sourceQuery: "sum(",
   scoringEndpoint: "http://127.0.0.1:{port}/none", scoringInterval: 600}}
"""


def scores_of(path):
    if path == "/hangs":
        return [{"metric": {"node": "n1"}, "score": 1.5}]
    if path == "/many":
        results = [
            {"metric": {"node": f"worker-{i:02}.eu.example.net", "namespace": "default"}, "score": i * 0.75 - 4}
            for i in range(30)
        ]
        return results + [results[0], {"metric": {"node": "none"}, "score": None}]
    if path == "/hostile":
        metric = {"node": HOSTILE, "pod": "p" * 250, "meta": "\u202eright to left\u001b[31m"}
        return [{"metric": metric, "score": 1e22}, {"metric": {}, "score": float("nan")}]
    return []


class Fakes(http.server.BaseHTTPRequestHandler):
    """A Prometheus and scoring APIs in one: the query or the path says what is wanted."""

    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        one = {"metric": {"node": "n1"}, "values": [[1, "1"]]}
        answer = {"status": "success", "data": {"resultType": "matrix", "result": [one] * 30}}
        if "query=empty" in self.path:
            answer["data"]["result"] = []
        if "query=warn" in self.path:
            answer["warnings"] = [WARNING]
        if "query=sum%28&" in self.path:
            self.answer(400, {"status": "error", "errorType": "bad_data", "error": "parse error: unclosed parenthesis"})
            return
        self.answer(200, answer)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen[self.path] += 1
        if self.path == "/hangs" and self.server.seen["/hangs"] > 1:
            self.server.ended.wait()
        elif self.path == "/fail":
            self.answer(502, REASON.partition(": ")[2].encode())
        else:
            self.answer(200, {"results": scores_of(self.path)})

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving_fakes():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fakes)
    server.daemon_threads = True
    server.seen, server.ended = collections.Counter(), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()


def get(url):
    with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
        return answer.headers, answer.read().decode()


def wait_for(what, process, ready):
    end = time.monotonic() + DEADLINE
    while True:
        with contextlib.suppress(OSError):
            if ready():
                return
        assert not process or process.poll() is None, f"ended with {process.returncode}"
        assert time.monotonic() < end, f"waited {DEADLINE} s for {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def running_agent(folder, config):
    """An agent whose scorers have all ended a round; yields the base of its URLs."""
    file = folder / "config.yaml"
    file.write_text(config)
    base = f"http://127.0.0.1:{free_port()}"
    command = [PROGRAM, "agent", f"--config.file={file}", f"--web.listen-address={base[7:]}", "--web.enable-lifecycle"]
    process = subprocess.Popen(command, env={**os.environ, "no_proxy": "*"})

    def all_ended():
        return all(s["rounds"] for s in json.loads(get(f"{base}/api/v1/status")[1])["scorers"])

    try:
        wait_for("all rounds", process, all_ended)
        yield base
    finally:
        process.terminate()
        status = process.wait(DEADLINE)
    assert status == 0


@pytest.fixture(scope="module", name="agent")
def shared_agent(tmp_path_factory):
    with serving_fakes() as port:
        with running_agent(tmp_path_factory.mktemp("agent"), SUMMARIES.format(port=port)) as base:
            yield base


def shown(browser, selector):
    """The visible texts of the elements."""
    return browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)")


def test_everything_can_be_read(agent, browser):
    browser.open(agent)
    text = browser.run(VISIBLE_TEXT)
    for what in (
        "prod-eu-1 <i>x</i>",
        "node_load",
        "30 exposed",
        "60 from the source → 32 results → 30 exposed",
        "worker-29.eu.example.net",
        "17.75",
        "worker-01.eu.example.net",
        "-3.25",
        "every 1m",
        "1 invalid result ignored",
        "1 duplicate result",
        'sum by (node) (rate(node_cpu_seconds_total{mode!="idle"}[5m]))',
        "Scoring failed: http_5xx",
        REASON,
        "Source failed: query",
        "bad_data: parse error: unclosed parenthesis",
        WARNING,
        "1 score is NaN",
        "staleAfterIntervals",
        "Up for",
        "Storage folder",
        "/api/v1/status",
    ):
        assert what in text
    assert "hunter2" not in browser.run("document.documentElement.outerHTML")
    assert shown(browser, ".rows .state") == ["failing", "failing", "empty", "ok", "ok"]
    assert browser.run("document.title").startswith("2 failing · prod-eu-1")
    assert browser.run("document.querySelector('link[rel=icon]').getAttribute('href')") == "ui/icon-bad.svg"


def test_nothing_that_a_scorer_says_becomes_markup(agent, browser):
    browser.open(agent)
    text = browser.run(VISIBLE_TEXT)
    assert HOSTILE in text and "right to left\ufffd[31m" in text
    assert browser.run("document.querySelectorAll('img, iframe, object, form, b > *, pre b, pre i, bdi > *').length") == 0
    assert browser.run("document.scripts.length") == 1
    assert browser.run("[...document.querySelectorAll('*')].some(e => e.hasAttribute('onerror') || e.hasAttribute('style'))") is False
    assert browser.run("document.getAnimations().length") == 0
    assert not browser.seen("Page.javascriptDialogOpening")


def test_nothing_is_asked_of_others_and_the_browser_has_no_complaint(agent, browser):
    browser.open(agent)
    urls = [r["request"]["url"] for r in browser.seen("Network.requestWillBeSent")]
    assert urls and all(url.startswith(f"{agent}/") for url in urls)
    assert browser.seen("Log.entryAdded") == [] and browser.seen("Runtime.exceptionThrown") == []


@pytest.mark.parametrize("width", [320, 390, 699, 701, 1024, 1600])
def test_no_width_needs_scrolling_sideways(agent, browser, width):
    browser.open(agent, width, 844)
    assert browser.run("innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth") <= width
    outside = """[...document.querySelectorAll('body *')].filter(e => e.closest('.unseen, thead') === null
        && (e.getBoundingClientRect().right > innerWidth + .5 || e.getBoundingClientRect().left < -.5)).length"""
    assert browser.run(outside) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device, width", [("desktop", 1280), ("phone", 390)])
def test_text_stands_out_from_its_background(agent, browser, scheme, device, width):
    browser.open(agent, width, 844, scheme)
    dark = browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128")
    assert dark == (scheme == "dark")
    browser.picture(f"{device}-{scheme}")
    assert browser.run(FAINT) == []


def names(browser):
    return shown(browser, ".rows tbody th")


def test_a_link_leads_to_a_scorer(agent, browser):
    browser.open(f"{agent}#scorer-query_refused", 1280, 500)
    browser.wait_for("document.querySelector(':target') !== null")
    assert browser.run("document.querySelector(':target h3').innerText") == "query_refused"
    browser.wait_for("scrollY > 0")
    assert browser.run("document.querySelector(':target').getBoundingClientRect().top < innerHeight")


def test_the_table_filters_and_sorts(agent, browser):
    browser.open(agent)
    assert names(browser) == ["gpu_fragmentation", "query_refused", "idle_pods", "hostile_score", "node_load"]
    browser.run("document.querySelector('[data-sort=series]').click()")
    browser.wait_for("document.querySelector('[data-sort=series]').parentElement.ariaSort === 'ascending'")
    assert names(browser)[-1] == "node_load"
    browser.run("document.querySelector('[data-sort=series]').focus()")
    browser.key("Enter")  # again: the other way round
    browser.wait_for("document.querySelector('.rows tbody th').innerText === 'node_load'")
    assert browser.run("document.querySelector('[data-sort=series]').parentElement.ariaSort") == "descending"
    assert browser.run("document.activeElement.dataset.sort") == "series"
    browser.run("document.querySelector('input[type=search]').focus()")
    browser.type("LO")
    browser.wait_for("document.querySelectorAll('.rows tbody tr').length === 1")
    assert names(browser) == ["node_load"]
    assert browser.run("document.activeElement.value") == "LO"
    assert "scorers.filter=LO" in browser.run("location.search")
    browser.open(f"{agent}/?scorers.state=empty")
    assert names(browser) == ["idle_pods"]


def test_a_refresh_keeps_what_the_reader_has_open(agent, browser):
    browser.open(agent)
    browser.run("document.querySelectorAll('details')[1].open = false; scrollTo(0, 300);"
                "document.querySelector('article a').focus({preventScroll: true});"
                "getSelection().selectAllChildren(document.querySelector('h3'))")
    before = browser.run("[scrollY, String(getSelection()), document.activeElement.href]")
    updated = "document.getElementById('updated').textContent"
    old = browser.run(updated)
    browser.wait_for(f"{updated} !== {json.dumps(old)}")
    assert browser.run("[scrollY, String(getSelection()), document.activeElement.href]") == before
    assert browser.run("document.querySelectorAll('details')[1].open") is False
    browser.run("document.getElementById('pause').click()")
    old = browser.run(updated)
    assert old.startswith("Paused, last updated ") and shown(browser, "#pause") == ["Resume"]
    time.sleep(6)
    assert browser.run(updated) == old
    browser.run("document.getElementById('pause').click()")
    browser.wait_for(f"{updated} !== {json.dumps(old)}")


def test_the_page_says_when_the_agent_is_away(browser, tmp_path):
    with running_agent(tmp_path, "clusterName: c1\nsummaries: []\n") as base:
        browser.open(base)
    browser.wait_for("document.getElementById('trouble').textContent.startsWith('last update failed: ')")
    assert "next try in" in browser.run("document.getElementById('trouble').textContent")
    assert "c1" in browser.run(VISIBLE_TEXT)


def test_it_says_why_scores_are_gone_while_a_round_hangs(browser, tmp_path):
    with serving_fakes() as port:
        more = "sourceType: None, scoringInterval: 1, timeout: 5m"
        summary = f"{{scoreName: s, {more}, scoringEndpoint: 'http://127.0.0.1:{port}/hangs'}}"
        limits = "limits: {staleAfterIntervals: 1}"
        with running_agent(tmp_path, f"clusterName: c1\n{limits}\nsummaries: [{summary}]\n") as base:
            wait_for("the end of its scores", None, lambda: json.loads(get(f"{base}/api/v1/status")[1])["scorers"][0]["state"] == "stale")
            browser.open(base)
            text = browser.run(VISIBLE_TEXT)
            browser.picture("stale")
    assert "No scores" in text and "the scores of the last round have expired, and no round has ended since" in text


def test_rounds_are_plotted(browser, tmp_path):
    with serving_fakes() as port:
        summary = f"{{name: s, scoreName: s, sourceType: None, scoringInterval: 1, scoringEndpoint: 'http://127.0.0.1:{port}/many'}}"
        with running_agent(tmp_path, f"clusterName: c1\nsummaries: [{summary}]\n") as base:
            browser.open(base)
            browser.wait_for("document.querySelectorAll('.plot svg').length === 2")
            latency, scores = browser.run("[...document.querySelectorAll('.plot svg')].map(e => e.getAttribute('aria-label'))")
            assert re.match(r"Latency over \d+ s\. scoring: last .* min .* max ", latency)
            assert "lowest -4, highest 17.75" in scores
            status = json.loads(get(f"{base}/api/v1/status?history=true")[1])
            history = status["scorers"][0]["history"]
            assert len(history["unixSeconds"]) == len(history["performSeconds"]) >= 2
            assert history["fetchSeconds"] == [None] * len(history["unixSeconds"])
            assert "history" not in json.loads(get(f"{base}/api/v1/status")[1])["scorers"][0]


def test_files_are_revalidated_and_compressed(agent):
    for path in FILES:
        url = f"{agent}/{path}"
        headers, text = get(url)
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in headers["Content-Security-Policy"] and "data:" not in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-cache", "nosniff")
        assert headers["Referrer-Policy"] == "no-referrer"
        assert " style=" not in text and "innerHTML" not in text and "://" not in text.replace("http://www.w3.org/2000/svg", "")
        request = urllib.request.Request(url, headers={"If-None-Match": headers["ETag"]})
        with pytest.raises(urllib.error.HTTPError) as unchanged:
            urllib.request.urlopen(request, timeout=DEADLINE)
        assert unchanged.value.code == 304 and unchanged.value.headers["ETag"] == headers["ETag"]
        request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            assert answer.headers["Content-Encoding"] == "gzip" and answer.headers["ETag"] != headers["ETag"]
            assert gzip.decompress(answer.read()).decode() == text


def test_without_javascript_the_page_leads_to_the_json(agent, browser):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(agent, ready=False)
        assert "This page needs JavaScript. The same information as JSON: api/v1/status" in browser.document_text()
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_the_json_says_the_same(agent):
    headers, text = get(f"{agent}/api/v1/status")
    status = json.loads(text)
    by_name = {s["scoreName"]: s for s in status["scorers"]}
    assert headers["Content-Type"] == "application/json"
    assert list(by_name) == sorted(by_name)
    assert {n: s["state"] for n, s in by_name.items()} == {
        "gpu_fragmentation": "failing", "hostile_score": "ok", "idle_pods": "empty", "node_load": "ok", "query_refused": "failing",
    }
    error = by_name["gpu_fragmentation"]["error"]
    assert (error["stage"], error["class"], error["text"]) == ("scoring", "http_5xx", REASON)
    assert by_name["node_load"]["warnings"] == {"count": 1, "first": WARNING}
    assert by_name["node_load"]["highest"][0] == {
        "labels": {"node": "worker-29.eu.example.net", "namespace": "default"},
        "score": 17.75,
    }
    assert status["totals"]["series"] == 32
    assert "hunter2" not in text


def test_the_json_comes_in_parts(agent):
    seen, token = [], ""
    while token is not None:
        part = json.loads(get(f"{agent}/api/v1/status?limit=2&continue={token}")[1])
        seen += [s["scoreName"] for s in part["scorers"]]
        assert part["metadata"]["remainingItemCount"] == 5 - len(seen)
        token = part["metadata"]["continue"]
    assert seen == ["gpu_fragmentation", "hostile_score", "idle_pods", "node_load", "query_refused"]
    part = json.loads(get(f"{agent}/api/v1/status?state=failing,empty&filter=Q")[1])
    assert [s["scoreName"] for s in part["scorers"]] == ["query_refused"]
    for bad in ("limit=x", "limit=-1", "continue=zz", "sort=up"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(f"{agent}/api/v1/status?{bad}")
        assert refused.value.code == 400 and bad.partition("=")[0] in refused.value.read().decode()


def test_a_rejected_configuration_shows(browser, tmp_path):
    with running_agent(tmp_path, "clusterName: c1\nsummaries: []\n") as base:
        browser.open(base)
        assert "No scorers configured: add some under summaries" in browser.run(VISIBLE_TEXT)
        (tmp_path / "config.yaml").write_text("clusterName: c1\nsummaries: 5\n")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(urllib.request.Request(f"{base}/-/reload", method="POST"), timeout=DEADLINE)
        browser.open(base)
        text = browser.run(VISIBLE_TEXT)
        browser.picture("rejected")
        assert "The configuration was rejected; the last valid one stays active." in text
        assert "config.yaml:2:12: error: summaries: expected" in text


def test_the_table_in_the_terminal(tmp_path):
    with serving_fakes() as port:
        (tmp_path / "config.yaml").write_text(SUMMARIES.format(port=port))
        command = [PROGRAM, "agent", f"--config.file={tmp_path}/config.yaml", "--once"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=DEADLINE, env={**os.environ, "no_proxy": "*"})
    assert done.returncode == 1
    assert "✓ ok  node_load, of node-load\n" in done.stdout
    assert f"scoring failed: {REASON} (http_5xx)\n" in done.stdout
    assert re.search(r"\n    worker-29\.eu\.example\.net  default    17\.75\n", done.stdout)
    assert "    … and 10 more\n" in done.stdout
    assert done.stdout.endswith("5 scorers: 2 ok, 1 empty, 2 failed, 0 waiting; 32 scores\n")
    assert "\033" not in done.stdout
