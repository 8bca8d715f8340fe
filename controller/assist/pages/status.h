/* What the page at / shows, as JSON.
 *
 * GET /api/v1/status is small, and asked for every few seconds:
 *
 *     {"role": "optimizer", "now": TIME, "startedAt": TIME, "build": {"version", "revision"},
 *      "writeNamespaces": ["default"], "deadlineSeconds": 10, "solver": PATH or null,
 *      "synced": true, "troubles": {"policies": "HTTP 403: ..." or null, ...},
 *      "plan": null or {"hash", "at": TIME, "appliedAt": TIME or null}, "webConfig"}
 *
 * GET /api/v1/plan is the last plan, asked for when that member changes; 404 before the first:
 *
 *     {"at": TIME, "appliedAt": TIME or null, "seconds": 0.42, "request": {...}, "answer": {...}}
 *
 * The answer is that of POST /plan. Of it the page uses status, objective_value, bound, gap, engine,
 * deadlineReached, planHash, missingScores, notes, and
 *
 *     placements: {workload, cluster, device, policy, score}
 *     clusters: {name, kind, device, policy, supplied, used}; the last two are numbers
 *     moves: {workload, from, to}
 *     leftOut: {workload, replicas, reason, message} */
#ifndef DS_ASSIST_PAGES_STATUS_H
#define DS_ASSIST_PAGES_STATUS_H

#include "controller/assist/state/assist.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/web/access.h"

struct assist_status {
    const struct assist_options *options;
    const struct world *world;
    const struct assist_last_plan *plan; /* NULL: none yet */
    const struct access *access;         /* NULL: no web configuration */
    unix_ms now;
};

/* Appends the JSON. -ENOMEM, -EFBIG. */
MUST_USE int assist_json_status(const struct assist_status *s, struct buf *into);
/* Shares request and answer. NULL: out of memory. */
json_t *assist_json_plan(const struct assist_last_plan *p);

#endif
