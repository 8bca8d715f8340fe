#include "exporter/base/rand.h"

#include <sys/random.h>
#include <time.h>

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
