"""Several items from one call: scoreItems names items by several formats from the same results, in one object; agents
that do not know it make the first, and the hub says where."""

import contextlib
import json

from lib.agent import PROGRAM, running_agent, summary
from lib.fake import plain, results
from lib.hub import agent_flags, agent_namespace_of
from lib.kube import CLUSTER, SCORES, script
from lib.process import run
from lib.scorers import api_config, distributed, full, scoring, serve, summaries
from lib.wait import LONG, wait_until
from lib.work import FakeWorkAgent

BOTH = [{"format": "${cluster}", "aggregation": "avg"}, {"format": "${node}", "aggregation": "max"}]
FOUR = ({"node": "a", "pod": "p"}, 10, {"node": "a", "pod": "q"}, 20, {"node": "b", "pod": "p"}, 3.5, {"node": "b"}, 4)


def test_the_cluster_and_its_nodes_from_the_same_results(kube, fake, start_agent):
    url = fake.on("/s", results(*FOUR))
    scaled = fake.on("/scaled", results(*FOUR))
    kube.configure(
        summary("s", url, interval=600, scoreItems=BOTH),
        summary("scaled", scaled, interval=600, scoreItems=BOTH, scoreRange={"min": 0, "max": 20}),
    )
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {CLUSTER: 9, "a": 20, "b": 4})
    assert kube.condition("s", "Scored") == ("True", "Scored", "3 items")
    kube.wait_items("scaled", {CLUSTER: -7, "a": 100, "b": -60})
    assert len(fake.requests("/s")) == 1 and list(kube.objects()) == ["s", "scaled"]
    assert len(agent.scores("s")) == 4
    wait_until(lambda: "scoreItems" in kube.report().get("features", []), "the report says that it takes them")


def test_what_a_format_loses_is_told_of_each(kube, fake, start_agent):
    """Merged results, values that become 0, a placeholder that does not exist, and names that two formats give."""
    whole = results({"node": "a"}, 4, {"node": "b"}, 8, {"node": CLUSTER}, 2)
    small = results({"node": "a"}, 0.4, {"node": "b"}, 0.4, {"node": "c"}, 0.4)
    total = [{"format": "total", "aggregation": "sum"}, {"format": "${node}"}]
    kube.configure(
        summary("merged", fake.on("/m", whole), interval=600, scoreItems=[{"format": "${cluster}"}, {"format": "${nod}"}]),
        summary("taken", fake.on("/t", whole), interval=600, scoreItems=BOTH),
        summary("zero", fake.on("/z", small), interval=600, scoreItems=total),
    )
    agent = start_agent({}, *kube.flags())
    kube.wait_items("merged", {CLUSTER: 2, "${nod}": 2})
    assert kube.condition("merged", "Scored")[2] == (
        '2 items; "${cluster}" makes 1 from 3 results; "${nod}" makes 1 from 3 results; unknown placeholder "${nod}"'
    )
    assert r'scoreItems[1].format: unknown placeholder \"${nod}\" stays as it is' in agent.log()
    kube.wait_items("taken", {CLUSTER: 4, "a": 4, "b": 8})
    assert kube.condition("taken", "Scored")[2] == (
        f'3 items; left out 1 result of "${{node}}": "${{cluster}}" has an item "{CLUSTER}" already'
    )
    agent.wait_metric("dynamic_scoring_placement_left_out_total", 3, reason="same_name", score_name="taken")
    kube.wait_items("zero", {"total": 1, "a": 0, "b": 0, "c": 0})
    status, _, message = kube.condition("zero", "Rounded")
    assert status == "True" and message.startswith('"${node}": 3 of 3 values other than 0 become 0')


def test_the_fallback_has_all_items(kube, fake, start_agent):
    """At once the one whose name is known without results, the others once they have been seen."""
    gone = fake.on("/gone", plain("out of order", 500))
    url = fake.on("/s", results(*FOUR))
    kube.configure(
        summary("gone", gone, interval=600, fallbackScore=-50, scoreItems=BOTH),
        summary("s", url, fallbackScore=-50, scoreItems=BOTH),
    )
    start_agent({}, *kube.flags())
    kube.wait_items("gone", {CLUSTER: -50})
    kube.wait_items("s", {CLUSTER: 9, "a": 20, "b": 4})
    fake.on("/s", plain("out of order", 500))
    kube.wait_items("s", {CLUSTER: -50, "a": -50, "b": -50}, LONG)


def test_mistakes_are_refused_with_their_place(tmp_path):
    """By check-config; test_hub_crds.py has the same mistakes in a DynamicScorer."""
    mistakes = {
        "nine": ({"scoreItems": [{"format": f"f{i}"} for i in range(9)]}, "scoreItems: expected at most 8 items, got 9"),
        "twice": ({"scoreItems": [*BOTH, BOTH[0]]}, "scoreItems[2].format: already the format of scoreItems[0]"),
        "empty": ({"scoreItems": [{"format": ""}]}, "scoreItems[0].format: expected a format of names"),
        "none": ({"scoreItems": [{"aggregation": "avg"}]}, "scoreItems[0].format: missing"),
        "word": (
            {"scoreItems": [{"format": "a", "aggregation": "mean"}]},
            'scoreItems[0].aggregation: expected last, avg, max, min or sum, got the string "mean"',
        ),
        "differs": (
            {"scoreItems": BOTH, "scoreDimensionFormat": "${node}"},
            "scoreDimensionFormat: must equal scoreItems[0].format, or be left out",
        ),
    }
    list_of = [summary(name, "http://s.example", **more) for name, (more, _) in mistakes.items()]
    good = summary("good", "http://s.example", scoreItems=BOTH, scoreDimensionFormat="${cluster}", scoreAggregation="AVG")
    file = tmp_path / "config"
    file.write_text(json.dumps({"clusterName": "c1", "summaries": [*list_of, good]}))
    check = run(PROGRAM, "check-config", file)
    assert check.returncode == 1
    said = check.stdout + check.stderr
    for i, (_, words) in enumerate(mistakes.values()):
        assert f"summaries[{i}].{words}" in said, said
    assert f"summaries[{len(mistakes)}]" not in said
    file.write_text(json.dumps({"clusterName": "c1", "summaries": [good]}))
    check = run(PROGRAM, "check-config", file)
    assert check.returncode == 0 and "warning" not in check.stdout + check.stderr, check.stdout


def test_agents_that_report_without_the_word_are_named(hub, fake, start_controller):
    """Not those that do not report: the hub cannot know. And an unknown placeholder is told with its place."""
    clusters = ("c1", "c2", "c3", "c4")
    distributed(hub, fake, start_controller, clusters=clusters)
    for cluster, features in (("c1", ["scoreItems"]), ("c2", None), ("c3", ["another"])):
        told = {} if features is None else {"features": features}
        cell = {"scoreName": "cpu", "state": "ok"}
        hub.set_feedback(cluster, json.dumps({"configurationInForce": True, "scorers": [cell], **told}))
    hub.set_feedback("c4", None)
    hub.wait_scorer("s", "Distributed", "True", "Distributed")
    hub.apply_scorer("s", full(fake.url + "/config", scoreItems=[*BOTH, {"format": "${nod}"}]))
    words = hub.wait_scorer("s", "Valid", "True", "UnknownPlaceholder")[2]
    assert 'spec.scoreItems[2].format: unknown placeholder "${nod}"' in words
    found = wait_until(lambda: (s := summaries(hub, "c1")["cpu"]).get("scoreItems") and s, "the summary has them")
    assert found["scoreItems"] == [*BOTH, {"format": "${nod}"}]
    assert (found["scoreDimensionFormat"], found["scoreAggregation"]) == ("${cluster}", "avg")
    words = "agents on 2 of 4 clusters are too old for scoreItems and use the first only: c2, c3"
    wait_until(lambda: words in hub.scorer_condition("s", "Distributed")[2], "they are named")
    hub.apply_scorer("s", full(fake.url + "/config", scoreItems=BOTH[:1]))
    wait_until(lambda: "scoreItems" not in hub.scorer_condition("s", "Distributed")[2], "one item is no loss")


def test_an_agent_of_the_version_before_makes_the_first(hub, fake, start_controller):
    programs = {"before": script("old-version"), "now": PROGRAM}
    fake.on("/scoring", results(*FOUR))
    url = serve(fake, "/config", "cpu", source={"type": "None"}, scoring=scoring("cpu", params={"name": "cpu", "interval": 1}))
    for cluster in programs:
        hub.add_cluster(cluster)
    hub.configure()
    hub.apply_scorer("s", full(url, scoreItems=BOTH))
    start_controller()

    def items(cluster):
        found = hub.kube.find(f"{SCORES.format(cluster)}/cpu") or {}
        return {s["name"]: s["value"] for s in found.get("status", {}).get("scores", [])}

    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeWorkAgent(hub, {c: (hub.kube, agent_namespace_of(c)) for c in programs}))
        for cluster, program in programs.items():
            agent = stack.enter_context(running_agent({}, *agent_flags(hub, cluster), start=False))
            agent.command[0] = program
            agent.start()
        wait_until(lambda: items("now") == {"now": 9, "a": 20, "b": 4}, "all items of this version", LONG)
        wait_until(lambda: items("before") == {"before": 9}, "the first of the version before", LONG)
        words = "distributed to all 2 clusters; agents on 1 of 2 clusters are too old for scoreItems and use the first only: before"
        assert hub.wait_scorer("s", "Distributed", "True", "ItemsIgnored", LONG, says=words)[2] == words
        hub.wait_scorer("s", "Ready", "True", deadline=LONG)
