#include "exporter/metric/spellings.h"

#include "exporter/base/hash.h"

#include <errno.h>

size_t spellings_match(const struct spellings *s, struct str text)
{
    const struct spelling *next;

    if (s->next == s->n_was)
        return 0;
    next = &s->was[s->next];
    return next->bytes <= text.n && hash_bytes((struct str){text.p, next->bytes}) == next->hash ? next->bytes
                                                                                                : 0;
}

static void spellings_append(struct spellings *s, const struct spelling *one)
{
    if (UNLIKELY(s->n_now == s->cap_now)) {
        size_t cap = size_max(size_max(64, s->n_was), s->cap_now * 2);
        struct spelling *now = xrealloc(s->now, cap * sizeof(*now));
        s->now = now;
        s->cap_now = cap;
    }
    s->now[s->n_now++] = *one;
}

void spellings_take(struct spellings *s, size_t *ret)
{
    const struct spelling *one = &s->was[s->next++];

    *ret = one->place;
    spellings_append(s, one);
}

void spellings_note(struct spellings *s, struct str text, size_t place)
{
    struct spelling one = {.bytes = (uint32_t)text.n, .place = (uint32_t)place};

    if (text.n == 0 || text.n > UINT32_MAX)
        return;
    one.hash = hash_bytes(text);
    spellings_append(s, &one);
}

void spellings_follow(struct spellings *s, size_t place, size_t n_places)
{
    if (s->n_was == 0)
        return;
    if (!s->index) {
        s->index = xcalloc(n_places, sizeof(*s->index));
        for (size_t i = 0; i < s->n_was; i++)
            s->index[s->was[i].place] = (uint32_t)i + 1;
    }
    if (s->index[place])
        s->next = s->index[place];
}

void spellings_keep(struct spellings *s, const uint32_t *moved)
{
    for (size_t i = 0; moved && i < s->n_now; i++)
        s->now[i].place = moved[s->now[i].place];
    free(s->was);
    s->was = TAKE_PTR(s->now);
    s->n_was = s->n_now;
    spellings_drop(s);
}

void spellings_drop(struct spellings *s)
{
    free(s->now);
    free(s->index);
    s->now = NULL;
    s->index = NULL;
    s->n_now = s->cap_now = s->next = 0;
}

void spellings_done(struct spellings *s)
{
    spellings_drop(s);
    free(s->was);
    *s = (struct spellings){0};
}
