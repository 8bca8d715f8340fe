/* Credentials from Secrets in the agent's namespace. Each is watched by its name, so that a new or changed
 * Secret takes effect at once, and only those that the configuration names are. On the loop. */
#pragma once

#include "exporter/agent/agent.h"
#include "exporter/score/summary.h"

#include <stdbool.h>

struct agent_secrets;
struct kube;

struct agent_secrets_options {
    struct agent *agent; /* whose scorers are woken */
    struct kube *cluster;
    const char *namespace; /* not copied */
    void (*on_read)(
        void *arg); /* one more was read, or cannot be: agent_secrets_are_read() may have changed */
    void *arg;
};

struct agent_secrets *agent_secrets_new(const struct agent_secrets_options *o);
/* Takes NULL, returns NULL. */
struct agent_secrets *agent_secrets_free(struct agent_secrets *s);
/* What rounds read them by; NULL for NULL. */
struct secrets *agent_secrets_reader(struct agent_secrets *s);
/* Watches the Secrets that these summaries refer to, and no others. Takes NULL. */
void agent_secrets_sync(struct agent_secrets *s, const struct summaries *wanted);
/* Whether each of them was read, or cannot be. True for NULL. */
bool agent_secrets_are_read(const struct agent_secrets *s);
