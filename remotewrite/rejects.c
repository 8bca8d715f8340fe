#include "remotewrite/rejects.h"

#include <string.h>

/* The index of the hash, or where it belongs. */
static size_t rejects_find(const struct rejects *r, uint64_t hash)
{
    size_t from = 0, to = r->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (r->list[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void rejects_make_room(struct rejects *r)
{
    size_t first = 0;

    if (r->n < REJECTS_MAX)
        return;
    for (size_t i = 1; i < r->n; i++)
        if (mono_before(r->list[i].until, r->list[first].until))
            first = i;
    r->n--;
    memmove(&r->list[first], &r->list[first + 1], (r->n - first) * sizeof(r->list[0]));
}

void rejects_add(struct rejects *r, uint64_t hash, mono_ms now)
{
    size_t i = rejects_find(r, hash);
    struct reject *e;

    if (i == r->n || r->list[i].hash != hash) {
        rejects_make_room(r);
        i = rejects_find(r, hash);
        memmove(&r->list[i + 1], &r->list[i], (r->n - i) * sizeof(r->list[0]));
        r->n++;
        r->list[i] = (struct reject){.hash = hash};
    }
    e = &r->list[i];
    /* One that was well for as long as it was left out begins anew. */
    if (e->ms == 0 || !mono_before(now, mono_add(e->until, e->ms)))
        e->ms = REJECTS_MIN_MS;
    else
        e->ms = e->ms * 2 < REJECTS_MAX_MS ? e->ms * 2 : REJECTS_MAX_MS;
    e->until = mono_add(now, e->ms);
    if (mono_before(r->last_until, e->until))
        r->last_until = e->until;
}

bool rejects_has(const struct rejects *r, uint64_t hash, mono_ms now)
{
    size_t i = rejects_find(r, hash);

    return i < r->n && r->list[i].hash == hash && mono_before(now, r->list[i].until);
}

bool rejects_empty(const struct rejects *r, mono_ms now)
{
    return r->n == 0 || !mono_before(now, r->last_until);
}
