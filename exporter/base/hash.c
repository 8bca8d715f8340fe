#include "exporter/base/hash.h"

/* Folded 64x64 multiplication, as wyhash and its kin use it: each step mixes 16 bytes. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t load64(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t load_tail(const char *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return v;
}

uint64_t hash_bytes(struct str s, uint64_t seed)
{
    const uint64_t k1 = 0x9e3779b97f4a7c15ull, k2 = 0xd1b54a32d192ed03ull;
    /* Bytes that cancel a factor make a product of nothing; so what they would have to be is not known outside. */
    const uint64_t key = seed ^ k1;
    const char *p = s.p;
    size_t n = s.n;
    uint64_t h = seed ^ k2;

    for (; n > 16; p += 16, n -= 16)
        h = mix(load64(p) ^ key, load64(p + 8) ^ h);
    if (n > 8)
        h = mix(load64(p) ^ key, load_tail(p + 8, n - 8) ^ h);
    else if (n > 0)
        h = mix(load_tail(p, n) ^ key, h);
    return mix(h ^ s.n, k1);
}
