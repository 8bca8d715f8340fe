/* The optimizer: makes plans, keeps them for a while, and applies them. Argument of its operations. */
#pragma once

#include "controller/assist/api.h"
#include "controller/assist/snapshot.h"
#include "exporter/base/clock.h"
#include "exporter/ui/site.h"

struct assist;

struct assist_options {
    struct loop *loop;
    struct kube *kube;
    struct metrics *metrics;
    const char *const *write_namespaces; /* where Placements and bindings may be made */
    size_t n_write_namespaces;           /* 0: plans only */
    int64_t deadline_ms;                 /* of the solver */
};

enum { PLAN_MAX_QUEUED = 8 };

/* Everything in the options must outlive it. -EAGAIN without a thread. */
MUST_USE int assist_new(struct assist **ret, const struct assist_options *o);
/* Ends plans and writes under way; calls of them end with 503, which the server still sends. Takes NULL. */
void assist_end(struct assist *a);
/* After the site was stopped, whose threads read the routes until then. Takes NULL, returns NULL. */
struct assist *assist_free(struct assist *a);
DEFINE_CLEANUP(struct assist, assist_free)

/* Starts the HTTP server, for which it sets the role's part of *o. `allow_writes`: by assistants. The server
 * is to be stopped once the loop has ended and `a` is freed, and sends the last answers then. On failure
 * *ret_why (from malloc) says what is wrong. */
MUST_USE int assist_serve(struct site **ret, struct assist *a, struct site_options *o, bool allow_writes,
                          char **ret_why);

/* ---- Operations: `a` is the assist ---- */

void assist_plan(void *a, struct call *c);
/* Plans, and applies the plan at once unless the request says dryRun. */
void assist_optimize(void *a, struct call *c);
/* Applies a plan unless what it was made from has changed. */
void assist_apply(void *a, struct call *c);
/* Deletes what plans have made in the namespace. */
void assist_reset(void *a, struct call *c);

/* ---- apply.c: Writes the objects of a plan in one namespace, or deletes those of all plans there.
 *
 * Nothing is written unless the API server accepts every write in a dry run. New objects come before old ones
 * go, so that no workload loses its Placement in between. After a failure no further write is started. All
 * objects have the label, so that applying again completes or replaces what a failure or a kill -9 left. */

struct apply;

/* Without a failure, `written` (borrowed) is {"created", "updated", "deleted"} with objects, else {"deleted",
 * "failed"}: lists of "Kind/name". After a failure it is NULL if nothing was written, or {"written":
 * {"created", "updated", "deleted", "unknown"}, "conflicts"}, where `unknown` may have been written, and
 * `conflicts` are objects of the same names that no plan made. May free the apply. */
typedef void (*apply_done_fn)(void *arg, const struct api_error *failure, json_t *written);

/* So that the first write of a kind and result is an increase, too. */
void apply_count_from_zero(struct metrics *m);
/* Sets *ret, then ends with `done`: now, later, or before the reader is freed or apply_free() is called.
 * `objects`: those that are wanted, a list; NULL: deletes all that have the label. The options and the
 * namespace must outlive it. */
void apply_start(struct apply **ret, const struct assist_options *o, struct snapshot_reader *r,
                 const char *namespace, json_t *objects, apply_done_fn done, void *arg);
/* After the list was read: stops where it is, without calling `done`. Takes NULL, returns NULL. */
struct apply *apply_free(struct apply *ap);

/* ---- What fills in the answers of operations that list and explain ---- */

void scores_fill(struct listing *l, const struct snapshot *hub);
void policies_fill(struct listing *l, const struct snapshot *hub);
void workloads_fill(struct listing *l, const struct snapshot *hub);
void scorers_fill(struct listing *l, const struct snapshot *hub);
void explain_fill(struct listing *l, const struct snapshot *hub);
