/* The optimizer: makes plans, keeps them for a while, and applies them. Argument of its operations. */
#ifndef DS_ASSIST_STATE_ASSIST_H
#define DS_ASSIST_STATE_ASSIST_H

#include "controller/assist/state/reader.h"
#include "exporter/base/clock.h"

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
/* Ends plans and writes under way; calls of them end with 503. Takes NULL, returns NULL. */
struct assist *assist_free(struct assist *a);
DEFINE_CLEANUP(struct assist, assist_free)

struct reader *assist_reader(const struct assist *a);
const struct assist_options *assist_options(const struct assist *a);

/* ---- Operations: `a` is the assist ---- */

void assist_plan(void *a, struct call *c);
/* Plans, and applies the plan at once unless the request says dryRun. */
void assist_optimize(void *a, struct call *c);
/* Applies a plan unless what it was made from has changed. */
void assist_apply(void *a, struct call *c);
/* Deletes what plans have made in the namespace. */
void assist_reset(void *a, struct call *c);

struct assist_last_plan {
    unix_ms at;            /* when it was made */
    unix_ms applied_at;    /* when its objects were written; 0: not applied, or reset since */
    double seconds;        /* that solving took */
    const char *namespace; /* of the request */
    json_t *request;       /* as it came */
    json_t *answer;        /* that of POST /plan, without output_yaml */
};

/* The last plan that was made; NULL before the first. Borrowed until the loop's next turn. For the page, see
 * operations/web.c. */
const struct assist_last_plan *assist_last_plan(const struct assist *a);

#endif
