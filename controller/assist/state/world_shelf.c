#include "controller/assist/state/world_shelf.h"

#include <errno.h>
#include <string.h>

enum { SHELF_MIN = 16 };

static int shelf_compare(const struct world_slot *s, const char *namespace, const char *name)
{
    int r = strcmp(s->namespace, namespace);

    return r ? r : strcmp(s->name, name);
}

void world_shelf_done(struct world_shelf *s)
{
    free(s->slots);
    *s = (struct world_shelf){0};
}

size_t world_shelf_at(const struct world_shelf *s, const char *namespace, const char *name)
{
    size_t low = 0, high = s->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (shelf_compare(&s->slots[middle], namespace, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct world_slot *world_shelf_get(const struct world_shelf *s, const char *namespace, const char *name)
{
    size_t at = world_shelf_at(s, namespace, name);

    return at < s->n && shelf_compare(&s->slots[at], namespace, name) == 0 ? &s->slots[at] : NULL;
}

static int shelf_grow(struct world_shelf *s)
{
    size_t cap = s->cap ? s->cap + s->cap / 2 : SHELF_MIN;
    struct world_slot *slots = reallocarray(s->slots, cap, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    s->slots = slots;
    s->cap = cap;
    return 0;
}

int world_shelf_put(struct world_shelf *s, const struct world_slot *slot, void **ret_old)
{
    struct world_slot *known = world_shelf_get(s, slot->namespace, slot->name);
    size_t at;

    if (known) {
        *ret_old = known->value;
        *known = *slot;
        return 0;
    }
    if (s->n == s->cap && shelf_grow(s) < 0)
        return -ENOMEM;
    /* Lists come nearly sorted, so little is moved. */
    at = world_shelf_at(s, slot->namespace, slot->name);
    memmove(&s->slots[at + 1], &s->slots[at], (s->n - at) * sizeof(*slot));
    s->slots[at] = *slot;
    s->n++;
    *ret_old = NULL;
    return 0;
}

void *world_shelf_take(struct world_shelf *s, struct world_slot *slot)
{
    void *value = slot->value;

    memmove(slot, slot + 1, (size_t)(s->slots + --s->n - slot) * sizeof(*slot));
    return value;
}

const struct world_slot *world_shelf_next(const struct world_shelf *s, const char *namespace, size_t *at)
{
    if (*at == 0 && namespace)
        *at = world_shelf_at(s, namespace, "");
    if (*at >= s->n || (namespace && strcmp(s->slots[*at].namespace, namespace) != 0))
        return NULL;
    return &s->slots[(*at)++];
}
