"""Scores of AI workloads on parts of GPUs: how little power an application would draw there, and how it performs.

    uvicorn scorer:app --port 8000

CONFIG names a file as config.json beside this one: which pods are of which application, and its scores of performance.
A power score is near 100 where the power that an application's pods drew at most, together with what the cluster's nodes
are expected to draw, stays below THRESHOLD watts.
"""

import fnmatch
import json
import math
import os
import pathlib
from collections import defaultdict

import numpy
from fastapi import FastAPI
from pydantic import BaseModel

ALPHA = float(os.environ.get("ALPHA", "1"))  # steepness around the threshold
THRESHOLD = float(os.environ.get("THRESHOLD", "200"))  # watts of a cluster that score halfway between OFFSET and 100
OFFSET = float(os.environ.get("OFFSET", "10"))  # the lowest score, and that of an application without data
SOURCE_HOST = os.environ.get("SOURCE_HOST", "https://thanos-querier.openshift-monitoring.svc:9091")
LAGS, STEPS, ENOUGH = 10, 10, 20  # minutes: a forecast's input and length, and below how many there is none
DEVICES = {"3g.47gb": "3g.48gb", "2g": "2g.24gb", "1g": "1g.12gb"}  # by the beginning of a profile

settings = json.loads(pathlib.Path(os.environ.get("CONFIG", pathlib.Path(__file__).parent / "config.json")).read_text())
app = FastAPI()


class Series(BaseModel):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class ScoringRequest(BaseModel):
    data: list[Series]


def device_of(profile):
    return next((device for start, device in DEVICES.items() if profile.startswith(start)), "all")


def application_of(pod):
    for one in settings["applications"]:
        if any(fnmatch.fnmatchcase(pod, alias) for alias in one["pod_alias"]):
            return one["name"]
    return None


def expected(watts):
    """The mean of the next minutes, each a linear function of the ten before it."""
    if len(watts) < ENOUGH:
        return sum(watts) / len(watts)
    rows = numpy.lib.stride_tricks.sliding_window_view(numpy.array(watts), LAGS + 1)
    means = rows.mean(axis=0)
    weights = numpy.linalg.lstsq((rows - means)[:, :-1], (rows - means)[:, -1], rcond=None)[0]
    values = list(watts)
    for _ in range(STEPS):
        values.append(float(means[-1] + (numpy.array(values[-LAGS:]) - means[:-1]) @ weights))
    return sum(values[-STEPS:]) / STEPS


def filled(by_minute):
    """The values of all minutes between the first and the last; where one is missing, the one before."""
    last, values = 0.0, []
    for minute in range(min(by_minute), max(by_minute) + 1):
        last = by_minute.get(minute, last)
        values.append(last)
    return values


def power(data):
    """{(application, device): watts of its pods at most}, watts that all nodes are expected to draw"""
    nodes = defaultdict(lambda: defaultdict(float))
    pairs = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for series in data:
        labels = series.metric
        if not (pod := labels.get("exported_pod")):
            continue
        pair = (application_of(pod), device_of(labels.get("GPU_I_PROFILE", "")))
        minutes = {int(t // 60): float(v) for t, v in series.values if math.isfinite(float(v))}
        for minute, watts in minutes.items():
            nodes[labels.get("Hostname", "")][minute] += watts
            pairs[pair][minute][labels.get("Hostname", "")] += watts
    highest = {pair: max(sum(of.values()) / len(of) for of in minutes.values()) for pair, minutes in pairs.items() if minutes}
    return highest, sum(expected(filled(by_minute)) for by_minute in nodes.values() if by_minute)


def power_score(estimate):
    exponent = min(ALPHA * (estimate - THRESHOLD), 700)  # beyond that, exp() overflows
    return (100 - OFFSET) / (1 + math.exp(exponent)) + OFFSET


def config(name, description, query, kind):
    return {
        "name": f"ai-workload-{kind}-scorer",
        "description": description,
        "source": {
            "type": "Prometheus",
            "host": SOURCE_HOST,
            "path": "/api/v1/query_range",
            "params": {"query": query, "range": 3600, "step": 60},
        },
        "scoring": {"path": f"/{name}/scoring", "params": {"name": f"ai_workload_{kind}_score", "interval": 30}},
    }


@app.get("/healthz")
def healthz():
    return {"status": "ok"}


@app.get("/power/config")
def power_config():
    query = "sum(DCGM_FI_DEV_POWER_USAGE) by (GPU_I_ID, GPU_I_PROFILE, exported_pod, Hostname)"
    return config("power", "A power consumption score for AI workloads", query, "power")


@app.get("/performance/config")
def performance_config():
    query = "sum(irate(vllm:generation_tokens_total[1m])) by (pod)"
    return config("performance", "A performance score for AI workloads", query, "perf")


@app.post("/power/scoring")
def power_scoring(request: ScoringRequest):
    highest, base = power(request.data)
    results = []
    for one in settings["applications"]:
        for device in one["device_candidates"]:
            watts = highest.get((one["name"], device))
            score = OFFSET if watts is None else power_score(watts + base)
            results.append({"metric": {"app": one["name"], "device": device}, "score": score})
    return {"results": results}


@app.post("/power/reset")
def power_reset():
    """For those who call it: there is nothing to forget, as each call fits anew."""
    return {"status": "ok"}


@app.post("/performance/scoring")
def performance_scoring():
    return {"results": settings["static_score"]["performance"]}
