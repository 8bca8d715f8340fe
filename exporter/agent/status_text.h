/* What the JSON and the table of the agent's status share. */
#ifndef DS_AGENT_STATUS_TEXT_H
#define DS_AGENT_STATUS_TEXT_H

#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/state.h"

struct agent_state;
struct scorer;

/* What to check after an error, without a full stop; never NULL. */
const char *status_hint(enum round_error e, enum round_stage stage);

struct totals {
    size_t by_state[SCORER_STATES];
    size_t series;
};
struct totals status_totals(const struct agent_state *a);

#endif
