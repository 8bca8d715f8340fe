/* The state of a scorer, and the word for it in every report, page and API. Pure; any thread. */
#pragma once

enum scorer_state {
    SCORER_WAITING, /* no round has ended yet */
    SCORER_OK,
    SCORER_EMPTY,     /* the last round succeeded, but there were no series or no results */
    SCORER_FAILING,   /* the last round failed; older scores are still exposed, or there never were any */
    SCORER_STALE,     /* the scores have expired: the last round failed, or no round has ended for long */
    SCORER_SUSPENDED, /* the hub finds its scoring API unhealthy: it runs no rounds */
    SCORER_STATES
};

/* Why a scorer is stale whose last round succeeded: the next one hangs. */
extern const char scores_expired_text[];

/* "waiting", "ok", "empty", "failing", "stale", "suspended". */
const char *scorer_state_word(enum scorer_state state);
