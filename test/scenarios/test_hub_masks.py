"""A mask removes a score from clusters, both selected by name or pattern, and changes nothing else."""

import pytest

from lib.scorers import full, in_parallel, serve, wait_status
from lib.wait import DEADLINE, wait_until

SCORES = ("cpu_load", "cpu_temp", "memory")
CLUSTERS = ("east-1", "east-2", "west-1")


@pytest.fixture(name="controller")
def three_by_three(hub, fake, start_controller):
    in_parallel(hub.add_cluster, CLUSTERS)
    hub.configure()
    for i, name in enumerate(SCORES):
        hub.apply_scorer(f"s{i}", full(serve(fake, f"/{name}", name)))
    controller = start_controller()
    wait_all(hub, {})
    return controller


def mask(cluster, score):
    return {"clusterName": cluster, "scoreName": score}


def wait_all(hub, but):
    for name in CLUSTERS:
        hub.wait_scores(name, *[s for s in SCORES if s not in but.get(name, ())])


@pytest.mark.usefixtures("controller")
def test_names_and_patterns(hub):
    cases = [
        ([mask("east-1", "memory")], {"east-1": ["memory"]}),
        ([mask("*", "cpu_*")], {c: ["cpu_load", "cpu_temp"] for c in CLUSTERS}),
        ([mask("east-*", "memory")], {"east-1": ["memory"], "east-2": ["memory"]}),
        ([mask("west-1", "*")], {"west-1": SCORES}),
        ([mask("*-?", "?emory")], {c: ["memory"] for c in CLUSTERS}),
        ([mask("EAST-1", "*"), mask("east", "*"), mask("*", "cpu")], {}),
        ([mask("east-1", "memory"), mask("*", "cpu_load")], {
            "east-1": ["memory", "cpu_load"], "east-2": ["cpu_load"], "west-1": ["cpu_load"]}),
    ]
    for masks, but in cases:
        hub.configure(masks=masks)
        wait_all(hub, but)
    hub.configure(mask=[mask("east-1", "memory")])  # as one document spells it
    wait_all(hub, {"east-1": ["memory"]})
    hub.configure(masks=[mask("east-2", "memory")], mask=[mask("east-1", "memory")])
    wait_all(hub, {"east-1": ["memory"], "east-2": ["memory"]})
    hub.configure()
    wait_all(hub, {})


@pytest.mark.usefixtures("controller")
def test_the_status_counts_who_has_it(hub):
    hub.configure(masks=[mask("east-*", "memory"), mask("*", "cpu_temp")])
    wait_status(hub, "s2", lambda s: s["clusters"]["selected"] == s["clusters"]["upToDate"] == 1, "one cluster has it")
    hub.wait_scorer("s1", "Distributed", "False", "Masked")
    wait_status(hub, "s0", lambda s: s["clusters"]["upToDate"] == 3, "all have the other")


def test_only_those_that_change_are_written(hub, controller):
    before = {c: hub.work(c)["metadata"]["resourceVersion"] for c in CLUSTERS}
    hub.configure(masks=[mask("east-1", "memory")])
    hub.wait_scores("east-1", "cpu_load", "cpu_temp")
    wait_until(lambda: hub.config()["status"]["clusters"]["upToDate"] == 3, "all are up to date")
    after = {c: hub.work(c)["metadata"]["resourceVersion"] for c in CLUSTERS}
    assert [c for c in CLUSTERS if before[c] != after[c]] == ["east-1"]
    controller.wait_metric("dynamic_scoring_hub_clusters", 3, state="up_to_date")


@pytest.mark.usefixtures("controller")
def test_a_config_of_another_name_is_told_so(hub):
    hub.configure("another", masks=[mask("*", "*")])
    _, _, message = hub.wait_condition(lambda: hub.config("another"), "another", "Ready", "False", "NotUsed", DEADLINE)
    assert "dynamic-scoring-config" in message
    wait_all(hub, {})


def matches(hub):
    """{(clusterName, scoreName): (clusters, scores)} as the status says."""
    found = hub.config()["status"].get("masks", [])
    return {(m["clusterName"], m["scoreName"]): (m["clusters"], m["scores"]) for m in found}


@pytest.mark.usefixtures("controller")
def test_what_each_matches(hub):
    hub.configure(masks=[mask("east-*", "cpu_*"), mask("west-1", "memory")])
    wait_until(lambda: matches(hub) == {("east-*", "cpu_*"): (2, 2), ("west-1", "memory"): (1, 1)}, "it is counted")
    assert hub.wait_config("Valid", "True", "Valid")[2] == "2 masks"
    hub.add_cluster("east-3")
    wait_until(lambda: matches(hub)["east-*", "cpu_*"] == (3, 2), "a new cluster counts, too")


@pytest.mark.usefixtures("controller")
def test_one_that_matches_nothing(hub):
    """A warning; but it is valid, as what it names may come later."""
    cases = [
        (("eats-1", "memory"), (0, 1), 'no cluster matches clusterName "eats-1"'),
        (("*", "cpu-load"), (3, 0), 'no score matches scoreName "cpu-load"'),
        (("*", "[a-z]*"), (3, 0), 'no score matches scoreName "[a-z]*": only * and ? are wildcards'),
        (("*", "disk"), (3, 0), 'no score matches scoreName "disk"'),
    ]
    for (cluster, score), found, warning in cases:
        hub.configure(masks=[mask("east-1", "memory"), mask(cluster, score)])
        words = f"1 of 2 masks matches nothing: {warning}"
        wait_until(lambda w=words: hub.wait_config("Valid", "True", "MasksMatchNothing")[2] == w, f"{score} is warned of")
        assert matches(hub)[cluster, score] == found
        first = hub.config()["status"]["masks"][0]
        assert (first["clusterName"], first["scoreName"]) == (cluster, score)
        assert warning.startswith(first["warning"])
        wait_until(lambda w=words: hub.wait_config("Ready", "True")[2].endswith(f"; {w}"), "kubectl get shows it")
    hub.configure()
    assert hub.wait_config("Valid", "True", "Valid")[2] == "0 masks"
