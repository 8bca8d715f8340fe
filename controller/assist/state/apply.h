/* Writes the objects of a plan in one namespace, or deletes those of all plans there.
 *
 * The API server first checks every write by a dry run, and nothing is written unless it accepts them all.
 * Then new objects are created, those whose name stays are patched, and others with the label are deleted,
 * in this order, so that no workload loses its Placement in between. If a write fails all the same, no
 * further one is started, and the outcome lists what is written. All objects have the label, so that applying
 * again completes or replaces what a failure or a kill -9 has left. */
#ifndef DS_ASSIST_STATE_APPLY_H
#define DS_ASSIST_STATE_APPLY_H

#include "controller/assist/state/reader.h"

struct apply;

struct apply_options {
    struct loop *loop;
    struct kube *kube;
    struct reader *reader;
    struct metrics *metrics;
    const char *namespace; /* copied */
    json_t *objects;       /* the objects wanted, a list; NULL: delete all that have the label */
    /* Without a failure, `written` (borrowed) is {"created", "updated", "deleted"} with objects, else
     * {"deleted", "failed"}: lists of "Kind/name". After a failure it is NULL if nothing was written, or
     * {"written": {"created", "updated", "deleted", "unknown"}, "conflicts"}, where `unknown` may have been
     * written, and `conflicts` are objects of the same names that no plan made. May free it. */
    void (*done)(void *arg, const struct objection *failure, json_t *written);
    void *arg;
};

/* So that the first write of a kind and result is an increase, too. */
void apply_count_from_zero(struct metrics *m);
struct apply *apply_new(const struct apply_options *o);
/* Ends with `done`, now or later, and before the reader is freed or apply_free() is called. */
void apply_run(struct apply *ap);
/* After the list was read: stops where it is, without calling `done`. Takes NULL, returns NULL. */
struct apply *apply_free(struct apply *ap);

#endif
