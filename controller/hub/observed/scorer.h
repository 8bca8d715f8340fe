/* A DynamicScorer: its object as the watch shows it, its last valid spec and summary, and what probes have
 * found out. Each part says who changes it; everyone may read all of it. Loop thread. */
#pragma once

#include "controller/hub/observed/last_status.h"
#include "controller/hub/observed/options.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "controller/placement/items.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"

/* Which list of the ManifestWorks has it: the one that agents work on, or the suspended one. */
enum hub_place { PLACE_NONE, PLACE_SUMMARIES, PLACE_SUSPENDED };

struct hub_scorer;

/* What the last plan has made of a scorer. Only written/desired.c changes it. */
struct scorer_share {
    enum hub_place place;                  /* also as of the last plan scheduled for that */
    char object_name[OBJECT_NAME_MAX + 1]; /* of its AddOnPlacementScore; empty without */
    const struct hub_scorer *older;        /* owns the same score name or object; NULL when unique */
    const struct hub_scorer *younger;      /* the last of those that are left out in favour of this one */
    bool same_object;                      /* older shares the object only, not the score name */
    size_t entry;                          /* in the plan; SIZE_MAX: not in any summary */
    size_t n_without_addon;                /* clusters that would be selected */
    char *first_without_addon;             /* one of them */
};

struct hub_scorer {
    struct scorers *all;
    json_t *object; /* as last seen */
    char *name;
    int64_t created; /* Unix time, seconds */
    /* scorer.c */
    struct scorer_spec spec; /* the last valid one */
    bool has_spec;
    char spec_error[SPEC_WHY_BYTES]; /* why the newest spec is invalid; empty when it is valid */
    struct effective effective;      /* the summary that agents should have */
    struct probe *probe;
    enum probe_health health; /* as last logged */
    int64_t suspended_ms;     /* Unix time at which it became unhealthy, in whole seconds; 0: it is not */
    int64_t distributed_ms;   /* Unix time at which a first cluster had it in its summaries; 0: none has */
    uint64_t probe_hash;      /* the last probe outcome that a status was scheduled for */
    /* Clusters whose ManifestWork had it at the start. Private to decisions.c */
    struct map at_start;
    struct scorer_share share;
    struct last_status last_status;
};

/* All of them. */
struct scorers {
    const struct hub_options *o;
    struct hub_scorer **by_age; /* the oldest first */
    size_t n;
    bool is_probing; /* only the active controller does */
    /* A probe has changed something, by enum hub_change. */
    void (*on_probed)(void *arg, struct hub_scorer *s, unsigned changes);
    void *arg;
};

/* NULL when there is none of that name. */
struct hub_scorer *scorers_find(const struct scorers *all, const char *name);
/* Whether some scorer names Placements. */
bool scorers_use_placements(const struct scorers *all);
/* What the watch shows, which is not the end of the scorer. Returns what has to be looked at again. */
unsigned scorers_see(struct scorers *all, json_t *object);
/* Whether the object, NULL for none, is the end of the scorer: it is gone, or has been created anew. */
bool scorer_has_ended(const struct hub_scorer *s, const json_t *object);
/* Frees it. Nothing may name it any more. */
void scorers_remove(struct scorers *all, struct hub_scorer *s);
/* Of the active controller: probes all. */
void scorers_start_probes(struct scorers *all);
/* Of a standby, which takes over from what the leader has written. Returns what has to be looked at again. */
unsigned scorers_stop_probes(struct scorers *all);
/* After a count: whether a first cluster has it in its summaries. */
void scorer_note_distribution(struct hub_scorer *s, bool is_up_to_date_somewhere, unix_ms now);
void scorers_done(struct scorers *all);
