"""A scoring API: how much each pod's CPU usage varies. Start from this file.

    uvicorn scorer:app --port 8000
"""

import math
import os
import secrets
import statistics

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel

TOKEN = os.environ.get("TOKEN", "")  # if set, /scoring asks for it
QUERY = 'sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))'
CONFIG = {
    "name": "python-scorer",
    "description": "How much the CPU usage of each pod varies: 0 is steady",
    "source": {
        "type": "Prometheus",
        "host": "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090",
        "path": "/api/v1/query_range",
        "params": {"query": QUERY, "range": 900, "step": 60},
    },
    "scoring": {"path": "/scoring", "params": {"name": "python_cpu_variation", "interval": 60}},
}
app = FastAPI()


class Series(BaseModel):
    metric: dict[str, str]
    values: list[tuple[float, str]]  # Prometheus writes values as strings: "NaN" and "+Inf" are some of them


class ScoringRequest(BaseModel):
    data: list[Series]


def check_token(authorization: str = Header("")):
    if TOKEN and not secrets.compare_digest(authorization.encode(), f"Bearer {TOKEN}".encode()):
        raise HTTPException(401, "wrong token")


def score(values: list[float]) -> float | None:
    """The coefficient of variation in percent; None: this series has no score, rather than a wrong one."""
    values = [v for v in values if math.isfinite(v)]
    if len(values) < 2 or not (mean := statistics.fmean(values)):
        return None
    return min(100 * statistics.pstdev(values) / abs(mean), 100)


@app.get("/healthz")
def healthz():
    return {"status": "ok"}


@app.get("/config")
def config():
    return CONFIG


@app.post("/scoring", dependencies=[Depends(check_token)])
def scoring(request: ScoringRequest):
    scores = [(s.metric, score([float(v) for _, v in s.values])) for s in request.data]
    return {"results": [{"metric": metric, "score": value} for metric, value in scores if value is not None]}
