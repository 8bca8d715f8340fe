/* Which summaries each cluster receives, by all scorers and the masks.
 *
 * Most clusters receive the same, so they are grouped by their set of scorers. A group keeps only the set
 * and a hash of its text; the text is made when a ManifestWork is written. */
#ifndef DS_HUB_PLAN_H
#define DS_HUB_PLAN_H

#include "controller/hub/rules/masks.h"
#include "exporter/base/buf.h"

struct plan;

struct plan_entry {
    const char *score_name; /* unique among the entries */
    struct str text;        /* the summary; borrowed, must outlive the plan */
};

struct plan_group {
    uint64_t hash; /* plan_hash() of the text */
    size_t bytes;  /* of the text */
    size_t scorers;
    size_t left_out; /* scorers without room under max_bytes */
    size_t clusters; /* for which plan_group_of() returned it */
    uint64_t set[];  /* bit i: entry i */
};

/* entries: in the order in which they are given room, the oldest first. masks may be NULL. Both must
 * outlive the plan. max_bytes limits the text as a ManifestWork counts it: escaped as a JSON string, as
 * API servers write it. -ENOMEM. */
struct plan *plan_new(const struct plan_entry *entries, size_t n, const struct masks *masks,
                      size_t max_bytes);
struct plan *plan_free(struct plan *p);
DEFINE_CLEANUP(struct plan, plan_free)

/* The group of a cluster; owned by the plan. NULL when out of memory. */
const struct plan_group *plan_group_of(struct plan *p, const char *cluster);
/* Whether the group has entry i. */
static inline bool plan_group_has(const struct plan_group *g, size_t i)
{
    return g->set[i / 64] >> (i % 64) & 1;
}
/* Whether entry i is left out for lack of room. */
bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i);
/* Sets ret[i] to the number of clusters that mask i names, of those for which plan_group_of() was called. */
void plan_mask_clusters(const struct plan *p, size_t *ret);
/* Appends the text: a JSON array of the entries in byte order of their score names. -ENOMEM, -EFBIG. */
MUST_USE int plan_text(const struct plan *p, const struct plan_group *g, struct buf *into);
/* Texts are compared by this hash, which is never 0. */
uint64_t plan_hash(struct str text);

#endif
