/* Everything that states, counts, statuses and pages are made from: what was observed, the plan made from
 * it, and the time. A view, to be made anew for each turn: it owns nothing, and nobody changes anything by
 * it. */
#pragma once

#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/options.h"
#include "controller/hub/rules/plan.h"
#include "exporter/base/clock.h"

struct counts;

struct fleet {
    const struct hub_options *o;
    const struct observed *seen;
    const struct plan *plan;     /* NULL: nothing to distribute */
    const struct counts *counts; /* the newest ones */
    mono_ms now;
    unix_ms wall;            /* by the API server's clock, as reports have their times */
    int64_t clock_offset_ms; /* how far that is ahead of ours */
};
