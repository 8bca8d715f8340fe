"""The guide's three prompts lead an assistant that knows only the list of tools to the right calls: each prompt has one
transcript. An assistant without a model chooses by words alone, so that names, descriptions and schemas must say enough."""

import pytest

from lib.assistant import Assistant
from lib.guide import PERFORMANCE, POWER, running_guide
from lib.kube import NAMESPACE
from lib.optimizer import running_optimizer

SCORERS = f"apis/dynamic-scoring.open-cluster-management.io/v1/namespaces/{NAMESPACE}/dynamicscorers"
SCORES = "get_addonplacementscores_addonplacementscores_get"
OPTIMIZE = "optimize_optimize_post"
GUIDE = "default"
PROMPTS = [
    ("Please get AddonPlacementScores and summarize them", SCORES),
    ("Optimize for performance", OPTIMIZE),
    ("Optimize for power consumption", OPTIMIZE),
    ("Show me what would happen, but write nothing", "plan"),
    ("Plan where my workloads go without changing anything", "plan"),
    ("Which workloads can be placed?", "workloads_list"),
    ("What policies does cluster worker01 have?", "policies_list"),
    ("Which scorers are unhealthy?", "scorers_list"),
    ("Why is there no score on cluster worker01?", "scorer_explain"),
    ("Apply the plan with hash 0123456789abcdef", "apply"),
    ("Delete what the plans made", "reset_reset_post"),
]


def put_scorer(kube, name, description):
    spec = {
        "description": description,
        "configURL": "http://127.0.0.1:1/config",
        "configSyncMode": "None",
        "scoringType": "external",
        "scoreName": name,
        "scoreDestination": "AddOnPlacementScore",
        "scoreDimensionFormat": "${app};${device}",
        "source": {"type": "none"},
        "scoring": {"host": "http://127.0.0.1:1", "path": "/scoring", "params": {"name": name, "interval": 30}},
    }
    kube.apply(SCORERS, name, {"apiVersion": "dynamic-scoring.open-cluster-management.io/v1", "kind": "DynamicScorer", "spec": spec})


@pytest.fixture(name="guide")
def with_described_scores(hub):
    with running_guide(hub.kube, GUIDE) as guide:
        put_scorer(hub.kube, PERFORMANCE, "Performance of an app on a device: higher is faster.")
        put_scorer(hub.kube, POWER, "Power consumption of an app on a device: higher is more economical.")
        try:
            yield guide
        finally:
            for name in PERFORMANCE, POWER:
                hub.kube.delete(f"{SCORERS}/{name}")


@pytest.fixture(name="start")
def start_optimizer(guide):
    def start(*flags):
        return running_optimizer(guide.kube.kubeconfig(), f"--write-namespace={GUIDE}", *flags)

    return start


def test_each_prompt_leads_to_its_tool(start):
    with start("--mcp.allow-writes") as optimizer:
        assistant = Assistant(optimizer)
        wrong = {prompt: assistant.rank(prompt)[:3] for prompt, tool in PROMPTS if assistant.rank(prompt)[0] != tool}
    assert wrong == {}


def test_the_guides_prompts(guide, start):
    with start() as optimizer:
        optimizer.wait_ready()
        guide.wait_known(optimizer)
        assistant = Assistant(optimizer)
        summary = assistant.ask(PROMPTS[0][0])["summary"]
        assert assistant.transcript == [(SCORES, {})]
        assert {one["name"]: one["clusters"] for one in summary} == {PERFORMANCE: 2, POWER: 2}

        for (prompt, _), score, value in zip(PROMPTS[1:3], (PERFORMANCE, POWER), (115, 170)):
            assistant = Assistant(optimizer)
            answer = assistant.ask(prompt)
            *looked, (tool, arguments) = assistant.transcript
            assert sorted(name for name, _ in looked) == sorted([SCORES, "policies_list", "workloads_list"])
            assert tool == OPTIMIZE
            assert arguments["preference"]["addonPlacementScore"] == score
            assert (answer["status"], answer["objective_value"], answer["applied"]) == ("Optimal", value, False)
            assert any("--mcp.allow-writes" in note for note in answer["notes"])
        assert guide.made() == []


def test_a_plan_is_applied_where_assistants_may_write(guide, start):
    with start("--mcp.allow-writes") as optimizer:
        optimizer.wait_ready()
        plan = guide.wait_known(optimizer).json
        answer = optimizer.use("apply", planHash=plan["planHash"])
        assert not answer["isError"] and answer["structuredContent"]["applied"]
        assert len(guide.made()) == 6
        assert optimizer.use("reset_reset_post", namespace=GUIDE)["structuredContent"]["failed"] == []
        assert guide.made() == []
