#include "exporter/score/state.h"

static const char *const state_words[SCORER_STATES] = {
    [SCORER_WAITING] = "waiting", [SCORER_OK] = "ok",       [SCORER_EMPTY] = "empty",
    [SCORER_FAILING] = "failing", [SCORER_STALE] = "stale",
};

const char *scorer_state_word(enum scorer_state state)
{
    return state_words[state];
}

enum scorer_state scorer_state_of_word(struct str word)
{
    enum scorer_state state = SCORER_WAITING;

    while (state < SCORER_STATES && !str_eq(word, str_of(state_words[state])))
        state++;
    return state;
}
