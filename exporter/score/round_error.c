/* The table of a round's errors, and the one that says which of them a status or a failed call is. Owns
 * nothing. Called by sources, by the scoring stage and by whoever shows or counts an error, on the loop, and
 * by the worker for the bodies that it reads. */
#include "exporter/score/round_error.h"

#include "exporter/http/cause.h"
#include "exporter/http/rule.h"

#include <stdarg.h>
#include <stdio.h>

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
    [ROUND_HTTP_5XX] = {"http_5xx", true}, /* and 429 */
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

WORD_TABLE(round_stage_word, enum round_stage, ROUND_STAGES,
           {[STAGE_SOURCE] = "source", [STAGE_SCORING] = "scoring"});

bool round_error_may_pass(enum round_error e)
{
    return table[e].may_pass;
}

static const struct http_rule scoring_rules[] = {
    {200, 299, HTTP_OK, ROUND_OK},
    {429, 429, HTTP_OK, ROUND_HTTP_5XX}, /* it passes like one */
    {400, 499, HTTP_OK, ROUND_HTTP_4XX},
    {500, 599, HTTP_OK, ROUND_HTTP_5XX},
    {0, 0, HTTP_URL, ROUND_URL},
    {0, 0, HTTP_DNS, ROUND_DNS},
    {0, 0, HTTP_CONNECT, ROUND_CONNECT},
    {0, 0, HTTP_FORBIDDEN, ROUND_CONNECT}, /* agents do not ask for it */
    {0, 0, HTTP_TLS, ROUND_TLS},
    {0, 0, HTTP_TIMEOUT, ROUND_TIMEOUT},
    {0, 0, HTTP_TOO_LARGE, ROUND_TOO_LARGE},
    {0, 0, HTTP_BROKEN, ROUND_BROKEN},
    {0, 0, HTTP_MEMORY, ROUND_MEMORY},
    {0, 0, HTTP_AUTH, ROUND_AUTH},
    {0, HTTP_STATUS_MAX, HTTP_ANY, ROUND_HTTP_OTHER}, /* 3xx; a redirect to another origin */
};

enum round_error round_error_of_response(const struct http_response *a)
{
    return (enum round_error)HTTP_VERDICT(scoring_rules, a->status, a->error);
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
