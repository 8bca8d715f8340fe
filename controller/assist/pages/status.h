/* What the page at / shows, as JSON.
 *
 * GET /api/v1/status is small, and asked for every few seconds:
 *
 *     {"role": "optimizer", "now": TIME, "startedAt": TIME, "build": {"version", "revision"},
 *      "writeNamespaces": ["default"], "deadlineSeconds": 10, "solver": PATH of dynamic-scoring-cbc or null,
 *      "synced": true, "troubles": {"policies": "HTTP 403: ..." or null, ...},
 *      "plan": null or {"hash", "at": TIME, "appliedAt": TIME or null}, "webConfig"}
 *
 * GET /api/v1/plan is the last plan, asked for when that member changes; 404 before the first:
 *
 *     {"now": TIME, "at": TIME, "appliedAt": TIME or null, "seconds": 0.42, "request": {...}, "answer": {...}}
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
#include "exporter/web/access.h"

/* Append the JSON. -ENOMEM, -EFBIG; assist_json_plan(): -ENOENT before the first plan. */
MUST_USE int assist_json_status(const struct assist *a, const struct access *access, unix_ms now,
                                struct buf *into);
MUST_USE int assist_json_plan(const struct assist *a, unix_ms now, struct buf *into);

#endif
