/* Owns the process's random key, which is made before main() and never changes. Any thread. */
#include "exporter/base/hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t process_key;

/* Before main(), so that no hash is ever made with another key. */
static __attribute__((constructor)) void hash_make_key(void)
{
    const void *from_kernel = (const void *)getauxval(AT_RANDOM);

    /* A sandbox may forbid getrandom(); the kernel also gave each process 16 random bytes at its start. */
    if (getrandom(&process_key, sizeof(process_key), GRND_NONBLOCK) != sizeof(process_key) && from_kernel)
        memcpy(&process_key, from_kernel, sizeof(process_key));
}

uint64_t hash_bytes(struct str s)
{
    return XXH3_64bits_withSeed(s.p, s.n, process_key);
}

uint64_t hash_chain(uint64_t h, struct str s)
{
    return XXH3_64bits_withSeed(s.p, s.n, process_key ^ h);
}

uint64_t hash_chain_u64(uint64_t h, uint64_t v)
{
    return XXH3_64bits_withSeed(&v, sizeof(v), process_key ^ h);
}

uint64_t hash_lasting(struct str s)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3ull;
    return h;
}
