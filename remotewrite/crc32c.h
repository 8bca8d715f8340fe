/* CRC-32C (Castagnoli; RFC 3720, appendix B.4), with the CPU's instruction if it has one. */
#ifndef DS_REMOTEWRITE_CRC32C_H
#define DS_REMOTEWRITE_CRC32C_H

#include "exporter/base/str.h"

#include <stdint.h>

/* Continues the checksum `before`; 0 to start. */
uint32_t crc32c(uint32_t before, struct str bytes);
/* Like crc32c(), without the instruction. */
uint32_t crc32c_table(uint32_t before, struct str bytes);

#endif
