"""The example charts/samples/ai-workload-scorer end to end: what DCGM's exporter measures on GPUs, from a Prometheus, becomes
scores of applications on devices."""

import contextlib
import json
import math
import time

import pytest

from lib.agent import summary
from lib.client import call
from lib.kube import script
from lib.process import ROOT, Process, environment, free_port
from lib.prometheus import running_prometheus
from lib.wait import LONG, wait_until

SAMPLE = ROOT / "charts/samples/ai-workload-scorer"
QUERY = "sum(DCGM_FI_DEV_POWER_USAGE) by (GPU_I_ID, GPU_I_PROFILE, exported_pod, Hostname)"
APPLICATIONS = [
    {"name": "chat", "device_candidates": ["all", "3g.48gb", "2g.24gb"], "pod_alias": ["vllm-chat-*"]},
    {"name": "ocr", "device_candidates": ["all", "3g.48gb"], "pod_alias": ["vllm-*"]},
]
PERFORMANCE = [{"metric": {"app": "chat", "device": "all"}, "score": 80}]


@contextlib.contextmanager
def serving(folder, **env):
    packages = f"{script('python-packages', 'fastapi')}:{script('python-packages', 'sklearn')}"
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = ["/usr/bin/python3", "-B", "-m", "uvicorn", "--port", port, "scorer:app"]
    scorer = Process("AI workload scorer", command, folder / "scorer.log", environment(PYTHONPATH=f"{SAMPLE}:{packages}", **env))
    try:
        wait_until(lambda: call("GET", f"{url}/healthz").status == 200, "it answers", LONG)
        yield url
    finally:
        scorer.kill()


@pytest.fixture(name="scorer", scope="module")
def of_our_applications(tmp_path_factory):
    folder = tmp_path_factory.mktemp("power")
    config = {"applications": APPLICATIONS, "static_score": {"performance": PERFORMANCE}}
    (folder / "config.json").write_text(json.dumps(config))
    with serving(folder, CONFIG=str(folder / "config.json")) as url:
        yield url


def gpu(host, pod, watts, profile=None, number=1):
    """The samples of a GPU, or of an instance of it, in the last hour."""
    now = int(time.time())
    labels = {"Hostname": host, "exported_pod": pod, "gpu": "0", "GPU_I_ID": number, "GPU_I_PROFILE": profile}
    text = ",".join(f'{name}="{value}"' for name, value in labels.items() if value)
    return {f"DCGM_FI_DEV_POWER_USAGE{{{text}}}": [(t, watts) for t in range(now - 3900, now + 1, 15)]}


def scores_of(url, data):
    results = call("POST", url + "/power/scoring", json.dumps({"data": data}).encode(), Content_Type="application/json").json
    return {(r["metric"]["app"], r["metric"]["device"]): r["score"] for r in results["results"]}


def test_configurations(scorer):
    power = call("GET", scorer + "/power/config").json
    assert power["source"]["params"] == {"query": QUERY, "range": 3600, "step": 60}
    assert power["scoring"] == {"path": "/power/scoring", "params": {"name": "ai_workload_power_score", "interval": 30}}
    performance = call("GET", scorer + "/performance/config").json
    assert performance["source"]["params"]["query"] == "sum(irate(vllm:generation_tokens_total[1m])) by (pod)"
    assert performance["scoring"]["params"]["name"] == "ai_workload_perf_score"
    assert call("POST", scorer + "/power/reset").json == {"status": "ok"}
    assert call("POST", scorer + "/performance/scoring", b'{"data":[]}').json == {"results": PERFORMANCE}


def test_power_of_a_prometheus_is_scored(scorer, start_agent):
    series = {
        **gpu("n1", "vllm-chat-1", 14, "3g.47gb", 1),
        **gpu("n1", "vllm-chat-2", 10, "3g.47gb", 2),
        **gpu("n1", "vllm-ocr-1", 15, "2g.24gb", 3),  # on no candidate of its application
        **gpu("n2", "vllm-ocr-1", 136),
        **gpu("n2", "", 1000, number=2),  # idle: without a pod
    }
    with running_prometheus(samples=series) as prometheus:
        query = {"query": QUERY, "sourceRange": 3600, "sourceStep": 60, "interval": 600}
        agent = start_agent({"summaries": [summary("power", scorer + "/power/scoring", prometheus.url, **query)]})
        scores = {(labels["app"], labels["device"]): score for labels, score in agent.wait_scores("power")}
    # The nodes are expected to draw 39 + 136 W. chat draws 24 W: a watt below the threshold of 200 W. ocr is far above it.
    assert scores.pop(("chat", "3g.48gb")) == pytest.approx(10 + 90 / (1 + math.exp(-1)))
    assert scores.pop(("ocr", "all")) == pytest.approx(10, abs=1e-6)
    assert scores == {("chat", "all"): 10, ("chat", "2g.24gb"): 10, ("ocr", "3g.48gb"): 10}


def test_with_its_own_settings(tmp_path):
    with serving(tmp_path, THRESHOLD="61", ALPHA="2", OFFSET="20") as url:
        watts = [[60 * i, "30"] for i in range(60) if i % 7] + [[3600, "NaN"]]  # with gaps
        found = scores_of(url, [{"metric": {"Hostname": "n1", "exported_pod": "app01-x"}, "values": watts}])
        # 30 W of the pods and 30 W of the node, a watt below the threshold.
        assert found[("app01", "all")] == pytest.approx(20 + 80 / (1 + math.exp(-2)))
        assert found[("app02", "2g.24gb")] == 20
        # A ramp goes on: 100 minutes of a watt more each, then 101 to 110, of which the mean is 105.5.
        watts = [[60 * i, str(i / 10)] for i in range(101)]
        found = scores_of(url, [{"metric": {"Hostname": "n1", "exported_pod": "x-app02-y"}, "values": watts}])
        assert found[("app02", "all")] == pytest.approx(20 + 80 / (1 + math.exp(2 * (10 + 10.55 - 61))))
        assert scores_of(url, []) == dict.fromkeys(found, 20)
