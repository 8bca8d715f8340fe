/* Watches the Policies of a cluster and keeps its ClusterClaim. On the cluster itself, on the loop. */
#pragma once

#include "controller/kube/client.h"
#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"

struct policy_watcher;

struct policy_watcher_options {
    struct kube *kube; /* must outlive the watcher, as the metrics must */
    struct metrics *metrics;
    const char *namespace, *claim; /* not copied */
    int64_t stable_ms;
};

struct policy_watcher *policy_watcher_new(const struct policy_watcher_options *o);
/* Leaves the ClusterClaim as it is. Takes NULL, returns NULL. */
struct policy_watcher *policy_watcher_free(struct policy_watcher *w);

/* Whether the watcher knows the Policies and the ClusterClaim; if not, appends why. For a site. */
bool policy_watcher_ready(void *watcher, struct buf *why);
