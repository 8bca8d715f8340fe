/* The words of a scorer's states, which the agent's report carries to the hub. Owns nothing but them. */
#include "exporter/score/scorer_state.h"

#include "exporter/base/def.h"

const char scores_expired_text[] = "the scores of the last round have expired, and no round has ended since";

WORD_TABLE(scorer_state_word, enum scorer_state, SCORER_STATES,
           {[SCORER_WAITING] = "waiting",
            [SCORER_OK] = "ok",
            [SCORER_EMPTY] = "empty",
            [SCORER_FAILING] = "failing",
            [SCORER_STALE] = "stale",
            [SCORER_SUSPENDED] = "suspended"});
