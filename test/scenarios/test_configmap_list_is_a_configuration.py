"""The ConfigMap's `summaries`, a JSON list as the hub writes it, is a valid configuration; unknown keys of a newer hub
are ignored."""

import json

from lib.agent import PROGRAM, labels
from lib.fake import results, series
from lib.process import run


def as_the_hub_writes(fake):
    """A Go program also writes fields that were never set."""
    return [
        {
            "name": "sample-scorer",
            "scoreName": "sample_my_score",
            "sourceType": "Prometheus",
            "sourceEndpoint": fake.url + "/api/v1/query_range",
            "sourceEndpointAuthName": "",
            "sourceEndpointAuthKey": "",
            "sourceQuery": "up",
            "sourceRange": 0,
            "sourceStep": 0,
            "scoringEndpoint": fake.on("/scoring", results({"node": "n1", "meta": "m"}, 3)),
            "scoringInterval": 0,
            "scoringEndpointAuthName": "",
            "scoringEndpointAuthKey": "",
            "location": "Internal",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": "${scoreName}",
            "aKeyOfTomorrow": {"x": [1]},
        }
    ]


def test_it_runs(fake, start_agent):
    fake.on("/api/v1/query_range", series({"node": "n1"}))
    agent = start_agent(as_the_hub_writes(fake), "--cluster-name=cluster1")
    agent.wait_scores("sample_my_score")
    [(have, value)] = agent.metrics().all("dynamic_score")
    assert have == labels(score_name="sample_my_score", node="n1", meta="m", cluster="cluster1")
    assert value == 3
    arguments = fake.requests("/api/v1/query_range")[0].arguments
    assert (arguments["query"], arguments["step"]) == ("up", "60")
    assert float(arguments["end"]) - float(arguments["start"]) == 3600
    assert agent.status("sample_my_score")["intervalSeconds"] == 60


def test_it_checks(fake, tmp_path):
    file = tmp_path / "summaries"
    file.write_text(json.dumps(as_the_hub_writes(fake)))
    check = run(PROGRAM, "check-config", file)
    assert check.returncode == 0 and "valid, 1 scorer" in check.stdout
    assert "aKeyOfTomorrow" in check.stdout


def test_it_needs_a_cluster_name(fake, start_agent):
    agent = start_agent(as_the_hub_writes(fake), start=False)
    agent.launch()
    assert agent.process.wait() == 1
    assert "--cluster-name" in agent.log()
    agent.process = None
