"""A deleted DynamicScorer is removed from every cluster's list, and nothing else is."""

from lib.fake import answer
from lib.scorers import api_config, distributed, full, serve


def test_it_leaves_every_list(hub, fake, start_controller):
    clusters = [f"c{i}" for i in range(5)]
    controller = distributed(hub, fake, start_controller, clusters=clusters)
    hub.apply_scorer("t", full(serve(fake, "/t", "memory")))
    for c in clusters:
        hub.wait_scores(c, "cpu", "memory")
    hub.delete_scorer("t")
    for c in clusters:
        hub.wait_scores(c, "cpu")
    controller.wait_until(
        lambda: not controller.metrics().all("dynamic_scoring_hub_scorer_ready", scorer="t"), "its metrics are gone"
    )
    asked = len(fake.requests("/t"))
    hub.delete_scorer("s")
    for c in clusters:
        hub.wait_scores(c)  # a work with an empty list: agents take their scores away
    assert len(fake.requests("/t")) <= asked + 1  # nor is it asked any more


def test_deleted_while_no_controller_runs(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller)
    controller.stop()
    hub.delete_scorer("s")
    controller.start()
    hub.wait_scores("c1")


def test_made_again_by_the_same_name(hub, fake, start_controller):
    """It is a new object: nothing about the old one is remembered."""
    distributed(hub, fake, start_controller)
    fake.on("/config", answer(api_config("cpu"), 500))
    hub.wait_scorer("s", "ConfigSynced", "False")
    hub.delete_scorer("s")
    hub.apply_scorer("s", full(fake.url + "/config"))
    hub.wait_scores("c1")
    hub.wait_scorer("s", "ConfigSynced", "False")
    assert "lastSyncedConfig" not in hub.scorer_status("s")


def test_a_changed_spec_counts_at_once(hub, fake, start_controller):
    distributed(hub, fake, start_controller, "--health-check-interval=300s")
    hub.apply_scorer("s", full(fake.url + "/config", scoreDestination="None"))
    hub.apply_scorer("s", full(serve(fake, "/v2", "memory"), scoreDestination="None"))
    hub.wait_scores("c1", "memory")
    assert hub.summaries("c1")[0]["scoreDestination"] == "None"
