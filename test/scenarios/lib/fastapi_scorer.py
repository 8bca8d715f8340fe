"""A scoring API as users write it with FastAPI: the mean of each series. With FIRST_DRAFT set, as they write it at first.

    uvicorn lib.fastapi_scorer:app
"""

import math
import os

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

app = FastAPI()
QUERY = 'sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))'
TOKEN = os.environ.get("TOKEN")


class Series(BaseModel):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class ScoringRequest(BaseModel):
    data: list[Series]


@app.get("/healthz")
def healthz():
    return {"status": "ok"}


@app.get("/config")
def config():
    return {
        "name": "sample-scorer",
        "description": "A sample score for time series data",
        "source": {
            "type": "prometheus",
            "host": "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090",
            "path": "/api/v1/query_range",
            "params": {"query": QUERY, "range": 900, "step": 60},
        },
        "scoring": {"path": "/scoring", "params": {"name": "sample_my_score", "interval": 120}},
    }


def draft(values):
    return sum(values) / len(values)


def mean(values):
    numbers = [v for v in values if math.isfinite(v)]
    return sum(numbers) / len(numbers) if numbers else None


@app.post("/scoring")
def scoring(body: ScoringRequest, request: Request):
    if TOKEN and request.headers.get("authorization") != f"Bearer {TOKEN}":
        raise HTTPException(401, "wrong token")
    score = draft if os.environ.get("FIRST_DRAFT") else mean
    results = [
        {"metric": {**s.metric, "meta": "mean"}, "score": score([float(v) for _, v in s.values])} for s in body.data
    ]
    return {"results": [r for r in results if r["score"] is not None]}
