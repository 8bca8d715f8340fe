/* A fast 64-bit hash for tables in memory, seeded once per process so that no one who sends data can choose
 * what collides. Not for storage or for the wire: it differs from run to run. */
#ifndef DS_BASE_HASH_H
#define DS_BASE_HASH_H

#include "exporter/base/str.h"

#include <stdint.h>

uint64_t hash_bytes(struct str s, uint64_t seed);

#endif
