/* The optimizer: makes plans, keeps them for a while, and applies them. Argument of its operations. */
#pragma once

#include "controller/assist/call.h"
#include "exporter/base/loop.h"
#include "exporter/ui/site.h"

struct kube;
struct metrics;
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
