#include "remotewrite/verdict.h"

#include "exporter/base/rand.h"

static const char *const words[VERDICTS] = {
    [VERDICT_SENT] = "sent", [VERDICT_RETRY] = "retry",         [VERDICT_HALVE] = "halve",
    [VERDICT_DROP] = "drop", [VERDICT_STEP_DOWN] = "step_down",
};

/* The first line that fits counts. */
static const struct {
    long from, to;
    enum rw_verdict verdict;
} table[] = {
    {200, 299, VERDICT_SENT},
    /* A redirect that was not followed is a mistake in the URL, which someone will mend: the samples wait for it. */
    {300, 399, VERDICT_RETRY},
    {415, 415, VERDICT_STEP_DOWN},
    {429, 429, VERDICT_RETRY},
    {400, 400, VERDICT_HALVE},
    {413, 413, VERDICT_HALVE},
    {422, 422, VERDICT_HALVE},
    {500, 599, VERDICT_RETRY},
};

enum { RETRY_AFTER_MAX_MS = 3600 * 1000 };

const char *verdict_word(enum rw_verdict v)
{
    return words[v];
}

enum rw_verdict verdict_of(enum http_error error, long status)
{
    if (error != HTTP_OK)
        return VERDICT_RETRY;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (status >= table[i].from && status <= table[i].to)
            return table[i].verdict;
    return VERDICT_DROP;
}

int64_t verdict_backoff(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms)
{
    int64_t ms = min_ms;

    for (unsigned i = 1; i < nth && ms < max_ms; i++)
        ms *= 2;
    if (ms > max_ms)
        ms = max_ms;
    ms -= (int64_t)rand_below((uint64_t)(ms / 2) + 1);
    if (retry_after_ms > RETRY_AFTER_MAX_MS)
        retry_after_ms = RETRY_AFTER_MAX_MS;
    return ms > retry_after_ms ? ms : retry_after_ms;
}
