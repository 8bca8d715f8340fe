/* The hub's controller: distributes DynamicScorers to managed clusters by ManifestWorks, as the
 * DynamicScoringConfig says, and writes the outcome into their statuses. Level-based: a change only says
 * what to look at again, and a relist repairs what was missed.
 *
 * Only the leader probes, writes and sends Events; a standby watches the objects, so that it can take over
 * at once. */
#ifndef DS_HUB_HUB_H
#define DS_HUB_HUB_H

#include "controller/hub/probe/probe.h"
#include "exporter/metric/metrics.h"

struct hub;

struct hub_options {
    struct loop *loop;
    struct http *http;
    struct kube *kube;
    struct metrics *metrics;     /* of METRIC_OWNER_LOOP */
    const char *namespace;       /* of the objects, the Lease and the Secrets */
    const char *agent_namespace; /* on managed clusters */
    const char *addon_name;      /* of the ManagedClusterAddOns that tell whether agents run */
    const char *identity;        /* of this process, for the Lease and Events */
    struct probe_settings probe;
    bool leader_elect, keep_unhealthy;
    unsigned api_qps, api_burst; /* write requests per second, and in a burst */
};

/* Starts watching the objects. Everything in the options must outlive the hub. */
struct hub *hub_new(const struct hub_options *o);
/* Stops leading and releases the Lease; then calls `done` (may be NULL), also after a failure. */
void hub_stop(struct hub *h, void (*done)(void *arg), void *arg);
struct hub *hub_free(struct hub *h);
DEFINE_CLEANUP(struct hub, hub_free)

/* Whether all objects have been listed once. */
bool hub_synced(const struct hub *h);
/* Starts or stops probing and writing, after h->leading or the state of the watches has changed. */
void hub_update_active(struct hub *h);
/* Brings the gauges up to date, before they are rendered. */
void hub_set_metrics(struct hub *h);

#endif
