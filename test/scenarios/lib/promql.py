"""What a PromQL expression names: its metrics, the labels of their matchers, and those that it groups by. known() tells which
metrics and labels there are, from metrics.def; unknown() what of an expression is not among them."""

import pathlib
import re
from dataclasses import dataclass, field

TOP = pathlib.Path(__file__).resolve().parents[3]

# Labels of a scrape's target, or external labels of a Prometheus, which any series may have.
TARGET_LABELS = {"cluster", "namespace", "job", "instance", "pod", "service", "endpoint", "container"}
SCORE_LABELS = {f"ds_{x}" for x in "app cluster container device meta namespace node pod score_name".split()}
# Of other exporters: kube-state-metrics, and Prometheus itself.
OTHERS = {
    "up": set(),
    "kube_node_status_allocatable": {"node", "resource", "unit"},
    "kube_node_status_condition": {"node", "condition", "status"},
    "kube_node_spec_unschedulable": {"node"},
    "kube_pod_container_resource_requests": {"node", "resource", "unit", "uid"},
    "kube_pod_status_phase": {"phase", "uid"},
}

TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    | (?P<string>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `[^`]*`)
    | (?P<number>(?:\d+(?:ms|[smhdwy]))+ | \d[\d.]*(?:[eE][+-]?\d+)? | \.\d+)
    | (?P<word>\$\{\w+(?::\w+)?\} | \$?[A-Za-z_][\w:]*)
    | (?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^(){}\[\],=<>@:])""",
    re.X,
)
GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
WORDS = {"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}


@dataclass
class Selector:
    metric: str
    matchers: list = field(default_factory=list)  # (label, operator, value)


@dataclass
class Query:
    selectors: list = field(default_factory=list)
    groupings: list = field(default_factory=list)  # (word, [label])
    made: set = field(default_factory=set)  # labels that label_replace() and label_join() make
    aggregations: int = 0

    def grouped(self, *words):
        return {label for word, labels in self.groupings if not words or word in words for label in labels}


def tokens(text):
    at, found = 0, []
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise ValueError(f"not PromQL from here: {text[at:at + 30]!r}")
        if m.lastgroup != "space":
            found.append((m.lastgroup, m.group()))
        at = m.end()
    return found


AGGREGATIONS = set("sum min max avg group stddev stdvar count count_values bottomk topk quantile".split())


def parse(text):
    """The Query of an expression: no full grammar, but enough to find the names. `$name`, a variable of
    Grafana, stands for any word."""
    query, left = Query(), tokens(text)
    signs = [t[1] for t in left] + ["", ""]
    i = 0
    while i < len(left):
        kind, word = left[i]
        following = signs[i + 1]
        if kind == "word" and word.lower() in GROUPING:
            end = signs.index(")", i) if following == "(" else i
            query.groupings.append((word.lower(), [w for k, w in left[i + 1 : end] if k == "word"]))
            i = end
        elif kind == "word" and word in AGGREGATIONS and following in ("(", "by", "without"):
            query.aggregations += 1
        elif kind == "word" and following == "(":
            if word in ("label_replace", "label_join"):
                query.made |= {made_label(left[i:])}
        elif kind == "word" and word.lower() not in WORDS or word == "{":
            i = take_selector(query, left, i)
        i += 1
    return query


def made_label(left):
    """The second argument of label_replace(v, "made", ...)."""
    depth = 0
    for kind, word in left:
        depth += (word in "([{") - (word in ")]}") if kind == "sign" else 0
        if kind == "string" and depth == 1:
            return word[1:-1]
    raise ValueError("label_replace() without a string")


def take_selector(query, left, i):
    """Adds the selector that begins at i; returns where it ends."""
    selector = Selector("" if left[i][1] == "{" else left[i][1])
    query.selectors.append(selector)
    i += left[i][1] != "{"
    if i >= len(left) or left[i][1] != "{":
        return i - 1
    while left[i][1] != "}":
        if left[i][0] == "word":
            selector.matchers.append((left[i][1], left[i + 1][1], left[i + 2][1][1:-1]))
            i += 2
        i += 1
    return i


def known(top=TOP):
    """{metric: labels} of metrics.def, without those of targets."""
    rows = re.findall(
        r'^METRIC\(\w+, (\w+), \w+, "([^"]+)",\s+"([^"]*)"', (top / "exporter/metric/metrics.def").read_text(), re.M
    )
    found = {"dynamic_score": SCORE_LABELS}
    for kind, name, labels in rows:
        labels = set(labels.split(",")) - {""}
        if kind == "HISTOGRAM":
            found.update({f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels})
        else:
            found[name] = labels
    return found


def unknown(text, metrics):
    """[what is wrong] with the names of an expression, given {metric: labels}."""
    query, problems, all_labels = parse(text), [], set(TARGET_LABELS)
    for s in query.selectors:
        if s.metric.startswith("$"):
            continue
        if s.metric not in metrics:
            problems.append(f"no metric {s.metric or '(without a name)'}")
            continue
        labels = metrics[s.metric] | TARGET_LABELS
        all_labels |= labels
        problems += [f"{s.metric} has no label {m[0]}" for m in s.matchers if m[0] not in labels and m[0][0] != "$"]
    groups = {label for label in query.grouped() if label[0] != "$"}
    return problems + [f"no metric here has the label {x}" for x in sorted(groups - all_labels - query.made)]
