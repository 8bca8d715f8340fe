/* The agent's OTLP receiver and the series that it keeps, if a flag asks for them. */
#ifndef DS_CONTROLLER_AGENT_OTLP_H
#define DS_CONTROLLER_AGENT_OTLP_H

#include "controller/flags.h"
#include "exporter/agent/agent.h"
#include "exporter/otlp/receiver.h"

struct agent_otlp_flags {
    const char *listen;    /* NULL: no receiver */
    bool k8s_labels;       /* resource attributes of Kubernetes become labels */
    const char *promoted;  /* further resource attributes, separated by commas; NULL: none */
    const char *query_url; /* what sources of type OpenTelemetry without an endpoint query; NULL: the agent */
};

/* For struct flag: --otlp.promote-resource-attributes. */
bool agent_otlp_parse_promoted(void *field, const char *value, const struct flag *f);
/* --otlp.query-url. */
bool agent_otlp_parse_url(void *field, const char *value, const struct flag *f);

struct agent_otlp;

/* The store for the series; sets *ret to NULL without --otlp.listen-address. -ENOMEM. */
MUST_USE int agent_otlp_new(struct agent_otlp **ret, struct loop *loop, const struct agent_otlp_flags *f);
/* After the agent, which reads the series. Takes NULL, returns NULL. */
struct agent_otlp *agent_otlp_free(struct agent_otlp *x);
DEFINE_CLEANUP(struct agent_otlp, agent_otlp_free)

/* NULL for NULL. */
struct store *agent_otlp_store(struct agent_otlp *x);
/* Starts and stops to receive; do nothing for NULL. On failure *ret_why (from malloc) says why. */
MUST_USE int agent_otlp_start(struct agent_otlp *x, struct agent *agent, const char *web_config_file,
                              char **ret_why);
void agent_otlp_stop(struct agent_otlp *x, int grace_ms);
/* For agent_hooks. All do nothing for NULL. */
void agent_otlp_apply(struct agent_otlp *x, const struct config *c);
void agent_otlp_render(struct agent_otlp *x);
bool agent_otlp_status(struct agent_otlp *x, struct otlp_status *ret);

#endif
