#include "exporter/score/state.h"

static const char *const state_words[SCORER_STATES] = {
    [SCORER_WAITING] = "waiting", [SCORER_OK] = "ok",       [SCORER_EMPTY] = "empty",
    [SCORER_FAILING] = "failing", [SCORER_STALE] = "stale",
};

const char *scorer_state_word(enum scorer_state state)
{
    return state_words[state];
}
