/* The ManifestWork of each cluster: created, patched and deleted by a queue, one call at a time for a
 * cluster. Loop thread. */
#pragma once

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/options.h"
#include "controller/hub/written/desired.h"
#include "controller/kube/events.h"

struct works {
    const struct hub_options *o;
    struct observed *seen; /* of which it changes each cluster's `write`, and its work when it was written */
    struct desired *desired; /* what to write */
    struct kube_events *events;
    /* Something has to be looked at again, by enum hub_change. */
    void (*note)(void *arg, unsigned changes);
    /* Nothing is under way for the cluster any more; may remove it. */
    void (*on_idle)(void *arg, struct hub_cluster *c);
    void *arg;
    /* Private */
    struct kube_writer writer; /* its keys: names of clusters */
    json_t *frame;             /* work_frame() */
    bool is_active;            /* else nothing is written */
};

/* The public members are set. */
void works_begin(struct works *w);
void works_done(struct works *w);

/* Of the active controller. */
void works_start(struct works *w);
/* Another controller writes from now on: cancels what is under way. */
void works_stop(struct works *w);

/* Has the ManifestWork written if it is not as it should be. */
void works_reconcile(struct works *w, struct hub_cluster *c);
/* After a plan: likewise for all. */
void works_reconcile_all(struct works *w);
/* What the watch shows of a ManifestWork; NULL: its end. It comes by here, as only the writer knows
 * whether it is older than what was written. *ret_news: of its report. Returns what has to be looked at
 * again. */
unsigned works_see(struct works *w, struct hub_cluster *c, const json_t *object, enum report_news *ret_news);
/* Before a plan: clusters without a ManagedCluster have left, and works that their watch lacks are gone. */
void works_review(struct works *w);
/* The cluster is about to be removed. */
void works_forget(struct works *w, const struct hub_cluster *c);
