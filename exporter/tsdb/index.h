/* A hash table of numbers, in parts that grow one by one: growing never takes longer than a few
 * microseconds for each thousand entries of a table of 64,000. Not locked. */
#ifndef DS_TSDB_INDEX_H
#define DS_TSDB_INDEX_H

#include "exporter/base/def.h"
#include "exporter/tsdb/slab.h"

#include <stdbool.h>
#include <stdint.h>

enum { INDEX_PARTS = 64 };

struct index_slot {
    uint32_t id; /* 0: free */
    uint32_t hash;
};

struct index {
    struct tsdb_budget *budget;
    struct index_part {
        struct index_slot *slots;
        uint32_t cap, n; /* cap: a power of two */
    } parts[INDEX_PARTS];
};

void index_done(struct index *x);
/* The entry with this hash for which same() holds; 0 without one. */
uint32_t index_find(const struct index *x, uint32_t hash, bool (*same)(const void *arg, uint32_t id),
                    const void *arg);
/* Adds an entry. -ENOBUFS, -ENOMEM. */
MUST_USE int index_add(struct index *x, uint32_t hash, uint32_t id);
/* Removes an entry, which is there. */
void index_remove(struct index *x, uint32_t hash, uint32_t id);

#endif
