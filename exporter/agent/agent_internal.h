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
    struct agent_state state;
    struct secret_files secrets;
    struct worker *worker; /* reads large responses */
    struct source_env source_env;
    struct scorer_env scorer_env;
    struct sink *sinks[AGENT_MAX_SINKS];
    size_t n_sinks;
    struct timer own_timer;
    mono_ms own_at; /* last rendered */
    bool own_rendered;
    char *text_name;  /* origin of the summaries; NULL: the file */
    struct buf piped; /* the text of a file that is a pipe, which can be read only once */
};

/* Renders the program's own metrics into the page now. */
void agent_render_own(struct agent *a);
/* Removes the scores of s from every sink. arg: the agent, as for scorer_env. */
void agent_withdraw(void *arg, struct scorer *s);

#endif
