#!/usr/bin/python3
"""Checks alerts/: promtool and vmalert accept the rules, promtool's tests beside this file pass and leave no alert out, each metric
and label exists, and names, severities and texts follow the rules of Prometheus' monitoring mixins."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

TESTS = pathlib.Path(__file__).resolve().parent
TOP = TESTS.parents[2]
ALERTS = TOP / "alerts"
sys.path.insert(0, str(TOP / "test" / "scenarios"))

from lib import promql  # noqa: E402  pylint: disable=wrong-import-position

RUNBOOKS = "https://github.com/open-cluster-management-io/dynamic-scoring-framework/blob/main/alerts/runbooks/"
NAME = re.compile(r"(?:[A-Z][a-z0-9]+|API|OTLP)+")
SEVERITIES = {"critical", "warning", "info"}
GROUP_RULES, NAME_LENGTH = 20, 40


def rules_of(file):
    """[(group, rule)]"""
    return [(g["name"], r) for g in yaml.safe_load(file.read_text())["groups"] for r in g["rules"]]


def run(*command):
    """Its words, if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"{command[0]}: {done.stdout}{done.stderr}"]


def group_problems(file):
    for group in yaml.safe_load(file.read_text())["groups"]:
        name = group["name"]
        if not NAME.fullmatch(name) or len(name) > NAME_LENGTH:
            yield f"{name}: a group's name is CamelCase, of at most {NAME_LENGTH} characters"
        if len(group["rules"]) > GROUP_RULES:
            yield f"{name}: more than {GROUP_RULES} rules"


def text_problems(alert, rule, query):
    texts = rule["annotations"]
    if set(texts) != {"summary", "description", "runbook_url"}:
        yield "annotations other than summary, description and runbook_url"
        return
    if "{{" in texts["summary"] or not re.fullmatch(r"[A-Z].*\.", texts["summary"]):
        yield "the summary is a sentence without templates"
    if "{{" not in texts["description"]:
        yield "the description has no template"
    if not re.search(r"\b(?:kubectl|curl) ", texts["description"]):
        yield "the description has no command as the next step"
    if texts["runbook_url"] != f"{RUNBOOKS}{alert}.md":
        yield f"another runbook_url than that of {alert}.md"
    elif not (ALERTS / "runbooks" / f"{alert}.md").exists():
        yield "no such runbook in alerts/runbooks"
    kept = query.grouped("by", "group_left") | query.made
    for label in sorted(set(re.findall(r"\$labels\.(\w+)", texts["description"])) - kept):
        yield f"the description names the label {label}, which the expression does not keep"


def alert_problems(rule, metrics):
    alert, query = rule["alert"], promql.parse(rule["expr"])
    if not NAME.fullmatch(alert) or len(alert) > NAME_LENGTH:
        yield f"an alert's name is CamelCase, of at most {NAME_LENGTH} characters"
    if rule.get("labels", {}).get("severity") not in SEVERITIES:
        yield f"severity is none of {', '.join(sorted(SEVERITIES))}"
    if "for" not in rule:
        yield "no `for`"
    if "keep_firing_for" in rule:
        yield "keep_firing_for, which vmalert 1.79 does not know"
    yield from promql.unknown(rule["expr"], metrics)
    yield from cluster_problems(query, {"cluster"})
    yield from text_problems(alert, rule, query)


def cluster_problems(query, labels):
    """Each aggregation says by what, and keeps one of the labels of a cluster. Whoever calls that label by another name
    replaces the word, which therefore means nothing else."""
    for value in (v for s in query.selectors for _, _, v in s.matchers if re.search(r"\bcluster\b", v)):
        yield f"cluster is also a value: {value}"
    groups = [found for word, found in query.groupings if word == "by"]
    if len(groups) != query.aggregations or any(not labels & set(found) for found in groups):
        yield f"an aggregation without by ({' or '.join(sorted(labels))}, ...)"


def record_problems(rule, metrics):
    yield from promql.unknown(rule["expr"], metrics)
    yield from cluster_problems(promql.parse(rule["expr"]), {"cluster", "ds_cluster"})


def recorded(rules):
    """{name: labels} of recording rules."""
    found = {}
    for _, rule in rules:
        if "record" in rule:
            found[rule["record"]] = promql.parse(rule["expr"]).grouped("by") - promql.TARGET_LABELS
    return found


def rule_problems(files):
    rules = [r for f in files for r in rules_of(f)]
    metrics = promql.known() | promql.OTHERS | recorded(rules)
    for _, rule in rules:
        name = rule.get("alert") or rule["record"]
        check = alert_problems if "alert" in rule else record_problems
        yield from (f"{name}: {p}" for p in check(rule, metrics))
    alerts = [r["alert"] for _, r in rules if "alert" in r]
    yield from (f"{a}: two alerts of this name" for a in sorted({a for a in alerts if alerts.count(a) > 1}))


def seconds(time):
    return sum(int(n) * {"h": 3600, "m": 60, "s": 1}[unit] for n, unit in re.findall(r"(\d+)([hms])", time))


def course_of(test, alert):
    """Whether the alert fires, at each time that a test looks."""
    cases = [c for c in test.get("alert_rule_test", []) if c["alertname"] == alert]
    return [bool(c.get("exp_alerts")) for c in sorted(cases, key=lambda c: seconds(c["eval_time"]))]


def untested(alert, tests):
    """What the tests do not show of an alert."""
    of_it = [(t, course_of(t, alert)) for t in tests]
    full = [t for t, course in of_it if course[:1] == [False] and True in course and course[-1:] == [False]]
    if not full:
        yield "silent, then firing, then resolved"
    if not any("stale" in str(s["values"]) for t in full for s in t["input_series"]):
        yield "a failed scrape"
    if not any(course and not t.get("input_series") for t, course in of_it):
        yield "silent without any series"


def test_problems(files, tests):
    entries = [t for f in tests for t in yaml.safe_load(f.read_text())["tests"]]
    for _, rule in (r for f in files for r in rules_of(f)):
        name = rule.get("alert") or rule["record"]
        if "alert" in rule:
            yield from (f"{name}: no test shows it {what}" for what in untested(name, entries))
        elif not any(name in str(c["expr"]) for t in entries for c in t.get("promql_expr_test", [])):
            yield f"{name}: no test"


def snake(value):
    """The keys of prometheus-operator as Prometheus has them: write_relabel_configs for writeRelabelConfigs."""
    if isinstance(value, dict):
        return {re.sub(r"[A-Z]", lambda m: f"_{m[0].lower()}", k): snake(v) for k, v in value.items()}
    return [snake(v) for v in value] if isinstance(value, list) else value


def values_problems(file):
    """Of the values for kube-prometheus-stack: Prometheus accepts them, and they keep series that exist, and no others."""
    spec = snake(yaml.safe_load(file.read_text())["prometheus"]["prometheusSpec"])
    with tempfile.NamedTemporaryFile("w") as config:
        config.write(json.dumps({"global": {"external_labels": spec["external_labels"]}, "remote_write": spec["remote_write"]}))
        config.flush()
        yield from run("promtool", "check", "config", config.name)
    [endpoint] = spec["remote_write"]
    [keep] = endpoint["write_relabel_configs"]
    if (keep["action"], keep["source_labels"]) != ("keep", ["__name__"]):
        yield f"{file.name}: the rule does not keep names"
    names = set(promql.known()) | set(recorded(rules_of(ALERTS / "recording.yaml")))
    kept = {name for name in names if re.fullmatch(keep["regex"], name)}
    if kept != {"dynamic_score", "cluster_cpu_free", "cluster_memory_free"}:
        yield f"{file.name}: keeps {sorted(kept)}"


def problems_of(files, tests):
    for file in files:
        yield from group_problems(file)
        yield from run("promtool", "check", "rules", str(file))
    yield from rule_problems(files)
    yield from test_problems(files, tests)
    for test in tests:
        yield from run("promtool", "test", "rules", str(test))
    if shutil.which("vmalert"):
        yield from run("vmalert", "-dryRun", *(f"-rule={f}" for f in files))
    else:
        print("no vmalert here: not asked whether it accepts the rules")


BAD = {
    "no metric dynamic_scoring_upp": {"expr": "dynamic_scoring_upp == 0"},
    "has no label scorer": {"expr": 'dynamic_scoring_up{scorer="x"} == 0'},
    "no metric here has the label stage": {"expr": "max by (cluster, stage) (dynamic_scoring_up)"},
    "cluster is also a value": {"expr": 'dynamic_scoring_kubernetes_up{server="cluster"} == 0'},
    "an aggregation without by": {"expr": "max by (score_name) (dynamic_scoring_up)"},
    "an aggregation without by (": {"expr": "max(dynamic_scoring_up)"},
    "names the label pod": {"annotations": {"summary": "A.", "description": "{{ $labels.pod }}", "runbook_url": ""}},
    "the summary is a sentence": {"annotations": {"summary": "a {{ $value }}", "description": "", "runbook_url": ""}},
    "the description has no template": {"annotations": {"summary": "A.", "description": "", "runbook_url": ""}},
    "no command": {"annotations": {"summary": "A.", "description": "{{ $value }}", "runbook_url": ""}},
    "another runbook_url": {"annotations": {"summary": "A.", "description": "", "runbook_url": RUNBOOKS}},
    "CamelCase": {"alert": "not_camel"},
    "severity is none of": {"labels": {"severity": "page"}},
    "no `for`": {},
}


def refusals():
    """Bad rules that the checks do not refuse."""
    fine = {"alert": "X", "expr": "dynamic_scoring_up == 0", "annotations": {}}
    for why, change in BAD.items():
        if not any(why in p for p in alert_problems(fine | change, promql.known())):
            yield f"not refused: {why}"


def main():
    files, tests = sorted(ALERTS.glob("*.yaml")), sorted(TESTS.glob("*.yaml"))
    files = [f for f in files if "groups" in yaml.safe_load(f.read_text())]
    problems = [*problems_of(files, tests), *values_problems(ALERTS / "remote-write-values.yaml"), *refusals()]
    for problem in problems:
        print(problem)
    count = sum(len(rules_of(f)) for f in files)
    print(f"{count} rules, {len(problems)} problems")
    return 1 if problems or count < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
