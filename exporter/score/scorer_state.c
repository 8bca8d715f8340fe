/* The words of a scorer's states, which the agent's report carries to the hub. Owns nothing. */
#include "exporter/score/scorer_state.h"

#include "exporter/base/def.h"

WORD_TABLE(scorer_state_word, enum scorer_state, SCORER_STATES,
           {[SCORER_WAITING] = "waiting",
            [SCORER_OK] = "ok",
            [SCORER_EMPTY] = "empty",
            [SCORER_FAILING] = "failing",
            [SCORER_STALE] = "stale",
            [SCORER_SUSPENDED] = "suspended"});
