"""Flags take precedence over the file, at startup and after a reload."""

from lib.agent import summary
from lib.fake import results


def test_cluster_name(fake, start_agent):
    scorer = summary("s", fake.on("/s", results({}, 1)))
    agent = start_agent({"clusterName": "of-the-file", "summaries": [scorer]}, "--cluster-name=of-the-flag")

    def names():
        return {labels["ds_cluster"] for labels, _ in agent.metrics().all("dynamic_score")}

    agent.wait_scores("s")
    assert names() == {"of-the-flag"}
    agent.apply({"clusterName": "another", "summaries": [scorer]})
    agent.wait_rounds("s", 2)
    assert names() == {"of-the-flag"}


def test_the_rest(fake, start_agent, tmp_path):
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "k").write_text("token")
    auth = {"scoringEndpointAuthName": "n", "scoringEndpointAuthKey": "k"}
    config = {"summaries": [summary("s", fake.on("/s", results({}, 1)), **auth)]}
    config |= {"secretsDir": "/no/such", "logLevel": "error", "logFormat": "logfmt", "listenAddresses": "192.0.2.1:1"}
    agent = start_agent(config, f"--secrets.dir={tmp_path}", "--log.level=info", "--log.format=json")
    agent.wait_scores("s")
    assert fake.requests("/s")[0].token == "Bearer token"
    agent.wait_log('"first round succeeded"')
    assert all(line.startswith("{") for line in agent.log().splitlines())
