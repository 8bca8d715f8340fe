/* The masks, compiled for one list of entries: each score pattern is matched once, and masks of single
 * clusters are found by binary search. Only plan.c uses it. */
#ifndef DS_HUB_PLAN_MASKS_H
#define DS_HUB_PLAN_MASKS_H

#include "controller/hub/rules/plan.h"

struct plan_masks;

/* sorted: pointers into `entries`, by score name. A set has `words` words, bit i for entries[i]. masks may
 * be NULL and must outlive the result. -ENOMEM. */
MUST_USE int plan_masks_new(struct plan_masks **ret, const struct masks *masks,
                            const struct plan_entry *const *sorted, size_t n,
                            const struct plan_entry *entries, size_t words);
struct plan_masks *plan_masks_free(struct plan_masks *m);
DEFINE_CLEANUP(struct plan_masks, plan_masks_free)

/* Removes from the set what the cluster leaves out, and counts the cluster for each mask that names it. */
void plan_masks_apply(struct plan_masks *m, const char *cluster, uint64_t *set);
/* Sets ret[i] to the number of clusters counted for masks->list[i]. */
void plan_masks_clusters(const struct plan_masks *m, size_t *ret);

#endif
