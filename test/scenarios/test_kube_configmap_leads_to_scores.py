"""A ConfigMap applied to the cluster leads to correct AddOnPlacementScores on the hub within one round, and changes
apply immediately."""

from datetime import datetime

from lib.agent import summary
from lib.fake import results
from lib.kube import CLUSTER, DOMAIN


def test_within_one_round(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "n1"}, 41.9, {"node": "n2"}, -0.5))
    kube.configure(summary("My_Score", url, interval=60, scoreDimensionFormat="${cluster}/${node}"))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("my-score", {f"{CLUSTER}/n1": 41, f"{CLUSTER}/n2": -1})
    found = kube.object("my-score")
    ended = datetime.fromisoformat(agent.status("My_Score")["lastRound"]["endedAt"].replace("Z", "+00:00"))
    until = datetime.fromisoformat(found["status"]["validUntil"].replace("Z", "+00:00"))
    assert 178 < (until - ended).total_seconds() < 240
    assert found["metadata"]["labels"] == {f"{DOMAIN}/managed-by": "agent"}
    assert found["metadata"]["annotations"][f"{DOMAIN}/score-name"] == "My_Score"
    assert kube.condition("my-score", "Scored")[:2] == ("True", "Scored")
    assert kube.condition("my-score", "Clamped")[0] == "False"
    assert kube.condition("my-score", "Truncated")[0] == "False"
    assert len(fake.requests("/s")) == 1


def test_a_change_takes_effect_at_once(kube, fake, start_agent):
    one, two = fake.on("/one", results({}, 1)), fake.on("/two", results({}, 2))
    kube.configure(summary("a", one, interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kube.configure(summary("a", two, interval=600), summary("b", one, interval=600))
    kube.wait_items("a", {"a": 2})
    kube.wait_items("b", {"b": 1})
    kube.configure(summary("a", two, interval=600, scoreDimensionFormat="x"), summary("b", one, interval=600))
    kube.wait_items("a", {"x": 2})
    assert len(fake.requests("/one")) == 2, "the scorer that did not change went on"
    agent.wait_metric_is(0, "dynamic_scoring_placement_behind")


def test_a_missing_configmap_means_no_scorers(kube, fake, start_agent):
    agent = start_agent({}, *kube.flags())
    agent.wait_until(lambda: "ConfigMap not found" in agent.log(), "it is said")
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    kube.wait_items("a", {"a": 1})
    kube.delete("api/v1/namespaces/dynamic-scoring/configmaps/dynamic-scoring-config")
    kube.wait_gone("a")
    agent.wait_until(lambda: agent.scores("a") == [], "its series are gone")


def test_a_broken_configmap_keeps_the_last_good_one(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    kube.configure(summary("a", url, interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kube.configure(text='[{"scoreName": "a", "scoringInterval": "x"}]')
    agent.wait_until(lambda: kube.report().get("configurationInForce") is False, "the report says that it was refused")
    assert "scoringInterval" in kube.report()["configurationProblems"]
    assert agent.reload().status == 200, "of the file"
    assert agent.status()["config"]["ok"] is False, "the ConfigMap stays rejected"
    assert agent.scores("a") == [({}, 1)]
    assert kube.items("a") == {"a": 1}
    kube.configure(summary("a", fake.on("/t", results({}, 5)), interval=600))
    kube.wait_items("a", {"a": 5})
    agent.wait_until(lambda: kube.report()["configurationInForce"], "all is well again")
