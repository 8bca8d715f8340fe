/* Masks made ready for one set of entries: which entries each mask takes is found once, and which masks name a cluster without one
 * look at the others. Only plan.c uses it. */
#ifndef DS_HUB_PLAN_MASKS_H
#define DS_HUB_PLAN_MASKS_H

#include "controller/hub/rules/plan.h"

struct plan_masks;

/* sorted: the entries by score name; they lie in the array at `entries`. A set has `words` words, bit i for entries[i]. masks may be NULL;
 * what is in it must outlive the result. -ENOMEM. */
MUST_USE int plan_masks_new(struct plan_masks **ret, const struct masks *masks,
                            const struct plan_entry *const *sorted, size_t n,
                            const struct plan_entry *entries, size_t words);
struct plan_masks *plan_masks_free(struct plan_masks *m);
DEFINE_CLEANUP(struct plan_masks, plan_masks_free)

/* Takes out of the set what the cluster is to leave out. */
void plan_masks_apply(const struct plan_masks *m, const char *cluster, uint64_t *set);

#endif
