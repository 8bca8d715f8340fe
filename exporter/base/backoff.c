/* Pure, but for the random numbers. Any thread. */
#include "exporter/base/backoff.h"

#include "exporter/base/random.h"

int64_t backoff_doubled_ms(unsigned nth, int64_t min_ms, int64_t max_ms)
{
    int64_t ms = min_ms;

    for (unsigned i = 1; i < nth && ms < max_ms; i++)
        ms *= 2;
    return ms < max_ms ? ms : max_ms;
}

int64_t backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms)
{
    int64_t ms = backoff_doubled_ms(nth, b->min_ms, b->max_ms);

    ms -= (int64_t)rand_below((uint64_t)(ms / 2) + 1);
    if (retry_after_ms > b->retry_after_max_ms)
        retry_after_ms = b->retry_after_max_ms;
    if (retry_after_ms > ms)
        ms = retry_after_ms + (int64_t)rand_below((uint64_t)(retry_after_ms / 4) + 1);
    return ms;
}
