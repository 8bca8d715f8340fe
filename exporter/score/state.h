/* The state of a scorer, and the word for it in every report, page and API. */
#ifndef DS_SCORE_STATE_H
#define DS_SCORE_STATE_H

enum scorer_state {
    SCORER_WAITING, /* no round has ended yet */
    SCORER_OK,
    SCORER_EMPTY,   /* the last round succeeded, but the source had no series */
    SCORER_FAILING, /* the last round failed; older scores are still exposed, or there never were any */
    SCORER_STALE,   /* the last round failed, and older scores have expired */
    SCORER_STATES
};

/* "waiting", "ok", "empty", "failing", "stale". */
const char *scorer_state_word(enum scorer_state state);

#endif
