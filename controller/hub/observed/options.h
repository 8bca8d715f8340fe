/* What the controller was started with. Set by its command, and never changed; everything in it outlives
 * the hub. */
#pragma once

#include "controller/hub/probe/probe.h"
#include "exporter/base/loop.h"
#include "exporter/base/trim.h"
#include "exporter/http/http.h"
#include "exporter/metric/metrics.h"

struct hub_options {
    struct loop *loop;
    struct trim *trim; /* of the process, after a roll-out; NULL: there is none */
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
