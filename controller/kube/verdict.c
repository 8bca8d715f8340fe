/* The tables by which an answer, or its absence, is judged. exporter/http/README.md shows them beside
 * those of the other places that ask over HTTP. Owns nothing; any thread. What the API server says in
 * words is matched here and nowhere else. */
#include "controller/kube/verdict.h"

#include "controller/kube/json.h"
#include "exporter/base/backoff.h"
#include "exporter/http/rule.h"

#include <limits.h>

WORD_TABLE(kube_verdict_word, enum kube_verdict, KUBE_VERDICTS,
           {[KUBE_OK] = "ok",
            [KUBE_RETRY] = "retry",
            [KUBE_UNAUTHORIZED] = "unauthorized",
            [KUBE_FORBIDDEN] = "forbidden",
            [KUBE_NOT_FOUND] = "not_found",
            [KUBE_NO_KIND] = "no_kind",
            [KUBE_EXISTS] = "exists",
            [KUBE_CONFLICT] = "conflict",
            [KUBE_GONE] = "gone",
            [KUBE_INVALID] = "invalid",
            [KUBE_TOO_LARGE] = "too_large"});

int64_t kube_backoff_ms(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms)
{
    return backoff_ms(&(struct backoff){min_ms, max_ms, 2 * 60 * 1000}, nth, retry_after_ms);
}

enum { ANY = 0 };

/* The first matching row decides; the last one matches everything. A NULL reason or message matches any; a
 * message matches by containing the words. */
static const struct rule {
    int from, to; /* HTTP status */
    const char *reason, *message;
    enum kube_verdict verdict;
} rules[] = {
    {401, 401, NULL, NULL, KUBE_UNAUTHORIZED},
    {403, 403, NULL, NULL, KUBE_FORBIDDEN},
    {409, 409, "AlreadyExists", NULL, KUBE_EXISTS},
    {409, 409, NULL, NULL, KUBE_CONFLICT},
    {410, 410, NULL, NULL, KUBE_GONE},
    {ANY, INT_MAX, "Expired", NULL, KUBE_GONE},
    {413, 413, NULL, NULL, KUBE_TOO_LARGE},
    /* A watch from a version that the store, restored from a backup, has not reached yet. */
    {500, 599, NULL, "Too large resource version", KUBE_GONE},
    {500, 599, NULL, "request is too large", KUBE_TOO_LARGE},
    {500, 599, NULL, "message larger than max", KUBE_TOO_LARGE},
    {408, 408, NULL, NULL, KUBE_RETRY},
    {429, 429, NULL, NULL, KUBE_RETRY},
    {400, 499, NULL, NULL, KUBE_INVALID},
    {ANY, INT_MAX, NULL, NULL, KUBE_RETRY},
};

/* Without an answer. */
static const struct http_rule failures[] = {
    {0, 0, HTTP_URL, KUBE_INVALID},
    {0, 0, HTTP_TOO_LARGE, KUBE_TOO_LARGE},
    {0, HTTP_STATUS_MAX, HTTP_ANY, KUBE_RETRY},
};

static bool verdict_rule_matches(const struct rule *r, long http_status, const char *reason,
                                 const char *message)
{
    if (http_status < r->from || http_status > r->to)
        return false;
    if (r->reason && strcmp(reason, r->reason) != 0)
        return false;
    return !r->message || strstr(message, r->message);
}

/* Besides the table: the Status' details tell two kinds of 404 apart. */
enum kube_verdict kube_verdict_of_status(long http_status, const char *reason, const char *message,
                                         const json_t *status)
{
    size_t i = 0;

    if (http_status == 404)
        return kube_str(status, "details", "name", NULL) ? KUBE_NOT_FOUND : KUBE_NO_KIND;
    while (i < ARRAY_SIZE(rules) - 1 && !verdict_rule_matches(&rules[i], http_status, reason, message))
        i++;
    return rules[i].verdict;
}

enum kube_verdict kube_verdict_of_failure(enum http_error error)
{
    return (enum kube_verdict)HTTP_VERDICT(failures, 0, error);
}
