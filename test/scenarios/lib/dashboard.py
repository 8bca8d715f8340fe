"""The dashboards as Grafana reads them: their panels' queries, with the variables replaced."""

import json
import re

from lib.process import ROOT

NAMES = ("fleet", "scorer", "agent", "hub")
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::\w+)?\})")


def load(name):
    return json.loads((ROOT / "dashboards" / f"{name}.json").read_text())


def panels(dashboard):
    """All panels but the headings of rows."""
    return [p for p in dashboard["panels"] if p["type"] != "row"]


def variables(dashboard):
    return {v["name"]: v for v in dashboard["templating"]["list"]}


def as_regex(values):
    """How Grafana writes chosen values into a query: quoted, and as alternatives if they are several."""
    quoted = [re.sub(r"([\\^$*+?.()|\[\]{}])", r"\\\\\1", value) for value in values]
    return quoted[0] if len(quoted) == 1 else f"({'|'.join(quoted)})"


def first_choice(dashboard):
    """The value of each variable when the dashboard is opened; None for those whose first value a query finds."""
    values = {"__rate_interval": "4m", "__interval": "1m", "__range": "1h"}
    for name, variable in variables(dashboard).items():
        if variable.get("includeAll"):
            values[name] = variable["allValue"]
        elif variable["type"] == "query":
            values[name] = None
        else:
            values[name] = variable["current"]["value"] if "current" in variable else variable["query"]
    return values


def replace(text, values):
    """Variables that are not given stay, such as $1 of label_replace()."""
    found = lambda m: values.get(m[1] or m[2])  # noqa: E731
    return VARIABLE.sub(lambda m: found(m) if found(m) is not None else m[0], text)


def variable_query(variable):
    """(metric selector, label) of a variable's label_values()."""
    return re.fullmatch(r"label_values\((.*), *([\w$]+)\)", variable["query"]["query"], re.S).groups()


def labels_of_legend(legend):
    """{{cluster}} {{score_name}} -> the names."""
    return re.findall(r"\{\{ *(\w+) *\}\}", legend)


def seconds(interval):
    """15s or 1m, a panel's shortest distance of points."""
    return int(interval[:-1]) * {"s": 1, "m": 60}[interval[-1]]
