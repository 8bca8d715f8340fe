/* Open addressing with linear probing, at most three quarters full; removing closes the hole, so there are
 * no tombstones. A map belongs to one thread, or to whoever holds its lock. */
#include "exporter/base/map.h"

#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"

enum { FIRST_CAP = 16 };

/* The slot of the key, or the free slot where it would go. There is always a free one. */
static struct map_slot *slot_of(struct map_slot *slots, size_t cap, struct str key, uint64_t hash)
{
    size_t i = hash & (cap - 1);

    while (slots[i].key.p && !(slots[i].hash == hash && str_eq(slots[i].key, key)))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

void map_done(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

void *map_get_str(const struct map *m, struct str key)
{
    return m->n ? slot_of(m->slots, m->cap, key, hash_bytes(key))->value : NULL;
}

void *map_get(const struct map *m, const char *key)
{
    return map_get_str(m, str_of(key));
}

static void map_grow(struct map *m)
{
    size_t cap = m->cap ? m->cap * 2 : FIRST_CAP;
    struct map_slot *slots = xcalloc(cap, sizeof(*slots));

    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key.p)
            *slot_of(slots, cap, m->slots[i].key, m->slots[i].hash) = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
}

void map_set_str(struct map *m, struct str key, void *value)
{
    uint64_t hash = hash_bytes(key);
    struct map_slot *s;

    invariant(key.p);
    if (4 * (m->n + 1) > 3 * m->cap)
        map_grow(m);
    s = slot_of(m->slots, m->cap, key, hash);
    m->n += !s->key.p;
    *s = (struct map_slot){key, value, hash};
}

void map_set(struct map *m, const char *key, void *value)
{
    map_set_str(m, str_of(key), value);
}

/* Moves later entries of the run up, so that no search ends early at the hole. */
static void close_hole(struct map *m, size_t hole)
{
    size_t mask = m->cap - 1;

    for (size_t i = (hole + 1) & mask; m->slots[i].key.p; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (struct map_slot){0};
}

void *map_take_str(struct map *m, struct str key)
{
    struct map_slot *s = m->n ? slot_of(m->slots, m->cap, key, hash_bytes(key)) : NULL;
    void *value = s ? s->value : NULL;

    if (!s || !s->key.p)
        return NULL;
    m->n--;
    close_hole(m, (size_t)(s - m->slots));
    return value;
}

void *map_take(struct map *m, const char *key)
{
    return map_take_str(m, str_of(key));
}

void *map_next(const struct map *m, size_t *at)
{
    while (*at < m->cap) {
        const struct map_slot *s = &m->slots[(*at)++];

        if (s->key.p)
            return s->value;
    }
    return NULL;
}
