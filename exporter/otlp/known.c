#include "exporter/otlp/known.h"

#include <errno.h>
#include <string.h>

enum { FIRST_SLOTS = 1024, NAMES_PER_SERIES = 3 };

struct known_slot {
    uint64_t hash; /* 0: free */
    uint32_t state;
};

void known_done(struct known *c)
{
    free(c->slots);
    free(c->series);
    *c = (struct known){.max = c->max};
}

static struct known_slot *known_slot_of(const struct known *c, uint64_t hash)
{
    size_t at = (size_t)hash & (c->cap - 1);

    while (c->slots[at].hash && c->slots[at].hash != hash)
        at = (at + 1) & (c->cap - 1);
    return &c->slots[at];
}

uint32_t known_find(const struct known *c, uint64_t hash)
{
    const struct known_slot *s = c->cap ? known_slot_of(c, hash) : NULL;

    return s && s->hash ? s->state : KNOWN_NONE;
}

/* Room for two more names. */
static int grow_slots(struct known *c)
{
    struct known old = *c;

    if ((c->used + 2) * 4 < c->cap * 3)
        return 0;
    c->cap = c->cap ? c->cap * 2 : FIRST_SLOTS;
    c->slots = calloc(c->cap, sizeof(*c->slots));
    if (!c->slots) {
        *c = old;
        return -ENOMEM;
    }
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].hash)
            *known_slot_of(c, old.slots[i].hash) = old.slots[i];
    free(old.slots);
    return 0;
}

static int grow_series(struct known *c)
{
    size_t cap = c->room ? c->room * 2 : FIRST_SLOTS;
    struct known_series *series;

    if (c->n < c->room)
        return 0;
    series = reallocarray(c->series, cap, sizeof(*series));
    if (!series)
        return -ENOMEM;
    c->series = series;
    c->room = cap;
    return 0;
}

static void set_slot(struct known *c, uint64_t hash, uint32_t state)
{
    struct known_slot *s = known_slot_of(c, hash);

    c->used += !s->hash;
    *s = (struct known_slot){hash, state};
}

int known_enter(struct known *c, uint64_t hash, uint64_t labels, uint64_t ref, uint32_t *ret)
{
    uint32_t at;
    int r;

    if (c->n >= c->max || c->used >= c->max * NAMES_PER_SERIES)
        known_done(c);
    r = grow_slots(c) ?: grow_series(c);
    if (r < 0)
        return r;
    at = known_find(c, labels);
    if (at == KNOWN_NONE) {
        at = (uint32_t)c->n++;
        c->series[at] = (struct known_series){0};
        set_slot(c, labels, at);
    }
    c->series[at].ref = ref;
    set_slot(c, hash, at);
    *ret = at;
    return 0;
}
