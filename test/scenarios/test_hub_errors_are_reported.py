"""Every error is in a status: what clusters cannot apply, and what their agents report."""

import json

import pytest
from lib.fake import answer, plain
from lib.scorers import api_config, distributed, full, own, scoring, serve, source, summaries, wait_status
from lib.wait import wait_until


def report(*scorers, **more):
    """As agents write it."""
    listed = [{"scoreName": name, "state": state, **rest} for name, state, rest in scorers]
    return json.dumps({"configurationInForce": True, "scorers": listed, **more})


def test_a_cluster_that_cannot_apply(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.set_feedback("c1", None)
    hub.set_feedback("c2", None, applied=False, why="namespaces \"dynamic-scoring\" is forbidden")
    _, _, message = hub.wait_scorer("s", "Distributed", "False", "ClustersFailing")
    assert "1 of 2" in message and "c2" in message and "is forbidden" in message
    failing, silent = hub.scorer_status("s")["failingClusters"]
    assert failing["name"] == "c2" and "is forbidden" in failing["error"]
    assert silent["name"] == "c1" and silent["error"] == "the ManifestWork is applied, but no agent has reported"
    hub.set_feedback("c2", None)
    hub.wait_scorer("s", "Distributed", "True")
    wait_status(hub, "s", lambda s: s["clusters"]["applied"] == s["clusters"]["silent"] == 2, "it is applied")


def test_what_agents_say(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2", "c3", "c4"))
    error = "bad_data: parse error: unexpected end of input"
    hub.set_feedback("c1", report(("cpu", "ok", {}), ("another", "failing", {"error": "none of ours"})))
    hub.set_feedback("c2", report(("cpu", "failing", {"error": error})))
    hub.set_feedback("c3", report(("cpu", "waiting", {})))
    counts = {"selected": 4, "upToDate": 4, "applied": 3, "scoring": 1, "failing": 1, "waiting": 1, "silent": 1}
    status = wait_status(
        hub, "s", lambda s: counts.items() <= s["clusters"].items(), "the reports are counted"
    )
    failing = status["failingClusters"][0]
    assert (failing["name"], failing["state"], failing["error"]) == ("c2", "failing", error)
    assert [(c["name"], c["state"]) for c in status["failingClusters"][1:]] == [("c3", "waiting"), ("c4", "silent")]
    _, _, message = hub.wait_scorer("s", "Scoring", "False")
    assert "1 of 4" in message and "c2" in message and error in message
    wait_until(lambda: hub.config()["status"]["clusters"]["reporting"] == 3, "the config's status counts the reports")
    name = "dynamic_scoring_hub_scorer_clusters"
    controller.wait_metric_is(1, name, scorer="s", state="failing")
    for cluster in ("c2", "c3", "c4"):
        hub.set_feedback(cluster, report(("cpu", "ok", {})))
    hub.wait_scorer("s", "Scoring", "True")
    wait_status(hub, "s", lambda s: s["clusters"]["scoring"] == 4 and "failingClusters" not in s, "all is well")
    controller.wait_metric_is(4, name, scorer="s", state="scoring")


def test_a_score_that_cannot_be_written(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.set_feedback("c1", report(("cpu", "ok", {"placementError": "addonplacementscores is forbidden"})))
    status = wait_status(hub, "s", lambda s: s["clusters"]["failing"] == 1, "it counts as failing")
    (failing,) = status["failingClusters"]
    words = "AddOnPlacementScore not written: addonplacementscores is forbidden"
    assert (failing["name"], failing["state"], failing["error"]) == ("c1", "notPlaced", words)


def test_a_report_that_is_none_changes_nothing(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.set_feedback("c1", report(("cpu", "ok", {})))
    wait_status(hub, "s", lambda s: s["clusters"]["scoring"] == 1, "it is counted")
    hub.set_feedback("c1", "<html>")
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")
    wait_status(hub, "s", lambda s: s["clusters"]["selected"] == 2, "the other is counted")
    assert hub.scorer_status("s")["clusters"]["scoring"] == 1


def test_other_peoples_words_are_one_line(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    evil = "two\nlines\x1b[31m \u20ac" + "x" * 5000
    hub.set_feedback("c1", report(("cpu", "failing", {"error": evil})))
    status = wait_status(hub, "s", lambda s: s["clusters"]["failing"] == 1, "it is told")
    for text in [status["failingClusters"][0]["error"], *(c["message"] for c in status["conditions"])]:
        assert text.isprintable() and len(text) < 2000


def test_what_prometheus_will_refuse(hub, fake, start_controller):
    fake.on("/healthz", plain("ok"))
    many = source()
    many["params"].update(range=86400, step=1)
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", own("cpu", fake.url, source=many))
    start_controller()
    _, _, message = hub.wait_scorer("s", "Valid", "True")
    assert "spec.source.params.step" in message and "86401 points" in message and "queries of more than 11,000 fail" in message
    hub.wait_scores("c1", "cpu")


def test_a_host_that_is_a_placeholder(hub, fake, start_controller):
    """In an answer of /config, which no CRD sees."""
    distributed(hub, fake, start_controller)
    fake.on("/config", answer(api_config("cpu", source=source(host="http://NODE_IP:30090"))))
    words = hub.wait_scorer("s", "ConfigSynced", "False", "InvalidConfig")[2]
    assert (
        'source.host in /config: expected an absolute http or https URL with a host: replace the placeholder "NODE_IP"; '
        "the last valid configuration stays active" in words
    )


def test_a_placeholder_that_does_not_exist(hub, fake, start_controller):
    """It is distributed, since the name of an item may be meant so."""
    distributed(hub, fake, start_controller)
    hub.apply_scorer("s", full(fake.url + "/config", scoreDimensionFormat="${nod};${app}"))
    words = hub.wait_scorer("s", "Valid", "True", "UnknownPlaceholder")[2]
    assert words.startswith('the summary is valid, with a warning: spec.scoreDimensionFormat: unknown placeholder "${nod}" stays as it is')
    assert "${cluster}, ${node}, ${device}" in words
    wait_until(lambda: summaries(hub, "c1")["cpu"]["scoreDimensionFormat"] == "${nod};${app}", "it is distributed")
    hub.apply_scorer("s", full(fake.url + "/config", scoreDimensionFormat="${node};${app}"))
    hub.wait_scorer("s", "Valid", "True", "Valid")


def test_a_spec_that_cannot_be_used(hub, fake, start_controller):
    """One that the schema accepts nevertheless; the previous spec stays active."""
    distributed(hub, fake, start_controller)
    before, version = hub.summaries("c1"), hub.work("c1")["metadata"]["resourceVersion"]
    params = {"name": "other", "interval": 5, "model": {"layers": 3}}
    hub.apply_scorer("s", own("other", fake.url, scoring=scoring("other", params=params)))
    _, reason, message = hub.wait_scorer("s", "Valid", "False")
    assert reason == "InvalidSpec"
    assert "spec.scoring.params.model: expected" in message and "the last valid spec stays active" in message
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")
    assert hub.summaries("c1") == hub.summaries("c2") == before
    assert hub.work("c1")["metadata"]["resourceVersion"] == version
    hub.apply_scorer("s", own("other", fake.url))
    hub.wait_scores("c1", "other")
    hub.wait_scorer("s", "Valid", "True")


@pytest.mark.parametrize(
    "broken, reason, message",
    [
        ({"scoring": scoring("cpu", params={"name": "cpu", "interval": 30, "layers": {"n": 3}})}, "InvalidSpec", "layers"),
        ({"source": source(query=" ; ")}, "Incomplete", "query"),
    ],
    ids=["refused", "incomplete"],
)
def test_a_restart_does_not_take_it_away(hub, fake, start_controller, broken, reason, message):
    """Nor does a replica that never saw the previous spec."""
    fake.on("/healthz", plain("ok"))
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", own("cpu", fake.url))
    controller = start_controller()
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    before = hub.work("c1")["metadata"]["resourceVersion"]
    hub.apply_scorer("s", own("cpu", fake.url, **broken))
    assert message in hub.wait_scorer("s", "Valid", "False", reason)[2]
    controller.stop()
    controller.start()
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")
    wait_until(lambda: "stays active" in hub.scorer_condition("s", "Valid")[2], "it says so again")
    _, again, words = hub.scorer_condition("s", "Valid")
    assert again == reason and message in words
    assert hub.score_names("c1") == ["cpu"] and hub.work("c1")["metadata"]["resourceVersion"] == before
    hub.apply_scorer("s", own("memory", fake.url))
    hub.wait_scores("c1", "memory")
    hub.wait_scorer("s", "Valid", "True")


def test_a_configuration_that_cannot_be_used(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    before = hub.summaries("c1")
    hub.apply_scorer("t", full(serve(fake, "/t", "", scoring={"path": "/s", "params": {"interval": 5}}, name="")))
    for kind in ("ConfigSynced", "Ready"):
        _, _, message = hub.wait_scorer("t", kind, "False", "InvalidConfig")
        assert "spec.scoring.params.name: missing" in message
    assert hub.summaries("c1") == before
