/* Writes the objects of a plan in one namespace, or deletes those of all plans there. On the loop.
 *
 * Nothing is written unless the API server accepts every write in a dry run. New objects come before old
 * ones go, so that no workload loses its Placement in between. After a failure no further write is
 * started. All objects have the label, so that applying again completes or replaces what a failure or a
 * kill -9 left. */
#pragma once

#include "controller/assist/api_error.h"

#include <jansson.h>

struct apply;
struct kube;
struct loop;
struct metrics;
struct snapshot_reader;

/* Without a failure, `written` (borrowed) is {"created", "updated", "deleted"} with objects, else
 * {"deleted", "failed"}: lists of "Kind/name". After a failure it is NULL if nothing was written, or
 * {"written": {"created", "updated", "deleted", "unknown"}, "conflicts"}, where `unknown` may have been
 * written, and `conflicts` are objects of the same names that no plan made. May free the apply. */
typedef void (*apply_done_fn)(void *arg, const struct api_error *failure, json_t *written);

/* So that the first write of a kind and result is an increase, too. */
void apply_count_from_zero(struct metrics *m);
/* All must outlive the apply, but for the objects, of which it takes a reference. */
struct apply_options {
    struct loop *loop;
    struct kube *kube;
    struct metrics *metrics;
    const char *namespace;
    json_t *objects; /* those that are wanted, a list; NULL: deletes all that have the label */
    apply_done_fn done;
    void *arg;
};

/* Sets *ret, then ends with `done`: now, later, or before the reader is freed or apply_free() is called. */
void apply_start(struct apply **ret, const struct apply_options *o, struct snapshot_reader *r);
/* After the list was read: stops where it is, without calling `done`. Takes NULL, returns NULL. */
struct apply *apply_free(struct apply *ap);
