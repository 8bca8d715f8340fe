/* Any thread. The universe replaces this file by one with a seed. */
#include "exporter/base/random.h"

#include <stdlib.h>

uint64_t rand_u64(void)
{
    return (uint64_t)arc4random() << 32 | arc4random();
}

uint64_t rand_below(uint64_t n)
{
    return n ? (uint64_t)(((unsigned __int128)rand_u64() * n) >> 64) : 0;
}
