/* The hub's controller: distributes DynamicScorers to managed clusters by ManifestWorks, as the
 * DynamicScoringConfig says, and writes the outcome into their statuses. Level-based: a change only says
 * what to look at again, and a relist repairs what was missed. Only the leader probes, writes and sends
 * Events; a standby watches the objects, so that it can take over at once. README.md has the rooms below.
 *
 * Loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/options.h"
#include "controller/kube/json.h"

struct access;
struct hub;

/* Starts watching the objects. Everything in the options must outlive the hub. */
struct hub *hub_new(const struct hub_options *o);
/* Stops leading and releases the Lease; then calls `done` (may be NULL), also after a failure. */
void hub_stop(struct hub *h, void (*done)(void *arg), void *arg);
struct hub *hub_free(struct hub *h);

/* ---- For pages and metrics, which change nothing ---- */

/* The fleet with the last counts, for this turn. */
struct fleet hub_fleet(const struct hub *h);
/* Counts that are not those of now are made anew within a second: pages do not wait for that. */
void hub_ask_for_counts(struct hub *h);

/* What it is itself. */
struct hub_self {
    bool is_leading;
    bool is_active;          /* leads, has listed all objects, and is not stopping: probes and writes */
    bool has_counts;         /* the counts of hub_fleet() are those of now */
    const char *holder;      /* of the Lease; its own identity without election */
    const char *lease_error; /* NULL: none */
    int64_t started_ms;
    const struct access *access; /* of the HTTP server; NULL before it serves */
};
struct hub_self hub_self(const struct hub *h);
void hub_set_access(struct hub *h, const struct access *access);
/* Brings the gauges up to date, before they are rendered. hub: a struct hub. */
void hub_set_metrics(void *hub);

/* ---- What drives it: called by its own watches and Lease, and by tests ---- */

/* What a watch shows. name: of the object, or of its cluster. object: NULL when it is gone. */
void hub_see(struct hub *h, enum hub_kind kind, const char *name, json_t *object);
/* Whether this process leads. */
void hub_lead(struct hub *h, bool leads);
/* Notes what has to be looked at again, by enum hub_change. hub: a struct hub. */
void hub_note(void *hub, unsigned changes);
/* The fleet with counts of now. */
struct fleet hub_count(struct hub *h);
