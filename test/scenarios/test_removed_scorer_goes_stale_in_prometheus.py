"""In Prometheus, the series of a removed scorer end immediately rather than after five minutes; so do series that a
scorer no longer returns."""

from lib.agent import summary
from lib.fake import results
from lib.prometheus import running_prometheus
from lib.wait import wait_until


def test_series_end_at_once(fake, start_agent):
    stays = summary("stays", fake.on("/stays", results({"node": "a"}, 1, {"node": "b"}, 2)))
    goes = summary("goes", fake.on("/goes", results({"node": "c"}, 3)))
    agent = start_agent({"summaries": [stays, goes]})
    with running_prometheus({"job_name": "agent", "static_configs": [{"targets": [agent.url[7:]]}]}) as prometheus:

        def nodes():
            return {s["ds_node"] for s, _ in prometheus.query("dynamic_score")}

        wait_until(lambda: nodes() == {"a", "b", "c"}, "Prometheus has all scores")
        agent.apply({"summaries": [stays]})
        wait_until(lambda: nodes() == {"a", "b"}, "the removed scorer's series are stale")
        fake.on("/stays", results({"node": "b"}, 2))
        wait_until(lambda: nodes() == {"b"}, "the series that was left out is stale")
        assert prometheus.query("dynamic_scoring_series") and not prometheus.query('{score_name="goes"}')
