"""The page of test/dashboards/draw in Chromium."""

import importlib.machinery
import importlib.util
import threading

from lib.process import ROOT

WIDTH = 1280
FILES = sorted((ROOT / "dashboards").glob("*.json"))

PANELS = """
[...document.querySelectorAll('.panel')].map((p) => {
  const { left, top, right, bottom } = p.getBoundingClientRect();
  return { id: p.dataset.id, title: p.dataset.title, state: p.dataset.state,
    text: p.querySelector('.content').textContent, box: [left, top, right, bottom].map(Math.round) };
})
"""


def load_draw():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("draw", str(ROOT / "test" / "dashboards" / "draw"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw", loader))
    loader.exec_module(module)
    return module


def serve_dashboards(sources, interval):
    """The page for these data sources, {name: URL}; returns its address."""
    server = load_draw().serve(sources, interval=interval)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.url


def open_dashboard(browser, url, uid, query="", width=WIDTH):
    """Opens it and waits until each panel was drawn once. The window becomes as high as the dashboard."""
    browser.open(f"{url}/d/{uid}?refresh=0s&{query}", width, 1000, "dark", ready=False)
    browser.wait_for("document.body.dataset.done || document.body.dataset.failed")
    failed = browser.run("document.body.dataset.failed")
    assert not failed, f"{uid}: {failed}"
    height = browser.run("Math.ceil(document.documentElement.scrollHeight)")
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
    )


def panels_of(browser):
    """[{id, title, state, text, box: [left, top, right, bottom]}]"""
    return browser.run(PANELS)
