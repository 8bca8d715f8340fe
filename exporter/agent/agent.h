/* The agent: configuration → scorers → sinks, on one loop. Free of Kubernetes. */
#pragma once

#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/page.h"
#include "exporter/otlp/receiver.h"
#include "exporter/score/credentials.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/sink.h"
#include "exporter/ui/site.h"
#include "exporter/web/access.h"

struct agent;

struct agent_options {
    const char *config_file; /* read by agent_reload(); NULL: only defaults, and agent_apply_configmap() */
    /* From flags, which override the file; NULL or empty where not given. */
    const char *cluster_name, *secrets_dir, *storage_path;
    const char *listen[CONFIG_MAX_LISTEN];
    size_t n_listen;
    const enum log_level *log_level;
    const enum log_format *log_format;
    const struct config_section *section;
    bool once; /* one round of each scorer, then the loop stops */
};

/* The loop and the options must outlive the agent. */
MUST_USE int agent_new(struct agent **ret, struct loop *loop, const struct agent_options *o);
struct agent *agent_free(struct agent *a);

/* Reads the file and applies it: unchanged scorers continue, changed ones restart, and scores of removed ones
 * are withdrawn. A ConfigMap that was rejected because of the file is applied with it. On failure nothing
 * changes. Appends every problem to *ret_why (may be NULL), a line each. -EINVAL if the file is invalid,
 * -ENOMEM. */
MUST_USE int agent_reload(struct agent *a, struct buf *ret_why);
/* Likewise with the ConfigMap's lists of summaries and of suspended ones, which replace the file's from then
 * on and may be empty. What is wrong with them stays in the status until others are given, whatever the file
 * says. `name`: "namespace/name", not copied. */
MUST_USE int agent_apply_configmap(struct agent *a, const char *name, struct str summaries,
                                   struct str suspended);
/* Until the ConfigMap is read: what the file says but for its summaries. */
MUST_USE int agent_apply_no_summaries(struct agent *a);
/* Adds a sink, before the first configuration is applied. Not owned. */
void agent_add_sink(struct agent *a, struct sink *s);
/* What is current, for a sink that starts late: the batches of all scorers that have scores, one a call, NULL
 * after the last and on a standby. *at is 0 for the first. */
struct batch *agent_next_batch(const struct agent *a, size_t *at);

/* One of several replicas leads, as an agent does unless told otherwise; the others have a configuration, but
 * no scorers. At a change the hook `config` and the sinks' `applied` are called as for a new one. */
void agent_set_leading(struct agent *a, bool leading);
/* Whether it leads at this very moment: after a pause of the process, timers run before it is told. */
bool agent_leads(const struct agent *a);

/* What the status page shows about the HTTP server's configuration; NULL for nothing. */
void agent_set_access(struct agent *a, struct access *access);

/* Something that the program's own metrics show has changed: renders them soon. */
void agent_touch(struct agent *a);

/* How the leader is elected, for the status page. */
struct agent_election {
    bool leading;         /* by the time: false as soon as the Lease may have expired */
    const char *identity; /* of this replica */
    const char *holder;   /* the leader; "" if unknown */
    const char *error;    /* why the Lease cannot be read or written; NULL if it can */
};

/* What the program that runs the agent adds to it. Each function may be NULL. */
struct agent_hooks {
    /* A configuration is being applied; its scorers start next, on the leader. The pointer must not be
     * kept. */
    void (*config)(void *arg, const struct config *c);
    /* The program's own metrics are about to be rendered. */
    void (*render)(void *arg);
    /* Writes where scores are sent to, as items of the list `remoteWrite` of the status. */
    void (*endpoints)(void *arg, struct buf *o);
    /* False without an election. Valid until the next turn. */
    bool (*election)(void *arg, struct agent_election *ret);
    /* What was received by OTLP; false without a receiver. */
    bool (*otlp)(void *arg, struct otlp_status *ret);
    void *arg;
    struct secrets *secrets; /* where tokens are read, not owned; NULL: files under secretsDir */
    /* What sources of type OpenTelemetry without an endpoint query, see struct source_env; not owned. */
    struct store *store;
    const char *otlp_url;
};

/* Copies the hooks. Once, before the first configuration is applied; NULL removes them. */
void agent_set_hooks(struct agent *a, const struct agent_hooks *hooks);

/* The outcome of the last attempt to read a configuration. */
struct reload_status {
    bool ok;
    int64_t at_ms;  /* Unix time */
    char *problems; /* errors and warnings, a line each; NULL for none */
};

/* What others may read of an agent; the agent alone writes it. */
struct agent_state {
    struct loop *loop;
    struct http *http;
    struct page *page;
    struct metrics *metrics;
    struct config *config;   /* NULL until the first configuration is applied */
    const char *config_file; /* its path; empty without one */
    const char *configmap;   /* "namespace/name", where the summaries are from; NULL: the file, if any */
    struct reload_status reload;
    bool leading;
    struct scorer **scorers; /* in the order of the configuration; none on a standby */
    size_t n_scorers;
    int64_t started_ms; /* Unix time */
    struct agent_hooks hooks;
    struct access *access; /* of the HTTP server; NULL before it serves */
};
const struct agent_state *agent_state(const struct agent *a);

/* Its scorers, by state, and the series of all together. */
struct agent_totals {
    size_t by_state[SCORER_STATES];
    size_t series;
};

struct agent_totals agent_totals(const struct agent_state *a);
/* Whether a scorer has not had its first round. Suspended ones have none. */
bool agent_has_rounds_left(const struct agent_state *a);
