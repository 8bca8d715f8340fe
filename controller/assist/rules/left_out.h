/* Why replicas of a workload have no place in a solution. */
#ifndef DS_ASSIST_RULES_LEFT_OUT_H
#define DS_ASSIST_RULES_LEFT_OUT_H

#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"

enum left_out_reason {
    LEFT_OUT_KIND_DIFFERS,
    LEFT_OUT_NO_SCORE,
    LEFT_OUT_PINNED,
    LEFT_OUT_NO_CAPACITY,
    LEFT_OUT_NEGATIVE_SCORE,
    LEFT_OUT_SPREAD,
    LEFT_OUT_MOVE_BUDGET,
    LEFT_OUT_REASONS
};

/* "NoCapacity" */
const char *left_out_reason_word(enum left_out_reason r);

struct left_out {
    uint32_t workload, replicas; /* replicas without a place */
    enum left_out_reason reason;
    char message[256];
};

/* All of them, ascending by workload; to be freed. -ENOMEM. */
MUST_USE int left_out_find(struct left_out **ret, size_t *ret_n, const struct model *m,
                           const struct solution *s);

#endif
