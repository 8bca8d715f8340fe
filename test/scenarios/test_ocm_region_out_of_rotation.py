"""A person takes a region out of rotation with one kubectl patch, makes another worse, and takes all back: each step is
visible in the decisions of Open Cluster Management's Placement. Four clusters with a bias each."""

import contextlib
import json

from lib.agent import running_agent
from lib.fake import answer, plain, results
from lib.hub import agent_flags, agent_namespace_of
from lib.kube import SCORES
from lib.ocm import SET_LABEL, decided, make_placement, placement_controller, remove_placement
from lib.scorers import api_config, full, scoring
from lib.wait import LONG, wait_until
from lib.work import FakeWorkAgent

BIAS = {"eu-1": 80, "eu-2": 60, "us-1": 40, "us-2": 20}


def values(hub, cluster):
    found = hub.kube.find(f"{SCORES.format(cluster)}/load") or {}
    return {s["name"]: s["value"] for s in found.get("status", {}).get("scores", [])}


def patch(hub, entries):
    body = json.dumps({"spec": {"adjustments": entries}})
    done = hub.kubectl("patch", "dynamicscoringconfig", "dynamic-scoring-config", "--type=merge", f"--patch={body}")
    assert done.returncode == 0, done.stderr


def test_out_worse_and_back(hub, fake, start_controller):
    fake.on("/healthz", plain("ok"))
    about = scoring("load", path="/load/${cluster}", params={"name": "load", "interval": 1})
    url = fake.on("/config", answer(api_config("load", source={"type": "None"}, scoring=about)))
    for cluster, bias in BIAS.items():
        hub.add_cluster(cluster, labels={SET_LABEL: "default", "region": cluster[:2]})
        fake.on(f"/load/{cluster}", results({}, bias))
    hub.configure()
    hub.apply_scorer("load", full(url))
    start_controller()
    with contextlib.ExitStack() as stack:
        stack.callback(remove_placement, hub, "where-to-run")
        make_placement(hub, "where-to-run", "load", "load")
        stack.enter_context(placement_controller(hub.kube))
        stack.enter_context(FakeWorkAgent(hub, {c: (hub.kube, agent_namespace_of(c)) for c in BIAS}))
        for cluster in BIAS:
            stack.enter_context(running_agent({}, *agent_flags(hub, cluster)))

        def decides(best, why):
            wait_until(lambda: decided(hub) == [best], f"{best} is the best: {why}", LONG)

        decides("eu-1", "its bias is the highest")
        eu = {"labelSelector": {"matchLabels": {"region": "eu"}}}
        block = {"name": "out-of-rotation", "clusterSelector": eu, "scoreName": "*", "set": -100, "reason": "storage"}
        patch(hub, [block])
        decides("us-1", "the region is blocked")
        assert values(hub, "eu-1") == values(hub, "eu-2") == {"load": -100}
        patch(hub, [block, {"name": "penalty", "clusterName": "us-1", "scoreName": "load", "add": -30}])
        decides("us-2", "the other is penalised")
        wait_until(lambda: values(hub, "us-1") == {"load": 10}, "40 less 30")
        fake.on("/load/us-2", results({}, -20))
        decides("us-1", "load has moved to the best")
        patch(hub, None)
        decides("eu-1", "all is taken back")
        wait_until(lambda: {c: values(hub, c) for c in BIAS} == {**{c: {"load": b} for c, b in BIAS.items()}, "us-2": {"load": -20}}, "scores are as they were", LONG)
