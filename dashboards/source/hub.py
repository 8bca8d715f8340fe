"""The hub's controller: health of scoring APIs, what reached which cluster, and the controller itself; and the optimizer."""

from panels import *  # noqa: F403

CONTROLLER = 'job=~"$job",instance=~"$instance"'
OPTIMIZER = 'instance=~"$optimizer"'  # whatever its job: no other program has these series
SCORER = f'{CONTROLLER},scorer=~"$scorer"'
SCORER_LINKS = cell_links(("Status page", "${hub_url}/scorer?name=${__data.fields.Scorer:percentencode}"))
YES_OR_NO = {
    "mappings": [
        {"type": "value", "options": {"0": {"text": "no", "index": 0}, "1": {"text": "yes", "index": 1}}},
    ],
    **colored(RED, (1, GREEN)),
}


def of_scorer(metric, matchers=""):
    """Replicas that stand by have no such series, or older ones."""
    return f"max by (scorer) ({metric}{{{SCORER}{matchers}}})"


def clusters_of(state):
    return of_scorer("dynamic_scoring_hub_scorer_clusters", f',state="{state}"')


def rate(metric, *labels, chosen=CONTROLLER):
    return f"sum by ({', '.join(labels)}) (rate({metric}{{{chosen}}}[$__rate_interval]))"


def quantiles(metric, chosen=CONTROLLER):
    return [
        query(f"histogram_quantile({q}, sum by (le) (rate({metric}_bucket{{{chosen}}}[$__rate_interval])))",
              f"p{round(q * 100)}")
        for q in (0.5, 0.95, 0.99)
    ]  # fmt: skip


state = row(
    "Hub",
    stat("Leader", "The controller that is active.", "none",
         query(f"max by (instance) (dynamic_scoring_hub_leader{{{CONTROLLER}}}) == 1", "{{instance}}", instant=True),
         text="name", none="no leader", panel_links=[runbook("HubNoLeader")]),
    stat("Unhealthy scoring APIs", "Scoring APIs that failed too many probes in a row.", "short",
         query(f"sum({of_scorer('dynamic_scoring_hub_scorer_healthy')} == bool 0)", instant=True),
         colors=(GREEN, (1, RED)), panel_links=[runbook("ScoringAPIUnhealthy")]),
    stat("Scorers not ready", "DynamicScorers whose condition Ready is not true.", "short",
         query(f"sum({of_scorer('dynamic_scoring_hub_scorer_ready')} == bool 0)", instant=True),
         colors=(GREEN, (1, YELLOW))),
    stat("Clusters up to date", "Managed clusters whose ManifestWork is what it should be, of all.", "percentunit",
         query(f"""sum(max by (state) (dynamic_scoring_hub_clusters{{{CONTROLLER},state="up_to_date"}}))
            / sum(max by (state) (dynamic_scoring_hub_clusters{{{CONTROLLER}}}))""", instant=True),
         colors=(YELLOW, (1, GREEN)), decimals=1, panel_links=[runbook("ManifestWorksBehind")]),
    stat("Distribution lag", "Age of the oldest change that is not yet written to its ManifestWork.", "s",
         query(f"max(dynamic_scoring_hub_distribution_lag_seconds{{{CONTROLLER}}})", instant=True),
         panel_links=[runbook("ManifestWorksBehind")]),
    stat("Scorers left out", "DynamicScorers that do not fit into the summaries of some cluster.", "short",
         query(f"max(dynamic_scoring_hub_scorers_left_out{{{CONTROLLER}}})", instant=True),
         colors=(GREEN, (1, RED)), panel_links=[runbook("NoRoomInManifestWork")]),
)  # fmt: skip

scorers = row(
    "Scorers",
    table("Scorers",
          "Each DynamicScorer: its health and conditions, and its clusters by what their agents report.",
          {"scorer": ("Scorer", SCORER_LINKS)},
          [column("Healthy", of_scorer("dynamic_scoring_hub_scorer_healthy"), "none", **YES_OR_NO),
           column("Ready", of_scorer("dynamic_scoring_hub_scorer_ready"), "none", **YES_OR_NO),
           column("Synced", of_scorer("dynamic_scoring_hub_scorer_config_synced"), "none", **YES_OR_NO),
           column("Selected", clusters_of("selected"), "short"),
           column("Scoring", clusters_of("scoring"), "short"),
           column("Failing", clusters_of("failing"), "short", **colored(GREY, (1, RED))),
           column("Empty", clusters_of("empty"), "short", **colored(GREY, (1, YELLOW))),
           column("Suspended", clusters_of("suspended"), "short", **colored(GREY, (1, YELLOW))),
           column("Waiting", clusters_of("waiting"), "short"),
           column("Silent", clusters_of("silent"), "short", **colored(GREY, (1, RED)))],
          width=24, sort=("Failing", True),
          panel_links=[runbook("ScorerFailsOnClusters"), runbook("ScoringAPIUnhealthy"), runbook("ConfigNotSynced")]),
    timeseries("Probes", "Probes of scoring APIs, by result. Results other than ok are reasons of conditions.", "ops",
               query(rate("dynamic_scoring_hub_probes_total", "probe", "result", chosen=SCORER), "{{probe}}: {{result}}"),
               overrides=PROBES, width=8, stack=True, min=0, panel_links=[runbook("ScoringAPIUnhealthy")]),
    timeseries("Response time of scoring APIs", "Probes, failed ones included: the 95th percentile of each scorer.", "s",
               query(f"""histogram_quantile(0.95, sum by (le, scorer)
                (rate(dynamic_scoring_hub_probe_duration_seconds_bucket{{{SCORER}}}[$__rate_interval])))""", "{{scorer}}"),
               width=8, min=0),
    timeseries("Clusters by state", "Pairs of a scorer and a cluster, by what the agents report.", "short",
               query(f"""sum by (state) (max by (scorer, state) (dynamic_scoring_hub_scorer_clusters{{{SCORER},
                state=~"scoring|failing|empty|suspended|waiting|silent"}}))""", "{{state}}"),
               overrides=STATES, width=8, stack=True, min=0, decimals=0, panel_links=[runbook("ClustersSilent")]),
)  # fmt: skip

distribution = row(
    "Distribution",
    timeseries("ManifestWorks", "Managed clusters by the state of their ManifestWork.", "short",
               query(f"max by (state) (dynamic_scoring_hub_clusters{{{CONTROLLER}}})", "{{state}}"),
               overrides=WORK_STATES, width=8, stack=True, min=0, decimals=0,
               panel_links=[runbook("ManifestWorksBehind")]),
    timeseries("From change to ManifestWork", "Time from a change until the ManifestWork of a cluster was written.", "s",
               *quantiles("dynamic_scoring_hub_distribution_duration_seconds"), width=8, min=0),
    timeseries("Lag", "Age of the oldest change that is not yet written.", "s",
               query(f"max(dynamic_scoring_hub_distribution_lag_seconds{{{CONTROLLER}}})", "lag"), width=8, min=0,
               panel_links=[runbook("ManifestWorksBehind")]),
    timeseries("Writes", "Writes to the API server, by operation and result.", "ops",
               query(rate("dynamic_scoring_hub_writes_total", "operation", "result"), "{{operation}}: {{result}}"),
               width=8, min=0),
    timeseries("Queues", "Keys that wait or are being worked on.", "short",
               query(f"max by (queue) (dynamic_scoring_hub_queue_length{{{CONTROLLER}}})", "{{queue}}"),
               width=8, min=0, decimals=0),
    timeseries("Reconciles", "Reconciles by controller and result.", "ops",
               query(rate("dynamic_scoring_hub_reconciles_total", "controller", "result"), "{{controller}}: {{result}}"),
               width=8, min=0),
    timeseries("Largest summaries", "Size of the largest list of summaries, and what a ManifestWork holds.", "bytes",
               query(f"max(dynamic_scoring_hub_summaries_bytes{{{CONTROLLER}}})", "summaries"),
               query("vector(500 * 1024)", "limit"),
               width=8, min=0, panel_links=[runbook("NoRoomInManifestWork")],
               overrides=[field("limit", custom__lineStyle={"fill": "dash"}, custom__fillOpacity=0,
                                color={"mode": "fixed", "fixedColor": RED})]),
    timeseries("API server", "Time since each watch last received anything; up to 150 s where nothing changes.", "s",
               query(f"""time() - max by (resource) (dynamic_scoring_kubernetes_last_answer_timestamp_seconds{{{CONTROLLER}}}
                and on (job, instance) dynamic_scoring_hub_leader{{{CONTROLLER}}})""", "{{resource}}"),
               width=8, min=0, panel_links=[runbook("ControllerApiAway")]),
    timeseries("Events dropped", "Kubernetes Events that could not be sent.", "short",
               query(f"sum(increase(dynamic_scoring_hub_events_dropped_total{{{CONTROLLER}}}[$__rate_interval]))", "dropped"),
               width=8, min=0, decimals=0),
)  # fmt: skip

controller = row(
    "Controller",
    timeseries("Resident memory", "Memory of each replica.", "bytes",
               query(f"""max by (instance) (process_resident_memory_bytes{{{CONTROLLER}}}
                and on (job, instance) dynamic_scoring_hub_leader{{{CONTROLLER}}})""", "{{instance}}"), width=6, min=0),
    timeseries("CPU", "Cores in use by each replica.", "short",
               query(f"""max by (instance) (rate(process_cpu_seconds_total{{{CONTROLLER}}}[$__rate_interval])
                and on (job, instance) dynamic_scoring_hub_leader{{{CONTROLLER}}})""", "{{instance}}"), width=6, min=0),
    timeseries("Leading", "1 for the replica that is active.", "none",
               query(f"max by (instance) (dynamic_scoring_hub_leader{{{CONTROLLER}}})", "{{instance}}"),
               width=6, min=0, max=1, decimals=0, panel_links=[runbook("HubNoLeader")]),
    timeseries("HTTP requests", "Requests served, by path and status.", "reqps",
               query(f"""sum by (handler, code) (rate(dynamic_scoring_http_requests_total{{{CONTROLLER}}}[$__rate_interval])
                and on (job, instance) dynamic_scoring_hub_leader{{{CONTROLLER}}})""", "{{handler}} {{code}}"), width=6, min=0),
)  # fmt: skip

IDLE = "no optimizer, or nothing asked of it"
optimizer = row(
    "Optimizer",
    timeseries("Requests to the optimizer", "Requests and tool calls of assistants, by operation and HTTP status.", "reqps",
               query(f"""sum by (operation, code)
                (rate(dynamic_scoring_optimizer_requests_total{{{OPTIMIZER}}}[$__rate_interval])) > 0""",
                     "{{operation}} {{code}}"),
               width=8, min=0, none=IDLE, panel_links=[runbook("OptimizerFails")]),
    timeseries("Plans", "Plans made within the rate interval, by status and by the engine that found them.", "short",
               query(f"""sum by (engine, status)
                (increase(dynamic_scoring_optimizer_plans_total{{{OPTIMIZER}}}[$__rate_interval])) > 0""",
                     "{{status}} by {{engine}}"),
               width=8, stack=True, min=0, none=IDLE),
    timeseries("Time of solving", "Time that the solvers took for a plan.", "s",
               *quantiles("dynamic_scoring_optimizer_solve_duration_seconds", OPTIMIZER), width=8, min=0, none=IDLE),
    timeseries("Gap of the last plan", "How far its objective may be from the best one: 0 is proven optimal.", "percentunit",
               query(f"max by (instance) (dynamic_scoring_optimizer_gap_ratio{{{OPTIMIZER}}})", "{{instance}}"),
               width=8, min=0, none=IDLE),
    timeseries("Workloads left out", "How many workloads a plan left out or gave fewer replicas than wanted, on average, by reason.", "short",
               query(f"""(sum by (reason) (increase(dynamic_scoring_optimizer_left_out_total{{{OPTIMIZER}}}[$__rate_interval])) > 0)
                / on () group_left ()
                sum(increase(dynamic_scoring_optimizer_plans_total{{{OPTIMIZER}}}[$__rate_interval]))""", "{{reason}}"),
               width=8, stack=True, min=0, none=IDLE),
    timeseries("Writes of plans", "Objects that plans wrote or deleted within the rate interval, by kind and result.", "short",
               query(f"""sum by (kind, result)
                (increase(dynamic_scoring_optimizer_writes_total{{{OPTIMIZER}}}[$__rate_interval])) > 0""",
                     "{{kind}}: {{result}}"),
               width=8, min=0, none="no plan was applied", panel_links=[runbook("OptimizerWritesRefused")]),
)  # fmt: skip

DASHBOARD = dashboard(
    "hub",
    "Dynamic scoring / Hub",
    f"The controller on the hub: health of scoring APIs, distribution to clusters, probes, queues; and plans. {HUB_ONLY}",
    variables=[
        data_source(),
        label_values("job", "Job", "label_values(dynamic_scoring_hub_leader, job)", every=".+"),
        label_values("instance", "Instance", 'label_values(dynamic_scoring_hub_leader{job=~"$job"}, instance)',
                     every=".+"),
        label_values("scorer", "Scorer",
                     f"label_values(dynamic_scoring_hub_scorer_ready{{{CONTROLLER}}}, scorer)"),
        label_values("optimizer", "Optimizer", "label_values(dynamic_scoring_optimizer_requests_total, instance)"),
        HUB_URL,
    ],
    annotations=[HUB_LEADER_CHANGES],
    links=[HUB_PAGE, ALL_RUNBOOKS],
    rows=[state, scorers, distribution, controller, optimizer],
)  # fmt: skip
