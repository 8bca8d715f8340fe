/* Open addressing with linear probing, at most half full; nothing is ever removed. A set belongs to one
 * thread. */
#include "exporter/base/strset.h"

#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"

enum { STRSET_FIRST_CAP = 64 };

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
