#include "exporter/score/error.h"

#include "exporter/base/def.h"

#include <stdio.h>

WORD_TABLE(scorer_state_word, enum scorer_state, SCORER_STATES,
           {[SCORER_WAITING] = "waiting",
            [SCORER_OK] = "ok",
            [SCORER_EMPTY] = "empty",
            [SCORER_FAILING] = "failing",
            [SCORER_STALE] = "stale"});

static const struct {
    const char *word;
    enum round_retry retry;
} table[ROUND_ERRORS] = {
    [ROUND_OK] = {"ok", ROUND_RETRY_NEXT},
    [ROUND_URL] = {"url", ROUND_RETRY_NEXT},
    [ROUND_DNS] = {"dns", ROUND_RETRY_SOON},
    [ROUND_CONNECT] = {"connect", ROUND_RETRY_SOON},
    [ROUND_TLS] = {"tls", ROUND_RETRY_SOON}, /* certificates are renewed */
    [ROUND_TIMEOUT] = {"timeout", ROUND_RETRY_SOON},
    [ROUND_TOO_LARGE] = {"too_large", ROUND_RETRY_NEXT},
    [ROUND_BROKEN] = {"broken", ROUND_RETRY_SOON},
    [ROUND_MEMORY] = {"memory", ROUND_RETRY_SOON},
    [ROUND_HTTP_4XX] = {"http_4xx", ROUND_RETRY_NEXT},
    [ROUND_HTTP_5XX] = {"http_5xx", ROUND_RETRY_SOON}, /* and 429, see round_error_of_answer() */
    [ROUND_HTTP_OTHER] = {"http_other", ROUND_RETRY_NEXT},
    [ROUND_QUERY] = {"query", ROUND_RETRY_NEXT},
    [ROUND_JSON] = {"json", ROUND_RETRY_NEXT},
    [ROUND_SHAPE] = {"shape", ROUND_RETRY_NEXT},
    [ROUND_SECRET] = {"secret", ROUND_RETRY_SOON}, /* a Secret is often created after the scorer */
    [ROUND_SERIES] = {"series_limit", ROUND_RETRY_NEXT},
};

const char *round_error_word(enum round_error e)
{
    return table[e].word;
}

enum round_retry round_error_retry(enum round_error e)
{
    return table[e].retry;
}

enum round_error round_error_of_answer(const struct http_answer *a)
{
    static const enum round_error of_transfer[HTTP_ERRORS] = {
        [HTTP_URL] = ROUND_URL,         [HTTP_DNS] = ROUND_DNS,
        [HTTP_CONNECT] = ROUND_CONNECT, [HTTP_TLS] = ROUND_TLS,
        [HTTP_TIMEOUT] = ROUND_TIMEOUT, [HTTP_TOO_LARGE] = ROUND_TOO_LARGE,
        [HTTP_BROKEN] = ROUND_BROKEN,   [HTTP_REDIRECT] = ROUND_HTTP_OTHER,
        [HTTP_MEMORY] = ROUND_MEMORY,
    };

    if (a->error != HTTP_OK)
        return of_transfer[a->error];
    if (a->status >= 200 && a->status < 300)
        return ROUND_OK;
    if (a->status >= 500 || a->status == 429)
        return a->status < 600 ? ROUND_HTTP_5XX : ROUND_HTTP_OTHER;
    return a->status >= 400 ? ROUND_HTTP_4XX : ROUND_HTTP_OTHER;
}

enum round_error round_error_of_json(struct str body, const struct jr *j, const char *what,
                                     char why[ROUND_REASON_BYTES])
{
    struct jr whole;
    unsigned line, column;
    bool is_json;

    jr_init(&whole, body, j->flags);
    (void)jr_skip(&whole, NULL);
    is_json = jr_end(&whole);
    jr_position(body, j->error_at, &line, &column);
    (void)snprintf(why, ROUND_REASON_BYTES, "%s: line %u, column %u: %s",
                   is_json ? what : "response is not JSON", line, column, j->error);
    return is_json ? ROUND_SHAPE : ROUND_JSON;
}
