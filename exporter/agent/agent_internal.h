/* Private to agent*.c. */
#ifndef DS_AGENT_AGENT_INTERNAL_H
#define DS_AGENT_AGENT_INTERNAL_H

#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/score/secrets.h"
#include "exporter/score/source.h"

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
    char *what; /* the name of the text that gave the summaries; NULL: the file */
    struct agent_hooks hooks;
};

/* Renders the program's own metrics into the page now. */
void agent_render_own(struct agent *a);
/* Removes the scores of s from every sink. arg: the agent, as for scorer_env. */
void agent_withdraw(void *arg, struct scorer *s);

#endif
