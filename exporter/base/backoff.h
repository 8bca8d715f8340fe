/* Exponential back-off with jitter: the pauses between retries. */
#pragma once

#include <stdint.h>

struct backoff {
    int64_t min_ms, max_ms; /* the first pause and the longest */
    /* A longer Retry-After counts as this, so that a proxy's mistake does not stop us for a day. */
    int64_t retry_after_max_ms;
};

/* The pause before the nth retry in a row (from 1), without jitter: doubles from min_ms to max_ms. */
int64_t backoff_doubled_ms(unsigned nth, int64_t min_ms, int64_t max_ms);
/* The same with jitter: from half of it to all of it. If the server asked for more (retry_after_ms; -1: no),
 * that and up to a quarter, so that its clients do not all return at once. */
int64_t backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);
