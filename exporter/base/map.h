/* A table from names to pointers. Neither is owned: a name must stay as it is while it is in the table, which is
 * easiest when it is a member of what it leads to. */
#ifndef DS_BASE_MAP_H
#define DS_BASE_MAP_H

#include "exporter/base/def.h"

struct map_slot {
    const char *key; /* NULL: free */
    void *value;
    uint64_t hash;
};

struct map {
    struct map_slot *slots; /* NULL while empty */
    size_t cap, n;          /* cap: a power of two */
};

/* Frees the table, not what it leads to. It may be used again. */
void map_done(struct map *m);
/* NULL when there is none. */
void *map_get(const struct map *m, const char *key);
/* Sets or replaces. -ENOMEM: the table is as before. */
MUST_USE int map_set(struct map *m, const char *key, void *value);
/* Takes it out and returns it; NULL when there was none. Never fails. */
void *map_take(struct map *m, const char *key);
/* All values, in no order: start with *at = 0; NULL after the last. The table must not be changed meanwhile. */
void *map_next(const struct map *m, size_t *at);

#endif
