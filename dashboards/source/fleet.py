"""The fleet: scores by cluster, how fresh they are, who fails, what Placement sees, Policies, and free resources."""

from panels import *  # noqa: F403

SCORES = 'ds_cluster=~"$cluster",ds_score_name=~"$score_name"'
OF_CLUSTERS = 'ds_cluster=~"$cluster"'
OWN = '$cluster_label=~"$cluster|"'

# One series for each score, however many ways it came: a scrape and a remote write differ in other labels only.
ALL_LABELS = "ds_cluster, ds_score_name, ds_node, ds_namespace, ds_pod, ds_container, ds_app, ds_device, ds_meta"
BY_SCORE = "by (ds_cluster, ds_score_name)"

# When scores were computed. Without the agents' own metrics: when their last samples were taken.
COMPUTED = f"""(max {BY_SCORE} (dynamic_score_timestamp_seconds{{{OF_CLUSTERS}}})
    or max {BY_SCORE} (timestamp(dynamic_score{{{OF_CLUSTERS}}})))"""
# The interval of a scorer is the same on all clusters, so that this needs no label of the cluster.
INTERVAL = """label_replace(max by (score_name) (dynamic_scoring_interval_seconds), "ds_score_name", "$1", "score_name",
    "(.+)")"""
AGE_IN_INTERVALS = f"(time() - {COMPUTED}) / on (ds_score_name) group_left {INTERVAL}"

UP = f"max by ($cluster_label, score_name) (dynamic_scoring_up{{{OWN}}})"
GONE = f"""count by (ds_cluster) (last_over_time(dynamic_score{{{OF_CLUSTERS}}}[1h]))
    unless on (ds_cluster) count by (ds_cluster) (dynamic_score{{{OF_CLUSTERS}}})"""


def own(metric, matchers=""):
    return f"{metric}{{{OWN}{matchers}}}"


def by_scorer(expr):
    return as_score_labels(f"max by ($cluster_label, score_name) ({expr})")


overview = row(
    "Fleet",
    stat(
        "Clusters with scores", "Clusters that have at least one score now.", "short",
        query(f"count(count by (ds_cluster) (dynamic_score{{{OF_CLUSTERS}}}))", instant=True),
    ),
    stat(
        "Scores", "Score names in use, and their series on all clusters, each counted once.", "short",
        query(f"count(count by (ds_score_name) (dynamic_score{{{OF_CLUSTERS}}}))", "names", instant=True),
        query(f"count(max by ({ALL_LABELS}) (dynamic_score{{{OF_CLUSTERS}}}))", "series", instant=True),
    ),
    stat(
        "Scores behind",
        f"""Scores of a cluster that are older than two intervals of their scorer. At three intervals, by default, they
            are removed. {AGENTS_ONLY}""",
        "short",
        query(f"sum({AGE_IN_INTERVALS} > bool 2)", instant=True),
        colors=(GREEN, (1, YELLOW)), none="no agent metrics", panel_links=[runbook("ScoresStale")],
    ),
    stat(
        "Failing scorers", f"Scorers whose last round failed, counted on each cluster. {AGENTS_ONLY}", "short",
        query(f"sum({UP} == bool 0)", instant=True),
        colors=(GREEN, (1, RED)), none="no agent metrics", panel_links=[runbook("ScorerFailing")],
    ),
    stat(
        "Clusters without scores", "Clusters that had scores within the last hour and have none now.", "short",
        query(f"count({GONE}) or 0 * count(dynamic_score{{{OF_CLUSTERS}}})", instant=True),
        colors=(GREEN, (1, RED)),
    ),
    stat(
        "Silent clusters",
        f"""Clusters of a scorer whose agents do not report to the hub, or that are not available; the largest number
            of any scorer. {HUB_ONLY}""",
        "short",
        query('max(dynamic_scoring_hub_scorer_clusters{state="silent"})', instant=True),
        colors=(GREEN, (1, RED)), none="no hub metrics", panel_links=[runbook("ClustersSilent")],
    ),
)  # fmt: skip

scores = row(
    "Scores: $aggregation of $score_name",
    timeseries(
        "Score by cluster",
        """The chosen scores of each cluster, aggregated over nodes, namespaces and other labels. A gap means that the
           cluster has no such score, which Placement takes for 0.""",
        "none",
        query(
            f"$aggregation by (ds_cluster, ds_score_name) (max by ({ALL_LABELS}) (dynamic_score{{{SCORES}}}))",
            "{{ds_cluster}} {{ds_score_name}}",
        ),
        width=14, height=9, links=[{"title": "This score", "url": to("scorer") + "&var-score_name=${__field.labels.ds_score_name}"}],
    ),
    table(
        "Scores now",
        """The latest scores of each cluster: the chosen aggregation, the lowest and the highest series, and how many
           there are.""",
        {"ds_cluster": ("Cluster", CLUSTER_LINKS), "ds_score_name": ("Score", SCORE_LINKS)},
        [
            column("Value", f"$aggregation {BY_SCORE} (max by ({ALL_LABELS}) (dynamic_score{{{SCORES}}}))", "none"),
            column("Min", f"min {BY_SCORE} (dynamic_score{{{SCORES}}})", "none"),
            column("Max", f"max {BY_SCORE} (dynamic_score{{{SCORES}}})", "none"),
            column("Series", f"count {BY_SCORE} (max by ({ALL_LABELS}) (dynamic_score{{{SCORES}}}))", "short"),
        ],
        width=10, height=9, sort=("Value", True),
    ),
)  # fmt: skip

health = row(
    "Health",
    timeseries(
        "Age of the oldest scores",
        f"""For each scorer, the cluster with the oldest scores, in intervals of the scorer: 1 is normal, and at 3, by
            default, scores are removed. {AGENTS_ONLY}""",
        "none",
        query(
            f"""(time() - min by (ds_score_name) (max {BY_SCORE} (dynamic_score_timestamp_seconds{{{OF_CLUSTERS}}})))
            / on (ds_score_name) {INTERVAL}""",
            "{{ds_score_name}}",
        ),
        interval="2m", min=0, decimals=1, thresholds=steps(GREEN, (2, YELLOW), (3, RED)), threshold_lines=True,
        panel_links=[runbook("ScoresStale")],
    ),
    table(
        "Age of scores",
        """Time since the scores of a cluster were computed, or, without the agents' own metrics, since their last
           sample; and the same in intervals of their scorer.""",
        {"ds_cluster": ("Cluster", CLUSTER_LINKS), "ds_score_name": ("Score", SCORE_LINKS)},
        [
            column("Age", f"time() - {COMPUTED}", "s"),
            column("Intervals", AGE_IN_INTERVALS, "none", decimals=1, **colored(GREEN, (2, YELLOW), (3, RED))),
        ],
        sort=("Intervals", True),
    ),
    table(
        "Failing scorers",
        f"""Scorers whose last round failed, the stage and the class of the error, and how many rounds have failed in a
            row. The agent's status page quotes the error in full. {AGENTS_ONLY}""",
        {
            "ds_cluster": ("Cluster", CLUSTER_LINKS),
            "ds_score_name": ("Score", SCORE_LINKS),
            "stage": "Stage",
            "class": "Error",
        },
        [column("Rounds", as_score_labels(f"{own('dynamic_scoring_consecutive_failures')} > 0", "stage", "class"), "short")],
        sort=("Rounds", True), none="none", panel_links=[runbook("ScorerFailing")],
    ),
    table(
        "Clusters of each scorer",
        f"""Clusters by what their agents report to the hub. Silent: no report, or the cluster is not available.
            {HUB_ONLY}""",
        {"scorer": ("Scorer", cell_links(("Status page", "${hub_url}/scorer?name=${__data.fields.Scorer:percentencode}")))},
        [
            column(
                state.capitalize(),
                f'max by (scorer) (dynamic_scoring_hub_scorer_clusters{{state="{state}"}})', "short", **properties,
            )
            for state, properties in (
                ("scoring", {}),
                ("failing", colored(GREY, (1, RED))),
                ("empty", colored(GREY, (1, YELLOW))),
                ("suspended", colored(GREY, (1, YELLOW))),
                ("waiting", {}),
                ("silent", colored(GREY, (1, RED))),
            )
        ],
        sort=("Failing", True),
        panel_links=[runbook("ScorerFailsOnClusters"), runbook("ClustersSilent")],
    ),
    timeseries(
        "Clusters by state", f"Pairs of a scorer and a cluster, by what the agents report. {HUB_ONLY}", "short",
        query(
            """sum by (state) (max by (scorer, state)
               (dynamic_scoring_hub_scorer_clusters{state=~"scoring|failing|empty|suspended|waiting|silent"}))""",
            "{{state}}",
        ),
        stack=True, min=0, decimals=0,
        overrides=STATES,
    ),
    table(
        "Clusters that lost their scores",
        "Clusters that had scores within the last hour and have none now, and how many series they had.",
        {"ds_cluster": ("Cluster", CLUSTER_LINKS)},
        [column("Series before", GONE, "short")],
        sort=("Series before", True), none="none", panel_links=[runbook("AgentDown")],
    ),
)  # fmt: skip

placement = row(
    "What Placement sees",
    table(
        "AddOnPlacementScores",
        f"""For each scorer of a cluster: the items of its AddOnPlacementScore, the time since it was written, and
            values clamped to -100..100 or left out in the last hour. An object without changes is written when half of
            its validity has passed. {AGENTS_ONLY}""",
        {"ds_cluster": ("Cluster", CLUSTER_LINKS), "ds_score_name": ("Score", SCORE_LINKS)},
        [
            column("Items", by_scorer(own("dynamic_scoring_placement_items")), "short"),
            column("Written", f"time() - {by_scorer(own('dynamic_scoring_placement_last_write_timestamp_seconds'))}", "s"),
            column(
                "Clamped", by_scorer(f"increase({own('dynamic_scoring_placement_clamped_total')}[1h])"), "short",
                decimals=0, **colored(GREY, (1, YELLOW)),
            ),
            column(
                "Left out",
                as_score_labels(
                    f"""sum by ($cluster_label, score_name) (max by ($cluster_label, score_name, reason)
                    (increase({own("dynamic_scoring_placement_left_out_total")}[1h])))"""
                ),
                "short", decimals=0, **colored(GREY, (1, YELLOW)),
            ),
        ],
        sort=("Written", True), panel_links=[runbook("PlacementScoreNotWritten"), runbook("ScoreOutOfRange")],
    ),
    table(
        "Adjustments in force",
        f"""Entries of the DynamicScoringConfig's spec.adjustments by which agents write other scores than the scoring API
            said, and on how many clusters. {HUB_ONLY}""",
        {"adjustment": "Adjustment"},
        [column("Clusters", "max by (adjustment) (dynamic_scoring_hub_adjusted_clusters)", "short", **colored(GREY, (1, YELLOW)))],
        sort=("Clusters", True), none="none",
    ),
    timeseries(
        "Scores not yet written", f"AddOnPlacementScores that are not up to date on the hub, by cluster. {AGENTS_ONLY}",
        "short",
        query(f"max by ($cluster_label) ({own('dynamic_scoring_placement_behind')})", "{{$cluster_label}}"),
        width=6, min=0, decimals=0, panel_links=[runbook("PlacementScoreNotWritten")],
    ),
    timeseries(
        "Writes to the hub", f"Writes of AddOnPlacementScores by all agents, by result. {AGENTS_ONLY}", "ops",
        query(
            f"""sum by (result) (max by ($cluster_label, operation, result)
            (rate({own("dynamic_scoring_placement_writes_total")}[$__rate_interval])))""",
            "{{result}}",
        ),
        width=6, stack=True, min=0, interval="1m", panel_links=[runbook("PlacementScoreNotWritten")],
    ),
)  # fmt: skip

NO_WATCHERS = "no policy watchers"


def policies_in(state):
    return as_score_labels(own("dynamic_scoring_policy_policies", f',state="{state}"'))


policies = row(
    "Policies",
    timeseries(
        "Clusters by claim",
        f"""Clusters by the value of the ClusterClaim that their policy watcher writes: compliant only after all
            Policies have been so for the stable time, empty without a Policy. {WATCHERS_ONLY}""",
        "short",
        query(f"sum by (value) (max by ($cluster_label, value) ({own('dynamic_scoring_policy_claim')}))", "{{value}}"),
        width=6, stack=True, min=0, decimals=0, overrides=POLICY_STATES, none=NO_WATCHERS,
        panel_links=[runbook("PolicyNoncompliant")],
    ),
    timeseries(
        "Policies by state", f"Policies of all clusters; those that are disabled do not count. {WATCHERS_ONLY}", "short",
        query(f"sum by (state) (max by ($cluster_label, state) ({own('dynamic_scoring_policy_policies')}))", "{{state}}"),
        width=6, stack=True, min=0, decimals=0, overrides=POLICY_STATES, none=NO_WATCHERS,
        panel_links=[runbook("PolicyNoncompliant")],
    ),
    table(
        "Policies by cluster",
        f"""Policies of each cluster by state, and 1 if its ClusterClaim does not have the value that they call for.
            {WATCHERS_ONLY}""",
        {"ds_cluster": ("Cluster", CLUSTER_LINKS)},
        [
            column("Compliant", policies_in("compliant"), "short"),
            column("Noncompliant", policies_in("noncompliant"), "short", **colored(GREY, (1, RED))),
            column("Pending", policies_in("pending"), "short"),
            column("Unknown", policies_in("unknown"), "short"),
            column(
                "Behind", as_score_labels(own("dynamic_scoring_policy_claim_behind")), "short", **colored(GREY, (1, YELLOW))
            ),
        ],
        sort=("Noncompliant", True), none=NO_WATCHERS,
        panel_links=[runbook("PolicyNoncompliant"), runbook("PolicyWatcherFailing")],
    ),
)  # fmt: skip

RESOURCES = "Made by the recording rules of alerts/recording.yaml on each cluster: what nodes can allocate, less requests of pods."
resources = row(
    "Resources",
    timeseries(
        "Free CPU by cluster", RESOURCES, "short",
        query(f"max by ($cluster_label) (cluster_cpu_free{{{OWN}}})", "{{$cluster_label}}"),
    ),
    timeseries(
        "Free memory by cluster", RESOURCES, "bytes",
        query(f"max by ($cluster_label) (cluster_memory_free{{{OWN}}})", "{{$cluster_label}}"),
    ),
)  # fmt: skip

DASHBOARD = dashboard(
    "fleet",
    "Dynamic scoring / Fleet",
    "Scores of all clusters, their freshness, failing scorers and silent clusters, what Placement sees, and Policies.",
    variables=[
        data_source(),
        CLUSTER_OF_SCORES,
        label_values("score_name", "Score", 'label_values(dynamic_score{ds_cluster=~"$cluster"}, ds_score_name)',
                     every=None, description="For the row of scores. All other panels show all scores."),
        choice("aggregation", "Aggregation", "avg", "sum", "min", "max"),
        CLUSTER_LABEL,
        HUB_URL,
    ],
    annotations=[CONFIG_CHANGES, HUB_LEADER_CHANGES],
    links=[HUB_PAGE, ALL_RUNBOOKS],
    rows=[overview, scores, health, placement, policies, resources],
)  # fmt: skip
