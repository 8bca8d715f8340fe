/* What can go wrong in a round: the class, which is a metric's label and decides whether a retry makes sense;
 * the stage; and the reason, a text for people. Pure; any thread. */
#pragma once

#include "exporter/base/json.h"
#include "exporter/http/http.h"

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
    ROUND_HTTP_5XX,   /* and 429, which may pass as well */
    ROUND_HTTP_OTHER, /* neither 2xx, 4xx nor 5xx; a redirect to another origin */
    ROUND_QUERY,      /* the query engine rejected the query */
    ROUND_JSON,       /* not JSON */
    ROUND_SHAPE,      /* JSON, but not of the API */
    ROUND_SECRET,     /* the scorer's token cannot be read */
    ROUND_SERIES,     /* more series than limits.series or limits.seriesPerScorer */
    ROUND_ERRORS
};

/* Where a round failed, and what its traffic was for. */
enum round_stage { STAGE_SOURCE, STAGE_SCORING, ROUND_STAGES };

/* "timeout", "http_5xx", ...: for labels. */
const char *round_error_word(enum round_error e);
/* "source", "scoring". */
const char *round_stage_word(enum round_stage s);
/* Whether the cause may pass by itself, so that a retry makes sense. */
bool round_error_may_pass(enum round_error e);

/* The class of a transfer that failed, or of a status other than 2xx; ROUND_OK for a 2xx. */
enum round_error round_error_of_response(const struct http_response *a);
/* Writes the reason and returns e. */
enum round_error round_error_because(char why[ROUND_REASON_BYTES], enum round_error e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Why j refused the body: ROUND_JSON; ROUND_SHAPE and "<what>: ..." if it is JSON of another shape. */
enum round_error round_error_of_json(struct str body, const struct jr *j, const char *what,
                                     char why[ROUND_REASON_BYTES]);
