/* The classes of a round's errors: one table gives the label value and when to retry. */
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

enum round_retry {
    ROUND_RETRY_SOON, /* after a back-off: the cause may pass by itself */
    ROUND_RETRY_NEXT, /* at the next scheduled round: the same request would fail again */
};

/* "timeout", "http_5xx", ...: for labels. */
const char *round_error_word(enum round_error e);
enum round_retry round_error_retry(enum round_error e);
/* The class of a transfer that brought no answer, or of a status that is not 2xx; ROUND_OK for a 2xx. */
enum round_error round_error_of_answer(const struct http_answer *a);

#endif
