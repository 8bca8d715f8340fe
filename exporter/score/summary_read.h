/* Private to summary*.c: one entry of the list. */
#ifndef DS_SCORE_SUMMARY_READ_H
#define DS_SCORE_SUMMARY_READ_H

#include "exporter/score/summary.h"

/* Fills *s, which is zeroed; problems go to p. 0 also with problems; -ENOMEM. The caller frees in any
 * case. */
MUST_USE int summary_read(struct summary *s, const struct node *map, enum problem_kind unknown,
                          struct problems *p);

#endif
