/* What the operations say about DynamicScorers. */
#ifndef DS_ASSIST_OPERATIONS_SCORERS_H
#define DS_ASSIST_OPERATIONS_SCORERS_H

#include "controller/assist/state/snapshot.h"

/* "" without. Written by the author of the scorer or of its scoring API. */
const char *scorer_description(const json_t *scorer);
const char *scorer_dimension_format(const json_t *scorer);
/* The DynamicScorer that an AddOnPlacementScore comes from: the first whose score name is that of its
 * annotation, or maps to its name. NULL without. */
const json_t *scorer_of_score(const struct snapshot *hub, const struct score *s);

#endif
