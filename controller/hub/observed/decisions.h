/* Which clusters each Placement has decided on, and which of those that have left its PlacementDecisions
 * still count. Loop thread. */
#pragma once

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/cut.h"
#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"

struct decisions {
    struct map placements; /* Placements of the hub's namespace: name → json_t * */
    struct map objects;    /* PlacementDecisions there: name → json_t * */
    /* Private */
    struct map decided;       /* struct decided, by Placement */
    bool changed;             /* since the last review */
    size_t reviews;           /* so far */
    mono_ms due;              /* when a cluster that has left ceases to count; 0: none has */
    bool awaits_list;         /* one would, but for a list that is newer */
    bool is_starting;         /* not all objects have been listed yet */
    struct map texts;         /* struct start_text, while it starts */
    mono_ms started_at;       /* since when the clusters at the start count; 0: they do not */
    struct kube_cut work_cut; /* of the watch of the ManifestWorks */
};

/* Before the first list: the texts of ManifestWorks are read until decisions_resume(). */
void decisions_begin(struct decisions *d);
/* A ManifestWork as the watch shows it. */
void decisions_note_work(struct decisions *d, struct hub_cluster *c, const json_t *work);
/* All objects have been listed. Ignored but for the first time. */
void decisions_resume(struct decisions *d, const struct scorers *scorers, const struct clusters *clusters,
                      mono_ms now);

/* What the watches show; NULL: its end. */
void decisions_see_placement(struct decisions *d, const char *name, json_t *object);
void decisions_see_decision(struct decisions *d, const char *name, json_t *object);

/* Before a plan: brings up to date which clusters count. listed: when the newest complete list of
 * PlacementDecisions was begun. */
void decisions_review(struct decisions *d, const struct scorers *scorers, const struct clusters *clusters,
                      mono_ms listed, mono_ms now);
/* Whether the PlacementDecisions are to be listed anew, and reviewed after that. */
bool decisions_await_list(const struct decisions *d);
/* Milliseconds until the next review is due; INT64_MAX: not by time alone. */
int64_t decisions_due_ms(const struct decisions *d, mono_ms now);

/* How many clusters of that Placement count. */
size_t decisions_count(const struct decisions *d, const char *placement);
/* The names of the clusters that the scorer's Placements give it, on the heap; NULL: all clusters. The
 * names live until the next review. */
struct map *decisions_of_scorer(const struct decisions *d, const struct hub_scorer *s);
/* What its clusters held at the start counts no longer. */
void scorer_forget_start(struct hub_scorer *s);
void decisions_done(struct decisions *d, const struct clusters *clusters);
