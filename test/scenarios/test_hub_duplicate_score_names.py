"""Two DynamicScorers with the same score name or object name both report it, and the older one keeps it."""

import time

from lib.fake import answer, plain
from lib.scorers import api_config, full, own, serve, summaries
from lib.wait import wait_until


def two(hub, fake):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("z-older", full(serve(fake, "/older", "cpu", description="older")))
    time.sleep(1.1)  # creation times are whole seconds
    hub.apply_scorer("a-younger", full(serve(fake, "/younger", "cpu", description="younger")))


def test_both_are_told_and_the_older_wins(hub, fake, start_controller):
    two(hub, fake)
    hub.apply_scorer("other", full(serve(fake, "/other", "memory")))
    start_controller()
    _, _, message = hub.wait_scorer("a-younger", "UniqueScoreName", "False", "DuplicateScoreName")
    assert "z-older" in message and "not distributed" in message
    _, _, message = hub.wait_scorer("z-older", "UniqueScoreName", "False", "DuplicateScoreName")
    assert "a-younger" in message
    hub.wait_scores("c1", "cpu", "memory")
    hub.wait_scorer("z-older", "Ready", "Unknown", "Waiting")
    assert hub.wait_scorer("a-younger", "Ready", "False")
    assert hub.wait_scorer("other", "UniqueScoreName", "True")
    for name in ("z-older", "a-younger"):
        wait_until(lambda n=name: "DuplicateScoreName" in {e[1] for e in hub.events(n)}, f"{name} has an event")


def test_the_younger_takes_over(hub, fake, start_controller):
    """When the older one is deleted or changes its name."""
    two(hub, fake)
    start_controller()
    hub.wait_scorer("a-younger", "UniqueScoreName", "False")
    fake.on("/older", answer(api_config("renamed")))
    hub.wait_scores("c1", "cpu", "renamed")
    hub.wait_scorer("a-younger", "UniqueScoreName", "True")
    hub.wait_scorer("z-older", "UniqueScoreName", "True")
    assert summaries(hub, "c1")["cpu"]["name"] == "cpu"
    fake.on("/older", answer(api_config("cpu")))
    hub.wait_scorer("a-younger", "UniqueScoreName", "False")
    hub.wait_scores("c1", "cpu")
    hub.delete_scorer("z-older")
    hub.wait_scorer("a-younger", "Ready", "Unknown", "Waiting")
    hub.wait_scores("c1", "cpu")


def test_an_unhealthy_older_one_keeps_its_name(hub, fake, other_fake, start_controller):
    """Otherwise two scorers would alternate under one name."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("older", full(serve(other_fake, "/config", "cpu")))
    time.sleep(1.1)
    hub.apply_scorer("younger", full(serve(fake, "/config", "cpu")))
    start_controller("--unhealthy-threshold=1")
    hub.wait_scorer("older", "Ready", "Unknown", "Waiting")
    other_fake.on("/healthz", answer({"error": "down"}, 500))
    hub.wait_scorer("older", "Healthy", "False")
    hub.wait_scores("c1")
    hub.wait_scorer("younger", "UniqueScoreName", "False")


def test_two_names_of_one_object(hub, fake, start_controller):
    """Both scores would be written into one AddOnPlacementScore, except with scoreDestination None."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("older", own("same_name", fake.url))
    time.sleep(1.1)
    hub.apply_scorer("younger", own("same-name", fake.url))
    hub.apply_scorer("silent", own("SAME-name", fake.url, scoreDestination="None"))
    fake.on("/healthz", plain("ok"))
    start_controller()
    for name, words in (
        ("older", "score name same-name of the younger DynamicScorer younger; the younger one is not distributed"),
        ("younger", "score name same_name of the older DynamicScorer older; this one is not distributed"),
    ):
        _, _, message = hub.wait_scorer(name, "UniqueScoreName", "False", "DuplicateScoreName")
        assert "AddOnPlacementScore same-name" in message and words in message
    hub.wait_scores("c1", "SAME-name", "same_name")
    assert hub.scorer_status("older")["addOnPlacementScore"] == "same-name"
    assert not any("addOnPlacementScore" in hub.scorer_status(name) for name in ("younger", "silent"))
    hub.wait_scorer("silent", "UniqueScoreName", "True")
    hub.apply_scorer("older", own("another", fake.url))
    hub.wait_scores("c1", "SAME-name", "another", "same-name")
    hub.wait_scorer("younger", "UniqueScoreName", "True")
