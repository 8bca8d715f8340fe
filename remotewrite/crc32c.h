/* CRC-32C (Castagnoli; RFC 3720, appendix B.4). */
#ifndef DS_REMOTEWRITE_CRC32C_H
#define DS_REMOTEWRITE_CRC32C_H

#include "exporter/base/str.h"

#include <isa-l/crc.h>
#include <stdint.h>

/* Continues the checksum `before`; 0 to start. At most 2 GiB. */
static inline uint32_t crc32c(uint32_t before, struct str bytes)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)bytes.p, (int)bytes.n, ~before);
}

#endif
