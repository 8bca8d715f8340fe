"""spec.adjustments of the DynamicScoringConfig: each cluster's ConfigMap has those that change one of its scores; the status,
conditions and Events say what they do, and a restart says nothing new."""

import datetime
import json

import pytest

from lib.browser import VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.scorers import full, in_parallel, serve
from lib.wait import DEADLINE, LONG, wait_until
from lib.work import WORK_CONFIGMAP, manifest

CLUSTERS = {"east-1": {"region": "eu"}, "east-2": {"region": "eu"}, "west-1": {"region": "us"}}
CLAIM = "region.open-cluster-management.io"


@pytest.fixture(name="controller")
def three_by_two(hub, fake, start_controller):
    in_parallel(lambda name: hub.add_cluster(name, labels=CLUSTERS[name]), CLUSTERS)
    hub.configure()
    for name in ("cpu", "memory"):
        hub.apply_scorer(name, full(serve(fake, f"/{name}", name)))
    controller = start_controller()
    for name in CLUSTERS:
        hub.wait_scores(name, "cpu", "memory")
    return controller


def entry(name, score="*", cluster=None, labels=None, claims=None, **more):
    made = {"name": name, "scoreName": score, **more}
    if cluster:
        made["clusterName"] = cluster
    else:
        parts = {"labelSelector": labels, "claimSelector": claims}
        made["clusterSelector"] = {k: v for k, v in parts.items() if v}
    return made


def sent(hub, cluster):
    """The names of the entries in the cluster's ConfigMap."""
    work = hub.work(cluster)
    return [e["name"] for e in json.loads(manifest(work, WORK_CONFIGMAP)["data"].get("adjustments", "[]"))]


def wait_sent(hub, **expected):
    for name in CLUSTERS:
        want = expected.get(name.replace("-", "_"), [])
        wait_until(lambda n=name, w=want: sent(hub, n) == w, f"{name} has {want}")


def status(hub):
    return {e["name"]: e for e in (hub.config() or {}).get("status", {}).get("adjustments", [])}


def later(seconds):
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def told(hub, reason):
    return [note for _, why, note in hub.events("dynamic-scoring-config") if why == reason]


@pytest.mark.usefixtures("controller")
def test_by_name_label_and_claim(hub):
    hub.patch(
        "apis/cluster.open-cluster-management.io/v1/managedclusters/east-2/status",
        {"status": {"clusterClaims": [{"name": CLAIM, "value": "fra"}]}},
    )
    in_eu = {"matchLabels": {"region": "eu"}}
    not_us = {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["us"]}]}
    in_fra = {"matchExpressions": [{"key": CLAIM, "operator": "In", "values": ["fra", "muc"]}]}
    no_claim = {"matchExpressions": [{"key": CLAIM, "operator": "DoesNotExist"}]}
    cases = [
        ([entry("a", cluster="east-*", add=-30)], {"east_1": ["a"], "east_2": ["a"]}),
        ([entry("a", labels=in_eu, set=-100), entry("b", labels=not_us, add=1)], {"east_1": ["a", "b"], "east_2": ["a", "b"]}),
        ([entry("a", claims=in_fra, add=1)], {"east_2": ["a"]}),
        ([entry("a", labels=in_eu, claims=no_claim, add=1)], {"east_1": ["a"]}),
        ([entry("a", "nothing", cluster="*", add=1), entry("b", "cp?", cluster="west-?", add=1)], {"west_1": ["b"]}),
        ([], {}),
    ]
    for entries, expected in cases:
        hub.configure(adjustments=entries)
        wait_sent(hub, **expected)
    hub.configure(adjustments=[entry("a", labels=in_eu, add=1)])
    wait_sent(hub, east_1=["a"], east_2=["a"])
    hub.patch("apis/cluster.open-cluster-management.io/v1/managedclusters/west-1", {"metadata": {"labels": {"region": "eu"}}})
    wait_sent(hub, east_1=["a"], east_2=["a"], west_1=["a"])


@pytest.mark.usefixtures("controller")
def test_masked_pairs_do_not_match(hub):
    hub.configure(
        masks=[{"clusterName": "east-1", "scoreName": "cpu"}, {"clusterName": "west-1", "scoreName": "*"}],
        adjustments=[entry("a", "cpu", cluster="*", add=1)],
    )
    wait_sent(hub, east_2=["a"])
    found = wait_until(lambda: (s := status(hub).get("a")) and s.get("since") and s, "the status counts it")
    assert (found["clusters"], found["scores"]) == (1, 1)


def test_the_status_tells_and_a_restart_does_not(hub, controller):
    entries = [entry("slow", "cpu", cluster="east-*", add=-30, reason="new kernel"), entry("none", "x", cluster="*", set=1)]
    hub.configure(adjustments=entries)
    found = wait_until(lambda: (s := status(hub)) and s.get("slow", {}).get("since") and s, "it is in force")
    assert (found["slow"]["clusters"], found["slow"]["scores"]) == (2, 1) and "warning" not in found["slow"]
    assert found["none"]["warning"] == 'no score matches scoreName "x"' and "since" not in found["none"]
    words = hub.wait_config("Valid", "True", "AdjustmentsMatchNothing")[2]
    assert words.endswith('1 of 2 adjustments changes nothing: "none": no score matches scoreName "x"')
    wait_until(lambda: told(hub, "AdjustmentBegan"), "an Event says so")
    assert told(hub, "AdjustmentBegan") == ['"slow" adds -30 to 1 score on 2 clusters: new kernel']

    controller.process.end()
    controller.start()
    hub.configure(adjustments=[*entries, entry("more", cluster="west-1", set=5)])
    wait_until(lambda: status(hub).get("more", {}).get("since"), "another is in force, after the restart", LONG)
    assert status(hub)["slow"]["since"] == found["slow"]["since"]
    wait_until(lambda: '"more" sets 2 scores on 1 cluster to 5' in told(hub, "AdjustmentBegan"), "an Event says so")
    assert len(told(hub, "AdjustmentBegan")) == 2, "the restart says nothing new"

    hub.configure(adjustments=entries[1:])
    wait_until(lambda: len(told(hub, "AdjustmentEnded")) == 2, "Events say that both have ended")
    assert sorted(told(hub, "AdjustmentEnded")) == ['"more" no longer changes scores', '"slow" no longer changes scores']
    assert list(status(hub)) == ["none"]
    wait_sent(hub)


@pytest.mark.usefixtures("controller")
def test_its_time_passes(hub):
    hub.configure(adjustments=[entry("hour", cluster="*", set=-100, until=later(4))])
    wait_until(lambda: status(hub).get("hour", {}).get("since"), "it is in force")
    was = {name: hub.work(name)["metadata"]["generation"] for name in CLUSTERS}
    found = wait_until(lambda: (s := status(hub)["hour"]) and s.get("warning") and s, "its time has passed", LONG)
    assert found["warning"].startswith("until has passed") and "since" not in found
    wait_until(lambda: told(hub, "AdjustmentEnded"), "an Event says so", LONG)
    hub.wait_config("Valid", "True", "AdjustmentsMatchNothing")
    assert {name: hub.work(name)["metadata"]["generation"] for name in CLUSTERS} == was, "agents judge it themselves"


def test_agents_that_do_not_know_them_are_named(hub, controller):
    hub.configure(adjustments=[entry("a", "cpu", cluster="*", add=1)])
    wait_sent(hub, east_1=["a"], east_2=["a"], west_1=["a"])
    cell = {"scoreName": "cpu", "state": "ok", "lastSuccess": later(0)}
    for cluster, features in (("east-1", ["adjustments"]), ("east-2", ["scoreItems"])):
        hub.set_feedback(cluster, json.dumps({"configurationInForce": True, "scorers": [cell], "features": features}))
    hub.set_feedback("west-1", json.dumps({"configurationInForce": True, "scorers": [{**cell, "noItems": "no results"}], "features": ["adjustments"]}))
    words = "agents on 1 of 3 clusters are too old for adjustments and write scores as they are: east-2"
    hub.wait_config("Distributed", "True", "AdjustmentsIgnored", LONG, says=words)
    wait_until(lambda: status(hub).get("a", {}).get("withoutItems") == 1, "a cluster without items is counted", DEADLINE)
    page = controller.get("/api/v1/status").json
    assert page["config"]["adjustments"][0]["name"] == "a"
    controller.wait_metric("dynamic_scoring_hub_adjusted_clusters", 3, adjustment="a")


def test_the_page_shows_cluster_change_and_since_when(hub, controller, browser):
    in_eu = {"matchLabels": {"region": "eu"}}
    hub.configure(
        adjustments=[
            entry("slow", "cpu", cluster="west-?", add=-30, until=later(3600), reason="new kernel"),
            entry("out", labels=in_eu, set=-100),
        ]
    )
    wait_until(lambda: all(status(hub).get(n, {}).get("since") for n in ("slow", "out")), "both are in force")
    browser.open(controller.url)
    rows = browser.run("[...document.querySelectorAll('.limits tbody tr')].map(row => [...row.children].map(cell => cell.innerText))")
    slow, out = rows
    assert slow[:5] == ["slow", "west-?", "cpu", "−30", "1 cluster, 1 score"] and slow[7] == "new kernel"
    assert "ago" in slow[5] or "now" in slow[5]
    assert slow[6].startswith("in ")
    assert out[:5] == ["out", "by labels or claims", "*", "set to −100", "2 clusters, 2 scores"] and out[6:] == ["–", ""]
    assert "Placement sees these scores adjusted" in browser.run(VISIBLE_TEXT)
