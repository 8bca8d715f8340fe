"""Agents and their remote write: configuration, rounds, memory, what waits for the hub, HTTP."""

from panels import *  # noqa: F403

AGENT = '$cluster_label=~"$cluster|",job=~"$job",instance=~"$instance"'
SCORER = f'{AGENT},score_name=~"$score_name"'
ENDPOINT = f'{AGENT},remote_name=~"$remote_name"'
BY_AGENT = "by ($cluster_label, instance)"
AGENT_NAME = "{{$cluster_label}} {{instance}}"
ENDPOINT_NAME = "{{$cluster_label}} {{remote_name}}"


def of_agent(metric):
    return f"max {BY_AGENT} ({metric}{{{AGENT}}})"


def of_agents(expr):
    """Of metrics that other processes have, too: only those of agents."""
    return f"({expr} and on ($cluster_label, job, instance) dynamic_scoring_scorers{{{AGENT}}})"


def of_process(metric):
    return f"max {BY_AGENT} {of_agents(metric)}"


def of_endpoint(metric, more=""):
    return f"max by ($cluster_label, remote_name{more}) ({metric}{{{ENDPOINT}}})"


def rate(metric, chosen, *labels):
    """The sum over agents, each cluster counted once whichever way its metrics came."""
    listed = ", ".join(labels)
    return f"sum by ({listed}) (max by ($cluster_label, {listed}) (rate({metric}{{{chosen}}}[$__rate_interval])))"


def endpoint_rate(metric):
    return f"max by ($cluster_label, remote_name) (rate({metric}{{{ENDPOINT}}}[$__rate_interval]))"


def seconds_spent(metric):
    return f"sum(max by ($cluster_label, score_name) (rate({metric}{{{SCORER}}}[$__rate_interval])))"


def quantile(q, metric, chosen, *labels):
    by = ", ".join(("le", *labels))
    return f"""histogram_quantile({q}, sum by ({by}) (max by ($cluster_label, {by})
        (rate({metric}_bucket{{{chosen}}}[$__rate_interval]))))"""


RESULTS = [
    field("success", color={"mode": "fixed", "fixedColor": GREEN}),
    field("empty", color={"mode": "fixed", "fixedColor": YELLOW}),
    field("failure", color={"mode": "fixed", "fixedColor": RED}),
]
LIMIT = [field("limit", custom__lineStyle={"fill": "dash"}, custom__fillOpacity=0, color={"mode": "fixed", "fixedColor": RED})]

agents = row(
    "Agents",
    stat("Clusters", f"Clusters whose agents' metrics are here. {AGENTS_ONLY}", "short",
         query(f"count(max by ($cluster_label) (dynamic_scoring_scorers{{{AGENT}}}))", instant=True)),
    stat("Scorers", "Configured scorers, on all chosen clusters.", "short",
         query(f"sum(max by ($cluster_label) (dynamic_scoring_scorers{{{AGENT}}}))", instant=True)),
    stat("Series", "Score series currently exposed, on all chosen clusters.", "short",
         query(f"sum(max by ($cluster_label) (dynamic_scoring_total_series{{{AGENT}}}))", instant=True)),
    stat("Rejected configurations",
         "Clusters whose newest configuration was rejected; the last valid one stays active. The status page says why.",
         "short",
         query(f"sum(min by ($cluster_label) (dynamic_scoring_config_last_reload_successful{{{AGENT}}}) == bool 0)",
               instant=True),
         colors=(GREEN, (1, RED)), panel_links=[runbook("ConfigInvalid")]),
    stat("Samples pending", "Samples that wait to be sent, on all chosen clusters.", "short",
         query(f"sum({of_endpoint('prometheus_remote_storage_samples_pending')})", instant=True),
         none="no remote write", panel_links=[runbook("RemoteWriteBehind")]),
    stat("Endpoints that fail", "Remote-write endpoints whose requests fail and are retried, or that reject all samples.", "short",
         query(f"sum({of_endpoint('dynamic_scoring_remote_write_up')} == bool 0)", instant=True),
         colors=(GREEN, (1, RED)), none="no remote write", panel_links=[runbook("RemoteWriteBehind")]),
    table("Versions", "Clusters by version of their agent.",
          {"version": "Version", "revision": "Revision"},
          [column("Clusters", f"""count by (version, revision) (max by ($cluster_label, version, revision)
            (dynamic_scoring_build_info and on ($cluster_label, job, instance) dynamic_scoring_scorers{{{AGENT}}}))""",
                  "short")],
          width=8, height=6, sort=("Clusters", True)),
    timeseries("Leading", "1 for the agent that scores; with one replica, always 1.", "none",
               query(of_agent("dynamic_scoring_leader"), AGENT_NAME), width=8, height=6, min=0, max=1, decimals=0),
    timeseries("API servers", "1 while a resource is being watched, on the hub or on the cluster itself.", "none",
               query(f"""min by ($cluster_label, server, resource) (dynamic_scoring_kubernetes_up{{{AGENT}}})""",
                     "{{$cluster_label}} {{server}} {{resource}}"),
               width=8, height=6, min=0, max=1, decimals=0, panel_links=[runbook("HubApiAway")]),
)  # fmt: skip

rounds = row(
    "Rounds",
    timeseries("Rounds", "Rounds of all scorers, by result.", "ops",
               query(rate("dynamic_scoring_rounds_total", SCORER, "result"), "{{result}}"),
               width=8, interval="1m", stack=True, min=0, overrides=RESULTS),
    timeseries("Errors", "Failed rounds by stage and class.", "ops",
               query(rate("dynamic_scoring_round_errors_total", SCORER, "stage", "class"), "{{stage}}: {{class}}"),
               width=8, interval="1m", stack=True, min=0, none="none",
               panel_links=[runbook("ScorerFailing"), runbook("ScoringErrorRatio")]),
    timeseries("Time spent",
               "Seconds that rounds spend per second, by what they wait for. Rounds run side by side: more than 1 is fine.",
               "none",
               query(seconds_spent("dynamic_scoring_fetch_seconds_total"), "source"),
               query(seconds_spent("dynamic_scoring_perform_seconds_total"), "scoring API"),
               query(seconds_spent("dynamic_scoring_send_seconds_total"), "sinks"),
               width=8, interval="2m", stack=True, min=0, panel_links=[runbook("SourceSlow")]),
    timeseries("Longest turns of the event loop",
               "The 99th percentile: for so long, no other event of the agent was handled.", "s",
               query(f"""histogram_quantile(0.99, max by ($cluster_label, le)
                {of_agents("rate(dynamic_scoring_loop_stall_seconds_bucket[$__rate_interval])")})""", "{{$cluster_label}}"),
               width=8, interval="1m", min=0),
    timeseries("Expired scores", "Times that scores of failing scorers became too old and were removed.", "short",
               query(f"""sum by (score_name) (max by ($cluster_label, score_name)
                (increase(dynamic_scoring_expired_total{{{SCORER}}}[$__rate_interval])))""", "{{score_name}}"),
               width=8, interval="1m", min=0, decimals=0, panel_links=[runbook("ScoresExpired")]),
    timeseries("Limits", "Rounds that failed, or label values that were truncated, because of a limit.", "ops",
               query(rate("dynamic_scoring_limit_hits_total", SCORER, "limit"), "{{limit}}"),
               width=8, interval="1m", min=0, none="none", panel_links=[runbook("SeriesLimitReached")]),
)  # fmt: skip

process = row(
    "Process",
    timeseries("Resident memory", "Memory of each agent.", "bytes",
               query(of_process("process_resident_memory_bytes"), AGENT_NAME), width=6, min=0),
    timeseries("Memory of responses",
               "Memory that responses of sources and scoring APIs hold, as a part of its limit (`limits.memory`).",
               "percentunit",
               query(f"{of_agent('dynamic_scoring_response_memory_bytes')} / {of_agent('dynamic_scoring_response_memory_limit_bytes')}",
                     AGENT_NAME),
               query("vector(1)", "limit"),
               width=6, min=0, overrides=LIMIT),
    timeseries("CPU", "Cores in use by each agent.", "short",
               query(f"""max {BY_AGENT} (rate(process_cpu_seconds_total[$__rate_interval])
                and on ($cluster_label, job, instance) dynamic_scoring_scorers{{{AGENT}}})""", AGENT_NAME),
               width=6, min=0),
    timeseries("Open files", "Open file descriptors as a part of what each agent may open.", "percentunit",
               query(f"{of_process('process_open_fds')} / {of_process('process_max_fds')}", AGENT_NAME),
               width=6, min=0),
)  # fmt: skip

remote = row(
    "Remote write",
    timeseries("Lag",
               "Time from the newest queued sample to the newest that the endpoint has accepted, once one was.", "s",
               query(f"""{of_endpoint("prometheus_remote_storage_queue_highest_timestamp_seconds")}
                - ({of_endpoint("prometheus_remote_storage_queue_highest_sent_timestamp_seconds")} > 0)""", ENDPOINT_NAME),
               width=8, min=0, panel_links=[runbook("RemoteWriteBehind")]),
    timeseries("Samples", "Samples accepted by the endpoints, and those that were not.", "ops",
               query(f"sum({endpoint_rate('prometheus_remote_storage_samples_total')})", "accepted"),
               query(f"sum({endpoint_rate('prometheus_remote_storage_samples_retried_total')})", "retried"),
               query(f"sum({endpoint_rate('prometheus_remote_storage_samples_failed_total')})", "rejected"),
               width=8, min=0),
    timeseries("Dropped samples", "Samples that were dropped, by reason.", "ops",
               query(f"""sum by (reason) (max by ($cluster_label, remote_name, reason)
                (rate(prometheus_remote_storage_samples_dropped_total{{{ENDPOINT}}}[$__rate_interval])))""", "{{reason}}"),
               width=8, min=0, panel_links=[runbook("RemoteWriteDropping")]),
    timeseries("Pending samples", "Samples that wait to be sent, on disk and in memory.", "short",
               query(of_endpoint("prometheus_remote_storage_samples_pending"), ENDPOINT_NAME), width=8, min=0,
               panel_links=[runbook("RemoteWriteBehind")]),
    timeseries("Spool", "Bytes of the spool's files, and of those among them that are not sent.", "bytes",
               query(of_endpoint("dynamic_scoring_remote_write_spool_bytes"), ENDPOINT_NAME),
               query(f"{of_endpoint('dynamic_scoring_remote_write_spool_idle_bytes', ', state')} > 0",
                     f"{ENDPOINT_NAME} {{{{state}}}}"),
               width=8, interval="1m", min=0, panel_links=[runbook("RemoteWriteSpoolFilling")]),
    timeseries("Response time of endpoints", "Quantiles of all requests, failed ones included.", "s",
               *(query(quantile(q, "prometheus_remote_storage_sent_batch_duration_seconds", ENDPOINT), f"p{round(q * 100)}")
                 for q in (0.5, 0.95, 0.99)),
               width=8, interval="1m", min=0),
    table("Endpoints", "The state of each endpoint. Spool 0: new samples are kept in memory only.",
          {"ds_cluster": "Cluster", "remote_name": "Endpoint"},
          [column(title, f"""max by (ds_cluster, remote_name) (label_replace(
            {metric}, "ds_cluster", "$1", "$cluster_label", "(.+)"))""", unit, **properties)
           for title, metric, unit, properties in (
               ("Up", f"dynamic_scoring_remote_write_up{{{ENDPOINT}}}", "none", colored(RED, (1, GREEN))),
               ("Spool", f"dynamic_scoring_remote_write_spool_up{{{ENDPOINT}}}", "none", colored(RED, (1, GREEN))),
               ("Series", f"dynamic_scoring_remote_write_series{{{ENDPOINT}}}", "short", {}),
               ("Samples per request, at most", f"prometheus_remote_storage_max_samples_per_send{{{ENDPOINT}}}", "short", {}),
               ("Damaged in 1 h", f"increase(dynamic_scoring_remote_write_damaged_bytes_total{{{ENDPOINT}}}[1h])", "bytes", colored(GREY, (1, RED))),
           )],
          width=24, height=6, sort=("Up", False)),
)  # fmt: skip

http = row(
    "HTTP",
    timeseries("Requests", "Requests served, by path and status.", "reqps",
               query(f"""sum by (handler, code) (max by ($cluster_label, handler, code)
                {of_agents("rate(dynamic_scoring_http_requests_total[$__rate_interval])")})""", "{{handler}} {{code}}"),
               width=8, min=0),
    timeseries("Response bodies", "Bytes of response bodies, by path.", "Bps",
               query(f"""sum by (handler) (max by ($cluster_label, handler)
                {of_agents("rate(dynamic_scoring_http_response_bytes_total[$__rate_interval])")})""", "{{handler}}"),
               width=8, min=0),
    timeseries("Readers cut off", "Responses that ended early because their client read too slowly.", "short",
               query(f"""sum(max by ($cluster_label)
                {of_agents("increase(dynamic_scoring_http_readers_cut_total[$__rate_interval])")})""", "cut off"),
               width=8, min=0, decimals=0),
)  # fmt: skip

DASHBOARD = dashboard(
    "agent",
    "Dynamic scoring / Agent and remote write",
    "Agents: configuration, rounds, memory, remote write and its spool, HTTP.",
    variables=[
        data_source(),
        label_values("cluster", "Cluster", "label_values(dynamic_scoring_scorers, $cluster_label)"),
        label_values("job", "Job", 'label_values(dynamic_scoring_scorers{$cluster_label=~"$cluster|"}, job)'),
        label_values("instance", "Instance",
                     'label_values(dynamic_scoring_scorers{$cluster_label=~"$cluster|",job=~"$job"}, instance)'),
        label_values("score_name", "Score", f"label_values(dynamic_scoring_up{{{AGENT}}}, score_name)"),
        label_values("remote_name", "Endpoint",
                     f"label_values(dynamic_scoring_remote_write_up{{{AGENT}}}, remote_name)"),
        CLUSTER_LABEL,
        HUB_URL,
        AGENT_URL,
    ],
    annotations=[CONFIG_CHANGES, LEADER_CHANGES],
    links=[AGENT_PAGE, HUB_PAGE, ALL_RUNBOOKS],
    rows=[agents, rounds, process, remote, http],
)  # fmt: skip
