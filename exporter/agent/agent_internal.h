/* Inside of the agent: what its files share. */
#ifndef DS_AGENT_AGENT_INTERNAL_H
#define DS_AGENT_AGENT_INTERNAL_H

#include "exporter/agent/agent.h"

enum { AGENT_MAX_SINKS = 8 };

struct agent {
    const struct agent_options *options;
    struct loop *loop;
    struct http *http;
    struct page *page;
    struct metrics *metrics;
    struct secret_files secrets;
    struct source_env source_env;
    struct scorer_env scorer_env;
    struct config *config;
    struct scorer **scorers; /* in the order of the configuration */
    size_t n_scorers;
    struct sink *sinks[AGENT_MAX_SINKS];
    size_t n_sinks;
    struct timer own_timer;
    mono_ms own_at; /* last rendered */
    bool own_rendered;
    struct reload_status reload;
    int64_t started_ms;
    char *what; /* where the summaries come from, if not from the file */
    struct agent_hooks hooks;
};

/* Renders the program's own metrics into the page, now. */
void agent_render_own(struct agent *a);
/* Takes a scorer's scores out of every sink. */
void agent_withdraw(struct agent *a, const struct scorer *s);

#endif
