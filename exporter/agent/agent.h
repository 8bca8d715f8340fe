/* The agent put together: configuration → scorers → sinks, on one loop. Free of Kubernetes. */
#ifndef DS_AGENT_AGENT_H
#define DS_AGENT_AGENT_H

#include "exporter/agent/scorer.h"
#include "exporter/metric/page.h"

struct agent;

struct agent_options {
    const char *config_file; /* read again by agent_reload() */
    /* What flags say, winning over the file: NULL or empty where they say nothing. */
    const char *cluster_name, *secrets_dir, *storage_path;
    const char *listen[CONFIG_MAX_LISTEN];
    size_t n_listen;
    const enum log_level *log_level;
    const enum log_format *log_format;
    const struct config_section *sections;
    size_t n_sections;
    bool once; /* one round of each scorer, then the loop stops */
};

/* -ENOMEM. The loop and the options must outlive the agent. */
MUST_USE int agent_new(struct agent **ret, struct loop *loop, const struct agent_options *o);
struct agent *agent_free(struct agent *a);
DEFINE_CLEANUP(struct agent, agent_free)

/* Reads the file and applies it: unchanged scorers keep their rounds, changed ones start anew, removed ones take their
 * scores away. On failure all stays as it was; *ret_why (may be NULL, appended to) then has every problem, a line each.
 * -EINVAL for a bad file, -ENOMEM. */
MUST_USE int agent_reload(struct agent *a, struct buf *ret_why);
/* Adds a sink, before the first configuration is applied. Not owned. -ENOSPC. */
MUST_USE int agent_add_sink(struct agent *a, struct sink *s);

/* NULL until the first configuration is applied. */
const struct config *agent_config(const struct agent *a);
struct page *agent_page(struct agent *a);
struct metrics *agent_metrics(struct agent *a);
struct loop *agent_loop(struct agent *a);
size_t agent_scorers(const struct agent *a);
const struct scorer *agent_scorer(const struct agent *a, size_t i);

/* About the last configuration that was read. */
struct reload_status {
    bool ok;
    int64_t at_ms;  /* Unix time of the last try */
    char *problems; /* all of them, a line each; NULL when there were none. Warnings too */
};
const struct reload_status *agent_reload_status(const struct agent *a);
/* The file that the configuration is read from. */
const char *agent_config_file(const struct agent *a);
/* When the agent started, Unix time. */
int64_t agent_started_ms(const struct agent *a);

#endif
