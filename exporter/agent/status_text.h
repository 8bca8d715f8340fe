/* What the JSON and the table of the agent's status share. */
#ifndef DS_AGENT_STATUS_TEXT_H
#define DS_AGENT_STATUS_TEXT_H

#include "exporter/score/state.h"

struct agent_state;
struct scorer;

struct totals {
    size_t by_state[SCORER_STATES];
    size_t series;
};

#endif
