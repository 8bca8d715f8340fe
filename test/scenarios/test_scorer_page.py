"""The page of a scoring API in a real browser: the series and scores of the last call, and the last error; it fits every
width, in light and dark, and nothing that a caller sends becomes markup."""

import json
import math

import pytest

from lib.browser import FAINT, VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.client import call
from lib.scoring_api import running_scorer

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


def wave(i):
    return [[1700000000 + 60 * t, "NaN" if t == 7 else f"{math.sin(t / 5 + i):.3f}"] for t in range(60)]


@pytest.fixture(scope="module", name="mean")
def mean_after_calls(tmp_path_factory):
    """60 series, of which some are hostile or short, and then a call that fails."""
    data = [{"metric": {"pod": f"pod-{i}", "node": HOSTILE}, "values": wave(i)} for i in range(57)]
    data[1:1] = [
        {"metric": {"pod": "p" * 300}, "values": []},
        {"metric": {"pod": "not a number"}, "values": [[1, "NaN"]]},
        {"metric": {}, "value": [1, "42"]},
    ]
    with running_scorer(tmp_path_factory.mktemp("page")) as scorer:
        assert call("POST", scorer.url + "/scoring", json.dumps({"data": data})).status == 200
        yield scorer.url


def test_the_last_call_is_shown(mean, browser):
    browser.open(mean)
    text = browser.run(VISIBLE_TEXT)
    for words in ("60 → 59 results", "1: no finite value", "The first 50 of 60.", "sample_my_score", HOSTILE, "42"):
        assert words in text, words
    assert browser.run("document.querySelectorAll('.series').length") == 50
    # A plot of 60 samples with a gap where there is no number.
    assert browser.run("document.querySelector('.series svg path').getAttribute('d').split('M').length") == 3
    assert browser.run("document.querySelector('.series b').innerText") != ""
    assert browser.run("document.querySelectorAll('main script, main img').length") == 0
    assert browser.seen("Log.entryAdded") == [] and browser.seen("Runtime.exceptionThrown") == []


@pytest.mark.parametrize("width, scheme", [(320, "light"), (1280, "dark")])
def test_it_fits_and_stands_out(mean, browser, width, scheme):
    browser.open(mean, width, 844, scheme)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(FAINT) == []
    browser.picture(f"scorer-{width}-{scheme}")


def test_the_last_error_is_shown(mean, browser):
    assert call("POST", mean + "/scoring", '{"data":[{"metric":{},"values":[[1]]}]}').status == 400
    browser.open(mean)
    text = browser.run(VISIBLE_TEXT)
    assert "The last call failed: HTTP 400" in text and "data[0].values[0]: expected" in text
    assert browser.run("document.title").startswith("failing")


def test_results_without_series(tmp_path, browser):
    with running_scorer(tmp_path, model="static") as scorer:
        browser.open(scorer.url)
        assert "No call yet." in browser.run(VISIBLE_TEXT)
        call("POST", scorer.url + "/performance/scoring", b"")
        browser.open(scorer.url)
        assert "3g.48gb" in browser.run(VISIBLE_TEXT)
        assert browser.run("document.querySelectorAll('table tbody tr').length") == 6
