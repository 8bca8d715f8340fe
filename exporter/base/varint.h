/* Varints, as in protobuf and snappy. */
#ifndef DS_BASE_VARINT_H
#define DS_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

enum { VARINT_MAX = 10 };

static inline size_t varint_size(uint64_t v)
{
    return (size_t)(70 - __builtin_clzll(v | 1)) / 7;
}

static inline char *put_varint(char *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (char)(v | 0x80);
    *p++ = (char)v;
    return p;
}

/* Returns the end of the number, or NULL if it is incomplete or too long. */
static inline const char *get_varint(const char *p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        unsigned char c = (unsigned char)*p++;

        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *ret = v;
            return p;
        }
    }
    return NULL;
}

#endif
