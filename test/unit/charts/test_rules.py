#!/usr/bin/python3
"""The chart's PrometheusRules are the files of alerts/, and its ConfigMaps those of dashboards/: without other values, unchanged.
Each value changes what it says and nothing else, and promtool accepts the result."""

import concurrent.futures
import copy
import json
import re
import subprocess
import tempfile

import yaml

from chart import CHART, TOP, check, find, helm, on_clusters, report, template

FILES = ("agent", "hub", "recording")
BOTH = {"enabled": True, "hub": list(FILES), "clusters": list(FILES)}
RUNBOOKS = "https://wiki.example/scoring"


def original():
    return [g for f in FILES for g in yaml.safe_load((TOP / "alerts" / f"{f}.yaml").read_text())["groups"]]


def name_of(rule):
    return rule.get("alert") or rule["record"]


def rules_of(groups):
    return [rule for group in groups for rule in group["rules"]]


def rendered(objects, kind="PrometheusRule"):
    return find(objects, kind)["spec"]["groups"]


def as_ocm_sends(objects, **variables):
    """OCM replaces `{{NAME}}` by its own variables and those of the AddOnDeploymentConfig, other words between braces by nothing."""
    variables |= {v["name"]: v["value"] for v in find(objects, "AddOnDeploymentConfig")["spec"].get("customizedVariables", [])}
    text = json.dumps(on_clusters(objects))
    return json.loads(re.sub(r"\{\{(.*?)\}\}", lambda tag: variables.get(tag[1], ""), text))


def check_unchanged():
    objects = template({"prometheusRule": BOTH})
    check(rendered(objects) == original(), "the PrometheusRule on the hub is not what alerts/ says")
    check(rendered(as_ocm_sends(objects)) == original(), "the PrometheusRule on clusters is not what alerts/ says")
    renamed = template({"prometheusRule": dict(BOTH, kind="VMRule")})
    check(rendered(renamed, "VMRule") == original(), "the VMRule is not what alerts/ says")
    check(not [o for o in template() if o["kind"] in ("PrometheusRule", "VMRule")], "rules by default")
    only = template({"prometheusRule": {"enabled": True, "hub": []}})
    check(not [o for o in only + on_clusters(only) if o["kind"] == "PrometheusRule"], "a PrometheusRule without rules")


def check_cluster_names():
    """A Prometheus that has no external label gets the cluster's name from the rules."""
    objects = template({"clusterLabel": "k8s", "prometheusRule": dict(BOTH, labelClusters=True)})
    on_hub, sent = rules_of(rendered(objects)), rules_of(rendered(as_ocm_sends(objects, CLUSTER_NAME="worker01")))
    check(not [r for r in on_hub if "k8s" in r.get("labels", {})], "rules on the hub name a cluster")
    unnamed = [name_of(r) for r in sent if r.get("labels", {}).get("k8s") != "worker01"]
    check(unnamed == ["node:kube_node_usable:max", "pod:kube_pod_unfinished:max"], f"rules that do not name the cluster: {unnamed}")


def without(names):
    values = {"prometheusRule": dict(BOTH, rules={name: {"enabled": False} for name in names})}
    done = helm("template", "x", CHART, "--show-only", "templates/hub/rules.yaml", values=values)
    return rules_of(yaml.safe_load(done.stdout)["spec"]["groups"]) if done.returncode == 0 else done.stderr


def check_switches():
    """Each rule's removes exactly that rule. One that removed another, too, would be found by a set that has the one and not
    the other: for any two there is one among those of a binary digit of their numbers."""
    everything = rules_of(original())
    names = sorted({name_of(rule) for rule in everything})
    digits = range(len(names).bit_length())
    sets = [{name for n, name in enumerate(names) if n >> digit & 1 == bit} for digit in digits for bit in (0, 1)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for disabled, left in zip(sets, pool.map(without, sets), strict=True):
            check(left == [r for r in everything if name_of(r) not in disabled], f"{disabled} disabled leaves {left}")


def check_changes():
    """All values at once, on the first alert and on all."""
    wanted = copy.deepcopy(original())
    first = next(rule for rule in rules_of(wanted) if "alert" in rule)
    for rule in rules_of(wanted):
        rule["expr"] = re.sub(r"(?<![:\w])cluster\b", "k8s", rule["expr"])
        rule["labels"] = {**rule.get("labels", {}), "team": "scoring"}
        if "alert" in rule:
            rule["keep_firing_for"] = "10m"
            notes = {k: re.sub(r"\$labels\.cluster\b", "$labels.k8s", text) for k, text in rule["annotations"].items()}
            rule["annotations"] = {**notes, "runbook_url": f"{RUNBOOKS}/{rule['alert']}.md"}
    first["for"] = "1h"
    first["labels"] = {**first["labels"], "severity": "info", "team": "other"}
    values = {
        "clusterLabel": "k8s",
        "prometheusRule": dict(
            BOTH,
            runbookUrl=RUNBOOKS + "/",
            keepFiringFor="10m",
            additionalRuleLabels={"team": "scoring"},
            rules={first["alert"]: {"for": "1h", "labels": {"severity": "info", "team": "other"}}},
        ),
    }
    groups = rendered(template(values))
    check(groups == wanted, f"changed by values: {groups}\nbut they say: {wanted}")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"groups": groups}, file)
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True)
        check(done.returncode == 0, f"promtool: {done.stdout}{done.stderr}")


def dashboards(**values):
    """{file: dashboard} of the ConfigMaps."""
    found = {}
    for o in template({"dashboards": {"enabled": True, "namespace": "grafana"}, **values}, "--set=dashboards.annotations.folder=a"):
        meta = o["metadata"]
        if meta.get("labels", {}).get("grafana_dashboard") == "1":
            check((meta["namespace"], meta["annotations"]) == ("grafana", {"folder": "a"}), f"a dashboard: {meta}")
            found.update({file: json.loads(text) for file, text in o["data"].items()})
    return found


def check_dashboards():
    wanted = {f"dynamic-scoring-framework-{f.name}": json.loads(f.read_text()) for f in (TOP / "dashboards").glob("*.json")}
    check(wanted and dashboards() == wanted, "the ConfigMaps are not the files of dashboards/")
    url = "https://scoring.example"
    for dashboard in wanted.values():
        for variable in dashboard["templating"]["list"]:
            if variable["name"] == "cluster_label":
                variable["query"] = "k8s"
            if variable["name"] == "hub_url":
                variable.update(query=url, current={"text": url, "value": url})
                variable["options"] = [{"selected": True, **variable["current"]}]
    changed = dashboards(clusterLabel="k8s", dashboards={"enabled": True, "namespace": "grafana", "hubUrl": url})
    check(changed == wanted, "dashboards changed by values")


def main():
    check_unchanged()
    check_cluster_names()
    check_switches()
    check_changes()
    check_dashboards()
    report()


if __name__ == "__main__":
    main()
