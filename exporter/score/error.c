#include "exporter/score/error.h"

#include "exporter/base/def.h"

#include <stdio.h>

WORD_TABLE(scorer_state_word, enum scorer_state, SCORER_STATES,
           {[SCORER_WAITING] = "waiting",
            [SCORER_OK] = "ok",
            [SCORER_EMPTY] = "empty",
            [SCORER_FAILING] = "failing",
            [SCORER_STALE] = "stale",
            [SCORER_SUSPENDED] = "suspended"});

static const struct {
    const char *word;
    bool may_pass;
} table[ROUND_ERRORS] = {
    [ROUND_OK] = {"ok", false},
    [ROUND_URL] = {"url", false},
    [ROUND_DNS] = {"dns", true},
    [ROUND_CONNECT] = {"connect", true},
    [ROUND_TLS] = {"tls", true}, /* certificates are renewed */
    [ROUND_TIMEOUT] = {"timeout", true},
    [ROUND_TOO_LARGE] = {"too_large", false},
    [ROUND_BROKEN] = {"broken", true},
    [ROUND_MEMORY] = {"memory", true},
    [ROUND_AUTH] = {"auth", true},
    [ROUND_HTTP_4XX] = {"http_4xx", false},
    [ROUND_HTTP_5XX] = {"http_5xx", true}, /* and 429, see round_error_of_answer() */
    [ROUND_HTTP_OTHER] = {"http_other", false},
    [ROUND_QUERY] = {"query", false},
    [ROUND_JSON] = {"json", false},
    [ROUND_SHAPE] = {"shape", false},
    [ROUND_SECRET] = {"secret", true}, /* a Secret is often created after the scorer */
    [ROUND_SERIES] = {"series_limit", false},
};

const char *round_error_word(enum round_error e)
{
    return table[e].word;
}

bool round_error_may_pass(enum round_error e)
{
    return table[e].may_pass;
}

enum round_error round_error_of_answer(const struct http_answer *a)
{
    static const enum round_error of_transfer[HTTP_ERRORS] = {
        [HTTP_URL] = ROUND_URL,         [HTTP_DNS] = ROUND_DNS,
        [HTTP_CONNECT] = ROUND_CONNECT, [HTTP_TLS] = ROUND_TLS,
        [HTTP_TIMEOUT] = ROUND_TIMEOUT, [HTTP_TOO_LARGE] = ROUND_TOO_LARGE,
        [HTTP_BROKEN] = ROUND_BROKEN,   [HTTP_REDIRECT] = ROUND_HTTP_OTHER,
        [HTTP_MEMORY] = ROUND_MEMORY,   [HTTP_AUTH] = ROUND_AUTH,
    };

    if (a->error != HTTP_OK)
        return of_transfer[a->error];
    if (a->status >= 200 && a->status < 300)
        return ROUND_OK;
    if (a->status >= 500 || a->status == 429)
        return a->status < 600 ? ROUND_HTTP_5XX : ROUND_HTTP_OTHER;
    return a->status >= 400 ? ROUND_HTTP_4XX : ROUND_HTTP_OTHER;
}

enum round_error round_error_because(char why[ROUND_REASON_BYTES], enum round_error e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, ROUND_REASON_BYTES, fmt, ap);
    va_end(ap);
    return e;
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
    return round_error_because(why, is_json ? ROUND_SHAPE : ROUND_JSON, "%s: line %u, column %u: %s",
                               is_json ? what : "response is not JSON", line, column, j->error);
}
