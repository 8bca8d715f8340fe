"""One score: its source beside it, where it is high and low, and how its rounds go."""

from panels import *  # noqa: F403

LABELS = ("node", "namespace", "app", "device")
CHOSEN = ",".join(f'ds_{label}=~"$ds_{label}"' for label in LABELS)
SCORE = f'dynamic_score{{ds_cluster=~"$cluster",ds_score_name="$score_name",{CHOSEN}}}'
ALL_LABELS = "ds_cluster, ds_score_name, ds_node, ds_namespace, ds_pod, ds_container, ds_app, ds_device, ds_meta"
ONCE = f"max by ({ALL_LABELS}) ({SCORE})"
OWN = '$cluster_label=~"$cluster|",score_name="$score_name"'
SOURCE = {"type": "prometheus", "uid": "${source}"}
INTERVAL = f"max(dynamic_scoring_interval_seconds{{{OWN}}})"


def own(metric, matchers=""):
    return f"{metric}{{{OWN}{matchers}}}"


def by_cluster(expr):
    return f"max by ($cluster_label) ({expr})"


def total(metric, *labels, window="$__rate_interval"):
    """The rate of a counter on all chosen clusters, each cluster counted once."""
    listed = ", ".join(labels)
    return f"sum by ({listed}) (max by ($cluster_label, {listed}) (rate({own(metric)}[{window}])))"


def quantiles(metric):
    """Each cluster's buckets are counted once, whichever way they came."""
    return [
        query(
            f"""histogram_quantile({q}, sum by (le) (max by ($cluster_label, le)
            (rate({own(metric + "_bucket")}[$__rate_interval]))))""",
            f"p{round(q * 100)}",
        )
        for q in (0.5, 0.95, 0.99)
    ]


state = row(
    "$score_name",
    stat(
        "Clusters that score", f"Clusters whose last round succeeded. {AGENTS_ONLY}", "short",
        query(f"sum({by_cluster(own('dynamic_scoring_up'))})", instant=True), none="no agent metrics",
    ),
    stat(
        "Clusters that fail", f"Clusters whose last round failed. {AGENTS_ONLY}", "short",
        query(f"sum({by_cluster(own('dynamic_scoring_up'))} == bool 0)", instant=True),
        colors=(GREEN, (1, RED)), none="no agent metrics", panel_links=[runbook("ScorerFailing")],
    ),
    stat(
        "Interval", f"Configured time between rounds. {AGENTS_ONLY}", "s",
        query(INTERVAL, instant=True), none="no agent metrics",
    ),
    stat(
        "Oldest success",
        f"""Time since the last successful round of the cluster that is furthest behind, in intervals: scores are
            removed at 3, by default. {AGENTS_ONLY}""",
        "none",
        query(
            f"max(time() - {by_cluster(own('dynamic_scoring_last_success_timestamp_seconds'))}) / {INTERVAL}",
            instant=True,
        ),
        colors=(GREEN, (2, YELLOW), (3, RED)), decimals=1, none="no agent metrics",
        panel_links=[runbook("ScoresStale"), runbook("ScoresExpired")],
    ),
    stat(
        "Source series", f"Series in the last answers of the source, on all clusters. {AGENTS_ONLY}", "short",
        query(f"sum({by_cluster(own('dynamic_scoring_source_series'))})", instant=True),
        colors=(RED, (1, GREEN)), none="no agent metrics", panel_links=[runbook("SourceEmpty")],
    ),
    stat(
        "Score series", "Series of this score on the chosen clusters, each counted once.", "short",
        query(f"count({ONCE})", instant=True),
    ),
)  # fmt: skip

values = row(
    "Scores",
    timeseries(
        "Source and score",
        """The source query, on the left axis, and the score by cluster, on the right. Set the source query to that of
           the scorer. A score that predicts is moved by the chosen time, so that each prediction stands where it is
           about.""",
        "none",
        query("${source_query:raw}", "source {{$cluster_label}} {{namespace}} {{node}} {{pod}}", source=SOURCE),
        query(
            f"$aggregation by (ds_cluster) (max by ({ALL_LABELS}) ({SCORE} offset $ahead))",
            "score {{ds_cluster}}",
        ),
        width=24, height=10,
        overrides=[
            of_query("A", custom__axisLabel="source", unit="short"),
            of_query("B", custom__axisPlacement="right", custom__axisLabel="score", custom__lineWidth=2),
        ],
    ),
    timeseries(
        "Score by cluster", "The score of each cluster, aggregated as chosen.", "none",
        query(f"$aggregation by (ds_cluster) ({ONCE})", "{{ds_cluster}}"),
    ),
    timeseries(
        "Range over series", "Lowest, median and highest series of the score, over the chosen clusters.", "none",
        query(f"max({ONCE})", "max"),
        query(f"quantile(0.5, {ONCE})", "median"),
        query(f"min({ONCE})", "min"),
    ),
    bars(
        "By node", "The 15 nodes with the highest scores, aggregated as chosen.", "none",
        query(f"topk(15, $aggregation by (ds_cluster, ds_node) ({ONCE}))", "{{ds_cluster}} {{ds_node}}", instant=True),
    ),
    bars(
        "By namespace", "The 15 namespaces with the highest scores, aggregated as chosen.", "none",
        query(
            f"topk(15, $aggregation by (ds_cluster, ds_namespace) ({ONCE}))", "{{ds_cluster}} {{ds_namespace}}",
            instant=True,
        ),
    ),
)  # fmt: skip

rounds = row(
    "Rounds",
    timeseries(
        "Rounds", f"Rounds by result: success, empty (the source has no series), failure. {AGENTS_ONLY}", "ops",
        query(total("dynamic_scoring_rounds_total", "result"), "{{result}}"),
        width=8, stack=True, min=0,
        overrides=[
            field("success", color={"mode": "fixed", "fixedColor": GREEN}),
            field("empty", color={"mode": "fixed", "fixedColor": YELLOW}),
            field("failure", color={"mode": "fixed", "fixedColor": RED}),
        ],
        panel_links=[runbook("ScoringErrorRatio")],
    ),
    timeseries(
        "Errors", f"Failed rounds by stage and class. The agent's status page quotes the last error. {AGENTS_ONLY}",
        "ops",
        query(total("dynamic_scoring_round_errors_total", "stage", "class"), "{{stage}}: {{class}}"),
        width=8, stack=True, min=0, none="none", panel_links=[runbook("ScorerFailing")],
    ),
    table(
        "Clusters that fail",
        f"""Clusters whose last round failed, the stage and the class of the error, and how many rounds have failed in a
            row. For the error in the words of the source or the scoring API, follow the link to the status page.
            {AGENTS_ONLY}""",
        {"ds_cluster": ("Cluster", CLUSTER_LINKS), "stage": "Stage", "class": "Error"},
        [
            column(
                "Rounds",
                f"""max by (ds_cluster, stage, class) (label_replace({own("dynamic_scoring_consecutive_failures")} > 0,
                    "ds_cluster", "$1", "$cluster_label", "(.+)"))""",
                "short",
            )
        ],
        width=8, sort=("Rounds", True), none="none", panel_links=[runbook("ScorerFailing")],
    ),
    timeseries(
        "Response time of the source", f"Quantiles over all chosen clusters. {AGENTS_ONLY}", "s",
        *quantiles("dynamic_scoring_fetch_duration_seconds"),
        query(INTERVAL, "interval"),
        interval="1m", min=0, overrides=[field("interval", custom__lineStyle={"fill": "dash"}, custom__fillOpacity=0,
                                color={"mode": "fixed", "fixedColor": RED})],
        panel_links=[runbook("SourceSlow")],
    ),
    timeseries(
        "Response time of the scoring API", f"Quantiles over all chosen clusters. {AGENTS_ONLY}", "s",
        *quantiles("dynamic_scoring_perform_duration_seconds"),
        query(INTERVAL, "interval"),
        interval="1m", min=0, overrides=[field("interval", custom__lineStyle={"fill": "dash"}, custom__fillOpacity=0,
                                color={"mode": "fixed", "fixedColor": RED})],
    ),
    timeseries(
        "Series", f"Series in the answers of the source, and scores that came of them. {AGENTS_ONLY}", "short",
        query(f"sum({by_cluster(own('dynamic_scoring_source_series'))})", "source"),
        query(f"sum({by_cluster(own('dynamic_scoring_series'))})", "scores"),
        width=8, min=0,
    ),
    timeseries(
        "Traffic", f"Bytes received from and sent to the source and the scoring API. {AGENTS_ONLY}", "Bps",
        query(total("dynamic_scoring_received_bytes_total", "stage"), "from {{stage}}"),
        query(total("dynamic_scoring_sent_bytes_total", "stage"), "to {{stage}}"),
        width=8, min=0,
    ),
    timeseries(
        "Results dropped or changed",
        f"""Results without a usable score or with the labels of another, label values that were truncated or repaired,
            limits that were hit, warnings of the source. {AGENTS_ONLY}""",
        "ops",
        query(total("dynamic_scoring_results_dropped_total", "reason"), "dropped: {{reason}}"),
        query(total("dynamic_scoring_labels_changed_total", "reason"), "label {{reason}}"),
        query(total("dynamic_scoring_limit_hits_total", "limit"), "limit {{limit}}"),
        query(total("dynamic_scoring_source_warnings_total", "score_name"), "source warnings"),
        width=8, min=0, panel_links=[runbook("SeriesLimitReached")],
    ),
)  # fmt: skip


def values_of(name):
    return label_values(
        f"ds_{name}", name.capitalize(),
        f'label_values(dynamic_score{{ds_cluster=~"$cluster",ds_score_name="$score_name"}}, ds_{name})',
    )  # fmt: skip


DASHBOARD = dashboard(
    "scorer",
    "Dynamic scoring / Scorer",
    "One score: beside its source, over clusters, nodes and namespaces, and how the rounds that compute it go.",
    variables=[
        data_source(),
        CLUSTER_OF_SCORES,
        label_values("score_name", "Score", 'label_values(dynamic_score{ds_cluster=~"$cluster"}, ds_score_name)',
                     every=None, multi=False),
        *(values_of(label) for label in LABELS),
        choice("aggregation", "Aggregation", "avg", "sum", "min", "max"),
        data_source("source", "Source"),
        text("source_query", "Source query",
             'sum by (namespace) (rate(container_cpu_usage_seconds_total{container!="",pod!=""}[5m]))',
             "The query of the scorer, shown beside the score."),
        # PromQL has no `offset 0s`.
        choice("ahead", "Predicts ahead", "no : 1ms", "1m", "5m", "10m", "30m", "1h",
               description="How far the score predicts: it is shown that much later."),
        CLUSTER_LABEL,
        HUB_URL,
        AGENT_URL,
    ],
    annotations=[CONFIG_CHANGES, LEADER_CHANGES],
    links=[HUB_PAGE, link("Agent's status page", "${agent_url}/#scorer-${score_name:percentencode}"), ALL_RUNBOOKS],
    rows=[state, values, rounds],
)  # fmt: skip
