"""The diagrams of the pages are drawn, by the Mermaid that also GitHub has, in Chromium."""

import html
import re

from lib.browser import shared_browser  # noqa: F401 (a fixture)
from lib.kube import script
from lib.process import ROOT

PAGES = [page for page in ROOT.rglob("*.md") if "build" not in page.relative_to(ROOT).parts]


def test_all_are_drawn(browser, tmp_path):
    found = [text for page in PAGES for text in re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(), re.M | re.S)]
    assert len(found) >= 3
    bundle = f"{script('node-packages', 'mermaid')}/node_modules/mermaid/dist/mermaid.min.js"
    diagrams = "".join(f"<pre class=mermaid>{html.escape(text)}</pre>" for text in found)
    (tmp_path / "page.html").write_text(f"<h1>Diagrams</h1>{diagrams}<script src='file://{bundle}'></script>")
    browser.open(f"file://{tmp_path}/page.html", height=1600)
    browser.wait_for(f"document.querySelectorAll('pre.mermaid svg').length === {len(found)}")
    browser.picture("diagrams")
    drawn = browser.run("[...document.querySelectorAll('pre.mermaid svg')].map(e => e.getAttribute('aria-roledescription'))")
    assert "error" not in drawn, drawn
