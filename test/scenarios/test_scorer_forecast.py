"""The model forecast end to end: an agent asks a Prometheus for the CPU load of pods, and their forecasts become scores."""

import base64
import json
import time

import pytest

from lib.agent import summary
from lib.client import call
from lib.prometheus import running_prometheus
from lib.scoring_api import running_scorer

STEP, RANGE = 30, 3600
CONFIG = {
    "name": "simple-prediction-scorer",
    "description": "A simple prediction score for time series data",
    "source": {
        "type": "Prometheus",
        "host": "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090",
        "path": "/api/v1/query_range",
        "params": {
            "query": 'sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))',
            "range": RANGE,
            "step": STEP,
        },
    },
    "scoring": {"path": "/scoring", "params": {"name": "simple_prediction_score", "interval": 30}},
}


def load(pod, now, value, until=0):
    """Samples of a load, every 15 s up to now: {labels: [(time, value)]}; `until` seconds before it, if it ended."""
    labels = f'cpu{{node="n1",namespace="team",pod="{pod}"}}'
    return {labels: [(t, value(t - now)) for t in range(now - RANGE - 300, now - until + 1, 15)]}


@pytest.fixture(name="scorer", scope="module")
def running_forecast(tmp_path_factory):
    with running_scorer(tmp_path_factory.mktemp("forecast"), model="forecast") as scorer:
        yield scorer


def test_config_and_reset(scorer):
    assert call("GET", scorer.url + "/config").json == CONFIG
    assert call("POST", scorer.url + "/reset").json == {"status": "ok"}


def test_loads_of_a_prometheus_are_scored(scorer, start_agent):
    now = int(time.time())
    series = {
        **load("idle", now, lambda _: 0.01),
        **load("rising", now, lambda t: 0.95 + t / RANGE / 2),
        # On for 1 of 4 minutes, and due again in 2: it repeats itself within the 10 values that a forecast follows from.
        **load("batch", now, lambda t: 2 if (t - 120) % 240 < 60 else 0.1),
        **load("gone", now, lambda _: 3, until=1800),
    }
    with running_prometheus(samples=series) as prometheus:
        query = {"query": "cpu", "sourceRange": RANGE, "sourceStep": STEP, "interval": 600}
        agent = start_agent({"summaries": [summary("cpu", scorer.url + "/scoring", prometheus.url, **query)]})
        scores = {labels["pod"]: (labels, score) for labels, score in agent.wait_scores("cpu")}
    assert set(scores) == {"idle", "rising", "batch"}
    assert scores["idle"][1] < 1 and scores["batch"][1] > 99
    # The forecast for 5 minutes ahead: 0.95 + 300 / 3600 / 2 = 0.992.
    assert 30 < scores["rising"][1] < 60
    meta = json.loads(base64.b64decode(scores["idle"][0]["meta"]))
    assert meta == {"predictor_label": "n1_team_idle", "alpha": 20.0, "threshold": 1.0}
    metrics = call("GET", scorer.url + "/metrics").text
    assert 'dynamic_scoring_scorer_left_out_total{path="/scoring",reason="ended"} 1\n' in metrics
    assert 'dynamic_scoring_scorer_backtest_error{path="/scoring"}' in metrics


def test_the_environment_of_users(tmp_path):
    users = {"ALPHA": "2", "THRESHOLD": "5", "MIN_LENGTH": "30", "MAX_RMSE_THRESHOLD": "0.1", "MODEL_DIR": "/models"}
    values = [[STEP * i, str(5 if i < 55 else 6)] for i in range(60)]
    data = [{"metric": {"pod": "a"}, "values": values}, {"metric": {"pod": "b"}, "values": values[:29]}]
    with running_scorer(tmp_path, model="forecast", env=users) as scorer:
        [result] = call("POST", scorer.url + "/scoring", json.dumps({"data": data}).encode()).json["results"]
        assert result["metric"]["pod"] == "a" and result["unreliable"] is True and result["backtest"] > 0.1
        assert result["score"] == pytest.approx(100 / (1 + 2.718281828459045 ** (-2 * (result["largest"] - 5))))
        meta = json.loads(base64.b64decode(result["metric"]["meta"]))
        assert (meta["alpha"], meta["threshold"]) == (2.0, 5.0)
