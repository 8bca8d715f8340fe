/* Credentials from Secrets in the agent's namespace, each watched by its name, so that a new or changed
 * Secret takes effect at once. */
#ifndef DS_CONTROLLER_AGENT_SECRETS_H
#define DS_CONTROLLER_AGENT_SECRETS_H

#include "controller/kube/client.h"
#include "exporter/agent/agent.h"
#include "exporter/score/summary.h"

struct agent_secrets;

/* -ENOMEM. The namespace is not owned. */
struct agent_secrets *agent_secrets_new(const struct agent_state *a, struct kube *k, const char *namespace);
struct agent_secrets *agent_secrets_free(struct agent_secrets *s);
struct secrets *agent_secrets_reader(struct agent_secrets *s);
/* Watches the Secrets that the agent's configuration refers to, and no others. */
void agent_secrets_sync(struct agent_secrets *s);
/* The same for a configuration yet to be applied; `ready` runs once, in a later turn, when each of the
 * Secrets was read or cannot be read. */
void agent_secrets_prepare(struct agent_secrets *s, const struct summaries *wanted, void (*ready)(void *arg),
                           void *arg);

#endif
