#!/usr/bin/python3
"""Checks the dashboards: JSON that dashboards/generate makes, the 17 rules of Grafana's dashboard-linter, that each metric and
label is in metrics.def, and that each link leads somewhere. dashboard-linter itself cannot be built from what proxies serve."""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "test" / "scenarios"))

from lib import dashboard, promql  # noqa: E402

# What rules do not apply to: rule, dashboards (None: all), and why.
EXCLUDED = [
    ("template-job-rule", "fleet scorer", "scores are told apart by ds_cluster and ds_score_name, which a remote write keeps"),
    ("template-instance-rule", "fleet scorer", "as for jobs"),
    ("target-job-rule", "fleet scorer", "the series that agents push have no job"),
    ("target-instance-rule", "fleet scorer", "the series that agents push have no instance"),
    ("template-job-rule: All", "agent", "All must match series without a job, which agents push: .* rather than .+"),
    ("template-instance-rule: All", "agent", "as for jobs"),
    ("template-datasource-rule", "scorer", "a second one, source, is asked for the source query"),
    ("panel-datasource-rule: Mixed", "scorer", "the panel Source and score asks both data sources"),
]
# Selectors without job and instance on dashboards that have these variables.
JOINED = re.compile(r"and on \([^)]*instance\) *dynamic_scoring_(scorers|hub_leader)\{[^}]*\$job")
OF_OPTIMIZER = ("instance", "=~", "$optimizer")  # its own variable: job and instance are the controller's
UNITS = {"none", "short", "percentunit", "s", "bytes", "ops", "reqps", "Bps"}
OTHERS = {  # of others, and of recording rules
    "cluster_cpu_free": set(),
    "cluster_memory_free": set(),
}
TITLE = re.compile(r"[A-Z][^.]*")
SENTENCES = re.compile(r"[A-Z0-9].*\.", re.S)

problems = []


def check(ok, rule, name, what):
    excluded = any(rule == r and (of is None or name in of.split()) for r, of, _ in EXCLUDED)
    if excluded:
        used.add((rule, name))
    if not ok and not excluded:
        problems.append(f"{name}.json: {rule}: {what}")


used = set()


def check_variables(name, shown):
    found = dashboard.variables(shown)
    sources = [v for v in found.values() if v["type"] == "datasource"]
    check(found.get("datasource", {}).get("label") == "Data source", "template-datasource-rule", name, "no data source")
    check(len(sources) == 1, "template-datasource-rule", name, "two data sources")
    for variable in ("job", "instance"):
        rule, given = f"template-{variable}-rule", found.get(variable)
        check(given is not None, rule, name, f"no variable {variable}")
        if given:
            fine = given["type"] == "query" and given["multi"] and given["label"] == variable.capitalize()
            check(fine, rule, name, f"{variable} is not a query with several values, or has another label")
            check(given["allValue"] == ".+", f"{rule}: All", name, f"All is {given['allValue']}")
    for key, variable in found.items():
        if variable["type"] == "query":
            check(variable["refresh"] == 2, "template-on-time-change-reload-rule", name, f"{key} is read once")
            check(variable["datasource"]["uid"] == "${datasource}", "template-datasource-rule", name, key)
            selector, _ = dashboard.variable_query(variable)
            check(not is_wrong(selector), "template-label-promql-rule", name, f"{key}: {selector}")
        check(variable.get("description") or variable.get("label") or variable["hide"] == 2, "label", name, key)


def readable(expr):
    """Without the variables that stand for a part of the language or a label."""
    of_language = {"cluster_label": "cluster", "aggregation": "avg", "ahead": "1m", "__rate_interval": "4m"}
    return dashboard.replace(expr, of_language)


def is_wrong(expr):
    """[what is wrong] with the names of an expression."""
    return promql.unknown(readable(expr), promql.known() | promql.OTHERS | OTHERS)


def check_panel(name, panel):
    where = panel["title"]
    source = panel["datasource"]["uid"]
    rule = "panel-datasource-rule" + (": Mixed" if source == "-- Mixed --" else "")
    check(source == "${datasource}", rule, name, where)
    said = TITLE.fullmatch(panel["title"]) and SENTENCES.fullmatch(panel["description"])
    check(said, "panel-title-description-rule", name, f"{where}: a title without a full stop, and sentences")
    check(panel["fieldConfig"]["defaults"].get("unit") in UNITS, "panel-units-rule", name, where)
    check(panel["targets"], "panel-no-targets-rule", name, where)
    for target in panel["targets"]:
        if target["expr"] != "${source_query:raw}":
            check_target(name, f"{where} {target['refId']}", target["expr"])
    hidden = [o for o in panel["fieldConfig"]["overrides"] if not o["properties"]]
    check(not hidden, "overrides", name, f"{where}: one without properties")


def check_target(name, where, expr):
    # Neither target-logql-rule nor target-logql-auto-rule can apply: no data source is Loki's.
    try:
        query = promql.parse(readable(expr))
    except ValueError as error:
        check(False, "target-promql-rule", name, f"{where}: {error}")
        return
    check(is_wrong(expr) == [], "metrics.def", name, f"{where}: {is_wrong(expr)}")
    for selector in query.selectors:
        for label in ("job", "instance"):
            matched = {(label, "=~", f"${label}"), OF_OPTIMIZER} & set(selector.matchers) or JOINED.search(expr)
            check(matched, f"target-{label}-rule", name, f"{where}: {selector.metric}")
        if selector.metric.endswith("_total"):
            agg = re.search(rf"\b(rate|irate|increase)\({selector.metric}\b", expr)
            check(agg, "target-counter-agg-rule", name, f"{where}: {selector.metric}")
    for window in re.findall(r"\birate\b|\brate\([^\[]*\[(?!\$__rate_interval\])", expr):
        check(False, "target-rate-interval-rule", name, f"{where}: {window}")


def check_links(names, name):
    """To other dashboards and runbooks, by the names of their files."""
    text = (TOP / "dashboards" / f"{name}.json").read_text()
    for uid in re.findall(r"/d/([\w-]+)", text):
        check(uid in names, "links", name, f"no dashboard {uid}")
    variables = set().union(*(dashboard.variables(dashboard.load(n)) for n in dashboard.NAMES))
    for variable in re.findall(r"[&?]var-(\w+)=", text):
        check(variable in variables, "links", name, f"no variable {variable}")
    runbooks = TOP / "alerts" / "runbooks"
    for alert in re.findall(r"/runbooks/(\w+)\.md", text) if runbooks.exists() else ():
        check((runbooks / f"{alert}.md").exists(), "links", name, f"no runbook {alert}")
    for title in re.findall(r"\$\{__data\.fields\.(\w+)", text):
        check(f'"{title}"' in text, "links", name, f"no column {title}")


def check_place(name, shown):
    """On the grid of 24 columns, panels neither overlap nor leave it."""
    taken = set()
    for panel in shown["panels"]:
        p = panel["gridPos"]
        cells = {(x, y) for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])}
        check(p["x"] + p["w"] <= 24 and not taken & cells, "grid", name, f"{panel['title']} at {p}")
        taken |= cells


def check_all():
    generated = subprocess.run([TOP / "dashboards" / "generate", "--check"], capture_output=True, text=True, check=False)
    check(generated.returncode == 0, "generate", "*", generated.stderr.strip())
    uids = [dashboard.load(name)["uid"] for name in dashboard.NAMES]
    for name in dashboard.NAMES:
        shown = dashboard.load(name)
        check(not shown["editable"], "uneditable-dashboard", name, "editable")
        check(shown["title"] and shown["uid"] == f"dynamic-scoring-{name}", "mixtool", name, "title and uid")
        check_variables(name, shown)
        for panel in dashboard.panels(shown):
            check_panel(name, panel)
        for one in shown["annotations"]["list"]:
            check(is_wrong(one["expr"]) == [], "metrics.def", name, f"{one['name']}: {is_wrong(one['expr'])}")
        check_links(uids, name)
        check_place(name, shown)
    for rule, of, _ in EXCLUDED:
        unused = {name for name in of.split() if (rule, name) not in used}
        check(not unused, "EXCLUDED", " ".join(sorted(unused)), f"{rule} applies")


check_all()
print("\n".join(dict.fromkeys(problems)) or f"{len(dashboard.NAMES)} dashboards, 0 problems")
sys.exit(1 if problems else 0)
