"""Chromium, as the scenarios of pages use it."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

import pytest

from lib.process import missing
from lib.wait import DEADLINE

SHOTS = os.environ.get("DS_SCREENSHOTS")  # a folder that keeps the pictures

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
        end = time.monotonic() + DEADLINE
        while not any(e.get("method") == method for e in self.events):
            assert time.monotonic() < end, f"waited {DEADLINE} s for {method}"
            self.events.append(self.next_message())

    def seen(self, method):
        return [e["params"] for e in self.events if e.get("method") == method]

    def open(self, url, width=1280, height=900, scheme="light", ready=True):
        """Opens a page and, unless ready=False, waits until it shows something."""
        phone = width < 700
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1 + phone, mobile=phone
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.call("Page.navigate", url="about:blank")  # a page of which only the fragment changes is not loaded anew
        self.wait_for_event("Page.loadEventFired")
        self.events = []
        self.call("Page.navigate", url=url)
        self.wait_for_event("Page.loadEventFired")
        if ready:
            self.wait_for("document.querySelector('h1') !== null")

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, script):
        """Waits until the expression is true in the page."""
        end = time.monotonic() + DEADLINE
        while not self.run(script):
            assert time.monotonic() < end, f"waited {DEADLINE} s for {script}: {self.run(VISIBLE_TEXT)}"
            time.sleep(0.05)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=13, text="\r")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def document_text(self):
        """What a reader sees, without running a script in the page."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return "".join(n["name"]["value"] for n in nodes if n.get("role", {}).get("value") == "StaticText")

    def screenshot(self, **more):
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, **more)["data"])

    def picture(self, name):
        if SHOTS:
            pathlib.Path(SHOTS, f"{name}.png").write_bytes(self.screenshot())

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)
        os.close(self.to)
        os.close(self.come)


@pytest.fixture(scope="module", name="browser")
def shared_browser(tmp_path_factory):
    if not shutil.which("chromium"):
        missing("no chromium here")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield browser
    finally:
        browser.close()
