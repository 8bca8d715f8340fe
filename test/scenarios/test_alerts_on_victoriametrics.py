"""VictoriaMetrics answers the alerts' expressions as Prometheus does: with the series of the unit tests, each alert is there when it
should fire and gone when it should not."""

import re
import time
import urllib.parse

import pytest
import yaml

from lib.client import call
from lib.process import ROOT
from lib.rules import all_groups
from lib.tsdb import Tsdb

DAY, MINUTE = 86400, 60
STEP = re.compile(r"(?P<value>[-+]?[\d.e]+?|_|stale)(?P<by>[-+][\d.e]+)?(?:x(?P<times>\d+))?")
TESTS = ROOT / "test" / "unit" / "alerts"


def seconds(text):
    return sum(int(n) * {"h": 3600, "m": 60}[unit] for n, unit in re.findall(r"(\d+)([hm])", text))


def samples(values):
    """The values of promtool's notation, one a minute; None where there is none."""
    for word in values.split():
        m = STEP.fullmatch(word)
        assert m, word
        if m["value"] in ("_", "stale"):
            yield from [None] * int(m["times"] or 1)
        else:
            yield from (float(m["value"]) + i * float(m["by"] or 0) for i in range(int(m["times"] or 0) + 1))


def cases():
    """(test, when it begins): each of its own day, so that none sees the series of another."""
    files = sorted(TESTS.glob("*.yaml"))
    tests = [t for f in files for t in yaml.load(f.read_text(), yaml.BaseLoader)["tests"]]  # 0x20 is no number here
    tests = [t for t in tests if any("exp_alerts" in c for c in t.get("alert_rule_test", []))]
    first = (int(time.time()) // DAY - len(tests) - 1) * DAY
    return [(test, first + i * DAY) for i, test in enumerate(tests)]


def lines(test, start):
    """Its series in the text format. Timestamps of the tests count from 0."""
    for series in test["input_series"]:
        shift = start if "_timestamp_seconds" in series["series"] else 0
        for i, value in enumerate(samples(series["values"])):
            if value is not None:
                yield f"{series['series']} {value + shift!r} {(start + i * MINUTE) * 1000}\n"


@pytest.fixture(scope="module", name="tsdb")
def filled(tmp_path_factory):
    with Tsdb("victoria-metrics", tmp_path_factory.mktemp("tsdb")) as hub:
        text = "".join(line for case in cases() for line in lines(*case))
        assert call("POST", hub.url("/api/v1/import/prometheus"), text).status == 204
        assert call("GET", hub.url("/internal/force_flush")).status == 200
        yield hub


def labels_of(tsdb, expr, at):
    """[labels] of the result, sorted."""
    arguments = urllib.parse.urlencode({"query": expr, "time": at, "nocache": 1})
    answer = call("GET", tsdb.url(f"/api/v1/query?{arguments}")).json
    assert answer["status"] == "success", answer
    return sorted(sorted(s["metric"].items()) for s in answer["data"]["result"])


def test_each_alert(tsdb):
    rules = {r["alert"]: r for _, group in all_groups() for r in group["rules"] if "alert" in r}
    seen, wrong = set(), []
    for test, start in cases():
        checks = sorted(test["alert_rule_test"], key=lambda c: seconds(c["eval_time"]))
        for check in checks:
            expected = [{**a["exp_labels"], "severity": None} for a in check.get("exp_alerts", ())]
            if not expected and check is not checks[-1]:
                continue  # it may be pending
            wanted = sorted(sorted((k, v) for k, v in labels.items() if v) for labels in expected)
            found = labels_of(tsdb, rules[check["alertname"]]["expr"], start + seconds(check["eval_time"]))
            seen.add(check["alertname"])
            if found != wanted:
                wrong.append(f"{test['name']} at {check['eval_time']}: {found}, not {wanted}")
    assert not wrong, "\n".join(wrong)
    assert seen == set(rules)
