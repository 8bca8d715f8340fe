/* CBC, through its C API: one thread, always the same random numbers, nothing printed. */
#ifndef DS_OPTIMIZE_CBC_PROGRAM_ENGINE_H
#define DS_OPTIMIZE_CBC_PROGRAM_ENGINE_H

#include "controller/optimize/cbc/mip.h"

#include <stdbool.h>

struct engine_task {
    const struct mip *mip;
    double cutoff;     /* only solutions that cost at most this count */
    double seconds;    /* CBC looks at the clock now and then: it may take longer */
    bool has_patterns; /* a tight relaxation: without heuristics and cuts */
};

struct engine_answer {
    double *solution; /* [n_cols]: the best found, owned; NULL: none */
    bool is_complete; /* there is none better */
    double bound;     /* no solution costs less; meaningless if complete without a solution */
};

/* -ENOMEM. */
MUST_USE int engine_run(struct engine_answer *ret, const struct engine_task *task);

#endif
