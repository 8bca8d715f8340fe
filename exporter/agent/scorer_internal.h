/* Private to scorer*.c. */
#ifndef DS_AGENT_SCORER_INTERNAL_H
#define DS_AGENT_SCORER_INTERNAL_H

#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/score/round.h"

struct scorer {
    const struct scorer_env *env;
    struct loop *loop;
    struct summary summary;
    struct batch_builder *builder;
    struct round *round;
    struct batch *batch; /* the exposed scores; NULL for none */
    struct timer next, expire;
    mono_ms due;        /* when the schedule put the last round, whatever started it */
    mono_ms started;    /* the last round */
    mono_ms expires_at; /* of the exposed scores */
    struct scorer_status status;
};

/* Records a round that has ended in the log, the metrics and the status. Completes r->reason. */
void scorer_record(struct scorer *s, struct round_result *r);

#endif
