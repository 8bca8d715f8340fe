/* How many clusters and scores each mask of the plan matches, and what may be meant by one that matches
 * nothing. Scores are those of all scorers, distributed or not. */
#ifndef DS_HUB_STATE_MASKS_H
#define DS_HUB_STATE_MASKS_H

#include "controller/hub/state/state.h"

enum { MASK_WARNING_BYTES = 800 };

/* Counts for h->plan_masks, once each cluster has its group. -ENOMEM. */
MUST_USE int hub_masks_count(struct hub *h);
/* Whether the counts are those of the newest masks. */
bool hub_masks_counted(const struct hub *h);
size_t hub_masks_unmatched(const struct hub *h);
bool hub_mask_matches(const struct hub *h, size_t i);
/* Why mask i matches nothing, and which name may be meant; empty when it matches. With `near`, looks at all
 * names. */
void hub_mask_warning(char ret[MASK_WARNING_BYTES], const struct hub *h, size_t i, bool near);

#endif
