/* Private to assist*.c and plan*.c. */
#ifndef DS_ASSIST_STATE_ASSIST_INTERNAL_H
#define DS_ASSIST_STATE_ASSIST_INTERNAL_H

#include "controller/assist/rules/fingerprint.h"
#include "controller/assist/state/apply.h"
#include "controller/assist/state/assist.h"
#include "exporter/base/clock.h"
#include "exporter/base/worker.h"

#include <stdatomic.h>
#include <sys/queue.h>

enum {
    PLAN_MAX_QUEUED = 8,
    PLANS_MAX_KEPT = 16,
    PLAN_KEPT_MS = 15 * 60 * 1000,
};

/* A plan that may be applied. */
struct kept_plan {
    unsigned refs; /* beside the first */
    char hash[PLAN_HASH_BYTES];
    json_t *request, *fingerprint;
    const char *namespace; /* of the request */
    json_t *answer;        /* with output_yaml, not yet applied */
    json_t *objects;       /* a list */
    bool is_empty;         /* nothing is placed */
    mono_ms made_at;
    double seconds, gap;
    const char *status, *engine;
    TAILQ_ENTRY(kept_plan) entry;
};

TAILQ_HEAD(plan_list, kept_plan);

/* A thread, and how many jobs it has. Plans to be applied are compared on a thread of their own, so that they
 * do not wait for solvers. */
struct plan_lane {
    struct worker *worker;
    unsigned queued;
};

enum cel_support { CEL_UNKNOWN, CEL_IS_ASKED, CEL_ABSENT, CEL_PRESENT };

struct assist {
    struct assist_options o;
    struct world *world;
    struct plan_lane solving, comparing;
    atomic_bool cancel;     /* read by the workers */
    struct plan_list plans; /* the latest first */
    size_t n_plans;
    struct apply *writer; /* NULL: none */
    outcome_fn writer_done;
    void *writer_arg;
    struct kept_plan *writing;    /* owned; NULL: a reset */
    const char *writes_namespace; /* one of o.write_namespaces */
    struct assist_last_plan last;
    bool has_last;
    enum cel_support cel;
    struct kube_call *schema;
    struct buf schema_text; /* so far */
    bool is_ending;
};

static inline struct kept_plan *kept_plan_ref(struct kept_plan *p)
{
    p->refs++;
    return p;
}
struct kept_plan *kept_plan_free(struct kept_plan *p);
DEFINE_CLEANUP(struct kept_plan, kept_plan_free)

/* Ends a request that failed. */
void assist_refuse(outcome_fn done, void *arg, unsigned status, const char *field, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
/* Puts the plan in place of an older one of the same hash. Takes it. */
void assist_keep(struct assist *a, struct kept_plan *p);
struct kept_plan *assist_find(struct assist *a, const char *hash);
/* Writes the objects of a plan, which is taken (NULL: deletes all), if the namespace is one of those that may
 * be written to, and then calls `done`. */
void assist_write(struct assist *a, const char *namespace, struct kept_plan *p, outcome_fn done, void *arg);
/* Asks the API server whether Placements know celSelector, unless that is known. */
void assist_ask_schema(struct assist *a);

#endif
