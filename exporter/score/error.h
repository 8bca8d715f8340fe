/* What can go wrong in a round, as one table: a word for labels and whether to try again soon. */
#ifndef DS_SCORE_ERROR_H
#define DS_SCORE_ERROR_H

#include "exporter/base/http.h"

enum round_error {
    ROUND_OK,
    ROUND_URL, /* the endpoint's URL cannot be used */
    ROUND_DNS,
    ROUND_CONNECT,
    ROUND_TLS,
    ROUND_TIMEOUT,   /* the round's deadline passed */
    ROUND_TOO_LARGE, /* an answer over limits.responseBytes */
    ROUND_BROKEN,    /* cut off, or not HTTP */
    ROUND_MEMORY,
    ROUND_HTTP_4XX,
    ROUND_HTTP_5XX,
    ROUND_HTTP_OTHER, /* a status that is neither success nor failure */
    ROUND_QUERY,      /* the query engine refused the query, in its own words */
    ROUND_JSON,       /* not JSON */
    ROUND_SHAPE,      /* JSON, but not the answer that was agreed on */
    ROUND_SECRET,     /* a token that the scorer names cannot be read */
    ROUND_SERIES,     /* more series than limits.series or limits.seriesPerScorer */
    ROUND_ERRORS
};

/* VERDICT_SOON: may pass by itself; the next round comes after a back-off. VERDICT_WAIT: the same would happen again;
 * the next round comes at its time. */
enum verdict { VERDICT_SOON, VERDICT_WAIT };

/* "timeout", "http_5xx", ...: for labels. */
const char *round_error_word(enum round_error e);
enum verdict round_error_verdict(enum round_error e);
/* The class of a transfer that brought no answer, or of a status that is not 2xx; ROUND_OK for a 2xx. */
enum round_error round_error_of_answer(const struct http_answer *a);

#endif
