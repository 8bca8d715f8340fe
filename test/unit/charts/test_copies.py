#!/usr/bin/python3
"""The chart has copies of alerts/ and dashboards/, as Helm reads no files outside of it; `--write` makes them. Those of dashboards
are without white space: each release keeps them in a Secret, and nobody reads them. The PrometheusRule of the documents has the
rules of free resources, with the name of the cluster as envsubst fills it in."""

import json
import pathlib
import sys

import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
COPIES = TOP / "charts" / "dynamic-scoring-framework" / "files"
RULES = ("agent", "hub", "recording")
RESOURCES = TOP / "charts/deploy/prometheus/cluster-resource-summary/prometheusrule.yaml"


def resources():
    """The rules as they stand in alerts/recording.yaml, with a label each."""
    found, lines = [], (TOP / "alerts" / "recording.yaml").read_text().split("\n")
    for line in lines[lines.index("  - name: DynamicScoringResources") : lines.index("  - name: DynamicScoringViews")]:
        found += [f"  {line}".rstrip()]
        if line.lstrip().startswith("- record: cluster_"):
            found += ["          labels: {cluster: \"${CLUSTER_NAME}\"}"]
    meta = "{name: cluster-resource-summary, namespace: monitoring, labels: {release: kube-prometheus}}"
    head = "# Made from alerts/recording.yaml by test/unit/charts/test_copies.py --write. Free CPU and memory of a cluster.\n"
    head += f"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {meta}\nspec:\n  groups:\n"
    text = head + "\n".join(found) + "\n"
    assert yaml.safe_load(text)["spec"]["groups"][0]["rules"][2]["labels"] == {"cluster": "${CLUSTER_NAME}"}
    return text


def copies():
    """{file: text}"""
    wanted = {COPIES / "alerts" / f"{name}.yaml": (TOP / "alerts" / f"{name}.yaml").read_text() for name in RULES}
    for file in (TOP / "dashboards").glob("*.json"):
        short = json.dumps(json.loads(file.read_text()), separators=(",", ":"), ensure_ascii=False)
        wanted[COPIES / "dashboards" / file.name] = short + "\n"
    wanted[RESOURCES] = resources()
    return wanted


def main():
    wanted = copies()
    stale = [f for folder in ("alerts", "dashboards") for f in (COPIES / folder).rglob("*.*") if f not in wanted]
    changed = [f for f, text in wanted.items() if not f.exists() or f.read_text() != text]
    if "--write" not in sys.argv:
        for file in stale + changed:
            print(f"{file.relative_to(TOP)} is out of date: run {pathlib.Path(__file__).relative_to(TOP)} --write")
        return 1 if stale or changed else 0
    for file in stale:
        file.unlink()
    for file in changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted[file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
