"""A scorer of the source OpenTelemetry scores what the agent receives by OTLP."""

import time

from lib.agent import running_agent, summary
from lib.fake import results
from lib.otlp import gauge, point, push, request
from lib.process import BUILD, free_port, run
from lib.wait import eventually

QUERY = 'sum by (node) (m{cluster="${cluster}"}); last_over_time(m{node="n2"}[1h])'


def scorer(fake, source="OTel", **more):
    return {
        **summary("s", fake.on("/scoring", results({"node": "n1"}, 1.5))),
        "sourceType": source,
        "sourceQuery": QUERY,
        "sourceRange": 60,
        "sourceStep": 1,
        **more,
    }


def test_series_reach_the_scoring_api_and_scores_the_page(fake):
    port = free_port()
    config = {"clusterName": "c1", "summaries": [scorer(fake)]}
    with running_agent(config, f"--otlp.listen-address=127.0.0.1:{port}") as agent:
        points = [
            point(value, time.time() - 5, labels={"cluster": cluster, "node": node})
            for cluster, node, value in [("c1", "n1", 1), ("c1", "n2", 2), ("c2", "n1", 4)]
        ]
        assert push(f"http://127.0.0.1:{port}/v1/metrics", request(gauge("m", *points))).json == {}

        def received():
            data = fake.requests("/scoring")[-1].json["data"]
            seen = [(one["metric"], {value for _, value in one["values"]}) for one in data]
            assert seen == [
                ({"node": "n1"}, {"1"}),
                ({"node": "n2"}, {"2"}),
                ({"__name__": "m", "cluster": "c1", "node": "n2"}, {"2"}),
            ]

        eventually(received)
        assert agent.wait_scores("s") == [({"node": "n1"}, 1.5)]


def test_the_error_names_the_flag_that_is_missing(fake):
    with running_agent({"clusterName": "c1", "summaries": [scorer(fake, "otlp")]}) as agent:
        agent.wait_log("start it with --otlp.listen-address")


def test_check_config_names_the_place_of_what_is_not_supported(tmp_path):
    file = tmp_path / "scorers.yaml"
    file.write_text(
        "clusterName: c1\nsummaries:\n"
        "- {scoreName: s, scoringEndpoint: 'http://s', sourceType: OpenTelemetry, sourceQuery: 'm; topk(3, m)'}\n"
    )
    checked = run(BUILD / "dynamic-scoring", "check-config", file)
    assert checked.returncode == 1
    assert "sourceQuery: line 1, column 4: aggregation topk is not supported by sourceType OpenTelemetry; " in checked.stderr
