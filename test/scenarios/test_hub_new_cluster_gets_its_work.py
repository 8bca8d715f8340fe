"""A cluster that joins gets its work although nothing else changes, and loses it when it leaves."""

from lib.scorers import distributed, wait_no_work, wait_status
from lib.wait import LONG
from lib.work import WORK, WORKS


def test_at_once(hub, fake, start_controller):
    distributed(hub, fake, start_controller, "--health-check-interval=300s")
    for i in range(5):
        hub.add_cluster(f"new{i}")
        hub.wait_scores(f"new{i}", "cpu")
    wait_status(hub, "s", lambda s: s["clusters"]["selected"] == s["clusters"]["upToDate"] == 6, "they are counted")


def test_accepted_later(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.add_cluster("shy", accepted=False)
    hub.add_cluster("bold")
    hub.wait_scores("bold", "cpu")
    assert hub.work("shy") is None
    hub.accept("shy")
    hub.wait_scores("shy", "cpu")
    hub.accept("shy", False)
    wait_status(hub, "s", lambda s: s["clusters"]["selected"] == 2, "it is counted no more")


def test_the_namespace_comes_later(hub, fake, start_controller):
    """As in practice: it is created after the ManagedCluster."""
    distributed(hub, fake, start_controller)
    hub.add_cluster("early", namespace=False)
    _, _, message = hub.wait_scorer("s", "Distributed", "False")
    wait_status(hub, "s", lambda s: s["clusters"]["failing"] == 1, "the failure is told")
    failing, silent = hub.scorer_status("s")["failingClusters"]
    assert failing["name"] == "early" and "not found" in failing["error"]
    assert (silent["name"], silent["state"]) == ("c1", "silent")
    hub.add_namespace("early")
    hub.wait_scores("early", "cpu", deadline=LONG)
    wait_status(hub, "s", lambda s: s["clusters"]["upToDate"] == 2, "it is written")


def test_it_leaves(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "goes"))
    hub.remove_cluster("goes")
    wait_no_work(hub, "goes")
    wait_status(hub, "s", lambda s: s["clusters"]["selected"] == 1, "it is counted no more")
    assert hub.work("c1") is not None


def test_a_deleted_work_comes_back(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    uid = hub.work("c1")["metadata"]["uid"]
    hub.kube.delete(f"{WORKS.format('c1')}/{WORK}")
    hub.wait_scores("c1", "cpu")
    assert hub.work("c1")["metadata"]["uid"] != uid
