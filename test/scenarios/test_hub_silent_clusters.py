"""What a DynamicScorer's status says about unavailable clusters, dead agents, and agents that reject their
configuration."""

import json
import time

from lib.hub import ADDON, ADDONS, CLUSTERS
from lib.scorers import distributed, limited_user, wait_status
from lib.wait import wait_until


def report(state="ok", ago=0, in_force=True, **more):
    """An agent's report whose scorer last succeeded `ago` seconds ago; state=None: it contains no scorer."""
    last = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - ago))
    scorer = {"scoreName": "cpu", "state": state, "lastSuccess": last}
    if state in ("failing", "stale"):
        scorer["error"] = "no answer"
    return json.dumps({"configurationInForce": in_force, "scorers": [scorer] if state else [], **more})


def set_available(hub, cluster, status, message):
    condition = {
        "type": "ManagedClusterConditionAvailable",
        "status": status,
        "reason": "Told",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    hub.patch(f"{CLUSTERS}/{cluster}/status", {"status": {"conditions": [condition]}})


def wait_counts(hub, **counts):
    return wait_status(
        hub, "s", lambda s: all(s["clusters"][name] == n for name, n in counts.items()), f"s counts {counts}"
    )


def named(status):
    """{cluster: (state, error)}"""
    return {c["name"]: (c["state"], c["error"]) for c in status.get("failingClusters", [])}


def two_that_score(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    for cluster in ("c1", "c2"):
        hub.set_feedback(cluster, report())
    assert "failingClusters" not in wait_counts(hub, selected=2, scoring=2, silent=0)
    return controller


def test_a_cluster_that_is_not_available(hub, fake, start_controller):
    two_that_score(hub, fake, start_controller)
    set_available(hub, "c1", "True", "Managed cluster is available")
    set_available(hub, "c2", "Unknown", "Registration agent stopped updating its lease.")
    status = wait_counts(hub, selected=2, scoring=1, silent=1, failing=0)
    error = "the cluster is not available: Registration agent stopped updating its lease."
    assert named(status) == {"c2": ("silent", error)}
    set_available(hub, "c1", "Unknown", "the same")
    wait_counts(hub, scoring=0, silent=2)
    hub.wait_scorer("s", "Scoring", "Unknown", "Silent", says="not available")
    set_available(hub, "c1", "True", "it is back")
    set_available(hub, "c2", "True", "it is back")
    assert named(wait_counts(hub, scoring=2, silent=0)) == {}


def test_an_addon_that_is_not_available(hub, fake, start_controller):
    """At once, although the agent has reported a success a moment ago."""
    controller = two_that_score(hub, fake, start_controller)
    hub.set_addon("c1")  # nothing is known of it yet
    hub.set_addon("c2", "False", "no replica of dynamic-scoring-agent is available")
    status = wait_counts(hub, selected=2, scoring=1, silent=1, failing=0)
    why = "no replica of dynamic-scoring-agent is available"
    assert named(status) == {"c2": ("silent", f"the add-on is not available: {why}")}
    found = next(c for c in controller.get("/api/v1/clusters").json["clusters"] if c["name"] == "c2")
    assert (found["state"], found["unavailable"], found["addonUnavailable"]) == ("unavailable", None, why)
    hub.set_addon("c2", "True")
    assert named(wait_counts(hub, scoring=2, silent=0)) == {}
    hub.set_addon("c2", "Unknown", why)
    wait_counts(hub, scoring=1, silent=1)
    hub.kube.delete(f"{ADDONS.format('c2')}/{ADDON}")  # its agent may be installed by other means
    wait_counts(hub, scoring=2, silent=0)
    assert controller.metric("dynamic_scoring_kubernetes_up", resource="managedclusteraddons") == 1


def test_an_addon_in_another_namespace(hub, fake, start_controller):
    """As an AddOnDeploymentConfig without agentInstallNamespace installs it: the CRD has a default of its own."""
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.set_feedback("c1", report())
    hub.set_feedback("c2", None)
    for cluster, namespace in (("c1", "dynamic-scoring"), ("c2", "open-cluster-management-agent-addon")):
        hub.set_addon(cluster, "True")
        hub.patch(f"{ADDONS.format(cluster)}/{ADDON}/status", {"status": {"namespace": namespace}})
    error = (
        "the add-on is installed in namespace open-cluster-management-agent-addon, but its ConfigMap is in "
        "dynamic-scoring: set agentInstallNamespace: dynamic-scoring in its AddOnDeploymentConfig"
    )
    wait_status(hub, "s", lambda s: named(s) == {"c2": ("silent", error)}, "the reason is there")
    hub.wait_scorer("s", "Ready", "True", says="silent on 1: c2: the add-on is installed in namespace open-cluster-")
    found = {c["name"]: c["addonNamespace"] for c in controller.get("/api/v1/clusters").json["clusters"]}
    assert found == {"c1": None, "c2": "open-cluster-management-agent-addon"}
    hub.patch(f"{ADDONS.format('c2')}/{ADDON}/status", {"status": {"namespace": "dynamic-scoring"}})
    wait_status(hub, "s", lambda s: error not in str(named(s)), "it has moved")


def test_addons_that_may_not_be_read(hub, fake, start_controller):
    """As today, and said once."""
    hub.add_namespace("c1")
    kubeconfig = limited_user(hub, ["c1"])
    controller = distributed(hub, fake, start_controller, kubeconfig=kubeconfig)
    hub.set_feedback("c1", report())
    wait_counts(hub, scoring=1)
    controller.wait_metric_is(0, "dynamic_scoring_kubernetes_up", resource="managedclusteraddons")
    assert "ManagedClusterAddOns" in controller.status()["troubles"]
    assert controller.log().count("objects=ManagedClusterAddOns") == 1


def test_an_agent_that_is_dead(hub, fake, start_controller):
    """The work agent keeps returning its last report. The interval is 30 s."""
    controller = two_that_score(hub, fake, start_controller)
    hub.set_feedback("c1", report(ago=60))
    hub.set_feedback("c2", report(ago=3600))
    wait_counts(hub, scoring=2, silent=0)  # what has just been sent may have another interval
    controller.stop()
    controller.start()
    ((cluster, (state, error)),) = named(wait_counts(hub, scoring=1, silent=1)).items()
    assert (cluster, state) == ("c2", "silent") and "the last success was at 20" in error
    hub.set_feedback("c2", report())
    wait_counts(hub, scoring=2, silent=0)


def test_a_configuration_that_is_refused(hub, fake, start_controller):
    controller = two_that_score(hub, fake, start_controller)
    problems = "summaries:1:9: error: no such field\nand more"
    hub.set_feedback("c1", report(None, in_force=False, configurationProblems=problems))
    hub.set_feedback("c2", report(in_force=False, configurationProblems=problems))
    status = wait_status(hub, "s", lambda s: set(named(s)) == {"c1", "c2"}, "s names both")
    assert (status["clusters"]["scoring"], status["clusters"]["failing"]) == (1, 1)
    found = named(status)
    words = "summaries:1:9: error: no such field and more"
    assert found["c1"] == ("refused", f"the agent rejected its configuration: {words}")
    assert found["c2"] == ("refused", f"the agent rejected its configuration, an older one stays active: {words}")
    hub.wait_scorer("s", "Scoring", "False", says="1 of 2 clusters: c1: the agent rejected")
    named_errors = [c["error"] for s in controller.status()["scorers"] for c in s["failingClusters"]]
    assert all("the agent rejected its configuration" in error for error in named_errors), named_errors
    assert {c["state"] for s in controller.status()["scorers"] for c in s["failingClusters"]} == {"refused"}


def test_a_report_that_is_cut(hub, fake, start_controller):
    two_that_score(hub, fake, start_controller)
    hub.set_feedback("c2", report(None, notShown=7))
    assert named(wait_counts(hub, scoring=1, silent=1, waiting=0))["c2"][1].startswith("the agent's report has no room")


def test_ready_where_it_works_somewhere(hub, fake, start_controller):
    two_that_score(hub, fake, start_controller)
    hub.set_feedback("c2", None, applied=False, why="namespaces dynamic-scoring not found")
    wait_counts(hub, scoring=1, failing=1)
    words = "ManifestWork not applied on 1 of 2 clusters: c2: namespaces dynamic-scoring not found"
    assert hub.wait_scorer("s", "Distributed", "False", "ClustersFailing", says=words)[2] == words
    assert hub.wait_config("Distributed", "False", "ClustersFailing", says=words)[2] == words
    assert hub.wait_config("Ready", "True", says=words)[2] == words
    hub.wait_scorer("s", "Ready", "True", says="failing on 1: c2: ManifestWork not applied: namespaces dynamic-scoring not found")
    hub.add_cluster("c3")
    wait_counts(hub, selected=3, upToDate=3, silent=1)
    assert hub.scorer_condition("s", "Ready")[0] == "True"
    hub.set_feedback("c1", report("stale"))
    words = "failing on 2 of 3 clusters: c1: no answer, and 1 more; silent on 1: c3: "
    hub.wait_scorer("s", "Ready", "False", "ClustersFailing", says=words)
    hub.set_feedback("c2", None, applied=False, why="namespaces dynamic-scoring not found")
    hub.set_feedback("c3", report())
    assert hub.wait_scorer("s", "Ready", "True", says="; scoring on 1")[2].endswith("; scoring on 1")


def test_scoring_that_comes_and_goes_is_told(hub, fake, start_controller):
    two_that_score(hub, fake, start_controller)
    wait_until(lambda: hub.scorer_condition("s", "Scoring")[0] == "True", "it scores")
    for n in (1, 2):
        hub.set_feedback("c2", report("failing"))
        hub.wait_scorer("s", "Scoring", "False")
        hub.set_feedback("c2", report())
        hub.wait_scorer("s", "Scoring", "True")
        told = ("Warning", "ClustersFailing", "failing on 1 of 2 clusters: c2: no answer; scoring on 1")
        wait_until(lambda: hub.events("s").count(told) == n, "it is told each time")
        wait_until(
            lambda: hub.events("s").count(("Normal", "Scoring", "scoring on 2 of 2 clusters")) == n, "and that it is over"
        )
