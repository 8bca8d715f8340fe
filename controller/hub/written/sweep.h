/* Deletes the AddOnPlacementScores that an agent has left on the hub when its add-on has gone: one cluster
 * at a time, a list of its scores, then one delete after the other. Loop thread. */
#pragma once

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/options.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"

struct sweep {
    const struct hub_options *o;
    struct clusters *clusters; /* of which it changes whether they are swept */
    /* Private */
    bool is_active;           /* else nothing is deleted */
    struct kube_queue *queue; /* of clusters that are swept */
    struct kube_call *call;   /* for one of them */
    char *cluster;            /* which; NULL: none */
    json_t *left;             /* the list of its scores; NULL: not read yet */
};

/* The public members are set. */
void sweep_begin(struct sweep *s);
void sweep_done(struct sweep *s);

/* Of the active controller. */
void sweep_start(struct sweep *s);
/* Another controller deletes from now on: cancels what is under way. */
void sweep_stop(struct sweep *s);
/* It is known which clusters have lost their add-on: sweeps those of which no ManifestWork is left. */
void sweep_review(struct sweep *s);
