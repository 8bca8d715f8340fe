/* Writes what a plan became, or deletes what plans became, in one namespace.
 *
 * Nothing is made unless all can be: the API server first checks every write (dry run). Then new objects
 * are made, those whose name stays are updated in place, and others with the label are deleted, in this
 * order, so that no workload loses its Placement in between. If a write fails, those before it are undone.
 * What a killed program leaves behind has the label, and the next run replaces it. */
#ifndef DS_ASSIST_STATE_APPLY_H
#define DS_ASSIST_STATE_APPLY_H

#include "controller/kube/client.h"
#include "exporter/metric/metrics.h"

/* How a request ended. */
struct outcome {
    unsigned status; /* of HTTP */
    char detail[1024];
    json_t *body; /* the answer of a 200, otherwise members beside "detail"; borrowed; may be NULL */
};

/* Called once. May free anything. */
typedef void (*outcome_fn)(void *arg, const struct outcome *o);

struct apply;

struct apply_options {
    struct loop *loop;
    struct kube *kube;
    struct metrics *metrics;
    const char *namespace; /* copied */
    json_t *objects;       /* the objects wanted, a list; NULL: delete all that have the label */
    outcome_fn done;       /* not from inside apply_start() */
    void *arg;
};

/* So that the first write of a kind and result is an increase, too. */
void apply_count_from_zero(struct metrics *m);
/* -ENOMEM: `done` is never called. With objects, the body is {"created", "updated", "deleted"}; without,
 * {"deleted", "failed"}: lists of "Kind/name". */
MUST_USE int apply_start(struct apply **ret, const struct apply_options *o);
/* Stops where it is, without calling `done`. Takes NULL, returns NULL. */
struct apply *apply_free(struct apply *ap);

#endif
