"""Every failure on the hub has a metric to alert on."""

import pytest

from lib.fake import answer, plain
from lib.process import run
from lib.scorers import RBAC, api_config, distributed, full, limited_user, own, serve, writes_at_rest
from lib.wait import LONG, wait_until

UP, LAST_ANSWER = "dynamic_scoring_kubernetes_up", "dynamic_scoring_kubernetes_last_answer_timestamp_seconds"
SYNCED = "dynamic_scoring_hub_scorer_config_synced"
CLUSTERS = "dynamic_scoring_hub_scorer_clusters"
ADDONS = "managedclusteraddons"
WATCHED = {"dynamicscorers", "dynamicscoringconfigs", "managedclusters", "manifestworks", ADDONS}
WATCHED |= {"placements", "placementdecisions"}


def of_resources(controller, name=UP):
    return {labels["resource"]: v for labels, v in controller.metrics().all(name, server="hub")}


@pytest.fixture(name="paused")
def runs_again(hub):
    """An API server that is resumed after the test in any case."""
    yield hub
    if not (hub.kube.state / "server.pid").exists():
        hub.kube.resume()


def test_an_api_server_that_is_away(paused, fake, start_controller):
    """Without leader election the controller stays active and ready; only this metric shows the outage."""
    hub = paused
    controller = distributed(hub, fake, start_controller)
    controller.wait_until(lambda: of_resources(controller) == dict.fromkeys(WATCHED, 1), "all are followed")
    assert controller.metric("dynamic_scoring_build_info") == 1
    hub.kube.pause()
    controller.wait_until(lambda: set(of_resources(controller).values()) == {0}, "it is noticed", LONG)
    assert controller.metric("dynamic_scoring_hub_leader") == 1
    assert controller.health("/readyz").status == 200
    heard = of_resources(controller, LAST_ANSWER)
    assert set(heard) == WATCHED
    controller.wait_metric("dynamic_scoring_hub_probes_total", 5, probe="health", result="ok", scorer="s")
    assert of_resources(controller, LAST_ANSWER) == heard
    hub.kube.resume()
    controller.wait_until(lambda: of_resources(controller) == dict.fromkeys(WATCHED, 1), "all is well", LONG)
    assert all(v > heard[k] for k, v in of_resources(controller, LAST_ANSWER).items())


def test_one_kind_that_is_forbidden(hub, start_controller):
    user = limited_user(hub, [])
    role = f"{RBAC}/clusterroles", "test-look"
    rules = hub.kube.find("/".join(role))["rules"]
    hub.kube.apply(*role, {"rules": [r for r in rules if "managedclusters" not in r["resources"]]})
    controller = start_controller("--leader-elect", kubeconfig=user, start=False)
    controller.launch()
    others = WATCHED - {"managedclusters", ADDONS} | {"leases"}
    want = {**dict.fromkeys(others, 1), "managedclusters": 0, ADDONS: 0}  # this user may never read add-ons
    controller.wait_until(lambda: of_resources(controller) == want, "one is not followed")
    assert "managedclusters" not in of_resources(controller, LAST_ANSWER)
    controller.wait_metric_is(1, "dynamic_scoring_hub_leader")
    hub.kube.apply(*role, {"rules": rules})
    want["managedclusters"] = 1
    controller.wait_until(lambda: of_resources(controller) == want, "all are followed", LONG)


def test_states_of_a_scorer(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    controller.wait_metric_is(2, CLUSTERS, scorer="s", state="up_to_date")
    assert controller.metric(CLUSTERS, scorer="s", state="applied") == 0
    hub.set_feedback("c1", None)
    controller.wait_metric(CLUSTERS, 1, scorer="s", state="applied")
    assert controller.metric(CLUSTERS, scorer="s", state="no_room") == 0
    for status, want in ((plain("no", 500), 0), (answer(api_config("cpu")), 1)):
        fake.on("/config", status)
        controller.wait_until(lambda: controller.metric(SYNCED, scorer="s") == want, f"/config's last answer: {want}")
    hub.apply_scorer("s", own("cpu", fake.url))
    controller.wait_until(lambda: controller.metric(SYNCED, scorer="s") is None, "no /config is asked for any more")
    controller.wait_metric_is(1, "dynamic_scoring_hub_scorer_healthy", scorer="s")


def test_a_deleted_scorer_leaves_no_series(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller)
    wait_until(lambda: controller.get("/metrics").text.count('scorer="s"') > 40, "it has series")
    hub.delete_scorer("s")
    hub.wait_scores("c1")
    wait_until(lambda: 'scorer="s"' not in controller.get("/metrics").text, "it has none")


def test_no_series_a_cluster(hub, fake, start_controller):
    """A thousand clusters have as many series as one."""

    def series():
        page = controller.get("/metrics").text
        return {line.rpartition(" ")[0] for line in page.splitlines() if line.startswith("dynamic_scoring_hub_")}

    controller = distributed(hub, fake, start_controller, clusters=("cluster-one",))
    controller.wait_metric("dynamic_scoring_hub_writes_total", operation="status", result="ok")
    writes_at_rest(controller)
    before = series()
    hub.add_cluster("cluster-two")
    hub.wait_scores("cluster-two", "cpu")
    controller.wait_metric(CLUSTERS, 2, scorer="s", state="up_to_date")
    assert {s for s in series() - before if "probes_total" not in s} == set()
    assert "cluster-" not in controller.get("/metrics").text


def test_promtool_finds_nothing(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, "--leader-elect")
    hub.add_cluster("missing", namespace=False)
    hub.apply_scorer("none", own("none", fake.url))
    hub.apply_scorer("broken", full(fake.on("/broken", plain("no", 500))))
    hub.apply_scorer("gone", full("http://127.0.0.1:9/config"))
    hub.apply_scorer("twice", full(serve(fake, "/twice", "cpu")))
    hub.wait_scorer("gone", "Healthy", "False")
    hub.wait_scorer("twice", "UniqueScoreName", "False")
    controller.wait_metric("dynamic_scoring_hub_clusters", state="failing")
    check = run("promtool", "check", "metrics", input=controller.get("/metrics").text)
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
