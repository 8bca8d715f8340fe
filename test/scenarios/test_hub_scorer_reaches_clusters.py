"""A DynamicScorer applied with kubectl leads to AddOnPlacementScores and /metrics on two clusters: with the real
controller, agents, API server, Prometheus and sample scoring API; only the work agent is a stand-in."""

import contextlib
import pathlib
import subprocess
import tempfile

from lib.agent import running_agent
from lib.hub import agent_flags, agent_namespace_of, condition_of
from lib.kube import SCORES, go_program
from lib.scoring_api import running_scorer
from lib.wait import LONG, wait_until
from lib.work import FakeWorkAgent

CLUSTERS = ("cluster1", "cluster2")
QUERY = 'label_replace(vector(42.9), "node", "n1", "", "")'
DOCUMENTS = """
apiVersion: dynamic-scoring.open-cluster-management.io/v1alpha1
kind: DynamicScorer
metadata: {{name: sample-scorer, namespace: open-cluster-management}}
spec:
  description: A sample score for time series data
  configURL: {url}/config
  configSyncMode: Full
  location: External
  scoreDestination: AddOnPlacementScore
  scoreDimensionFormat: "{dimensions}"
---
apiVersion: dynamic-scoring.open-cluster-management.io/v1alpha1
kind: DynamicScoringConfig
metadata: {{name: dynamic-scoring-config, namespace: open-cluster-management}}
spec:
  masks: [{masks}]
"""


@contextlib.contextmanager
def sample_scorer(prometheus):
    with tempfile.TemporaryDirectory() as folder:
        source = [f"--source-host={prometheus.url}", f"--source-query={QUERY}"]
        with running_scorer(pathlib.Path(folder), *source) as scorer:
            yield scorer.url


def apply(hub, url, masks="", dimensions="${cluster};${node}"):
    done = subprocess.run(
        [go_program("kubectl"), f"--kubeconfig={hub.kube.kubeconfig()}", "apply", "-f", "-"],
        input=DOCUMENTS.format(url=url, masks=masks, dimensions=dimensions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def placement_score(hub, cluster):
    return hub.kube.find(SCORES.format(cluster) + "/sample-my-score")


def items(hub, cluster):
    found = placement_score(hub, cluster) or {}
    return {s["name"]: s["value"] for s in found.get("status", {}).get("scores", [])}


def test_from_kubectl_to_scores(hub, prometheus, start_controller):
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(sample_scorer(prometheus))
        kube = hub.kube
        for cluster in CLUSTERS:
            hub.add_cluster(cluster)
        stack.enter_context(FakeWorkAgent(hub, {c: (kube, agent_namespace_of(c)) for c in CLUSTERS}))
        controller = start_controller("--leader-elect")
        agents = {c: stack.enter_context(running_agent({}, *agent_flags(hub, c))) for c in CLUSTERS}

        apply(hub, url)
        for cluster, agent in agents.items():
            wait_until(lambda c=cluster: items(hub, c) == {f"{c};n1": 42}, f"{cluster} has its score on the hub", LONG)
            assert agent.scores("sample_my_score") == [({"meta": "my_something_meta_by_sample_scorer", "node": "n1"}, 42.9)]
            assert condition_of(placement_score(hub, cluster), "Scored")[0] == "True"

        # What the agents report comes back to where the operator looks.
        hub.wait_scorer("sample-scorer", "Scoring", "True", deadline=LONG)
        hub.wait_scorer("sample-scorer", "Ready", "True")
        counts = ("selected", "upToDate", "applied", "scoring")
        wait_until(
            lambda: [hub.scorer_status("sample-scorer")["clusters"][c] for c in counts] == [2, 2, 2, 2],
            "both clusters are counted",
        )
        row = hub.kubectl("get", "dynamicscorer", "sample-scorer", "--no-headers").stdout.split()
        assert row[:6] == ["sample-scorer", "True", "Ready", "Active", "2", "2"]  # CLUSTERS, SCORING
        assert controller.get("/").status == 200

        # A mask takes the score away from one cluster, series and object.
        apply(hub, url, masks='{clusterName: "*2", scoreName: "sample_*"}')
        wait_until(lambda: placement_score(hub, "cluster2") is None, "the masked cluster's object is gone")
        wait_until(lambda: agents["cluster2"].scores("sample_my_score") == [], "the masked cluster's series are gone")
        assert items(hub, "cluster1") == {"cluster1;n1": 42}

        # And with the DynamicScoringConfig all of it goes.
        hub.kubectl("delete", "dynamicscoringconfig", "dynamic-scoring-config", "--timeout=60s")
        assert hub.config() is None and hub.works() == {}
        wait_until(lambda: placement_score(hub, "cluster1") is None, "no scorers are left")
