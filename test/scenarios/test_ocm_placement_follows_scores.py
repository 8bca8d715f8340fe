"""With Open Cluster Management's own work agents and placement controller: kubectl applies a DynamicScorer, two
clusters score, and a Placement selects the cluster that has the score. cluster1 is the hub itself, cluster2 has its own
API server."""

import contextlib

import pytest

from lib.agent import running_agent, summary
from lib.fake import results
from lib.kube import MERGE_PATCH, NAMESPACE, SCORES, running_kube
from lib.ocm import SET_LABEL, decided, make_placement, placement_controller, remove_placement, work_agent
from lib.scorers import own, patch_work, source
from lib.wait import LONG, wait_until
from lib.work import CONFIGMAPS, STATUS_CONFIGMAP, WORK_CONFIGMAP, WORK_FINALIZER
from test_hub_scorer_reaches_clusters import QUERY, apply, sample_scorer

APPLIED = "apis/work.open-cluster-management.io/v1/appliedmanifestworks"
OWN_LABEL = {"owner.example/team": "scoring"}


@pytest.fixture(scope="module")
def managed():
    with running_kube() as server:
        yield server


def configmap(kube, name):
    return kube.find(f"{CONFIGMAPS.format(NAMESPACE)}/{name}")


def score_of(hub, cluster):
    found = hub.kube.find(SCORES.format(cluster) + "/sample-my-score") or {}
    return {s["name"]: s["value"] for s in found.get("status", {}).get("scores", [])}


def mask(cluster):
    return f'{{clusterName: {cluster}, scoreName: "*"}}'


@pytest.fixture
def fleet(hub, managed, start_controller):
    """{cluster: API server}, with OCM's and our programs running for each."""
    kubes = {"cluster1": hub.kube, "cluster2": managed}
    with contextlib.ExitStack() as stack:
        for cluster, kube in kubes.items():
            hub.add_cluster(cluster, labels={SET_LABEL: "default"})
            stack.enter_context(work_agent(hub.kube, kube, cluster))
        stack.callback(remove_placement, hub, "where-to-run")
        make_placement(hub, "where-to-run", "sample-my-score", "n1")
        stack.enter_context(placement_controller(hub.kube))
        start_controller("--leader-elect")
        stack.enter_context(running_agent({}, *hub.kube.flags()))
        flags = managed.flags(hub=hub.kube.kubeconfig())
        flags = [f.replace("=cluster1", "=cluster2") if f.startswith("--cluster-name") else f for f in flags]
        stack.enter_context(running_agent({}, *flags))
        yield kubes


def test_from_kubectl_to_a_placement(hub, fleet, prometheus):
    with sample_scorer(prometheus) as url:
        apply(hub, url, dimensions="${node}")
        for cluster in fleet:
            wait_until(lambda c=cluster: score_of(hub, c) == {"n1": 42}, f"{cluster} has its score on the hub", LONG)
        # What each agent reports comes back by the work agent's feedback.
        hub.wait_scorer("sample-scorer", "Scoring", "True", deadline=LONG)
        hub.wait_scorer("sample-scorer", "Ready", "True", deadline=LONG)

        # A mask takes the score away: the Placement goes where there is one.
        for masked, picked in (("cluster1", "cluster2"), ("cluster2", "cluster1")):
            apply(hub, url, masks=mask(masked), dimensions="${node}")
            wait_until(lambda c=masked: score_of(hub, c) == {}, f"{masked} has no score", LONG)
            wait_until(lambda c=picked: decided(hub) == [c], f"the Placement picks {picked}", LONG)
        apply(hub, url, dimensions="${node}")
        wait_until(lambda: score_of(hub, "cluster2") == {"n1": 42}, "cluster2 has its score again", LONG)

        # What others have in the work stays there, whatever we write.
        patch_work(hub, "cluster2", {"metadata": {"labels": OWN_LABEL}})
        hub.configure(masks=[{"clusterName": "cluster2", "scoreName": "*"}])
        hub.wait_scores("cluster2")
        found = hub.work("cluster2")["metadata"]
        assert WORK_FINALIZER in found["finalizers"] and OWN_LABEL.items() <= found["labels"].items()

        # All goes with the DynamicScoringConfig: works, what they brought, and scores; the agents' own reports stay.
        done = hub.kubectl("delete", "dynamicscoringconfig", "dynamic-scoring-config", f"--timeout={LONG:.0f}s")
        assert done.returncode == 0, done.stderr
        assert hub.works() == {}
        for cluster, kube in fleet.items():
            wait_until(lambda k=kube: not configmap(k, WORK_CONFIGMAP), f"{cluster} has no ConfigMap", LONG)
            wait_until(lambda k=kube: not k.call("GET", APPLIED)["items"], f"{cluster} has nothing applied", LONG)
            assert configmap(kube, STATUS_CONFIGMAP), "it is the agent's own"
            wait_until(lambda c=cluster: score_of(hub, c) == {}, f"{cluster} has no score", LONG)


def test_an_empty_result_is_no_better_than_its_fallback(hub, fake):
    """Placement counts a missing score as 0, which beats -10."""
    url = fake.on("/s", results({}, 10))
    with contextlib.ExitStack() as stack:
        for cluster in ("cluster1", "cluster2"):
            hub.add_cluster(cluster, labels={SET_LABEL: "default"})
        static = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        hub.kube.apply(SCORES.format("cluster2"), "sample-my-score", static)
        hub.kube.call(
            "PATCH",
            SCORES.format("cluster2") + "/sample-my-score/status",
            {"status": {"scores": [{"name": "n1", "value": -10}]}},
            MERGE_PATCH,
        )
        stack.callback(hub.kube.delete, SCORES.format("cluster2") + "/sample-my-score")
        stack.callback(remove_placement, hub, "where-to-run")
        make_placement(hub, "where-to-run", "sample-my-score", "n1")
        stack.enter_context(placement_controller(hub.kube))
        hub.kube.configure(summary("sample_my_score", url, scoreDimensionFormat="n1", fallbackScore=-50))
        stack.enter_context(running_agent({}, *hub.kube.flags()))
        wait_until(lambda: score_of(hub, "cluster1") == {"n1": 10}, "cluster1 has its score", LONG)
        wait_until(lambda: decided(hub) == ["cluster1"], "the Placement picks the higher score", LONG)
        fake.on("/s", results())
        wait_until(lambda: score_of(hub, "cluster1") == {"n1": -50}, "cluster1 has its fallback", LONG)
        wait_until(lambda: decided(hub) == ["cluster2"], "the Placement leaves the cluster with nothing to score", LONG)
        hub.kube.configure()
        wait_until(lambda: score_of(hub, "cluster1") == {}, "its object is gone", LONG)


def test_an_error_comes_back(hub, fleet, prometheus):
    """The hub quotes what a cluster's agent reports."""
    with sample_scorer(prometheus) as url:
        hub.configure()
        spec = own("sample_my_score", url, source=source(host=prometheus.url, query=QUERY))
        hub.apply_scorer("s", spec)
        hub.wait_scorer("s", "Scoring", "True", deadline=LONG)
        spec["scoring"]["path"] = "/nothing-here"
        hub.apply_scorer("s", spec)
        hub.wait_scorer("s", "Scoring", "False", deadline=LONG)
        for words in ("404", "cluster1"):
            wait_until(lambda w=words: w in hub.scorer_condition("s", "Scoring")[2], f"the message has {words}", LONG)
        wait_until(lambda: hub.scorer_status("s")["clusters"]["failing"] == 2, "both are counted", LONG)
