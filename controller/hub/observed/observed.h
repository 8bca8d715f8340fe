/* All that the hub has observed: objects, reports and probes, and how its own writes went. What follows
 * from it is computed from this alone, a plan, and the time. Loop thread. */
#pragma once

#include "controller/hub/observed/addons.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/decisions.h"
#include "controller/hub/observed/scorer.h"
#include "controller/kube/resource.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

/* The kinds of objects that the hub watches. HUB_CLUSTERS to HUB_ADDONS are watched in all namespaces, the
 * others in the controller's own. */
enum hub_kind {
    HUB_SCORERS,
    HUB_CONFIGS,
    HUB_CLUSTERS,
    HUB_WORKS,
    HUB_ADDONS,
    HUB_PLACEMENTS,
    HUB_DECISIONS,
    HUB_KINDS
};

struct observed {
    struct kube_watch *watches[HUB_KINDS];
    bool is_outdated[HUB_KINDS]; /* what was there at the takeover is not known yet */
    mono_ms took_over_at;
    mono_ms refused_at[HUB_KINDS]; /* since when the API server refuses to show the kind; 0: it does not */
    struct scorers scorers;
    struct configs configs;
    struct clusters clusters;
    struct addons addons;
    struct decisions decisions;
};

/* For people: "ManagedClusters". */
const char *hub_kind_word(enum hub_kind kind);
const struct kube_resource *hub_kind_resource(enum hub_kind kind);
/* Whether it is watched in all namespaces, rather than in the controller's own. */
bool hub_kind_is_everywhere(enum hub_kind kind);
/* Whether only scorers with spec.placements need it. */
bool hub_kind_is_of_placements(enum hub_kind kind);

/* Whether the kind's objects have been listed, or need not be: add-ons only if they can be. */
bool observed_has_listed(const struct observed *seen, enum hub_kind kind);
bool observed_has_listed_all(const struct observed *seen);
/* A standby has taken over: its watches may show an older state, as a stream dies without a sign, lags, or
 * waits for its next attempt. Kinds of the controller's own namespace, which are few objects, are listed
 * anew; the streams of the others are opened anew. */
void observed_take_over(struct observed *seen, mono_ms now);
/* Whether all that can be watched has been known as it was at the takeover, or later. To be asked again and
 * again, as it asks for what is missing. */
bool observed_has_caught_up(struct observed *seen);
/* Appends the kinds that a leader waits for: those that have never been listed, or after these, those that
 * are not known yet as they were at the takeover. */
void observed_put_awaited(const struct observed *seen, struct buf *into);
/* Whether the API server has no such kind, or refuses to show it. */
bool observed_is_refused(const struct observed *seen, enum hub_kind kind);
/* The kind's watch has an error, or no longer has one. */
void observed_note_error(struct observed *seen, enum hub_kind kind, mono_ms now);
void observed_note_recovery(struct observed *seen, enum hub_kind kind);
/* Why the API server refuses to show a kind of objects that is needed, if it has for half a minute: one that
 * starts refuses everything for some seconds, until it knows its Roles. NULL: it does not. */
const char *observed_refusal(const struct observed *seen, enum hub_kind kind, mono_ms now);
/* Milliseconds until the next observed_refusal() begins; INT64_MAX: none will. */
int64_t observed_refusal_due_ms(const struct observed *seen, mono_ms now);
/* Why a kind of objects cannot be watched; NULL when it can, need not be, or nothing is known yet. */
const char *observed_error(const struct observed *seen, enum hub_kind kind);
/* Before a plan, also on a standby, which may take over at any moment: what changes by time alone. Returns
 * addons_review(). */
bool observed_review(struct observed *seen, mono_ms now);
/* Milliseconds until the next review is due; INT64_MAX: not by time alone. */
int64_t observed_due_ms(const struct observed *seen, mono_ms now);
/* After all writes have been cancelled. The watches belong to the conductor. */
void observed_done(struct observed *seen);
