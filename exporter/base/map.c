#include "exporter/base/map.h"

#include <sys/auxv.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_CAP = 16, STRSET_FIRST_CAP = 64 };

/* The slot of the key, or the free slot where it would go. There is always a free one. */
static struct map_slot *slot_of(struct map_slot *slots, size_t cap, const char *key, uint64_t hash)
{
    size_t i = hash & (cap - 1);

    while (slots[i].key && !(slots[i].hash == hash && strcmp(slots[i].key, key) == 0))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

void map_done(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

void *map_get(const struct map *m, const char *key)
{
    return m->n ? slot_of(m->slots, m->cap, key, hash_bytes(str_of(key)))->value : NULL;
}

static void map_grow(struct map *m)
{
    size_t cap = m->cap ? m->cap * 2 : FIRST_CAP;
    struct map_slot *slots = xcalloc(cap, sizeof(*slots));

    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key)
            *slot_of(slots, cap, m->slots[i].key, m->slots[i].hash) = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
}

void map_set(struct map *m, const char *key, void *value)
{
    uint64_t hash = hash_bytes(str_of(key));
    struct map_slot *s;

    if (4 * (m->n + 1) > 3 * m->cap)
        map_grow(m);
    s = slot_of(m->slots, m->cap, key, hash);
    m->n += !s->key;
    *s = (struct map_slot){key, value, hash};
}

/* Moves later entries of the run up, so that no search ends early at the hole. */
static void close_hole(struct map *m, size_t hole)
{
    size_t mask = m->cap - 1;

    for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (struct map_slot){0};
}

void *map_take(struct map *m, const char *key)
{
    struct map_slot *s = m->n ? slot_of(m->slots, m->cap, key, hash_bytes(str_of(key))) : NULL;
    void *value = s ? s->value : NULL;

    if (!s || !s->key)
        return NULL;
    m->n--;
    close_hole(m, (size_t)(s - m->slots));
    return value;
}

void *map_next(const struct map *m, size_t *at)
{
    while (*at < m->cap) {
        const struct map_slot *s = &m->slots[(*at)++];

        if (s->key)
            return s->value;
    }
    return NULL;
}

/* ---- Sets of strings ---- */

/* The slot of the string, or the free one where it would go. There is always a free one. */
static uint32_t *strset_slot(const struct strset *s, struct str text)
{
    size_t i = hash_bytes(text) & (s->cap - 1);

    while (s->slots[i] && !str_eq(s->list[s->slots[i] - 1], text))
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

static void strset_grow(struct strset *s)
{
    s->cap = s->cap ? s->cap * 2 : STRSET_FIRST_CAP;
    free(s->slots);
    s->slots = xcalloc(s->cap, sizeof(*s->slots));
    s->list = xrealloc(s->list, s->cap / 2 * sizeof(*s->list));
    for (size_t i = 0; i < s->n; i++)
        *strset_slot(s, s->list[i]) = (uint32_t)i + 1;
}

void strset_done(struct strset *s)
{
    free(s->list);
    free(s->slots);
    *s = (struct strset){0};
}

size_t strset_find(const struct strset *s, struct str text)
{
    return s->n ? (size_t)*strset_slot(s, text) - 1 : SIZE_MAX;
}

size_t strset_add(struct strset *s, struct str text)
{
    uint32_t *slot;

    if (s->n == s->cap / 2)
        strset_grow(s);
    slot = strset_slot(s, text);
    if (!*slot) {
        s->list[s->n++] = text;
        *slot = (uint32_t)s->n;
    }
    return *slot - 1;
}

/* ---- Hashes ---- */

static uint64_t process_key;

/* Before main(), so that no hash is ever made with another key. */
static __attribute__((constructor)) void hash_make_key(void)
{
    const void *from_kernel = (const void *)getauxval(AT_RANDOM);

    /* A sandbox may forbid getrandom(); the kernel also gave each process 16 random bytes at its start. */
    if (getrandom(&process_key, sizeof(process_key), GRND_NONBLOCK) != sizeof(process_key) && from_kernel)
        memcpy(&process_key, from_kernel, sizeof(process_key));
}

uint64_t hash_bytes(struct str s)
{
    return XXH3_64bits_withSeed(s.p, s.n, process_key);
}

uint64_t hash_chain(uint64_t h, struct str s)
{
    return XXH3_64bits_withSeed(s.p, s.n, process_key ^ h);
}

uint64_t hash_chain_u64(uint64_t h, uint64_t v)
{
    return XXH3_64bits_withSeed(&v, sizeof(v), process_key ^ h);
}

uint64_t hash_lasting(struct str s)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3ull;
    return h;
}
