/* Which clusters Placements have selected. */
#ifndef DS_ASSIST_OPERATIONS_DECISIONS_H
#define DS_ASSIST_OPERATIONS_DECISIONS_H

#include <jansson.h>

struct world;

/* {"namespace/placement": ["cluster", ...]} from the PlacementDecisions of a namespace (NULL: all), which may
 * split a decision. NULL when out of memory. */
json_t *decisions_index(const struct world *w, const char *namespace);
/* Borrowed; NULL without, or if the index is. */
json_t *decisions_of(const json_t *index, const char *namespace, const char *placement);

#endif
