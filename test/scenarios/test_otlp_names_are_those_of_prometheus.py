"""Names, labels and values of what OTLP brings are those of Prometheus 3."""

import json
import math
import time

import pytest

from lib.kube import go_program
from lib.otlp import (
    NO_RECORDED_VALUE,
    counter,
    gauge,
    histogram,
    point,
    push,
    request,
    summary,
)
from lib.process import BUILD, run
from lib.prometheus import running_prometheus

NOW = START = 0

ODD_LABELS = {
    "first.empty": "",
    "first_empty": "x",
    "last.empty": "x",
    "last_empty": "",
    "http.method": "GET",
    "http_method": "POST",
    "http-method": "",
    "1st": "one",
    "_private": "x",
    "__double": "y",
    "ünï": "code",
    "empty": "",
    "int": -7,
    "yes": True,
    "no": False,
    "double": 1e21,
    "small": 1.5e-7,
    "third": 1 / 3,
    "million": 1e6,
    "list": ["a", 1, 2.5, "", [True, {}]],
    "map": {"b": 1, "a": {"z": "<&>\u2028\u2029\u2030\t", "y": []}},
    "quotes": 'a"b\\c\n\t\u2028',
}

UNITS = ["", "1", "s", "ms", "By", "By/s", "{requests}", "1/s", "%", "Cel", "m/h", "foo", "KiBy", "s/{x}", " us "]


@pytest.fixture(scope="module", autouse=True)
def now():
    """Not the time of the collection: another worker's tests may take longer than samples are accepted."""
    global NOW, START
    NOW = int(time.time()) - 60
    START = NOW - 100


def numbers():
    for i, unit in enumerate(UNITS):
        yield gauge(f"unit.gauge{i}", point(i, NOW), unit=unit)
        yield counter(f"unit.counter{i}", point(i, NOW, START), unit=unit)
        yield counter(f"unit.updown{i}", point(i, NOW, START), unit=unit, monotonic=False)
        yield histogram(f"unit.histogram{i}", point(None, NOW, START, count="0", bucketCounts=[]), unit=unit)
    yield gauge("odd.labels", point(1.5, NOW, labels=ODD_LABELS))
    yield gauge("labels.in.another.order", point(1, NOW, labels=[("b.c", "1"), ("b-c", "2"), ("b_c", "0")]))
    yield gauge("twice", point(1, NOW, labels=[("k", "2"), ("k", "1")]))
    yield gauge("own.job", point(1, NOW, labels={"job": "mine", "instance": "mine"}))
    yield gauge("values", *(point(v, NOW - 10 + i) for i, v in enumerate([0.1, -0.0, 1e300, 5e-324, 2**62, -3])))
    yield gauge("ends", point(1, NOW - 5), point(None, NOW, flags=NO_RECORDED_VALUE))
    yield gauge("0digit", point(1, NOW))
    yield gauge("a:b", point(1, NOW))
    yield gauge("gauge.sum.of_total.total", point(1, NOW))
    yield counter("total.of.total", point(2, NOW - 1, START), point(7, NOW, START), unit="By")


def distributions():
    bounds = [-5, 0, 0.005, 0.1, 1, 2.5, 1000, 1e6, 1e22, 1e-7]
    yield histogram(
        "latency",
        point(
            None,
            NOW,
            START,
            {"route": "/"},
            count="21",
            sum=12.5,
            bucketCounts=["1", "2", "3", "4", "0", "5", "0", "0", "1", "3", "2"],
            explicitBounds=sorted(bounds),
        ),
        unit="s",
    )
    yield histogram("no.sum", point(None, NOW, START, count=3, bucketCounts=[1, 2], explicitBounds=[7]))
    yield histogram("no.buckets", point(None, NOW, START, count=3, sum=1, bucketCounts=[3], explicitBounds=[]))
    yield summary(
        "quantiles",
        point(
            None,
            NOW,
            START,
            count="5",
            sum=9,
            quantileValues=[{"quantile": q, "value": q * 10} for q in (0, 0.25, 0.5, 0.999, 1)],
        ),
    )


RESOURCES = [
    {"service.name": "shop", "service.namespace": "web", "service.instance.id": "i-1", "host.name": "h"},
    {"service.name": "alone"},
    {"service.name": "with-more", "deployment.environment": "prod", "os.type": "linux", "n": 3},
    {"service.instance.id": "only-instance", "cloud.region": "eu"},
    {"host.name": "without-service"},
    {"service.namespace": "only-namespace", "a": "b"},
    {},
]


def body_of(resources):
    """All in one request: each metric once, and a few with each resource."""
    parts = request(*numbers(), *distributions(), resource=resources[0])
    for r in resources[1:]:
        parts["resourceMetrics"] += request(gauge("load", point(1, NOW)), resource=r)["resourceMetrics"]
    return parts


def number_of(text):
    v = float(text)
    return "NaN" if math.isnan(v) else repr(v)


def series_of(samples):
    """{labels: [(ms, value)]}"""
    return {
        tuple(sorted(labels.items())): [(round(t * 1000), number_of(v)) for t, v in values] for labels, values in samples
    }


def parse_dump(text):
    """What otlp-dump prints, without stale markers, which Prometheus does not show either."""
    for line in text.split("\n")[:-1]:
        s = json.loads(line)
        yield s["metric"], [(t / 1000, v) for t, v in s["values"] if v != "stale"]


def ours(folder, body, *flags):
    file = folder / "request.json"
    file.write_text(json.dumps(body))
    done = run(BUILD / "otlp-dump", *flags, file)
    assert done.returncode == 0, done.stderr
    return done.stderr, series_of(parse_dump(done.stdout))


@pytest.fixture(scope="module")
def prometheus3():
    with running_prometheus(
        program=go_program("prometheus3"),
        flags=["--web.enable-otlp-receiver"],
        otlp={"promote_resource_attributes": ["os.type", "n", "deployment.environment"]},
    ) as p:
        yield p


def found(prometheus3):
    return series_of(prometheus3.samples('{__name__=~".+"}[1h]'))


def of_the_end(labels, values):
    """Of target_info only the sample at the time of a request's last point: ours has no others. Prometheus has one at the first, too,
    and more between them if these are far apart."""
    return values[-1:] if dict(labels)["__name__"] == "target_info" else values


def test_the_same_series(prometheus3, tmp_path):
    body = body_of(RESOURCES)
    answer = push(f"{prometheus3.url}/api/v1/otlp/v1/metrics", body)
    assert answer.status == 200, answer.text
    theirs = {labels: of_the_end(labels, values) for labels, values in found(prometheus3).items()}
    response, mine = ours(tmp_path, body, "--promote=os.type,n,deployment.environment")
    assert response == ""
    assert len(theirs) > 80
    assert sorted(set(theirs) - set(mine)) == []
    assert sorted(set(mine) - set(theirs)) == []
    assert mine == theirs
