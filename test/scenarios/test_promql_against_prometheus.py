"""Queries of the source OpenTelemetry have the results of Prometheus 3 on the same samples."""

import json
import math
import random
import subprocess
import urllib.parse

import pytest

from lib.client import call
from lib.kube import go_program
from lib.process import BUILD, environment, steady_addresses
from lib.prometheus import running_prometheus
from lib.wait import DEADLINE

REFUSALS = [
    "several series have the same labels without their metric's name",
    "several series on the left side of an operator have the same labels",
    "several series on the right side of an operator have the same labels",
]
BEGIN = 1_700_000_000_000  # ms
END = BEGIN + 3600_000
CASES = 700
# Both sides compensate sums for rounding errors, but they add up series in another order; and powers are those of Go's and
# of C's libraries.
TOLERANCE = 1e-12
FUNCTIONS = ["rate", "increase", "delta", "irate", "min_over_time", "max_over_time", "last_over_time", "count_over_time",
             "sum_over_time", "avg_over_time"]


def times(rng):
    """A series' timestamps: it may begin late, end early, miss some, be irregular or late."""
    step, kind = rng.choice([5_000, 15_000, 15_000, 30_000, 60_000]), rng.randrange(5)
    at = BEGIN + rng.randrange(step) + (rng.randrange(1800_000) if rng.random() < 0.3 else 0)
    last = END - (rng.randrange(1800_000) if rng.random() < 0.3 else 0)
    while at <= last:
        yield at + (rng.randrange(step // 3) if kind == 1 else 0)
        at += rng.randrange(1, 4 * step) + 4 * step // 3 if kind == 2 else step
        if kind == 3 and rng.random() < 0.03:
            at += rng.randrange(900_000) // step * step


def values(rng):
    """An endless series: whole or fractional counters with resets, and gauges."""
    kind, value = rng.randrange(7), rng.choice([0, 5, 1e6, 1e15]) * rng.random()
    while True:
        if kind == 0:
            value = 0 if rng.random() < 0.02 else float(int(value) + rng.randrange(50))
        elif kind == 1:
            value = 0 if rng.random() < 0.02 else value + rng.random() * 3
        elif kind == 2:
            value = rng.gauss(0, 1000)
        elif kind == 3:
            value = float(rng.randrange(-5, 5))
        elif kind == 4:
            value = rng.choice([math.nan, math.inf, -math.inf, 1e-7, 1e22, -0.0, 3.5]) if rng.random() < 0.2 else value + 1
        elif kind == 5:
            value = rng.choice([1e10, 1.0, -1e10, 1e-3])
        yield value


def made_series(rng, number):
    labels = {
        "__name__": rng.choice(["cpu_seconds_total", "memory_bytes", "my.name"]),
        "node": f"n{number % 4}",
        "pod": f"pod-{number}",
    }
    if rng.random() < 0.5:
        labels["namespace"] = rng.choice(["shop", "käse", 'a"b\\c', "x\ny"])
    if rng.random() < 0.3:
        labels["Zone"] = rng.choice("ab")
    samples = []
    for at, value in zip(times(rng), values(rng)):
        if not samples or at > samples[-1][0]:
            samples.append([at, "stale" if rng.random() < 0.02 else repr(value)])
    return {"labels": labels, "samples": samples}


def twins():
    """Two series that differ in their name only, for a short time."""
    for name in ("cpu_seconds_total", "my.name"):
        samples = [[END - 60_000 + i * 5_000, str(i)] for i in range(12)]
        yield {"labels": {"__name__": name, "pod": "twin"}, "samples": samples}


def selector(rng):
    matchers = [
        *rng.sample(
            ['node="n1"', 'node!="n2"', 'node=~"n[01]|n3"', 'node!~".*2"', 'namespace="käse"', 'namespace=""',
             'namespace!=""', r'namespace=~"a.b\\\\c|x\ny"', 'Zone=~"a?"', 'pod=~"pod-[0-9]*[02468]"', 'pod!~"pod-1."'],
            rng.randrange(3),
        )
    ]
    name = rng.choice(["cpu_seconds_total", "memory_bytes", '"my.name"', '__name__=~"cpu.*|my.name"'])
    if name[0] in '"_':
        return "{" + ",".join([name, *matchers]) + "}"
    return name + ("{" + ",".join(matchers) + "}" if matchers else "")


def vector(rng):
    """(query, whether all digits of its result must be the same)."""
    text, exact = selector(rng), True
    if rng.random() < 0.85:
        function = rng.choice(FUNCTIONS)
        text = f"{function}({text}[{rng.choice(['7s', '20s', '1m', '5m', '1m500ms', '17m', '1h', '2h', '90'])}])"
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        operation = rng.choice(["sum", "avg", "min", "max", "count"])
        labels = ", ".join(rng.sample(["node", "namespace", "pod", "Zone", "__name__", "none"], rng.randrange(4)))
        grouping = rng.choice(["", f"by ({labels})", f"without ({labels})"])
        text = f"{operation} {grouping} ({text})" if rng.random() < 0.5 else f"{operation}({text}) {grouping}"
        exact = exact and operation not in ("sum", "avg")
    return text, exact


def number(rng):
    return rng.choice(["0", "1", "2", "100", "0.5", "-3", "1e-3", "(2 + 3)", "-(1 - 2 ^ 3)", "Inf", "NaN"])


def query(rng):
    """Now and then with arithmetic: of vectors and numbers, of a vector with itself or another one, and between sums. Where
    rounding differs, with operators only that do not make more of a difference."""
    text, exact = vector(rng)
    kind, operators = rng.randrange(8), "+-*/%^" if exact else "*/"
    operator = rng.choice(operators)
    if kind == 0:
        text = f"{text} {operator} {number(rng)}" if rng.random() < 0.5 else f"{number(rng)} {operator} {text}"
    elif kind == 1:
        other, also = (text, exact) if rng.random() < 0.5 else vector(rng)
        operator = operator if also else rng.choice("*/")
        text, exact = f"{text} {operator} {other}", exact and also
    elif kind == 2:
        forms = ["-{}", "-({} * 2)"] + exact * ["100 * (1 - {})", "-{} ^ 2", "2 ^ -{} + 1", "sum by (node) ({} * 2)", "avg(-{})"]
        form = rng.choice(forms)
        text, exact = form.format(text), exact and form in forms[:3]
    elif kind == 3:
        labels = rng.choice(["", "by (node)", "by (node, namespace)", "without (pod)"])
        parts = [f"sum {labels} ({vector(rng)[0]})" for _ in range(2)]
        text, exact = f"{parts[0]} {rng.choice('*/')} {parts[1]}", False
    return text, exact and "^" not in text


def ranges(rng):
    step = rng.choice([1_000, 7_000, 15_000, 60_000, 60_000, 300_000])
    start = BEGIN + rng.choice([-400_000, 0, 1, 7_500, rng.randrange(3600_000)])
    return {"start": start, "end": start + step * rng.randrange(1, 70) + rng.randrange(step), "step": step}


class Ours:
    """test/promql_range.c: the queries of exporter/otlp over its store."""

    def __init__(self):
        self.popen = subprocess.Popen(
            [*steady_addresses(), BUILD / "test/promql-range"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment(),
        )

    def tell(self, order):
        self.popen.stdin.write(json.dumps(order) + "\n")

    def ask(self, order):
        self.tell(order)
        self.popen.stdin.flush()
        return json.loads(self.popen.stdout.readline())

    def end(self):
        self.popen.stdin.close()
        assert self.popen.wait(DEADLINE) == 0


def asked(prometheus, text, times_of):
    """The result, or None if Prometheus refuses the query."""
    form = {"query": text, **{key: times_of[key] / 1000 for key in ("start", "end", "step")}}
    answer = call("GET", f"{prometheus.url}/api/v1/query_range?" + urllib.parse.urlencode(form)).json
    return answer["data"]["result"] if answer["status"] == "success" else None


def by_labels(result):
    return {tuple(sorted(one["metric"].items())): one["values"] for one in result}


def is_same(ours, theirs, exact):
    if ours == theirs:
        return True
    a, b = float(ours), float(theirs)
    # Of 0 and -0, min and max take the one of the series that comes first.
    return a == b == 0 or (not exact and math.isclose(a, b, rel_tol=TOLERANCE))


def check(text, exact, ours, theirs):
    ours, theirs = by_labels(ours), by_labels(theirs)
    assert ours.keys() == theirs.keys(), text
    for labels, points in ours.items():
        wanted = theirs[labels]
        assert [t for t, _ in points] == [t for t, _ in wanted], (text, labels)
        for (t, value), (_, other) in zip(points, wanted):
            assert is_same(value, other, exact), (text, labels, t, value, other)


@pytest.fixture(name="sides")
def running_sides():
    with running_prometheus(receiver=True, program=go_program("prometheus3")) as prometheus:
        ours = Ours()
        yield ours, prometheus
        ours.end()


def test_hundreds_of_queries(sides):
    ours, prometheus = sides
    rng = random.Random(13)
    ours.tell({"now": END})
    for number in range(60):
        ours.tell(made_series(rng, number))
    for one in twins():
        ours.tell(one)
    assert ours.ask({"push": f"{prometheus.url}/api/v1/write"}) == {}
    with_series = refused = 0
    for _ in range(CASES):
        text, exact = query(rng)
        at = ranges(rng)
        answer, theirs = ours.ask({"query": text, **at}), asked(prometheus, text, at)
        if theirs is None:
            assert answer["error"] in REFUSALS, (text, answer)
            refused += 1
            continue
        assert "error" not in answer, (text, answer)
        check((text, at), exact, answer["result"], theirs)
        with_series += bool(theirs)
    # The cases mean something.
    assert with_series > CASES / 2
    assert 0 < refused < CASES / 10
