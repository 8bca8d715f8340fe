/* A hash table from names to pointers. It owns neither: a name must not change while it is in the table,
 * which is easiest when it is a member of the value. */
#pragma once

#include "exporter/base/str.h"

struct map_slot {
    const char *key; /* NULL: free */
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
/* The values in no particular order, from *at = 0; NULL after the last. The table must stay as it is. */
void *map_next(const struct map *m, size_t *at);

/* Distinct strings with their places in the order of arrival. Not copied: they must stay as they are. */
struct strset {
    struct str *list; /* by place */
    size_t n;
    uint32_t *slots; /* by hash: place + 1; 0: free */
    size_t cap;      /* slots, a power of two; 0 at first */
};

/* Frees the table, which can be used again. */
void strset_done(struct strset *s);
/* The place of the string; SIZE_MAX if it is missing. */
size_t strset_find(const struct strset *s, struct str text);
/* Likewise, but a missing string is added: its place is what s->n was. */
size_t strset_add(struct strset *s, struct str text);

/* ---- Hashes: XXH3 with a random key per process, so that nobody who sends data can choose what collides.
 * Never store such a hash or send it anywhere. Any thread ---- */

uint64_t hash_bytes(struct str s);
/* For several parts: hash_chain(hash_chain(hash_bytes(a), b), c). The borders between parts count. */
uint64_t hash_chain(uint64_t h, struct str s);
uint64_t hash_chain_u64(uint64_t h, uint64_t v);

/* FNV-1a, the same in every process and version: to derive names that are stored. */
uint64_t hash_lasting(struct str s);
