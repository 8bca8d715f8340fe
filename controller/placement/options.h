/* What the scores are written for: whose, and where. */
#pragma once

#include "controller/kube/client.h"
#include "exporter/metric/metrics.h"

#include <stdbool.h>

struct placement_options {
    struct kube *hub;
    struct metrics *metrics;
    void (*on_change)(void *arg); /* metrics or errors may have changed; may be NULL */
    void *arg;
    const char *cluster_name; /* the namespace, and ${cluster}; not owned, like all strings here */
    const char *owner;  /* "<namespace>/<add-on>": stable over restarts, unique per agent; no "/" in either */
    bool adopt_unowned; /* take over an object of a scorer's name that names no owner */
};
