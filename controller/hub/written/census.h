/* The newest counts of the fleet, and whether they still fit. A count of a large fleet takes milliseconds,
 * so it is made when somebody needs it, not at each change. Loop thread. */
#pragma once

#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/options.h"
#include "controller/hub/written/desired.h"
#include "exporter/base/clock.h"

/* How well the counts fit what has been observed since. */
enum census_state {
    CENSUS_WRONG,   /* anything may have changed */
    CENSUS_OLD,     /* only clusters have changed: good enough for a while */
    CENSUS_CURRENT, /* nothing has changed but the time */
};

struct census {
    const struct hub_options *o;
    struct observed *seen; /* a count notes which scorers are distributed, and lets go of clusters */
    const struct desired *desired;
    /* A plan was made since this controller leads: what is up to date is not what the last one wrote. */
    bool is_planned;
    /* Private */
    struct counts *counts;
    enum census_state state;
    mono_ms counted_at;
};

/* The public members are set. */
void census_begin(struct census *c);
void census_done(struct census *c);

/* Something has changed; only clusters have. */
void census_note_change(struct census *c);
void census_note_cluster(struct census *c);

/* A view of the fleet with the last counts: those of a page, which must not delay the loop. Valid in this
 * turn, and until the next count. */
struct fleet census_view(const struct census *c);
/* Likewise, counted anew if anything has changed. */
struct fleet census_count(struct census *c);
/* Likewise, but if only clusters have changed, counts may be ten times as old as counting takes. */
struct fleet census_count_lazily(struct census *c);
/* Likewise, counted anew in any case: states change by time alone, too. */
struct fleet census_recount(struct census *c);
bool census_is_current(const struct census *c);
/* The scorer is about to be freed. */
void census_forget(struct census *c, const struct hub_scorer *s);
