#include "remotewrite/crc32c.h"

#include <pthread.h>

/* The polynomial, bit-reversed like the checksum. */
#define POLYNOMIAL 0x82f63b78u

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;

        for (int bit = 0; bit < 8; bit++)
            v = v >> 1 ^ (v & 1 ? POLYNOMIAL : 0);
        table[i] = v;
    }
}

uint32_t crc32c_table(uint32_t before, struct str bytes)
{
    uint32_t v = ~before;

    (void)pthread_once(&table_once, make_table);
    for (size_t i = 0; i < bytes.n; i++)
        v = v >> 8 ^ table[(v ^ (unsigned char)bytes.p[i]) & 0xff];
    return ~v;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t before, struct str bytes)
{
    uint64_t v = ~before, word;
    size_t i = 0;

    for (; i + 8 <= bytes.n; i += 8) {
        memcpy(&word, bytes.p + i, 8);
        v = __builtin_ia32_crc32di(v, word);
    }
    for (; i < bytes.n; i++)
        v = __builtin_ia32_crc32qi((uint32_t)v, (unsigned char)bytes.p[i]);
    return ~(uint32_t)v;
}

uint32_t crc32c(uint32_t before, struct str bytes)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(before, bytes) : crc32c_table(before, bytes);
}
#else
uint32_t crc32c(uint32_t before, struct str bytes)
{
    return crc32c_table(before, bytes);
}
#endif
