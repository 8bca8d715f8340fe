"""A cluster without Prometheus is scored: an application with OpenTelemetry's SDK sends its metrics to the agent, the model
forecast scores them, and the scores are in AddOnPlacementScores and in the hub's TSDB."""

import time

from lib.agent import running_agent, summary
from lib.kube import script
from lib.otlp import gauge, point, push, request
from lib.process import environment, free_port, run
from lib.scoring_api import running_scorer
from lib.tsdb import Tsdb
from lib.wait import LONG
from test_otlp_sdks_are_understood import SDK

RANGE, STEP = 600, 15
# As sdk/metrics.py names itself.
RESOURCE = {
    "service.name": "shop",
    "service.namespace": "web",
    "service.instance.id": "python-1",
    "k8s.node.name": "node-1",
    "k8s.pod.name": "shop-0",
}


def history(now):
    """What the application has sent in the minutes before."""
    times = range(now - RANGE + 60, now - 5, STEP)
    points = [point(v, t, labels={"cpu": cpu}) for t in times for cpu, v in enumerate((0.25, 1.5))]
    return request(gauge("load", *points), resource=RESOURCE)


def scorer_of(name, cpu, api):
    source = {"sourceType": "OpenTelemetry", "sourceQuery": f'load{{cpu="{cpu}"}}', "sourceRange": RANGE, "sourceStep": STEP}
    return summary(name, api.url + "/scoring", **source)


def test_from_sdk_to_scores(kube, tmp_path):
    packages, port = script("python-packages", "opentelemetry"), free_port()
    (tmp_path / "model").mkdir()
    with Tsdb("victoria-metrics", tmp_path) as hub, running_scorer(tmp_path / "model", model="forecast") as api:
        kube.configure(scorer_of("idle", 0, api), scorer_of("busy", 1, api))
        config = {"remoteWrite": [{"url": hub.url()}]}
        with running_agent(config, f"--otlp.listen-address=127.0.0.1:{port}", *kube.flags()) as agent:
            url = f"http://127.0.0.1:{port}/v1/metrics"
            assert push(url, history(int(time.time()))).json == {}
            sent = run("/usr/bin/python3", SDK / "metrics.py", url, env=environment(PYTHONPATH=packages))
            assert sent.returncode == 0, sent.stdout + sent.stderr
            assert agent.status()["otlp"]["rejected"] == {}
            for name, low, high in (("idle", 0, 1), ("busy", 99, 100)):
                [(labels, score)] = agent.wait_scores(name)
                assert (labels["node"], labels["pod"]) == ("node-1", "shop-0")
                assert low <= score <= high
            agent.wait_until(lambda: kube.items("busy") and kube.items("idle"), "both objects have scores", LONG)
            assert list(kube.items("busy").values()) == [99] and list(kube.items("idle").values()) == [0]

            def received():
                found = [dict(labels) for labels in hub.raw("dynamic_score")]
                return {(s["ds_score_name"], s["ds_pod"]) for s in found} == {("idle", "shop-0"), ("busy", "shop-0")}

            agent.wait_until(received, "the hub's TSDB has the scores", LONG)
