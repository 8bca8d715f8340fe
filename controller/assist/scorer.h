/* What a DynamicScorer is called, and how it describes itself; and what fills in the answer of GET
 * /scorers. */
#pragma once

#include "controller/placement/items.h"

#include <jansson.h>
#include <stdbool.h>

struct listing;
struct score;
struct snapshot;

/* The name of its score; NULL while it is not known. */
const char *scorer_score_name(const json_t *scorer);
/* "" without. Written by the author of the scorer or of its scoring API. */
const char *scorer_description(const json_t *scorer);
/* The format of its first item. */
const char *scorer_dimension_format(const json_t *scorer);
/* The name of its AddOnPlacementScores, in `name`; NULL while it is not known. */
const char *scorer_object_name(const json_t *scorer, char name[OBJECT_NAME_MAX + 1]);
/* The DynamicScorer that an AddOnPlacementScore comes from: the first whose score name is that of its
 * annotation, or maps to its name. NULL without. */
const json_t *scorer_of_score(const struct snapshot *hub, const struct score *s);
/* By its own name, the name of its score, or that of its AddOnPlacementScores. NULL without. */
const json_t *scorer_by_name(const struct snapshot *hub, const char *name);

/* A string of at most so many bytes, cut with "..." if it is longer. A new reference. */
json_t *text_cut(const char *text, size_t max);

void scorers_fill(struct listing *l, const struct snapshot *hub);
