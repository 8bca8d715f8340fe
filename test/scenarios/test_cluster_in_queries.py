"""One query serves every cluster of a central Prometheus: ${cluster} in its string literals is the name of the agent's
cluster, whatever it contains."""

import json

from lib.agent import PROGRAM, summary
from lib.fake import plain, results
from lib.process import run
from lib.prometheus import running_prometheus

ODD = 'a "b" \'c\' \\d\\ ;${cluster}'
CLUSTERS = ("west", ODD)
QUERY = 'load{cluster="${cluster}"}; load{cluster=\'${cluster}\'} * 2; load{cluster=`${cluster}`} * 3 # ${cluster}'


def test_two_agents_one_prometheus(fake, start_agent):
    target = fake.on("/load", plain("load 7\n"))[7:].removesuffix("/load")
    targets = [{"targets": [target], "labels": {"cluster": name}} for name in CLUSTERS]
    scoring = fake.on("/scoring", results({}, 1))
    with running_prometheus({"job_name": "all", "metrics_path": "/load", "static_configs": targets}) as prometheus:
        for name in CLUSTERS:
            prometheus.wait_query(f"load{{cluster=`{name}`}}", f"it has the series of {name}")
        for name in CLUSTERS:
            scorer = summary("s", scoring, source=prometheus.url, query=QUERY, interval=600, sourceRange=60)
            agent = start_agent({"summaries": [scorer]}, f"--cluster-name={name}")
            assert agent.wait_rounds("s")["error"] is None
            data = fake.requests("/scoring")[-1].json["data"]
            assert [s["metric"]["cluster"] for s in data] == [name] * 3
            assert [s["values"][-1][1] for s in data] == ["7", "14", "21"]


def test_other_placeholders_stay(fake, start_agent):
    asked = fake.on("/api/v1/query_range", plain('{"status":"success","data":{"resultType":"matrix","result":[]}}'))
    query = 'up{a="${node} $__interval ${cluster}"} > ${cluster}'
    scorer = summary("s", fake.on("/s", results()), source=asked, query=query, interval=600)
    agent = start_agent({"summaries": [scorer]}, "--cluster-name=c1")
    agent.wait_rounds("s")
    assert fake.requests("/api/v1/query_range")[0].arguments["query"] == query.replace(" ${cluster}\"", " c1\"")
    agent.wait_log("is replaced in string literals only")


def test_a_backtick_cannot_stand_between_backticks(prometheus, fake, start_agent):
    scorer = summary("s", fake.on("/s", results()), source=prometheus.url, query="up{a=`${cluster}`}", interval=600)
    agent = start_agent({"summaries": [scorer]}, "--cluster-name=a`b")
    error = agent.wait_rounds("s")["error"]
    assert (error["stage"], error["class"]) == ("source", "query")
    assert "sourceQuery" in error["text"] and "backticks" in error["text"]


def test_check_config_tells_that_a_name_is_needed(tmp_path):
    scorer = summary("s", "http://s/", source="http://p/", query='up{a="${cluster}"}')
    for config, told in (([scorer], True), ({"clusterName": "c1", "summaries": [scorer]}, False)):
        (tmp_path / "config").write_text(json.dumps(config))
        check = run(PROGRAM, "check-config", tmp_path / "config")
        assert check.returncode == 0, check.stderr
        assert ("warning: sourceQuery of s contains ${cluster}: set clusterName" in check.stdout) == told
