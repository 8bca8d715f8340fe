#!/usr/bin/python3
"""Checks alerts/runbooks and alerts/README.md: each alert has a page with its sections, each page an alert; flags, metrics,
values of the chart and links that a page names exist; the table of alerts is up to date (`--write` makes it); and the example for
Alertmanager routes and inhibits as its comments say."""

import pathlib
import re
import shutil
import subprocess
import sys

import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
ALERTS = TOP / "alerts"
RULES = ("agent.yaml", "hub.yaml")
SECTIONS = ["Mitigation"]
MARKS = ("<!-- generated from the rule files by `test/unit/alerts/test_runbooks.py --write` -->\n", "<!-- end -->\n")
LONGEST = 80  # lines of a page
OTHERS_FLAGS = {"--previous", "--tail", "--since", "--context", "--data-urlencode", "--type", "--as", "--dry-run", "--raw"}
OTHERS_FLAGS |= {"--all-namespaces", "--list", "--show-managed-fields", "--field-selector", "--namespace"}  # kubectl's and curl's
DEFINITIONS = (TOP / "exporter/metric/metrics.def").read_text()
TABLES = {  # metric, label, and its values that are not for the page
    "RemoteWriteDropping": ("prometheus_remote_storage_samples_dropped_total", "reason", set()),
    "OTLPPointsRejected": ("dynamic_scoring_otlp_points_rejected_total", "reason", set()),
    "PlacementScoreNotWritten": ("dynamic_scoring_placement_writes_total", "result", {"ok"}),
    "PlacementItemsLeftOut": ("dynamic_scoring_placement_left_out_total", "reason", {"same_name"}),
    "ManifestWorksBehind": ("dynamic_scoring_hub_writes_total", "result", set()),
}
ROUTES = {"critical": "pager", "warning": "tickets", "info": "nobody"}


def alerts():
    """[(file, rule)]"""
    files = [(name, yaml.safe_load((ALERTS / name).read_text())) for name in RULES]
    return [(name, r) for name, content in files for g in content["groups"] for r in g["rules"] if "alert" in r]


def values():
    """The paths of the chart's values: agent.limits, agent.limits.memory, ..."""

    def paths(value, at):
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield f"{at}{key}"
            yield from paths(inner, f"{at}{key}.")

    chart = TOP / "charts" / "dynamic-scoring-framework" / "values.yaml"
    return set(paths(yaml.safe_load(chart.read_text()), ""))


def is_value(name, known):
    """Members of a value that is an empty object or list are the agent's own keys."""
    parts = name.split(".")
    return any(".".join(parts[:n]) in known for n in range(len(parts), 1, -1))


def page_problems(page, metrics, flags, known_values):
    text = page.read_text()
    if page.stem != "README":
        if not text.startswith(f"# {page.stem}\n") or re.findall(r"^## (.*)$", text, re.M) != SECTIONS:
            yield f"the title is not the alert, or the sections are not {', '.join(SECTIONS)}"
        if "\n\n**Impact**: " not in text:
            yield "no paragraph about the impact"
        if text.count("\n") > LONGEST:
            yield f"more than {LONGEST} lines: nobody reads that at night"
    names = re.findall(r"\b(?:dynamic_scor|prometheus_remote_storage_)\w+", text)
    yield from (f"no such metric: {n}" for n in sorted(set(names)) if n != "dynamic_score" and n not in metrics)
    used = set(re.findall(r"(?<![\w-])--[a-z][\w.-]+", text)) - OTHERS_FLAGS
    yield from (f"no such flag: {f}" for f in sorted(used) if f not in flags)
    named = re.findall(r"`((?:agent|controller)\.[A-Za-z.]+)`", text)
    yield from (f"no such value of the chart: {v}" for v in sorted(set(named)) if not is_value(v, known_values))
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    yield from (f"no such file: {link}" for link in links if not (page.parent / link).exists())


def runbook_problems():
    metrics = set(re.findall(r'^METRIC\(.*?"(\w+)"', DEFINITIONS, re.M | re.S))
    tables = "".join(p.read_text() for p in (TOP / "controller").glob("*.c"))
    flags = {f"--{name}" for name in re.findall(r'"([a-z][\w.-]+)"', tables)}
    names, known_values = {r["alert"] for _, r in alerts()}, values()
    pages = sorted((ALERTS / "runbooks").glob("*.md"))
    stems = {p.stem for p in pages} - {"README"}
    yield from (f"alerts/runbooks/{n}.md is missing" for n in sorted(names - stems))
    yield from (f"alerts/runbooks/{n}.md: no such alert" for n in sorted(stems - names))
    for page in [*pages, ALERTS / "README.md"]:
        found = page_problems(page, metrics, flags, known_values) if page.parent != ALERTS else ()
        yield from (f"{page.relative_to(TOP)}: {p}" for p in found)


def row_problems():
    """A page whose table says what to do for each value of a label has all values."""
    help_of = {}
    for name, _, parts in re.findall(r'^METRIC\(.*?"(\w+)",\s*"([^"]*)",\s*((?:"[^"]*"\s*)+)\)', DEFINITIONS, re.M | re.S):
        help_of[name] = "".join(re.findall(r'"([^"]*)"', parts))
    classes = re.search(r"Error classes: `([^`]*)`", (TOP / "exporter/README.md").read_text())[1].split()
    rows = {"ScorerFailing": set(classes) - {"series_limit"}}
    for page, (metric, label, others) in TABLES.items():
        values = re.search(rf"{label}: ([^.]*)", help_of[metric])[1]
        rows[page] = {re.sub(r" \(.*", "", v) for v in values.split(", ")} - others
    for page, values in rows.items():
        text = (ALERTS / "runbooks" / f"{page}.md").read_text().partition("## Mitigation")[2]
        yield from (f"alerts/runbooks/{page}.md does not say what to do for {v}" for v in values if f"`{v}`" not in text)


def log_problems():
    """What a text or page says to search a log for is in a message of the program."""
    sources = "".join(p.read_text() for d in ("exporter", "controller", "remotewrite") for p in (TOP / d).rglob("*.c"))
    texts = {r["alert"]: r["annotations"]["description"] for _, r in alerts()}
    texts.update((f"runbooks/{p.name}", p.read_text()) for p in (ALERTS / "runbooks").glob("*.md"))
    for where, text in texts.items():
        for words in re.findall(r"""kubectl logs[^|]*\|\s*grep ["']?([\w ]+)["']?""", text):
            if words not in sources:
                yield f"{where}: no log message has: {words}"


def table():
    rows = ["| alert | about | severity | after | |", "|---|---|---|---|---|"]
    for name, r in alerts():
        link, severity = f"[{r['alert']}](runbooks/{r['alert']}.md)", r["labels"]["severity"]
        rows.append(f"| {link} | {name.removesuffix('.yaml')} | {severity} | {r['for']} | {r['annotations']['summary']} |")
    return "\n".join(rows) + "\n"


def table_problems(write):
    page = ALERTS / "README.md"
    text = page.read_text()
    head, rest = text.split(MARKS[0])
    _, tail = rest.split(MARKS[1])
    wanted = head + MARKS[0] + "\n" + table() + "\n" + MARKS[1] + tail
    if write:
        page.write_text(wanted)
    elif wanted != text:
        yield "alerts/README.md: the table is out of date: test/unit/alerts/test_runbooks.py --write"


def amtool(*arguments):
    return subprocess.run(["amtool", *arguments], capture_output=True, text=True, check=False)


def example_problems():
    example = ALERTS / "alertmanager.yaml"
    if not shutil.which("amtool"):
        return
    check = amtool("check-config", str(example))
    if check.returncode != 0:
        yield check.stdout + check.stderr
    for _, rule in alerts():
        labels = [f"alertname={rule['alert']}", f"severity={rule['labels']['severity']}"]
        found = amtool("config", "routes", "test", f"--config.file={example}", *labels).stdout.strip()
        if found != ROUTES[rule["labels"]["severity"]]:
            yield f"alerts/alertmanager.yaml: {rule['alert']} goes to {found}"
    names = {r["alert"] for _, r in alerts()}
    for one in yaml.safe_load(example.read_text())["inhibit_rules"]:
        for matcher in (*one["source_matchers"], *one["target_matchers"]):
            matched = re.fullmatch(r'alertname =~? "(.*)"', matcher)
            for name in matched[1].split("|") if matched else ():
                if name not in names:
                    yield f"alerts/alertmanager.yaml: no such alert: {name}"


def main():
    problems = [*runbook_problems(), *row_problems(), *log_problems(), *table_problems("--write" in sys.argv), *example_problems()]
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(alerts())} alerts, each with its runbook")


main()
