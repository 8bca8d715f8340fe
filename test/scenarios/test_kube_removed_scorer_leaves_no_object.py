"""The object of a removed scorer is deleted, even if the scorer was removed while the agent was down; objects of others
stay."""

import signal

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER, DOMAIN, SCORES


def foreign(kube, name, **metadata):
    body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
    kube.call("POST", SCORES.format(CLUSTER), {**body, "metadata": {"name": name, **metadata}})


def test_removed(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    kube.configure(summary("a", url, interval=600), summary("b", url, interval=600))
    start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kube.wait_items("b", {"b": 1})
    kube.configure(summary("b", url, interval=600))
    kube.wait_gone("a")
    kube.configure(summary("b", url, interval=600, scoreDestination="None"))
    kube.wait_gone("b")


def test_one_that_never_scored_leaves_none_either(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", plain("out of order", 500)), interval=600))
    start_agent({}, *kube.flags())
    kube.wait_condition("a", "Scored", "False")
    kube.configure()
    kube.wait_gone("a")


def test_restart_leaves_no_orphan(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    kube.configure(summary("a", url, interval=600), summary("b", url, interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kube.wait_items("b", {"b": 1})
    agent.process.send(signal.SIGKILL)
    agent.process.wait()
    foreign(kube, "theirs")
    foreign(kube, "other-agents", labels={f"{DOMAIN}/managed-by": "agent"}, annotations={f"{DOMAIN}/owner": "x/y"})
    kube.configure(summary("b", url, interval=600))
    agent.start()
    kube.wait_gone("a")
    assert set(kube.objects()) == {"b", "theirs", "other-agents"}
    assert kube.items("b") == {"b": 1}


def test_no_object_goes_before_the_configmap_has_come(kube, fake, start_agent):
    """Otherwise a restart would delete all scores for a moment."""
    url = fake.on("/s", results({}, 1))
    kube.configure(summary("a", url, interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    agent.process.send(signal.SIGKILL)
    agent.process.wait()
    uid = kube.object("a")["metadata"]["uid"]
    agent.flags = kube.flags(managed=kube.kubeconfig("nobody"))
    agent.start()
    agent.wait_until(lambda: "watch of ConfigMap failed" in agent.log(), "the ConfigMap cannot be read")
    agent.wait_metric("dynamic_scoring_kubernetes_up", 1, server="hub")
    assert kube.object("a")["metadata"]["uid"] == uid


def test_what_others_made_is_left_alone_and_reported(kube, fake, start_agent):
    foreign(kube, "a")
    was = kube.object("a")
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=1))
    agent = start_agent({}, *kube.flags())
    agent.wait_until(lambda: "left alone" in kube.reported("a").get("placementError", ""), "it is reported")
    agent.wait_rounds("a", 4)
    assert kube.object("a") == was
    assert (agent.metric("dynamic_scoring_placement_writes_total", operation="create", result="exists") or 0) <= 2
    kube.configure()
    agent.wait_until(lambda: agent.status()["scorers"] == [], "the scorer is gone")
    assert kube.object("a") == was


def test_two_scorers_of_one_object_name(kube, fake, start_agent):
    one, two = fake.on("/one", results({}, 1)), fake.on("/two", results({}, 2))
    kube.configure(summary("A_b", one, interval=600), summary("a-b", two, interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a-b", {"A_b": 1})
    agent.wait_until(lambda: "same object name" in kube.reported("a-b").get("placementError", ""), "it is reported")
    kube.configure(summary("a-b", two, interval=600))
    kube.wait_items("a-b", {"a-b": 2})


def test_an_object_that_someone_deletes_comes_back(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    kube.delete(SCORES.format(CLUSTER) + "/a")
    kube.wait_items("a", {"a": 1})
