"""The status page in a real browser: readable at every width, in light and dark, and nothing that a scorer says becomes markup."""

import base64
import contextlib
import fcntl
import hashlib
import http.server
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("DS_BUILD", ROOT / "build")) / "dynamic-scoring"
SHOTS = os.environ.get("DS_SCREENSHOTS")  # a folder that keeps the pictures
DEADLINE = 60

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
    if path == "/many":
        results = [
            {"metric": {"node": f"worker-{i:02}.eu.example.net", "namespace": "default"}, "score": i * 0.75 - 4}
            for i in range(30)
        ]
        return results + [results[0], {"metric": {"node": "none"}, "score": None}]
    if path == "/hostile":
        metric = {"node": HOSTILE, "pod": "p" * 250, "meta": "\u202eright to left"}
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
        if self.path == "/fail":
            self.answer(502, REASON.partition(": ")[2].encode())
        else:
            self.answer(200, {"results": scores_of(self.path)})

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving_fakes():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fakes)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
        return answer.headers, answer.read().decode()


def wait_for(what, process, ready):
    end = time.monotonic() + DEADLINE
    while True:
        with contextlib.suppress(OSError):
            if ready():
                return
        assert process.poll() is None, f"ended with {process.returncode}"
        assert time.monotonic() < end, f"waited {DEADLINE} s for {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def running_agent(folder, config):
    """An agent whose scorers have all ended a round; yields the base of its URLs."""
    file = folder / "config.yaml"
    file.write_text(config)
    base = f"http://127.0.0.1:{free_port()}"
    command = [PROGRAM, "agent", f"--config.file={file}", f"--web.listen-address={base[7:]}"]
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


class Browser:
    """Chromium, spoken to by the DevTools protocol over pipes: NUL-terminated JSON."""

    FLAGS = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        " --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
    ).split()

    def __init__(self, profile):
        to_child, self.to = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in os.pipe())
        self.come, from_child = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in os.pipe())
        # The protocol's descriptors are 3 and 4.
        shell = ["/bin/bash", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "bash"]
        command = [*shell, "chromium", *self.FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            command, pass_fds=(to_child, from_child), stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(to_child)
        os.close(from_child)
        self.read, self.calls, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def next_message(self):
        end = time.monotonic() + DEADLINE
        while b"\0" not in self.read:
            assert select.select([self.come], [], [], max(0, end - time.monotonic()))[0], "the browser says nothing"
            more = os.read(self.come, 1 << 20)
            assert more, "the browser has gone"
            self.read += more
        text, _, self.read = self.read.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text) :]
        while (answer := self.next_message()).get("id") != self.calls:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for_event(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.next_message())

    def seen(self, method):
        return [e["params"] for e in self.events if e.get("method") == method]

    def open(self, url, width=1280, height=900, scheme="light"):
        phone = width < 700
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1 + phone, mobile=phone
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.call("Page.navigate", url=url)
        self.wait_for_event("Page.loadEventFired")

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self, name):
        if SHOTS:
            data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            pathlib.Path(SHOTS, f"{name}.png").write_bytes(base64.b64decode(data))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)
        os.close(self.to)
        os.close(self.come)


@pytest.fixture(scope="module", name="browser")
def shared_browser(tmp_path_factory):
    if not shutil.which("chromium"):
        pytest.skip("chromium is not there")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield browser
    finally:
        browser.close()


VISIBLE_TEXT = "document.body.innerText"

# Elements with text of their own whose colour stands out from their background by less than 4.5 to 1 (WCAG 2.2, 1.4.3).
FAINT = """
(() => {
  const numbers = c => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * x + .7152 * y + .0722 * z;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const e of document.body.querySelectorAll('*')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) faint.push(e.outerHTML.slice(0, 80) + ' ' + ratio.toFixed(2));
  }
  return faint;
})()
"""


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
        "result that is not valid",
        "result replaced an earlier one",
        'sum by (node) (rate(node_cpu_seconds_total{mode!="idle"}[5m]))',
        "Scoring failed: http_5xx",
        REASON,
        "The source failed: query",
        "bad_data: parse error: unclosed parenthesis",
        WARNING,
        "1 score is NaN",
        "staleAfterIntervals",
        "Up for",
    ):
        assert what in text
    assert "hunter2" not in browser.run("document.documentElement.outerHTML")
    states = browser.run("[...document.querySelectorAll('.scorers .state')].map(e => e.innerText)")
    assert states == ["stale", "stale", "empty", "ok", "ok"]
    assert browser.run("document.title").startswith("2 failing · prod-eu-1")


def test_nothing_that_a_scorer_says_becomes_markup(agent, browser):
    browser.open(agent)
    assert HOSTILE in browser.run(VISIBLE_TEXT)
    assert browser.run("document.querySelectorAll('script, img, iframe, object, form, b > *, pre b, pre i').length") == 0
    assert browser.run("[...document.querySelectorAll('*')].some(e => e.hasAttribute('onerror'))") is False
    assert browser.run("document.getAnimations().length") == 0
    assert not browser.seen("Page.javascriptDialogOpening")


def test_nothing_is_asked_of_others_and_the_browser_has_no_complaint(agent, browser):
    browser.open(agent)
    browser.run("1")
    asked = {request["request"]["url"].partition(":")[0] for request in browser.seen("Network.requestWillBeSent")}
    assert asked <= {"http", "data"}
    urls = [r["request"]["url"] for r in browser.seen("Network.requestWillBeSent") if r["request"]["url"][:4] == "http"]
    assert urls == [f"{agent}/"]
    assert browser.seen("Log.entryAdded") == []


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


def test_the_policy_names_the_style_sheet(agent):
    headers, text = get(agent)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in headers["Content-Security-Policy"], "status_html_csp wants this hash"
    assert headers["Content-Security-Policy"].startswith("default-src 'none';")
    assert headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_json_says_the_same(agent):
    headers, text = get(f"{agent}/api/v1/status")
    status = json.loads(text)
    assert headers["Content-Type"] == "application/json"
    assert [s["state"] for s in status["scorers"]] == ["ok", "ok", "stale", "empty", "stale"]
    assert status["scorers"][2]["error"] == {"stage": "scoring", "class": "http_5xx", "text": REASON}
    assert status["scorers"][0]["warnings"] == {"count": 1, "first": WARNING}
    assert status["scorers"][0]["highest"][0] == {
        "labels": {"node": "worker-29.eu.example.net", "namespace": "default"},
        "score": 17.75,
    }
    assert status["totals"]["series"] == 32
    assert "hunter2" not in text


def test_a_refused_configuration_shows(browser, tmp_path):
    with running_agent(tmp_path, "clusterName: c1\nsummaries: []\n") as base:
        browser.open(base)
        assert "No scorers configured: add some under summaries" in browser.run(VISIBLE_TEXT)
        (tmp_path / "config.yaml").write_text("clusterName: c1\nsummaries: 5\n")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(urllib.request.Request(f"{base}/-/reload", method="POST"), timeout=DEADLINE)
        browser.open(base)
        text = browser.run(VISIBLE_TEXT)
        browser.picture("refused")
        assert "The configuration file was refused; the configuration before it stays in force." in text
        assert "config.yaml:2:12: error: summaries: expected" in text


def test_the_table_in_the_terminal(tmp_path):
    with serving_fakes() as port:
        (tmp_path / "config.yaml").write_text(SUMMARIES.format(port=port))
        command = [PROGRAM, "agent", f"--config.file={tmp_path}/config.yaml", "--once"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=DEADLINE, env={**os.environ, "no_proxy": "*"})
    assert done.returncode == 1
    assert "✓ ok  node_load, of node-load\n" in done.stdout
    assert f"asking the scorer: {REASON} (http_5xx)\n" in done.stdout
    assert re.search(r"\n    worker-29\.eu\.example\.net  default    17\.75\n", done.stdout)
    assert "    … and 10 more\n" in done.stdout
    assert done.stdout.endswith("5 scorers: 2 ok, 1 empty, 2 failed, 0 waiting; 32 scores\n")
    assert "\033" not in done.stdout
