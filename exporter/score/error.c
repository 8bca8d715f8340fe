#include "exporter/score/error.h"

static const struct {
    const char *word;
    enum verdict verdict;
} table[ROUND_ERRORS] = {
    [ROUND_OK] = {"ok", VERDICT_WAIT},
    [ROUND_URL] = {"url", VERDICT_WAIT},
    [ROUND_DNS] = {"dns", VERDICT_SOON},
    [ROUND_CONNECT] = {"connect", VERDICT_SOON},
    [ROUND_TLS] = {"tls", VERDICT_SOON}, /* certificates are renewed */
    [ROUND_TIMEOUT] = {"timeout", VERDICT_SOON},
    [ROUND_TOO_LARGE] = {"too_large", VERDICT_WAIT},
    [ROUND_BROKEN] = {"broken", VERDICT_SOON},
    [ROUND_MEMORY] = {"memory", VERDICT_SOON},
    [ROUND_HTTP_4XX] = {"http_4xx", VERDICT_WAIT},
    [ROUND_HTTP_5XX] = {"http_5xx", VERDICT_SOON}, /* 429 too: round_error_of_answer() puts it here */
    [ROUND_HTTP_OTHER] = {"http_other", VERDICT_WAIT},
    [ROUND_QUERY] = {"query", VERDICT_WAIT},
    [ROUND_JSON] = {"json", VERDICT_WAIT},
    [ROUND_SHAPE] = {"shape", VERDICT_WAIT},
    [ROUND_SECRET] = {"secret", VERDICT_SOON}, /* a Secret often comes after what names it */
    [ROUND_SERIES] = {"series_limit", VERDICT_WAIT},
};

const char *round_error_word(enum round_error e)
{
    return table[e].word;
}

enum verdict round_error_verdict(enum round_error e)
{
    return table[e].verdict;
}

enum round_error round_error_of_answer(const struct http_answer *a)
{
    static const enum round_error of_transfer[HTTP_ERRORS] = {
        [HTTP_URL] = ROUND_URL,       [HTTP_DNS] = ROUND_DNS,         [HTTP_CONNECT] = ROUND_CONNECT,
        [HTTP_TLS] = ROUND_TLS,       [HTTP_TIMEOUT] = ROUND_TIMEOUT, [HTTP_TOO_LARGE] = ROUND_TOO_LARGE,
        [HTTP_BROKEN] = ROUND_BROKEN, [HTTP_MEMORY] = ROUND_MEMORY,
    };

    if (a->error != HTTP_OK)
        return of_transfer[a->error];
    if (a->status >= 200 && a->status < 300)
        return ROUND_OK;
    if (a->status >= 500 || a->status == 429)
        return a->status < 600 ? ROUND_HTTP_5XX : ROUND_HTTP_OTHER;
    return a->status >= 400 ? ROUND_HTTP_4XX : ROUND_HTTP_OTHER;
}
