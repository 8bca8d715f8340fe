/* What the operations say about DynamicScorers. */
#ifndef DS_ASSIST_OPERATIONS_SCORERS_H
#define DS_ASSIST_OPERATIONS_SCORERS_H

#include "controller/assist/state/world.h"

/* The name of its score; NULL while it is not known. */
const char *scorer_score_name(const json_t *scorer);
/* "" without. Text of whoever wrote the scorer or answers for its scoring API. */
const char *scorer_description(const json_t *scorer);
const char *scorer_dimension_format(const json_t *scorer);
/* The DynamicScorer that an AddOnPlacementScore comes from: the first whose score name is that of its
 * annotation, or maps to its name. NULL without. */
const json_t *scorer_of_score(const struct world *w, const struct world_score *s);
/* By its own name, the name of its score, or that of its AddOnPlacementScores. NULL without. */
const json_t *scorer_by_name(const struct world *w, const char *name);

#endif
