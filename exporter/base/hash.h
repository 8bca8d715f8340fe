/* Hashes: XXH3 with a random key per process, so that nobody who sends data can choose what collides. Never
 * store such a hash or send it anywhere. Any thread. */
#pragma once

#include "exporter/base/str.h"

#include <stdint.h>

uint64_t hash_bytes(struct str s);
/* For several parts: hash_chain(hash_chain(hash_bytes(a), b), c). The borders between parts count. */
uint64_t hash_chain(uint64_t h, struct str s);
uint64_t hash_chain_u64(uint64_t h, uint64_t v);

/* FNV-1a, the same in every process and version: to derive names that are stored. */
uint64_t hash_lasting(struct str s);
