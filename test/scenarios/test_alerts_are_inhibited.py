"""The example for Alertmanager, alerts/alertmanager.yaml, inhibits each alert that follows from another one, on the same
cluster and for the same scorer only."""

import itertools
import json
import re

import pytest
import yaml
from lib.alertmanager import running_alertmanager
from lib.client import call
from lib.process import ROOT
from lib.wait import wait_until

EXAMPLE = yaml.safe_load((ROOT / "alerts/alertmanager.yaml").read_text())
LABELS = ("cluster", "namespace", "score_name", "scorer", "remote_name")


def named(matchers):
    return re.fullmatch(r'alertname =~? "(.*)"', matchers[0])[1].split("|")


def alert(name, **other):
    return {"labels": {"alertname": name, **dict.fromkeys(LABELS, "one"), **other}}


def inhibited(alertmanager):
    """{(alert's name, its cluster, scorer, ...)}"""
    found = call("GET", alertmanager.url + "/api/v2/alerts").json
    return {tuple(sorted(a["labels"].items())) for a in found if a["status"]["inhibitedBy"]}


def key(one):
    return tuple(sorted(one["labels"].items()))


@pytest.mark.parametrize("rule", EXAMPLE["inhibit_rules"], ids=lambda rule: named(rule["source_matchers"])[0])
def test_rule(fake, rule):
    targets = named(rule["target_matchers"])
    same = {key(alert(target)) for target in targets}
    others = [alert(target, **{label: "other"}) for target, label in itertools.product(targets, rule["equal"])]
    for source in named(rule["source_matchers"]):
        with running_alertmanager(fake, inhibit_rules=[rule]) as alertmanager:
            text = json.dumps([alert(source), *map(alert, targets), *others])
            answer = call("POST", alertmanager.url + "/api/v2/alerts", text, Content_Type="application/json")
            assert answer.status == 200, answer.text
            wait_until(lambda a=alertmanager: inhibited(a) == same, f"{source} inhibits {targets}")
