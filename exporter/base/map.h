/* A hash table from names to pointers. It owns neither: a name must not change while it is in the table,
 * which is easiest when it is a member of the value. */
#pragma once

#include "exporter/base/str.h"

struct map_slot {
    struct str key; /* p is NULL: free */
    void *value;
    uint64_t hash;
};

struct map {
    struct map_slot *slots; /* NULL while empty */
    size_t cap, n;          /* cap: a power of two */
};

/* Frees the table, not the values. It can be used again. */
void map_done(struct map *m);
/* NULL without an entry. */
void *map_get(const struct map *m, const char *key);
/* Inserts or replaces. */
void map_set(struct map *m, const char *key, void *value);
/* Removes an entry and returns its value; NULL without one. Never fails. */
void *map_take(struct map *m, const char *key);
/* The same three for names that are slices, which may hold any byte. */
void *map_get_str(const struct map *m, struct str key);
void map_set_str(struct map *m, struct str key, void *value);
void *map_take_str(struct map *m, struct str key);
/* The values in no particular order, from *at = 0; NULL after the last. The table must stay as it is. */
void *map_next(const struct map *m, size_t *at);
