/* Counts over the whole fleet: of all clusters, and of each scorer's. A value: counts_new() makes it from
 * a view, and changes nothing. written/census.c owns the newest one. Loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"
#include "exporter/score/feature.h"

enum { HUB_NAMED_CLUSTERS = 10 }; /* clusters named in a status */
enum cluster_rank { RANK_FAILING, RANK_SILENT, RANK_PENDING };

/* Clusters of a kind, and the first few of them, by rank, then by name. */
struct named_clusters {
    size_t total, n;
    const struct hub_cluster *list[HUB_NAMED_CLUSTERS];
    unsigned ranks[HUB_NAMED_CLUSTERS];
};
struct counted_clusters {
    size_t total;
    const struct hub_cluster *first; /* by name; NULL: none */
};

/* Of the clusters selected for one scorer. */
struct tally {
    size_t selected;
    size_t up_to_date;                     /* ManifestWork holds the newest summary */
    size_t applied;                        /* of up_to_date: applied by the work agent */
    size_t of_class[PAIR_CLASSES];         /* they add up to selected */
    size_t not_applied;                    /* of those that fail: ManifestWork not written or not applied */
    size_t stuck;                          /* of up_to_date: the work agent cannot apply it */
    size_t no_items;                       /* of empty: there were results, but none led to an item */
    size_t unavailable;                    /* of silent: there is a reason for that */
    size_t reporting;                      /* an agent has reported */
    size_t scored_meanwhile;               /* of suspended: its agent scored after probes had failed */
    size_t no_room;                        /* not selected: its ManifestWork is full */
    size_t api_healthy;                    /* its agent got an answer of the scoring API in the last round */
    struct counted_clusters api_unhealthy; /* its agent failed on the scoring API */
    struct counted_clusters write_errors, apply_errors;
    struct counted_clusters unconfirmed;      /* of up_to_date: neither applied nor an error yet */
    struct named_clusters outdated[FEATURES]; /* their agents are too old for this part of the scorer */
    struct named_clusters named;              /* that do not score: failing ones first, pending ones last */
};

/* Of all clusters. */
struct hub_totals {
    size_t managed;
    size_t up_to_date, behind; /* add up to managed */
    size_t failing;            /* of behind: the last write failed */
    size_t leaving;            /* ManifestWorks still to be deleted */
    size_t applied, unapplied; /* of up_to_date: applied; reported as not applicable */
    size_t reporting, scoring_all, with_failures;
    size_t largest;                        /* bytes of the largest summaries */
    size_t left_out;                       /* scorers without room on some cluster */
    double lag_s;                          /* of the cluster that has been behind longest */
    struct named_clusters named;           /* not written or not applied: those with an error first */
    struct counted_clusters works;         /* ManifestWorks that exist */
    struct counted_clusters without_addon; /* accepted, but not served: they lack the agent's add-on */
    size_t adjusted;                       /* clusters that have an adjustment in force */
    struct named_clusters unadjusted;      /* of these: their agents are too old for it */
};

struct counts {
    struct hub_totals totals;
    /* Unix time at which the next scores expire, or count no longer as an add-on is not available; INT64_MAX:
     * none do. */
    int64_t expiry_ms;
    /* Private: read by the functions below. */
    struct map tallies;    /* by scorer: struct scorer_tally */
    struct map expired;    /* the names of clusters on which scores have expired */
    size_t *without_items; /* for each adjustment of the plan that was counted */
    json_t *adjustments;   /* the document of those, a reference */
};

/* f->counts is not read. */
struct counts *counts_new(const struct fleet *f);
struct counts *counts_free(struct counts *c);
/* All zero for a scorer that was not there yet. */
const struct tally *counts_of(const struct counts *c, const struct hub_scorer *s);
/* Whether scores had expired there: then a report that changes nothing but times changes counts. */
bool counts_saw_expired(const struct counts *c, const struct hub_cluster *cluster);
/* Clusters for which adjustment i of the plan is, and where a score has no items; 0 if others were
 * counted. */
size_t counts_without_items(const struct counts *c, const struct plan *plan, size_t i);
/* Of a scorer that goes: another one of its name begins at zero. */
void counts_forget(struct counts *c, const struct hub_scorer *s);

/* Until when (Unix time) a scorer without any score counts as starting: twice its interval after the first
 * distribution, or twice the time between reports if that is longer. INT64_MAX before the first one. */
int64_t scorer_patience_ms(const struct hub_scorer *s);
/* Unix time at which the next state changes by time alone: scores expire, a scorer has waited long enough,
 * or an adjustment ends. INT64_MAX: none does. */
int64_t counts_next_change_ms(const struct counts *c, const struct observed *seen, unix_ms now);

enum { TALLY_FIELDS = 10 };

/* Clusters whose agents would refuse the whole list with this scorer, so that they get it without. */
size_t tally_refusing(const struct tally *t);

/* Counts of a tally that people see: the key in statuses and in JSON, and the state of the metric. */
extern const struct tally_field {
    const char *key, *state;
    size_t offset;
} tally_fields[TALLY_FIELDS];

static inline size_t tally_count(const struct tally *t, size_t field)
{
    return *(const size_t *)(const void *)((const char *)t + tally_fields[field].offset);
}
