/* The summaries from a ConfigMap of the agent's own cluster: each change is applied at once. On the loop.
 *
 * With `once` it is read and applied a single time, when the Secrets that it names have been read, too.
 * The loop stops if that is not possible, or if there are no scorers. */
#pragma once

#include "controller/placement/adjust.h"

#include <stdbool.h>

struct agent;
struct agent_configmap;
struct agent_secrets;
struct kube;

struct agent_configmap_options {
    struct agent *agent; /* to which it is applied */
    struct kube *cluster;
    const char *namespace, *name;  /* not copied */
    struct agent_secrets *secrets; /* with `once`: those to wait for; NULL: none */
    bool once;
    /* The adjustments have changed, and the summaries that came with them are applied next; not with `once`.
     * The callee takes what is in the list. */
    void (*on_adjustments)(void *arg, struct adjustments *list);
    /* It was applied, or the store went back in time, and the report with it. Not with `once`. */
    void (*on_change)(void *arg);
    /* agent_configmap_catch_up() has ended: the state is known again. */
    void (*on_current)(void *arg);
    void *arg;
};

enum configmap_state {
    CONFIGMAP_UNKNOWN, /* nothing was read that could be applied, or what was read may be old */
    CONFIGMAP_READ,
    CONFIGMAP_MISSING, /* it does not exist */
};

struct agent_configmap *agent_configmap_new(const struct agent_configmap_options *o);
/* Takes NULL, returns NULL. */
struct agent_configmap *agent_configmap_free(struct agent_configmap *c);
/* The agent begins to lead: what it knows as a standby may be old, so the state is CONFIGMAP_UNKNOWN until
 * the ConfigMap has been listed again, for at most a minute. It stays applied. Takes NULL. */
void agent_configmap_catch_up(struct agent_configmap *c);
/* What is known; already the new state while an agent applies the ConfigMap. CONFIGMAP_UNKNOWN for NULL. */
enum configmap_state agent_configmap_state(const struct agent_configmap *c);
/* The last valid adjustments into *ret, which the caller frees; none for NULL. */
void agent_configmap_adjustments(const struct agent_configmap *c, struct adjustments *ret);
/* A Secret was read, or cannot be: with `once` this may be the time to apply. Takes NULL. */
void agent_configmap_check_secrets(struct agent_configmap *c);
