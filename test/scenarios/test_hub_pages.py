"""60 clusters, of which some cannot be written to, some cannot apply their ManifestWork, some fail and some are masked: the scorer's own page
and JSON say which, and why."""

import collections
import json
import urllib.parse

import pytest

from lib.browser import VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.scorers import full, in_parallel, limited_user, own, serve, source
from lib.wait import LONG, eventually, wait_until

ERROR = "bad_data: <script>alert(1)</script> & unexpected end of input"
DENIED = 'namespaces "dynamic-scoring" is forbidden'
STATES = {  # how many, and what is said of each
    "notWritten": (6, "cannot create"),
    "notApplied": (5, DENIED),
    "failing": (7, ERROR),
    "stale": (2, ERROR),
    "notPlaced": (1, "403"),
    "empty": (2, "the source returned no series, or the scoring API no results"),
    "silent": (4, "the ManifestWork is applied, but no agent has reported"),
    "waiting": (3, "no round has finished yet"),
    "masked": (5, None),
    "ok": (25, None),
}
WORDS = {  # on the page
    "notWritten": "not written",
    "notApplied": "not applied",
    "failing": "failing",
    "stale": "stale",
    "notPlaced": "no placement score",
    "silent": "no report",
    "waiting": "waiting",
    "masked": "masked",
    "empty": "nothing to score",
    "ok": "scoring",
}
FAILING = list(STATES)[:5]
# Spread over the alphabet, so that no order comes by chance.
CLUSTERS = {
    f"{'qaxmtcz'[i % 7]}{i}-{state.lower()}": state for state, (n, _) in STATES.items() for i in range(n)
}
# [state, link, name, error] of each row of the table of pairs.
ROWS = """[...document.querySelectorAll('[data-key=table-pairs] tbody tr')].map(row => [row.querySelector('.state').innerText,
    row.querySelector('th a').getAttribute('href'), row.querySelector('th').innerText, row.querySelector('.wide').innerText])"""


def report(state):
    said = {"scoreName": "cpu", "state": state}
    if state in ("failing", "stale"):
        said["error"] = ERROR
    if state == "stale":
        said["lastSuccess"] = "2026-01-01T00:00:00Z"
    if state == "notPlaced":
        said.update(state="ok", placementError="HTTP 403 Forbidden")
    return json.dumps({"configurationInForce": True, "scorers": [said]})


def play_agent(hub, cluster, state):
    if state in ("notWritten", "masked"):
        return
    hub.wait_scores(cluster, "cpu", "other", deadline=LONG)
    if state == "notApplied":
        hub.set_feedback(cluster, None, applied=False, why=DENIED)
    else:
        hub.set_feedback(cluster, None if state == "silent" else report(state))


@pytest.fixture(name="controller")
def fleet(hub, fake, start_controller):
    assert len(CLUSTERS) == 60
    in_parallel(hub.add_cluster, CLUSTERS)
    user = limited_user(hub, [c for c, state in CLUSTERS.items() if state != "notWritten"])
    hub.configure(masks=[{"clusterName": "*-masked", "scoreName": "cpu"}])
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    hub.apply_scorer("another", full(serve(fake, "/another", "other")))
    controller = start_controller(kubeconfig=user)
    in_parallel(lambda c: play_agent(hub, c, CLUSTERS[c]), CLUSTERS)
    return controller


def pairs_of_scorer(controller):
    answer = controller.get("/api/v1/scorer?name=s").json
    assert [p["cluster"] for p in answer["pairs"]] == sorted(CLUSTERS)
    return {p["cluster"]: (p["state"], p["scores"], p["error"]) for p in answer["pairs"]}


def look_at_the_json(controller):
    expected = {c: (state, state == "ok") for c, state in CLUSTERS.items()}
    wait_until(
        lambda: {c: pair[:2] for c, pair in pairs_of_scorer(controller).items()} == expected, "all pairs are reported", LONG, 0.2
    )
    for cluster, (_, _, error) in pairs_of_scorer(controller).items():
        expected = STATES[CLUSTERS[cluster]][1]
        assert (expected is None) == (error is None), (cluster, error)
        assert expected is None or expected in error, (cluster, error)


def look_at_the_page(controller, browser):
    browser.open(controller.url + "/scorer?name=s")
    found, text = browser.run(ROWS), browser.run(VISIBLE_TEXT)
    assert {name: word for word, _, name, _ in found} == {c: WORDS[s] for c, s in CLUSTERS.items()}
    order = [WORDS[state] for state in STATES]
    assert found == sorted(found, key=lambda row: (order.index(row[0]), row[2]))
    for _, link, name, words in found:
        assert link == f"cluster?name={name}"
        assert (STATES[CLUSTERS[name]][1] or "") in words
    assert "ManifestWork not written on 6 of 55 clusters" in text  # the condition Distributed
    for word, n in collections.Counter(word for word, *_ in found).items():
        assert f"\n{word}\n{n}\n" in text
    assert browser.run("document.scripts.length") == 1 and not browser.seen("Page.javascriptDialogOpening")


def look_at_a_cluster(controller, browser, cluster):
    state = CLUSTERS[cluster]
    answer = controller.get(f"/api/v1/cluster?name={cluster}").json
    other = state if state in ("notWritten", "notApplied", "silent") else "waiting"
    assert [(p["scorer"], p["state"]) for p in answer["pairs"]] in (
        [("another", other), ("s", state)],
        [("another", "silent"), ("s", state)],
    )
    browser.open(f"{controller.url}/cluster?name={cluster}")
    found = {name: (word, words) for word, _, name, words in browser.run(ROWS)}
    assert set(found) == {"another", "s"}
    assert found["s"][0] == WORDS[state] and (STATES[state][1] or "") in found["s"][1]


def look_at_the_rest(hub, controller, browser):
    """The main page leads there, and the status names the first ten in the same words."""
    browser.open(controller.url + "/")
    assert "Clusters where it does not score, the first 10; all of them" in browser.run(VISIBLE_TEXT)
    links = set(browser.run("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"))
    assert {"scorer?name=s", "scorer?name=another"} <= links
    assert {f"cluster?name={c}" for c, s in CLUSTERS.items() if s in FAILING} <= links
    named = {c["name"]: c for c in hub.scorer_status("s")["failingClusters"]}
    assert list(named) == sorted(c for c, s in CLUSTERS.items() if s in FAILING)[:10]
    all_of_it = controller.status()["scorers"]
    (s,) = [s for s in all_of_it if s["name"] == "s"]
    assert [(c["name"], c["state"]) for c in s["failingClusters"]] == [(c, named[c]["state"]) for c in named]
    assert [c["error"] for c in s["failingClusters"]] == [named[c]["error"] for c in named]
    assert {c: CLUSTERS[c] for c in named} == {c: named[c]["state"] for c in named}


def look_at_the_lists(controller):
    """Whole, in parts, and of some states only; a part begins where the one before ended."""
    seen, token = [], ""
    while token is not None:
        part = controller.get(f"/api/v1/clusters?limit=25&continue={token}").json
        seen += [c["name"] for c in part["clusters"]]
        token = part["metadata"]["continue"]
        assert part["metadata"]["remainingItemCount"] == len(CLUSTERS) - len(seen)
    assert seen == sorted(CLUSTERS)
    part = controller.get("/api/v1/scorer?name=s&state=stale,notApplied&filter=-STA").json
    assert [p["cluster"] for p in part["pairs"]] == sorted(c for c, s in CLUSTERS.items() if s == "stale")
    worst = controller.get("/api/v1/clusters?sort=state&limit=6").json["clusters"]
    assert [c["name"] for c in worst] == sorted(c for c, s in CLUSTERS.items() if s == "notWritten")
    assert {(c["state"], c["severity"]) for c in worst} == {("notWritten", "error")}
    pairs = controller.get("/api/v1/pairs?filter=-masked").json
    assert pairs["scorers"] == ["another", "s"]
    assert {pairs["legend"][c["states"][1]]["label"] for c in pairs["clusters"]} == {"masked"}


def look_at_parts(controller, browser):
    """A table that holds only some rows says so, and sorts only those by columns that the server cannot sort by."""
    part = "document.querySelector('[data-key=table-clusters] .part')"
    browser.open(controller.url + "/?clusters.limit=25")
    assert browser.run(f"{part}.innerText") == "25 of 60 clusters shown, worst first"
    browser.open(controller.url + "/?clusters.limit=25&clusters.sort=-failing&clusters.filter=-")
    assert browser.run(f"{part}.innerText") == "25 of 60 matching clusters shown, sorted by failing among those shown"
    more = "document.querySelector('[data-more=clusters]')"
    assert browser.run(f"{more}.innerText") == "Show 35 more"
    browser.run(f"{more}.click()")
    browser.wait_for(f"{part} === null")
    assert browser.run("document.querySelectorAll('[data-key=table-clusters] tbody tr').length") == len(CLUSTERS)


def look_at_several_sources(hub, controller, browser):
    spec = own("two", "http://two.example", sources=[source(query="first_total"), source(query="second_total")])
    hub.apply_scorer("two", {key: value for key, value in spec.items() if key != "source"})
    browser.open(f"{controller.url}/scorer?name=two")
    browser.wait_for("document.body.innerText.includes('first_total')")
    assert "second_total" in browser.run(VISIBLE_TEXT)


def test_each_failure_is_named_in_full(hub, controller, browser):
    look_at_the_json(controller)
    eventually(lambda: look_at_the_page(controller, browser))
    for state in STATES:
        cluster = next(c for c, s in CLUSTERS.items() if s == state)
        eventually(lambda c=cluster: look_at_a_cluster(controller, browser, c))
    eventually(lambda: look_at_the_rest(hub, controller, browser))  # the status is written a little later
    look_at_the_lists(controller)
    look_at_parts(controller, browser)
    look_at_several_sources(hub, controller, browser)
    for kind in ("scorer", "cluster"):
        hostile = '"><script>alert(1)</script>'
        answer = controller.get(f"/api/v1/{kind}?name={urllib.parse.quote(hostile)}")
        assert (answer.status, answer.text) == (404, f'no {kind} named "{hostile}"\n')
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert (controller.get(f"/api/v1/{kind}").status, controller.get(f"/{kind}").status) == (400, 200)
        browser.open(f"{controller.url}/{kind}?name={urllib.parse.quote(hostile)}")
        assert f'no {kind} named "{hostile}"' in browser.run(VISIBLE_TEXT)
