/* Which summaries each cluster receives, by all scorers and the masks of the DynamicScoringConfig.
 *
 * Most clusters receive the same, so they are grouped by their set of scorers. A group keeps only the set
 * and a hash of its text; the text is made when a ManifestWork is written. */
#ifndef DS_HUB_PLAN_H
#define DS_HUB_PLAN_H

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/map.h"

/* ---- Masks: which clusters leave out which scores. `*` matches any characters, `?` one ---- */

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
MUST_USE int masks_read(struct masks *ret, json_t *object, char why[256]);
void masks_done(struct masks *m);

enum { MASK_FAR = 4 };

/* Whether `name` may be what someone meant who wrote `text`, and is nearer than *best edits, which starts at
 * MASK_FAR. Then sets *best. Case does not count, nor which of `-`, `_` and `.` separates words. */
bool mask_name_is_nearer(const char *text, const char *name, unsigned *best);

/* ---- The plan ---- */

struct plan_entry {
    const char *score_name; /* unique among the entries */
    struct str text;        /* the summary */
    uint64_t score;         /* report_score() of the name */
};

/* Read-only. */
struct plan {
    struct plan_entry *entries; /* in the order in which they are given room, the oldest first */
    size_t n, words;            /* words: of a set of entries */
    size_t *by_score;           /* indices of the entries, sorted by `score` */
    struct masks masks;
    size_t *mask_clusters; /* for each mask, the clusters that it names, of those for which
                            * plan_group_of() was called */
    /* For plan.c. */
    char *storage;
    size_t max_bytes, *by_name, *escaped;
    struct plan_mask *compiled;
    const char **globs; /* the different patterns of clusters */
    size_t n_globs;
    struct map patterns, clusters, groups;
};

struct plan_group {
    uint64_t hash; /* plan_hash() of the text */
    size_t bytes;  /* of the text */
    size_t scorers;
    size_t left_out; /* scorers without room under max_bytes */
    char *key;
    uint64_t set[]; /* bit i: entry i; behind it the set before entries were left out */
};

/* Copies the entries, and keeps a reference to the masks' document. masks may be NULL. max_bytes limits the
 * text as a ManifestWork counts it: escaped as a JSON string, as API servers write it. */
struct plan *plan_new(const struct plan_entry *entries, size_t n, const struct masks *masks,
                      size_t max_bytes);
struct plan *plan_free(struct plan *p);
DEFINE_CLEANUP(struct plan, plan_free)

/* The group of a cluster; owned by the plan. */
const struct plan_group *plan_group_of(struct plan *p, const char *cluster);
/* Whether the group has entry i. */
static inline bool plan_group_has(const struct plan_group *g, size_t i)
{
    return g->set[i / 64] >> (i % 64) & 1;
}
/* Whether entry i is left out for lack of room. */
static inline bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i)
{
    return g->set[p->words + i / 64] >> (i % 64) & 1 && !plan_group_has(g, i);
}
/* Appends the text: a JSON array of the entries in byte order of their score names. -EFBIG. */
MUST_USE int plan_text(const struct plan *p, const struct plan_group *g, struct buf *into);
/* Texts are compared by this hash, which is never 0. */
uint64_t plan_hash(struct str text);

#endif
