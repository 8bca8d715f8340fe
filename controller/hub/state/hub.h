/* The hub's controller: DynamicScorers and the DynamicScoringConfig in, a ManifestWork for each managed
 * cluster out, and how all of it goes into their status. Level-based: each change only says what to look at
 * again, and a relist mends what was missed.
 *
 * Only the leader probes, writes and sends events; a standby follows the objects, so that it can take over
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
    const char *identity;        /* of this process: for the Lease and Events */
    struct probe_settings probe;
    bool leader_elect, keep_unhealthy;
    unsigned api_qps, api_burst; /* requests that write, in each second and at once */
};

/* Starts following the objects. Everything of the options must outlive the hub. -ENOMEM. */
MUST_USE int hub_new(struct hub **ret, const struct hub_options *o);
/* Stops leading and gives the lease back; `done` (may be NULL) when that has ended, well or not. */
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
