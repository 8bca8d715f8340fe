"""OTLP requests: built by hand in JSON, and sent to whoever receives them."""

import json
import time

from lib.client import call

CUMULATIVE, DELTA = 2, 1
NO_RECORDED_VALUE = 1


def nanoseconds(seconds):
    return str(int(seconds * 1000) * 1000000)


def value(v):
    """An AnyValue of a Python value."""
    if isinstance(v, bool):
        return {"boolValue": v}
    if isinstance(v, int):
        return {"intValue": str(v)}
    if isinstance(v, float):
        return {"doubleValue": v}
    if isinstance(v, list):
        return {"arrayValue": {"values": [value(x) for x in v]}}
    if isinstance(v, dict):
        return {"kvlistValue": {"values": attributes(v)}}
    return {"stringValue": v}


def attributes(pairs):
    return [{"key": k, "value": value(v)} for k, v in (pairs.items() if isinstance(pairs, dict) else pairs)]


def point(v=None, at=None, start=None, labels=(), **more):
    """A data point: of a number, or what `more` says."""
    number = {} if v is None else {"asInt": str(v)} if isinstance(v, int) else {"asDouble": v}
    begun = {} if start is None else {"startTimeUnixNano": nanoseconds(start)}
    when = nanoseconds(time.time() if at is None else at)
    return {"attributes": attributes(labels), "timeUnixNano": when, **begun, **number, **more}


def gauge(name, *points, unit=""):
    return {"name": name, "unit": unit, "gauge": {"dataPoints": points}}


def counter(name, *points, unit="", monotonic=True, temporality=CUMULATIVE):
    data = {"dataPoints": points, "isMonotonic": monotonic, "aggregationTemporality": temporality}
    return {"name": name, "unit": unit, "sum": data}


def histogram(name, *points, unit="", temporality=CUMULATIVE):
    return {"name": name, "unit": unit, "histogram": {"dataPoints": points, "aggregationTemporality": temporality}}


def exponential(name, *points, unit="", temporality=CUMULATIVE):
    data = {"dataPoints": points, "aggregationTemporality": temporality}
    return {"name": name, "unit": unit, "exponentialHistogram": data}


def summary(name, *points, unit=""):
    return {"name": name, "unit": unit, "summary": {"dataPoints": points}}


def request(*metrics, resource=()):
    """An ExportMetricsServiceRequest."""
    scope = {"scope": {"name": "test", "version": "1"}, "metrics": metrics}
    return {"resourceMetrics": [{"resource": {"attributes": attributes(resource)}, "scopeMetrics": [scope]}]}


def push(url, body, **headers):
    """Sends a request, in JSON unless it is bytes already."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return call("POST", url, data, **{"Content_Type": "application/json", **headers})
