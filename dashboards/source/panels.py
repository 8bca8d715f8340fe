"""The parts that the dashboards are made of: queries, panels, variables, annotations and links of Grafana 11.

A panel is a dict as Grafana stores it; fields that equal Grafana's defaults are left out. Panels of a row are placed
from left to right by their width, of 24 columns.
"""

SCHEMA = 39  # Grafana 11.0
TAG = "dynamic-scoring"
RUNBOOKS = "https://github.com/open-cluster-management-io/dynamic-scoring-framework/blob/main/alerts/runbooks/"
METRICS = {"type": "prometheus", "uid": "${datasource}"}

# Said in descriptions where it matters.
AGENTS_ONLY = (
    "From the agents' own metrics: a hub has them if a Prometheus forwards them, or with `send_health_metrics` of the "
    "agent's remote write."
)
HUB_ONLY = "From the controller's metrics: select a data source that has them."
WATCHERS_ONLY = "From the policy watchers' own metrics: a hub has them if a Prometheus on the clusters forwards them."

BLUE, GREEN, YELLOW, RED, GREY = "blue", "green", "yellow", "red", "text"


# ---- Queries ----


def query(expr, legend="", *, instant=False, table=False, source=None, interval=None):
    target = {"datasource": source or METRICS, "editorMode": "code", "expr": " ".join(expr.split())}
    if table or instant:
        target |= {"format": "table" if table else "time_series", "instant": True, "range": False}
    else:
        target |= {"format": "time_series", "range": True}
    if interval:
        target["interval"] = interval
    target["legendFormat"] = legend or "__auto"
    return target


def as_score_labels(expr, *more):
    """Names the labels of the agents' own metrics as those of scores, so that both fit into one table or division; more:
    labels to keep."""
    expr = f'label_replace({expr}, "ds_score_name", "$1", "score_name", "(.+)")'
    expr = f'label_replace({expr}, "ds_cluster", "$1", "$cluster_label", "(.+)")'
    return f"max by ({', '.join(('ds_cluster', 'ds_score_name', *more))}) ({expr})"


# ---- Panels ----


def steps(*pairs):
    """Thresholds: a color, then values and the colors from there on."""
    first, *rest = pairs
    return {
        "mode": "absolute",
        "steps": [{"color": first, "value": None}, *({"color": color, "value": value} for value, color in rest)],
    }


def runbook(alert):
    return {"title": f"Runbook: {alert}", "type": "link", "url": f"{RUNBOOKS}{alert}.md", "targetBlank": True}


def panel(kind, title, description, queries, *, width, height, defaults, options, overrides=(), links=(), **more):
    for letter, target in zip("ABCDEFGHIJ", queries):
        target["refId"] = letter
    made = {
        "type": kind,
        "title": title,
        "description": " ".join(description.split()),
        "datasource": {"type": "datasource", "uid": "-- Mixed --"} if mixed(queries) else METRICS,
        "gridPos": {"w": width, "h": height},
        "targets": list(queries),
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
    }
    if links:
        made["links"] = list(links)
    return made | more


def mixed(queries):
    return any(target["datasource"] != METRICS for target in queries)


def field(name, **properties):
    """An override for one field: names of properties have __ for a dot."""
    listed = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": listed}


def fixed_colors(**colors):
    """Overrides: colors of series by name."""
    return [field(name, color={"mode": "fixed", "fixedColor": color}) for name, color in colors.items()]


# Of pairs of a scorer and a cluster, of probes, and of ManifestWorks.
STATES = fixed_colors(
    scoring=GREEN, failing=RED, empty=YELLOW, suspended="orange", waiting=BLUE, silent="dark-purple"
)
PROBES = [
    {**field("", color={"mode": "fixed", "fixedColor": RED}), "matcher": {"id": "byRegexp", "options": "/.*/"}},
    *fixed_colors(**{"health: ok": GREEN, "config: ok": BLUE}),
]
POLICY_STATES = fixed_colors(compliant=GREEN, noncompliant=RED, pending=BLUE, unknown=YELLOW, disabled=GREY, empty=GREY)
WORK_STATES = fixed_colors(up_to_date=GREEN, behind=YELLOW, failing=RED, leaving=GREY)


def of_query(letter, **properties):
    return {**field("", **properties), "matcher": {"id": "byFrameRefID", "options": letter}}


def timeseries(title, description, unit, *queries, width=12, height=8, stack=False, overrides=(), legend="list", **more):
    custom = {"lineWidth": 1, "fillOpacity": 30 if stack else 5, "showPoints": "auto", "pointSize": 4}
    if stack:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    defaults = {"unit": unit, "color": {"mode": "palette-classic"}, "custom": custom}
    for key in ("min", "max", "decimals", "links", "thresholds"):
        if key in more:
            defaults[key] = more.pop(key)
    if "none" in more:
        defaults["noValue"] = more.pop("none")
    if more.pop("threshold_lines", False):
        custom["thresholdsStyle"] = {"mode": "dashed"}
    options = {
        "legend": {"showLegend": True, "displayMode": legend, "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    if legend == "table":
        options["legend"] |= {"calcs": ["lastNotNull", "max"], "sortBy": "Last *", "sortDesc": True}
    return panel(
        "timeseries", title, description, queries, width=width, height=height, defaults=defaults, options=options,
        overrides=overrides, links=more.pop("panel_links", ()), **more,
    )


def stat(title, description, unit, *queries, width=4, height=4, colors=(GREY,), none="no data", **more):
    defaults = {"unit": unit, "color": {"mode": "thresholds"}, "thresholds": steps(*colors), "noValue": none}
    for key in ("mappings", "decimals", "min", "max", "links"):
        if key in more:
            defaults[key] = more.pop(key)
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "area" if more.pop("graph", False) else "none",
        "textMode": more.pop("text", "auto"),
        "justifyMode": "auto",
        "orientation": "auto",
    }
    return panel(
        "stat", title, description, queries, width=width, height=height, defaults=defaults, options=options,
        links=more.pop("panel_links", ()), **more,
    )


def bars(title, description, unit, *queries, width=12, height=8, **more):
    """One horizontal bar for each series of an instant query. Without a minimum, the least value would have no bar."""
    defaults = {"unit": unit, "min": 0, "color": {"mode": "fixed", "fixedColor": BLUE}}
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "displayMode": "basic",
        "orientation": "horizontal",
        "valueMode": "color",
        "namePlacement": "auto",
        "showUnfilled": True,
        "sizing": "auto",
        "minVizWidth": 8,
        "minVizHeight": 16,
        "maxVizHeight": 40,
    }
    return panel(
        "bargauge", title, description, queries, width=width, height=height, defaults=defaults, options=options,
        links=more.pop("panel_links", ()), **more,
    )


def column(title, expr, unit, **properties):
    """A column of a table: the values of an instant query."""
    return {"title": title, "expr": expr, "unit": unit, "properties": properties}


def colored(*pairs):
    """Properties of a column whose text is colored by value."""
    return {
        "thresholds": steps(*pairs),
        "custom__cellOptions": {"type": "color-text"},
        "color": {"mode": "thresholds"},
    }


def table(title, description, labels, columns, *, width=12, height=8, sort=None, **more):
    """labels: {label: title, or (title, properties)}, in their order; the series of all columns are joined by them."""
    queries = [query(c["expr"], table=True) for c in columns]
    only = len(columns) == 1
    names = ["Value" if only else f"Value #{letter}" for letter, _ in zip("ABCDEFGHIJ", columns)]
    heads = {label: (head if isinstance(head, tuple) else (head, {})) for label, head in labels.items()}
    titles = {label: head[0] for label, head in heads.items()} | {n: c["title"] for n, c in zip(names, columns)}
    overrides = [field(head, **properties) for head, properties in heads.values() if properties]
    overrides += [field(c["title"], unit=c["unit"], **c["properties"]) for c in columns]
    if len({c["unit"] for c in columns}) == 1:
        unit = columns[0]["unit"]
    else:
        unit = "none"
    organize = {
        "excludeByName": {"Time": True},
        "indexByName": {name: place for place, name in enumerate(titles)},
        "renameByName": titles,
    }
    transformations = [{"id": "merge", "options": {}}] if not only else []
    return panel(
        "table", title, description, queries, width=width, height=height,
        defaults={
            "unit": unit,
            "noValue": more.pop("none", ""),
            "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True},
        },
        options={
            "showHeader": True,
            "cellHeight": "sm",
            "sortBy": [{"displayName": sort[0], "desc": sort[1]}] if sort else [],
        },
        overrides=overrides, links=more.pop("panel_links", ()),
        transformations=[*transformations, {"id": "organize", "options": organize}], **more,
    )


# ---- Links from values ----


def cell_links(*pairs):
    return {"links": [{"title": title, "url": url, "targetBlank": url.startswith("${")} for title, url in pairs]}


def to(uid, **variables):
    """A link to another dashboard: variables by name, each a column's title."""
    given = "".join(f"&var-{name}=${{__data.fields.{title}:percentencode}}" for name, title in variables.items())
    return f"/d/{TAG}-{uid}?${{datasource:queryparam}}&${{__url_time_range}}{given}"


CLUSTER_LINKS = cell_links(
    ("Agent of this cluster", to("agent", cluster="Cluster")),
    ("Status page of the hub", "${hub_url}/cluster?name=${__data.fields.Cluster:percentencode}"),
)
SCORE_LINKS = cell_links(("This score", to("scorer", score_name="Score")))


# ---- Variables ----


def data_source(name="datasource", label="Data source"):
    return {"name": name, "label": label, "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0}


def label_values(name, label, expr, *, every=".*", multi=True, description=""):
    """every: what All selects, with .* also series that lack the label; None: there is no All."""
    made = {
        "name": name,
        "label": label,
        "description": description,
        "type": "query",
        "datasource": METRICS,
        "query": {"qryType": 1, "query": expr, "refId": "A"},
        "refresh": 2,
        "sort": 1,
        "multi": multi,
        "includeAll": every is not None,
        "hide": 0,
    }
    if every:
        made |= {"allValue": every, "current": {"selected": True, "text": "All", "value": "$__all"}}
    return made


def choice(name, label, *values, description=""):
    """The first is the default. A value "text : value" is shown as text."""
    options = [{"text": v.split(" : ")[0], "value": v.split(" : ")[-1], "selected": v == values[0]} for v in values]
    return {
        "name": name,
        "label": label,
        "description": description,
        "type": "custom",
        "query": ",".join(values),
        "current": {key: options[0][key] for key in ("text", "value")},
        "options": options,
        "hide": 0,
    }


def text(name, label, value, description):
    current = {"text": value, "value": value}
    return {
        "name": name, "label": label, "description": description, "type": "textbox", "query": value,
        "current": current, "options": [{**current, "selected": True}], "hide": 0,
    }  # fmt: skip


def constant(name, value, description):
    return {"name": name, "description": description, "type": "constant", "query": value, "hide": 2}


CLUSTER_LABEL = constant(
    "cluster_label", "cluster", "The label that names the cluster on series other than scores, such as an external label."
)
HUB_URL = text("hub_url", "Hub page", "http://localhost:8080", "Address of the controller's status page, for links.")
AGENT_URL = text("agent_url", "Agent page", "http://localhost:8080", "Address of an agent's status page, for links.")
CLUSTER_OF_SCORES = label_values("cluster", "Cluster", "label_values(dynamic_score, ds_cluster)")


# ---- Annotations and links ----


def annotation(name, color, expr, text_format, **more):
    return {
        "name": name, "datasource": METRICS, "enable": True, "iconColor": color, "expr": " ".join(expr.split()),
        "titleFormat": name, "textFormat": text_format, "step": "60s", **more,
    }  # fmt: skip


CONFIG_CHANGES = annotation(
    "Configuration applied", BLUE,
    """max by ($cluster_label) (dynamic_scoring_config_last_reload_success_timestamp_seconds{
       $cluster_label=~"$cluster|"}) * 1000""",
    "{{$cluster_label}}", useValueForTime=True,
)  # fmt: skip
LEADER_CHANGES = annotation(
    "Leader of the agents changed", "purple",
    """(max by ($cluster_label, instance) (dynamic_scoring_leader{$cluster_label=~"$cluster|"}) == 1)
       unless on ($cluster_label, instance)
       (max by ($cluster_label, instance) (dynamic_scoring_leader{$cluster_label=~"$cluster|"} offset 1m) == 1)""",
    "{{$cluster_label}} {{instance}}",
)  # fmt: skip
HUB_LEADER_CHANGES = annotation(
    "Leader of the controllers changed", "purple",
    """(max by (instance) (dynamic_scoring_hub_leader) == 1)
       unless on (instance) (max by (instance) (dynamic_scoring_hub_leader offset 1m) == 1)""",
    "{{instance}}",
)  # fmt: skip


def link(title, url):
    return {"title": title, "type": "link", "icon": "external link", "url": url, "targetBlank": True}


OTHER_DASHBOARDS = {
    "title": "Dynamic scoring", "type": "dashboards", "tags": [TAG], "asDropdown": False, "includeVars": True,
    "keepTime": True, "icon": "external link",
}  # fmt: skip
HUB_PAGE = link("Hub's status page", "${hub_url}")
AGENT_PAGE = link("Agent's status page", "${agent_url}")
ALL_RUNBOOKS = link("Runbooks", RUNBOOKS)


# ---- Dashboards ----


def row(title, *panels):
    return title, panels


def place(rows):
    """The panels with their positions and numbers, each row after a heading."""
    placed, top = [], 0
    for title, panels in rows:
        placed.append({"type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": top, "w": 24, "h": 1}})  # fmt: skip
        top, left, bottom = top + 1, 0, top + 1
        for made in panels:
            size = made["gridPos"]
            if left + size["w"] > 24:
                left, top = 0, bottom
            placed.append(made | {"gridPos": {"x": left, "y": top, **size}})
            left, bottom = left + size["w"], max(bottom, top + size["h"])
        top = bottom
    return [{"id": number, **made} for number, made in enumerate(placed, 1)]


def dashboard(name, title, description, *, variables, annotations, links, rows, since="now-1h"):
    return {
        "uid": f"{TAG}-{name}",
        "title": title,
        "description": " ".join(description.split()),
        "tags": [TAG],
        "schemaVersion": SCHEMA,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": since, "to": "now"},
        "timezone": "browser",
        "links": [OTHER_DASHBOARDS, *links],
        "annotations": {"list": annotations},
        "templating": {"list": variables},
        "panels": place(rows),
    }
