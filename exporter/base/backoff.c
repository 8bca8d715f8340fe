#include "exporter/base/backoff.h"

#include <sys/random.h>
#include <time.h>

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

/* xorshift64*: small, fast, and good enough to spread schedules. */
uint64_t rand_u64(void)
{
    static _Thread_local uint64_t state;

    if (state == 0 && (getrandom(&state, sizeof(state), GRND_NONBLOCK) != sizeof(state) || state == 0))
        state = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
}

uint64_t rand_below(uint64_t n)
{
    return n ? (uint64_t)(((unsigned __int128)rand_u64() * n) >> 64) : 0;
}
