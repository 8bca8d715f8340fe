/* The optimiser: what it knows (world.h), plans under way and kept, and what it writes. Argument of its
 * operations. */
#ifndef DS_ASSIST_STATE_ASSIST_H
#define DS_ASSIST_STATE_ASSIST_H

#include "controller/assist/state/world.h"
#include "exporter/base/clock.h"

struct assist;

struct assist_options {
    struct loop *loop;
    struct kube *kube;
    struct metrics *metrics;
    const char *const *write_namespaces; /* where Placements and bindings may be made */
    size_t n_write_namespaces;           /* 0: plans only */
    int64_t deadline_ms;                 /* of the solver */
    const char *cbc;                     /* see struct solve_options */
};

/* Everything in the options must outlive it. -ENOMEM. */
MUST_USE int assist_new(struct assist **ret, const struct assist_options *o);
/* Ends plans and writes under way; calls of them end with 503. Takes NULL, returns NULL. */
struct assist *assist_free(struct assist *a);
DEFINE_CLEANUP(struct assist, assist_free)

const struct world *assist_world(const struct assist *a);
bool assist_may_write(const struct assist *a, const char *namespace);
const struct assist_options *assist_options(const struct assist *a);
/* The last request that was planned, whoever asked for it; NULL before the first. Borrowed until the loop's
 * next turn. For the page, see pages/status.h. */
const struct assist_last_plan *assist_last_plan(const struct assist *a);

struct assist_last_plan {
    unix_ms at;            /* when it was made */
    unix_ms applied_at;    /* when its objects were written; 0: not applied, or reset since */
    double seconds;        /* that solving took */
    const char *namespace; /* of the request */
    json_t *request;       /* as it came */
    json_t *answer;        /* that of POST /plan, without output_yaml */
};

#endif
