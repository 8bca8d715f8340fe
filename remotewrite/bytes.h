/* Little-endian numbers at any address, and the checksum of files: CRC-32C (Castagnoli; RFC 3720, appendix
 * B.4). */
#ifndef DS_REMOTEWRITE_BYTES_H
#define DS_REMOTEWRITE_BYTES_H

#include "exporter/base/str.h"

#include <endian.h>
#include <isa-l/crc.h>

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

/* Continues the checksum `before`; 0 to start. At most 2 GiB. */
static inline uint32_t crc32c(uint32_t before, struct str bytes)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)bytes.p, (int)bytes.n, ~before);
}

#endif
