#include "remotewrite/verdict.h"

#include "exporter/base/def.h"

/* The first matching line applies. */
static const struct {
    long from, to;
    enum rw_verdict verdict;
} table[] = {
    {200, 299, VERDICT_SENT},
    /* A redirect is a mistake in the configured URL: keep the samples until it is fixed. */
    {300, 399, VERDICT_RETRY},
    {415, 415, VERDICT_STEP_DOWN},
    {429, 429, VERDICT_RETRY},
    {400, 400, VERDICT_HALVE},
    {413, 413, VERDICT_SHRINK},
    {422, 422, VERDICT_HALVE},
    {500, 599, VERDICT_RETRY},
};

enum rw_verdict verdict_of(enum http_error error, long status)
{
    if (error != HTTP_OK)
        return VERDICT_RETRY;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (status >= table[i].from && status <= table[i].to)
            return table[i].verdict;
    return VERDICT_DROP;
}
