/* AddOnPlacementScores in few bytes: 1,000 clusters with 20 scores of 100 items are two million items. */
#ifndef DS_ASSIST_STATE_WORLD_SCORE_H
#define DS_ASSIST_STATE_WORLD_SCORE_H

#include "controller/assist/state/world.h"

/* Labels and annotations seen lately, as those of most scores are equal. Zeroed at first. */
struct world_shared {
    json_t *objects[64];
    unsigned next;
};

void world_shared_done(struct world_shared *s);

/* Takes what is needed from an object cut by world_cut(). Items without a name or an integer are left out.
 * -ENOMEM. */
MUST_USE int world_score_new(struct world_score **ret, json_t *object, struct world_shared *shared);
struct world_score *world_score_free(struct world_score *s);
DEFINE_CLEANUP(struct world_score, world_score_free)

#endif
