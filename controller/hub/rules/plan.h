/* Which summaries each cluster receives, by all scorers and the masks.
 *
 * Most clusters receive the same, so they are grouped by their set of scorers. A group keeps only the set
 * and a hash of its text; the text is made when a ManifestWork is written. Pure; any thread. */
#pragma once

#include "controller/hub/rules/adjustments.h"
#include "exporter/base/buf.h"
#include "exporter/base/map.h"

/* Which cluster leaves out which score. `*` matches any characters, `?` one. */
struct mask {
    const char *cluster, *score;
};

struct masks {
    json_t *owner;
    struct mask *list;
    size_t n;
};

/* Parses spec.masks and its alias spec.mask. object: the whole DynamicScoringConfig, of which a reference
 * is kept. -EINVAL with the first error in `why` ("spec.masks[2].scoreName: expected ..."). */
MUST_USE int masks_read(struct masks *ret, json_t *object, struct buf *why);
void masks_done(struct masks *m);

struct plan_entry {
    const char *score_name; /* unique among the entries */
    struct str text;        /* the summary */
    bool suspended;         /* agents get it in the list of those that they do not call */
    int64_t suspended_ms;   /* Unix time since when, which plan_new() adds to the text; 0: unknown */
    struct map *clusters;   /* the names of those that get it, for plan_group_of(); NULL: all do */
    void *owner;            /* for the plan's owner */
    unsigned needs;         /* features of agents; those that lack one may be sent the summary or not */
    bool has_object;        /* its scores are written as an AddOnPlacementScore */
    uint64_t score;         /* report_score() of the name */
    size_t escaped;         /* bytes of the text in a ManifestWork. Both are set by plan_new() */
};

/* A mask as the plan looks it up. */
struct plan_mask {
    struct plan_mask *next; /* of the same cluster, a name or a pattern */
    uint64_t *entries;      /* that it matches, a set */
    size_t clusters;        /* that it names, of those for which plan_group_of() was called */
    size_t scores;          /* that it matches, of all scorers: for the plan's owner */
};

/* An adjustment as the plan looks it up. Masked pairs do not count. */
struct plan_adjustment {
    uint64_t *entries; /* whose score names it matches, a set */
    uint64_t *matched; /* of these: on some cluster for which plan_group_of() was called */
    size_t selected;   /* clusters that it is for */
    size_t clusters;   /* of these: those with a score that it changes */
};

/* Read-only, but for the masks' scores. */
struct plan {
    struct plan_entry *entries; /* in the order in which they are given room, the oldest first */
    size_t n, words;            /* words: of a set of entries */
    struct masks masks;
    struct plan_mask *of_masks; /* for each mask */
    struct fleet_adjustments adjustments;
    struct plan_adjustment *of_adjustments; /* for each of them */
    size_t adjustment_words;                /* of a set of adjustments */
    /* For plan.c. */
    uint64_t *mask_sets;       /* the entries of each mask */
    uint64_t *adjustment_sets; /* both sets of each adjustment */
    char *storage;
    size_t max_bytes, *by_name;
    const char **globs; /* the different patterns of clusters */
    size_t n_globs;
    struct map clusters, groups;
};

struct plan_group {
    uint64_t hash; /* plan_hash_lists() of its texts */
    size_t bytes;  /* of all */
    size_t scorers;
    size_t left_out; /* scorers without room under max_bytes */
    unsigned lacks;  /* features that the agents lack, and refuse a summary for */
    char *key;
    uint64_t
        set[]; /* bit i: entry i; behind it the set before entries were left out, and that of adjustments */
};

/* Copies the entries, and keeps references to the documents of masks and adjustments, which may be NULL.
 * max_bytes limits the text as a ManifestWork counts it: escaped as a JSON string, as API servers write
 * it. */
struct plan *plan_new(const struct plan_entry *entries, size_t n, const struct masks *masks,
                      const struct fleet_adjustments *adjustments, size_t max_bytes);
struct plan *plan_free(struct plan *p);
DEFINE_CLEANUP(struct plan, plan_free)

/* What decides which group a cluster is in. */
struct plan_cluster {
    const char *name;
    /* The features without which its agent would refuse the whole list, and which it is known to lack: it
     * gets no entry that needs one of them. */
    unsigned lacks;
    const char *attributes; /* cluster_attributes(), for the selectors of adjustments; NULL: none */
};

/* The group of a cluster; owned by the plan. */
const struct plan_group *plan_group_of(struct plan *p, const struct plan_cluster *c);
/* Whether the group has entry i. */
static inline bool plan_group_has(const struct plan_group *g, size_t i)
{
    return g->set[i / 64] >> (i % 64) & 1;
}
/* Whether the group's clusters get adjustment i. */
static inline bool plan_group_is_adjusted(const struct plan *p, const struct plan_group *g, size_t i)
{
    return g->set[2 * p->words + i / 64] >> (i % 64) & 1;
}
/* Whether entry i is meant for the group's clusters, whether or not it is left out. */
static inline bool plan_group_wants(const struct plan *p, const struct plan_group *g, size_t i)
{
    return g->set[p->words + i / 64] >> (i % 64) & 1;
}
/* Whether entry i is left out because the agents are too old for it. */
static inline bool plan_group_outdates(const struct plan *p, const struct plan_group *g, size_t i)
{
    return plan_group_wants(p, g, i) && p->entries[i].needs & g->lacks;
}
/* Whether entry i is left out for lack of room. */
static inline bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i)
{
    return plan_group_wants(p, g, i) && !plan_group_has(g, i) && !plan_group_outdates(p, g, i);
}
/* Appends the text of those that are suspended, or of the others: a JSON array in byte order of their score
 * names; nothing if none is suspended. -EFBIG. */
void plan_text(const struct plan *p, const struct plan_group *g, bool suspended, struct buf *into);
/* Appends the list of adjustments that the group's clusters get; nothing without any. */
void plan_adjustments_text(const struct plan *p, const struct plan_group *g, struct buf *into);
/* Texts are compared by this hash, which is never 0. */
uint64_t plan_hash(struct str text);
/* Of all lists, by the hash of the summaries; an empty list is as none. */
uint64_t plan_hash_lists(uint64_t summaries, struct str suspended, struct str adjustments);
