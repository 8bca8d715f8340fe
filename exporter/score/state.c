#include "exporter/score/state.h"

#include "exporter/base/def.h"

WORD_TABLE(scorer_state_word, enum scorer_state, SCORER_STATES,
           {[SCORER_WAITING] = "waiting",
            [SCORER_OK] = "ok",
            [SCORER_EMPTY] = "empty",
            [SCORER_FAILING] = "failing",
            [SCORER_STALE] = "stale"});
