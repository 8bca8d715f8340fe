/* Summarizes AddOnPlacementScores by their name: what an assistant can read of 20,000 objects. */
#ifndef DS_ASSIST_OPERATIONS_SCORE_SUMMARY_H
#define DS_ASSIST_OPERATIONS_SCORE_SUMMARY_H

#include "controller/assist/state/world.h"
#include "exporter/base/map.h"

/* Zeroed at first. */
struct score_summary {
    struct map by_name; /* of struct summary_row */
};

void score_summary_done(struct score_summary *s);
/* Counts one more. Its values count unless it has expired, as Placement has it. -ENOMEM. */
MUST_USE int score_summary_add(struct score_summary *s, const struct world_score *score, bool is_expired);
/* An array with one object for each name, in ascending order, of at most so many bytes: descriptions are cut
 * first, then rows, of which *ret_left_out is the number. NULL when out of memory. */
json_t *score_summary_value(const struct score_summary *s, const struct world *w, size_t max_bytes,
                            size_t *ret_left_out);

#endif
