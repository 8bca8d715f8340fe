"""The optimizer's page in a real browser: how to make a first plan, the last plan with what was left out, and 1,000 clusters. It
fits every width, in light and dark, and nothing that a caller or an object says becomes markup."""

import pytest

from lib.browser import FAINT, VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.decide import deciding
from lib.fake import answer, plain, running_fake
from lib.optimizer import kubeconfig_of_nothing, running_optimizer

VIEWS = [(320, "light"), (320, "dark"), (1280, "light"), (1280, "dark")]
CLUSTERS = {"worker01": {"3g.48gb": 2, "2g.24gb": 3}, "worker02": {"3g.48gb": 2}}
SCORED = {("app01", "worker01", "3g.48gb"): 60, ("app02", "worker02", "3g.48gb"): 55, ("app03", "worker02", "3g.48gb"): 10}
MANY = 1000
HOSTILE = '"><script>document.title=1</script><img src=x onerror=document.title=1>'


def check_fits(browser, url, name, views=VIEWS):
    for width, scheme in views:
        browser.open(url, width, 844, scheme)
        assert browser.run("document.documentElement.scrollWidth") <= width, (name, width)
        assert browser.run(FAINT) == [], (name, width, scheme)
        browser.picture(f"optimizer-{name}-{width}-{scheme}")
    assert browser.seen("Log.entryAdded") == [] and browser.seen("Runtime.exceptionThrown") == []


def test_before_the_first_plan(tmp_path, browser):
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer:
        check_fits(browser, optimizer.url, "empty")
        text = browser.run(VISIBLE_TEXT)
        assert "No plan yet." in text and f"curl {optimizer.url}/plan" in text and "Lists fail" in text
        assert "no namespace" in text
        for path in browser.run("[...document.querySelectorAll('main a, nav a')].map((a) => a.getAttribute('href'))"):
            assert optimizer.get("/" + path).status != 404, path


def test_the_last_plan(hub, browser):
    apps = {"app01": 2, "app02": 2, "app03": 2}
    with deciding(hub, clusters=CLUSTERS, workloads=apps, scores=SCORED) as decide:
        flags = "--write-namespace=default", "--deadline=5s"
        with running_optimizer(hub.kube.kubeconfig(), *flags) as optimizer:
            optimizer.wait_ready()
            planned = optimizer.post("/plan", decide.request())
            assert planned.status == 200, planned.text
            check_fits(browser, optimizer.url, "plan")
            text = browser.run(VISIBLE_TEXT)
            for words in ("Optimal", "not applied", "115", "mwrs-app03", "NoCapacity", "2 of 2", "policy-3g.48gb-worker02"):
                assert words in text, words
            assert planned.json["planHash"] in text and "How to apply it" in text
            assert browser.run("document.querySelectorAll('#page .bar').length") == 2
            assert optimizer.post("/apply", {"planHash": planned.json["planHash"]}).status == 200
            browser.wait_for("document.querySelector('h1 + .state + .state').innerText === 'applied'")
            assert "How to apply it" not in browser.run(VISIBLE_TEXT)


def many():
    """The two documents of the page, of a plan with 1,000 clusters and 10,000 workloads, one of them hostile."""
    clusters = [
        {"name": f"c{i:04}", "kind": "gpu", "device": "all", "policy": f"p{i:04}", "supplied": 20, "used": i % 21}
        for i in range(MANY)
    ]
    placements = [
        {"workload": f"w{i:05}", "cluster": f"c{i // 10:04}", "device": "all", "policy": f"p{i // 10:04}", "score": i % 101}
        for i in range(10 * MANY)
    ]
    placements[0]["workload"] = HOSTILE
    left = [{"workload": f"out{i:03}", "replicas": 1, "reason": "NoCapacity", "message": "No room. " * 9} for i in range(300)]
    known = {"placements": placements, "clusters": clusters, "moves": [], "leftOut": left, "notes": [HOSTILE]}
    found = {"status": "Feasible", "objective_value": 501000, "bound": 502000, "gap": 0.002, "engine": "relaxation"}
    found |= {"deadlineReached": True, "planHash": "f" * 64, "missingScores": {"count": 0, "first": []}, **known}
    asked = {"namespace": "default", "clusters": clusters, "preference": {"addonPlacementScore": "s"}}
    at = "2026-01-01T00:00:00Z"
    return {"at": at, "appliedAt": None, "seconds": 0.9, "request": asked, "answer": found}


@pytest.fixture(name="large")
def page_of_a_large_plan(tmp_path):
    """The real page and status; the plan is not: a hub of this size takes too long to make."""
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as optimizer, running_fake() as fake:
        page = optimizer.get("/").text
        fake.on("/", plain(page, Content_Type="text/html"))
        for name in ("app", "agent", "dom", "hub", "plan", "plot", "scorer", "table"):
            fake.on(f"/ui/{name}.js", plain(optimizer.get(f"/ui/{name}.js").body, Content_Type="text/javascript"))
        fake.on("/ui/style.css", plain(optimizer.get("/ui/style.css").body, Content_Type="text/css"))
        for name in ("icon", "icon-bad"):
            fake.on(f"/ui/{name}.svg", plain(optimizer.get(f"/ui/{name}.svg").body, Content_Type="image/svg+xml"))
        plan = many()
        status = optimizer.get("/api/v1/status").json
        last = {"hash": plan["answer"]["planHash"], "at": plan["at"], "appliedAt": None}
        fake.on("/api/v1/status", answer({**status, "plan": last, "synced": True, "troubles": {}}))
        fake.on("/api/v1/plan", answer(plan))
        yield fake


def test_a_thousand_clusters(large, browser):
    check_fits(browser, large.url, "thousand", [VIEWS[0], VIEWS[-1]])
    text = browser.run(VISIBLE_TEXT)
    for words in ("10,000", "100 of 1,000 clusters shown", "100 of 10,000 workloads shown", "100 of 300", HOSTILE):
        assert words in text, words
    assert browser.run("document.querySelectorAll('*').length") < 6000
    assert browser.run("document.title") != "1" and browser.run("document.images.length") == 0
    # The plan is fetched once by each page, however often that asks for the status.
    asked = len(large.requests("/api/v1/plan"))
    before = len(large.requests("/api/v1/status"))
    browser.wait_for("performance.getEntriesByType('resource').filter((e) => e.name.endsWith('status')).length > 1")
    assert len(large.requests("/api/v1/status")) > before and len(large.requests("/api/v1/plan")) == asked
    # A filter finds a cluster by a workload on it, among all 1,000.
    browser.run("document.querySelector('[data-filter=clusters]').focus()")
    browser.type("w09995")
    browser.wait_for("document.querySelectorAll('[data-key=table-clusters] tbody tr').length === 1")
    assert browser.run("document.querySelector('[data-key=table-clusters] tbody th').innerText").startswith("c0999")
