"""Every panel of every dashboard shows something of the demo's data, and panels neither overlap nor leave the grid."""

import json
import re

import pytest

from lib.browser import shared_browser  # noqa: F401 (a fixture)
from lib.dashboard_page import FILES, open_dashboard, panels_of
from lib.kube import go_program
from lib.process import BUILD, ROOT, Process, environment
from lib.wait import LONG, eventually, wait_until

COLUMNS = 24
LAST = "from=now-3m&var-score_name=node_headroom"  # its scoring API is away for the first 40 s

# They list what the demo does not have, and say so.
NO_SUCH_PROBLEM = {"Adjustments in force", "Clusters that lost their scores", "Limits"}

# A title that does not fit into its panel; a value that does not.
CUT = """
[...document.querySelectorAll('.panel h2, .stat strong')]
  .filter((e) => e.scrollWidth > e.closest('.panel').clientWidth).map((e) => e.textContent)
"""


def address(log, name):
    return re.search(rf"^ +{name} +(http://[\d.:]+)", log, re.M)[1]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo with a hub; returns what it prints."""
    go_program("kube-apiserver")
    log = tmp_path_factory.mktemp("demo") / "log"
    process = Process("demo", [ROOT / "test" / "demo", "--hub"], log, environment(DS_BUILD=str(BUILD)))
    try:
        wait_until(
            lambda: process.check_alive() or "== Scores of each round" in process.log(), "the demo runs", 2 * LONG, 0.2
        )
        yield process.log()
    finally:
        process.end(143)


def uid_of(file):
    return json.loads(file.read_text())["uid"]


def boxes_of(dashboard):
    """{title: (left, top, right, bottom)} on the grid."""
    for p in dashboard["panels"]:
        at = p["gridPos"]
        yield p["title"], (at["x"], at["y"], at["x"] + at["w"], at["y"] + at["h"])


def overlapping(boxes):
    """Pairs of titles."""
    all_ = list(boxes)
    for i, (title, (left, top, right, bottom)) in enumerate(all_):
        for other, (x1, y1, x2, y2) in all_[i + 1 :]:
            if left < x2 and x1 < right and top < y2 and y1 < bottom:
                yield title, other


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_grid(file):
    boxes = list(boxes_of(json.loads(file.read_text())))
    assert boxes
    assert not [b for b in boxes if b[1][0] < 0 or b[1][2] > COLUMNS]
    assert not list(overlapping(boxes))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_panel_shows_something(demo, browser, file):
    shown = set()

    def look():
        open_dashboard(browser, address(demo, "dashboards"), uid_of(file), LAST)
        panels = panels_of(browser)
        assert not [p for p in panels if p["state"] == "error"], [p["text"] for p in panels if p["state"] == "error"]
        shown.update(p["title"] for p in panels if p["state"] == "data" or p["title"] in NO_SUCH_PROBLEM)
        assert not [p["title"] for p in panels if p["title"] not in shown]
        return panels

    panels = eventually(look, LONG, 2)
    browser.picture(f"dashboard-{file.stem}")
    assert len(panels) > 5
    assert browser.run(CUT) == []
    assert not list(overlapping((p["title"], p["box"]) for p in panels))
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert not browser.seen("Runtime.exceptionThrown")


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_hub_answers_each_query(demo, browser, file):
    open_dashboard(browser, address(demo, "dashboards"), uid_of(file), f"{LAST}&var-datasource=Hub")
    panels = panels_of(browser)
    assert not [p for p in panels if p["state"] == "error"]
    if file.stem == "fleet":
        scores = next(p for p in panels if p["title"] == "Scores now")
        assert scores["state"] == "data" and "tokyo" in scores["text"]
