/* The classes of a round's errors: one table gives the label value and when to retry. */
#ifndef DS_SCORE_ERROR_H
#define DS_SCORE_ERROR_H

#include "exporter/base/http.h"
#include "exporter/base/json.h"

enum { ROUND_REASON_BYTES = 1024 };

enum round_error {
    ROUND_OK,
    ROUND_URL, /* the endpoint's URL is invalid */
    ROUND_DNS,
    ROUND_CONNECT,
    ROUND_TLS,
    ROUND_TIMEOUT,   /* the round's deadline passed */
    ROUND_TOO_LARGE, /* a response over limits.responseBytes */
    ROUND_BROKEN,    /* truncated, or not HTTP */
    ROUND_MEMORY,
    ROUND_AUTH, /* no token of OAuth 2.0 */
    ROUND_HTTP_4XX,
    ROUND_HTTP_5XX,
    ROUND_HTTP_OTHER, /* neither 2xx, 4xx nor 5xx; a redirect to another origin */
    ROUND_QUERY,      /* the query engine rejected the query */
    ROUND_JSON,       /* not JSON */
    ROUND_SHAPE,      /* JSON, but not of the API */
    ROUND_SECRET,     /* the scorer's token cannot be read */
    ROUND_SERIES,     /* more series than limits.series or limits.seriesPerScorer */
    ROUND_ERRORS
};

/* The state of a scorer, and the word for it in every report, page and API. */
enum scorer_state {
    SCORER_WAITING, /* no round has ended yet */
    SCORER_OK,
    SCORER_EMPTY,     /* the last round succeeded, but there were no series or no results */
    SCORER_FAILING,   /* the last round failed; older scores are still exposed, or there never were any */
    SCORER_STALE,     /* the last round failed, and older scores have expired */
    SCORER_SUSPENDED, /* the hub finds its scoring API unhealthy: it runs no rounds */
    SCORER_STATES
};

/* "waiting", "ok", "empty", "failing", "stale", "suspended". */
const char *scorer_state_word(enum scorer_state state);

/* "timeout", "http_5xx", ...: for labels. */
const char *round_error_word(enum round_error e);
/* Whether the cause may pass by itself, so that a retry makes sense. */
bool round_error_may_pass(enum round_error e);
/* The class of a transfer that failed, or of a status other than 2xx; ROUND_OK for a 2xx. */
enum round_error round_error_of_answer(const struct http_answer *a);
/* Writes the reason and returns e. */
enum round_error round_error_because(char why[ROUND_REASON_BYTES], enum round_error e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Why j refused the body: ROUND_JSON, or ROUND_SHAPE and "<what>: ..." if the body is JSON of another shape.
 * */
enum round_error round_error_of_json(struct str body, const struct jr *j, const char *what,
                                     char why[ROUND_REASON_BYTES]);

#endif
