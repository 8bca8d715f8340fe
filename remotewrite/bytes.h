/* Encoded numbers: little-endian at any address, and the varints of protobuf and snappy. */
#ifndef DS_REMOTEWRITE_BYTES_H
#define DS_REMOTEWRITE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_u16(char *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put_u32(char *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put_u64(char *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof(v));
}

static inline uint16_t get_u16(const char *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return le16toh(v);
}

static inline uint32_t get_u32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

static inline uint64_t get_u64(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

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
