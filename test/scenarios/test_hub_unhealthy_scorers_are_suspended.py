"""What the hub finds unhealthy is suspended on the clusters: it is not called, and its scores stay as long as they are
valid. A wrong edit is no worse than an outage."""

import contextlib
import json

import pytest
from lib.agent import running_agent
from lib.fake import answer, plain, results
from lib.hub import agent_flags, agent_namespace_of
from lib.kube import SCORES
from lib.process import free_port
from lib.scorers import api_config, full, own, scoring, wait_status
from lib.wait import LONG, wait_until
from lib.work import CONFIGMAPS, WORK_CONFIGMAP, FakeWorkAgent

GOOD, BAD = plain("ok"), plain("overloaded", 503)
INTERVAL = 3
FLAGS = ("--health-check-interval=1s", "--unhealthy-threshold=2")


def spec(url, **more):
    about = {"source": {"type": "None"}, "scoring": scoring("cpu", host=url, params={"name": "cpu", "interval": INTERVAL})}
    return {**own("cpu", url), **about, "scoreDimensionFormat": "${node}", "fallbackScore": -50, **more}


def placed(hub):
    found = hub.kube.find(f"{SCORES.format('c1')}/cpu") or {}
    status = found.get("status", {})
    reasons = {c["type"]: c["reason"] for c in status.get("conditions", [])}
    return {s["name"]: s["value"] for s in status.get("scores", [])}, reasons.get("Scored")


def valid_until(hub):
    return hub.kube.find(f"{SCORES.format('c1')}/cpu")["status"]["validUntil"]


def lists(hub):
    """The two lists that the cluster has: score names, and {score name: since}."""
    data = hub.kube.find(f"{CONFIGMAPS.format(agent_namespace_of('c1'))}/{WORK_CONFIGMAP}")["data"]
    names = [s["scoreName"] for s in json.loads(data["summaries"])]
    return names, {s["scoreName"]: s["since"] for s in json.loads(data.get("suspended", "[]"))}


@pytest.fixture
def agent(hub, fake):
    """Of cluster c1, whose work agent is at work; the scorer scores there once there is a controller."""
    hub.add_cluster("c1")
    hub.configure()
    fake.on("/healthz", GOOD)
    fake.on("/scoring", results({"node": "n1"}, 7))
    hub.apply_scorer("s", spec(fake.url))
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeWorkAgent(hub, {"c1": (hub.kube, agent_namespace_of("c1"))}))
        yield stack.enter_context(running_agent({}, *agent_flags(hub, "c1")))


def wait_scoring(hub):
    wait_until(lambda: placed(hub) == ({"n1": 7}, "Scored"), "the score is there", LONG)
    hub.wait_scorer("s", "Ready", "True", deadline=LONG)


def suspend(hub, fake, agent):
    fake.on("/healthz", BAD)
    agent.wait_until(lambda: agent.status("cpu")["state"] == "suspended", "the agent suspends it")
    wait_status(hub, "s", lambda s: s["clusters"]["suspended"] == 1, "the hub counts it")
    return len(fake.requests("/scoring"))


def test_scores_stay_until_they_expire(hub, fake, agent, start_controller):
    controller = start_controller(*FLAGS)
    wait_scoring(hub)
    assert lists(hub) == (["cpu"], {})
    before = [e[:2] for e in hub.events("s")]
    asked = suspend(hub, fake, agent)
    names, suspended = lists(hub)
    assert names == [] and suspended == {"cpu": agent.status("cpu")["suspendedSince"]}
    assert placed(hub) == ({"n1": 7}, "Suspended") and agent.scores("cpu")
    assert agent.metric("dynamic_scoring_suspended", score_name="cpu") == 1
    controller.wait_metric("dynamic_scoring_hub_scorer_clusters", scorer="s", state="suspended")
    for kind, reason in (("Distributed", "Suspended"), ("Scoring", "Suspended"), ("Ready", "HTTPStatus")):
        hub.wait_scorer("s", kind, "False", reason)
    assert hub.scorer_condition("s", "Scoring")[2].startswith("suspended on 1 of 1 cluster: c1: not called, as the hub")

    wait_until(lambda: placed(hub) == ({"n1": -50}, "Suspended"), "the fallback takes its place")
    assert not agent.scores("cpu") and len(fake.requests("/scoring")) == asked
    assert agent.status("cpu")["state"] == "suspended"
    for _ in range(2):
        until = valid_until(hub)
        wait_until(lambda: valid_until(hub) > until, "the fallback is renewed, although no round ends")
    assert len(fake.requests("/scoring")) == asked
    fake.on("/healthz", GOOD)
    wait_scoring(hub)
    told = sorted([*before, ("Normal", "Healthy"), ("Warning", "HTTPStatus")])
    wait_until(lambda: sorted(e[:2] for e in hub.events("s")) == told, "one Event of the outage, one of its end")
    assert agent.scores("cpu") and lists(hub) == (["cpu"], {})
    assert agent.metric("dynamic_scoring_suspended", score_name="cpu") == 0


def test_an_agent_that_restarts_meanwhile(hub, fake, agent, start_controller):
    """It takes the scores that are still valid from the hub."""
    hub.apply_scorer("s", spec(fake.url, scoring=scoring("cpu", host=fake.url, params={"name": "cpu", "interval": 8})))
    start_controller(*FLAGS)
    wait_scoring(hub)
    asked = suspend(hub, fake, agent)
    agent.process.kill()
    agent.start()
    agent.wait_until(lambda: agent.status("cpu")["state"] == "suspended", "it is suspended again")
    assert placed(hub)[0] == {"n1": 7}
    wait_until(lambda: placed(hub) == ({"n1": -50}, "Suspended"), "the fallback takes their place", LONG)
    assert len(fake.requests("/scoring")) == asked


def test_what_is_masked_or_deleted_leaves_at_once(hub, fake, agent, start_controller):
    start_controller(*FLAGS)
    wait_scoring(hub)
    suspend(hub, fake, agent)
    hub.configure(masks=[{"clusterName": "c1", "scoreName": "cpu"}])
    wait_until(lambda: lists(hub) == ([], {}), "the mask counts")
    wait_until(lambda: placed(hub) == ({}, None), "its object is gone")
    hub.configure(masks=[])
    wait_until(lambda: "cpu" in lists(hub)[1], "it is suspended again")
    hub.delete_scorer("s")
    wait_until(lambda: lists(hub) == ([], {}), "it is deleted")
    wait_until(lambda: placed(hub) == ({}, None), "its object is gone again")


def test_another_controller_changes_nothing(hub, fake, agent, start_controller):
    controller = start_controller(*FLAGS)
    wait_scoring(hub)
    suspend(hub, fake, agent)
    before = hub.work("c1")["metadata"]["generation"], lists(hub)
    controller.stop()
    start_controller(*FLAGS)
    asked = len(fake.requests("/healthz"))
    wait_until(lambda: len(fake.requests("/healthz")) > asked + 3, "the new one probes")
    assert (hub.work("c1")["metadata"]["generation"], lists(hub)) == before


def test_where_only_the_hub_cannot_reach_it(hub, fake, other_fake, agent, start_controller):
    """Agents call the scoring API with success after the hub's probes began to fail: the condition names the way out."""
    hub.apply_scorer("s", spec(fake.url, configURL=f"{other_fake.url}/config"))
    other_fake.on("/healthz", GOOD)
    start_controller("--health-check-interval=4s", "--unhealthy-threshold=3")
    wait_scoring(hub)
    other_fake.on("/healthz", BAD)
    words = "; agents on 1 of 1 cluster have called it successfully since: if only the hub cannot reach it, set spec.healthCheck to Agents"
    wait_until(lambda: hub.scorer_condition("s", "Healthy")[2].endswith(words), "the hub says so", LONG)
    hub.apply_scorer("s", spec(fake.url, configURL=f"{other_fake.url}/config", healthCheck="Agents"))
    wait_scoring(hub)


def test_a_mistyped_url(hub, fake, agent, start_controller):
    """The last good summary stays until as many probes have failed as in an outage, also for another controller."""
    about = {"name": "cpu", "interval": INTERVAL}
    fake.on("/config", answer(api_config("cpu", source={"type": "None"}, scoring=scoring("cpu", params=about))))
    good = full(f"{fake.url}/config", scoreDimensionFormat="${node}")
    typo = {**good, "configURL": f"http://127.0.0.1:{free_port()}/config"}
    hub.apply_scorer("s", good)
    flags = ("--health-check-interval=4s", "--unhealthy-threshold=3")
    controller = start_controller(*flags)
    wait_scoring(hub)
    generation, sent = hub.work("c1")["metadata"]["generation"], hub.summaries("c1")
    hub.apply_scorer("s", typo)
    message = hub.wait_scorer("s", "ConfigSynced", "False", "Unreachable")[2]
    assert message.endswith("the last valid configuration stays active")
    controller.stop()
    start_controller(*flags)
    hub.wait_scorer("s", "Healthy", "True")
    assert hub.summaries("c1") == sent and hub.work("c1")["metadata"]["generation"] == generation
    hub.wait_scorer("s", "Healthy", "False", "Unreachable", LONG)
    wait_until(lambda: "cpu" in lists(hub)[1], "it is suspended, not removed")
    hub.apply_scorer("s", good)
    wait_scoring(hub)
    assert hub.summaries("c1") == sent
