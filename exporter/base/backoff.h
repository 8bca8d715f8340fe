/* Exponential back-off with jitter, and the random numbers for it. */
#ifndef DS_BASE_BACKOFF_H
#define DS_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t min_ms, max_ms; /* the first pause and the longest */
    /* A longer Retry-After counts as this, so that a proxy's mistake does not stop us for a day. */
    int64_t retry_after_max_ms;
};

/* The pause before the nth retry in a row (from 1), without jitter: doubles from min_ms to max_ms. */
int64_t backoff_doubled_ms(unsigned nth, int64_t min_ms, int64_t max_ms);
/* The pause before the nth retry in a row: a random time between half of backoff_doubled_ms() and all of
 * it. When the server asked for more (retry_after_ms, -1 for nothing), that and up to a quarter, so that its
 * clients do not return all at once. */
int64_t backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);

/* Random numbers for jitter and names; not for secrets or keys. Any thread: 64 random bits, seeded from the
 * kernel on first use. */
uint64_t rand_u64(void);
/* Uniform in [0, n); 0 for n = 0. */
uint64_t rand_below(uint64_t n);

#endif
