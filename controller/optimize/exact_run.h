/* Runs dynamic-scoring-cbc: sends it a problem and takes its answers until it ends, or until a deadline. */
#ifndef DS_OPTIMIZE_EXACT_RUN_H
#define DS_OPTIMIZE_EXACT_RUN_H

#include "controller/optimize/wire.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <stdatomic.h>

struct exact_run {
    const char *program;
    struct str input;                                     /* wire_put_problem() */
    const struct problem *p;                              /* what answers are checked against */
    mono_ms end;                                          /* it is killed then */
    const atomic_bool *cancel;                            /* may be NULL */
    int (*take)(void *arg, const struct wire_message *m); /* an error ends the run */
    void *arg;
};

/* Blocks; the process is gone afterwards. 0 if it ended with WIRE_END; -ETIME at the deadline, -ECANCELED;
 * -EIO if it cannot be started, ends early or sends what it should not; -ENOMEM; what `take` returned. */
MUST_USE int exact_run(const struct exact_run *x);

#endif
