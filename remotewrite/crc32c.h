/* CRC-32C (Castagnoli; RFC 3720, appendix B.4), by the processor's instruction where it has one. */
#ifndef DS_REMOTEWRITE_CRC32C_H
#define DS_REMOTEWRITE_CRC32C_H

#include "exporter/base/str.h"

#include <stdint.h>

/* Continues from the checksum of what came before; 0 to begin. */
uint32_t crc32c(uint32_t before, struct str bytes);
/* The same without the instruction: for processors that have none, and for tests. */
uint32_t crc32c_table(uint32_t before, struct str bytes);

#endif
