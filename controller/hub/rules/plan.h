/* Who gets what: the summaries of each cluster, from all scorers' and the masks.
 *
 * Most clusters get the same, so clusters are put into groups by the set of scorers that they get. Of a group only the set and a
 * hash of its text are kept; the text is made when a work is to be written. A plan is immutable. */
#ifndef DS_HUB_PLAN_H
#define DS_HUB_PLAN_H

#include "controller/hub/rules/masks.h"
#include "exporter/base/buf.h"

struct plan;

struct plan_entry {
    const char *score_name; /* unique among the entries */
    struct str text;        /* the summary; not copied: must outlive the plan */
};

struct plan_group {
    uint64_t hash;   /* plan_hash() of the text */
    size_t bytes;    /* of the text */
    size_t scorers;  /* in it */
    size_t left_out; /* found no room under max_bytes */
    size_t clusters; /* so many plan_group_of() gave it */
    uint64_t set[];  /* bit i: entry i */
};

/* Entries in the order in which they get room: the older first. masks may be NULL. Both must outlive the plan. max_bytes: the text as it counts in
 * a ManifestWork, i.e. escaped once as a JSON string, as API servers write it. -ENOMEM. */
MUST_USE int plan_new(struct plan **ret, const struct plan_entry *entries, size_t n,
                      const struct masks *masks, size_t max_bytes);
struct plan *plan_free(struct plan *p);
DEFINE_CLEANUP(struct plan, plan_free)

/* The group of a cluster; belongs to the plan. NULL when memory is out. */
const struct plan_group *plan_group_of(struct plan *p, const char *cluster);
/* Whether the group has entry i. */
static inline bool plan_group_has(const struct plan_group *g, size_t i)
{
    return g->set[i / 64] >> (i % 64) & 1;
}
/* Whether entry i belongs to the group but found no room. */
bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i);
/* Appends the text: a JSON array, entries sorted by score name (byte order), "[]" for none. -ENOMEM, -EFBIG. */
MUST_USE int plan_text(const struct plan *p, const struct plan_group *g, struct buf *into);
/* What texts are compared by; never 0. */
uint64_t plan_hash(struct str text);

#endif
