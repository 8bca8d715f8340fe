/* The agent put together: configuration → scorers → sinks, on one loop. Free of Kubernetes. */
#ifndef DS_AGENT_AGENT_H
#define DS_AGENT_AGENT_H

#include "exporter/agent/scorer.h"
#include "exporter/metric/page.h"

struct agent;

struct agent_options {
    const char
        *config_file; /* read again by agent_reload(); NULL: none, the defaults and agent_apply_text() */
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
/* The same with summaries from elsewhere, a watched object for one, that `what` names: what else there is to configure still comes
 * from the file and the flags, and the file's own summaries do not count any more. `text` is as the ConfigMap holds it. */
MUST_USE int agent_apply_text(struct agent *a, const char *what, struct str text, struct buf *ret_why);
/* Adds a sink, before the first configuration is applied. Not owned. -ENOSPC. */
MUST_USE int agent_add_sink(struct agent *a, struct sink *s);

/* Called with each configuration as it is applied, before its scorers start. One; it must not keep what it is given. */
void agent_on_config(struct agent *a, void (*fn)(void *arg, const struct config *c), void *arg);
/* Called when a configuration has been applied: agent_scorer() gives its scorers, and those before are gone. One. */
void agent_on_applied(struct agent *a, void (*fn)(void *arg), void *arg);
/* Called when a scorer's round has ended, well or not, or its scores have grown too old. One. */
void agent_on_round(struct agent *a, void (*fn)(void *arg, const struct scorer *s), void *arg);
/* Secrets come from there instead of files; NULL: from files again. Not owned. */
void agent_set_secrets(struct agent *a, struct secrets *s);
/* What the scorer's last round failed for may have passed, a missing token for one: if it was refused, the next starts at once. */
void agent_wake(struct agent *a, const struct scorer *s);
/* Called before the program's own metrics are rendered, to bring some of them up to date. One. */
void agent_on_render(struct agent *a, void (*fn)(void *arg), void *arg);
/* Something outside of the agent has changed what the own metrics show: soon they are rendered. */
void agent_touch(struct agent *a);

/* Where scores are sent to, for the status page. Strings live as long as the configuration. */
struct endpoint_status {
    const char *name, *url; /* without credentials */
    const char *state;      /* "starting", "ok", "sending", "failing" */
    const char *protocol;   /* the form in use: "1.0", "2.0", "vm" */
    double behind_s;        /* how much older the oldest sample that waits is than the newest */
    uint64_t samples_sent, samples_pending, samples_dropped;
    bool spool; /* what waits is on disk too */
    uint64_t spool_bytes;
    int64_t sent_at_ms, retry_at_ms, error_at_ms; /* Unix time; 0: never, or not now */
    char error[512]; /* the last, in the receiver's words; empty when all is well */
};
/* get() makes the list anew; it stays until the next call. */
void agent_set_endpoints(struct agent *a, const struct endpoint_status *(*get)(void *arg, size_t *ret_n),
                         void *arg);
const struct endpoint_status *agent_endpoints(const struct agent *a, size_t *ret_n);

/* NULL until the first configuration is applied. */
const struct config *agent_config(const struct agent *a);
struct page *agent_page(struct agent *a);
struct metrics *agent_metrics(struct agent *a);
struct loop *agent_loop(struct agent *a);
struct http *agent_http(struct agent *a);
size_t agent_scorers(const struct agent *a);
const struct scorer *agent_scorer(const struct agent *a, size_t i);

/* About the last configuration that was read. */
struct reload_status {
    bool ok;
    int64_t at_ms;  /* Unix time of the last try */
    char *problems; /* all of them, a line each; NULL when there were none. Warnings too */
};
const struct reload_status *agent_reload_status(const struct agent *a);
/* The file, or what else, that the configuration is read from. */
const char *agent_config_file(const struct agent *a);
/* When the agent started, Unix time. */
int64_t agent_started_ms(const struct agent *a);

#endif
