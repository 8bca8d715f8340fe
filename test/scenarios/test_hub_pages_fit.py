"""The hub's pages in a real browser: no width requires horizontal scrolling, text is readable in light and dark, and no
hostile text is executed."""

import json

import pytest

from lib.browser import FAINT, VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.scorers import distributed
from lib.wait import wait_until

LONG = "a" * 20 + "-cluster-with-a-name-as-long-as-names-may-become"[:43]
HOSTILE = '"><img src=x onerror=document.title=1><script>document.title=1</script>' + "unbroken" * 22
MASKED = "masked"
PAGES = ("/", "/scorer?name=s", f"/cluster?name={LONG}", f"/cluster?name={MASKED}")
WIDTHS = (320, 360, 701, 800, 1600, 1920)


def click(browser, selector):
    browser.events = []
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")
    browser.wait_for_event("Page.loadEventFired")
    browser.wait_for("document.querySelector('h1') !== null")


def test_the_pages_fit(hub, fake, start_controller, browser):
    controller = distributed(hub, fake, start_controller, clusters=(LONG, "b", "c", "d"))
    hub.add_cluster(MASKED)
    hub.configure(masks=[{"clusterName": MASKED, "scoreName": "*"}])
    hub.wait_scores(MASKED)
    said = {"scoreName": "cpu", "state": "failing", "error": HOSTILE}
    hub.set_feedback(LONG, json.dumps({"configurationInForce": True, "scorers": [said]}))
    hub.set_feedback("b", json.dumps({"configurationInForce": True, "scorers": [{"scoreName": "cpu", "state": "ok"}]}))
    hub.set_feedback("c", None, applied=False, why=HOSTILE)
    wait_until(lambda: controller.get("/api/v1/scorer?name=s").text.count("unbroken") > 40, "both errors are there")
    for path in PAGES:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                browser.open(controller.url + path, width, 900, scheme)
                name = path.strip("/").partition("?")[0] or "main"
                browser.picture(f"hub-{name}-{width}-{scheme}" + ("-masked" if MASKED in path else ""))
                assert browser.run("document.documentElement.scrollWidth") <= width, (path, width)
                assert browser.run(FAINT) == [], (path, width, scheme)
        assert browser.run("document.title") != "1" and browser.run("document.images.length") == 0
        assert not browser.seen("Log.entryAdded") and not browser.seen("Runtime.exceptionThrown")
    browser.open(controller.url + "/scorer?name=s")
    text = browser.run(VISIBLE_TEXT)
    assert LONG in text and HOSTILE[:200] in text
    click(browser, f'a[href="cluster?name={LONG}"]')
    assert browser.run("document.querySelector('h1').innerText") == LONG


@pytest.mark.parametrize("kind", ["scorer", "cluster"])
def test_back_to_the_main_page(hub, fake, start_controller, browser, kind):
    controller = distributed(hub, fake, start_controller)
    browser.open(f"{controller.url}/{kind}?name={'s' if kind == 'scorer' else 'c1'}")
    click(browser, ".over-title a")
    assert browser.run("location.pathname") == "/"
