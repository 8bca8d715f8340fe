#include "exporter/web/auth_cache.h"

static struct auth_entry *cache_find(struct auth_entry *list, size_t n, const char *digest)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].digest, digest) == 0)
            return &list[i];
    return NULL;
}

/* Free ones are the oldest. */
static struct auth_entry *cache_oldest(struct auth_entry *list, size_t n)
{
    struct auth_entry *oldest = list;

    for (size_t i = 1; i < n; i++)
        if (mono_before(list[i].at, oldest->at))
            oldest = &list[i];
    return oldest;
}

bool auth_cache_get(struct auth_cache *c, const char *digest, mono_ms now, bool *ret_good)
{
    struct auth_entry *e = cache_find(c->good, AUTH_CACHE_GOOD, digest);

    *ret_good = e;
    if (e) {
        e->at = now;
        return true;
    }
    e = cache_find(c->bad, AUTH_CACHE_BAD, digest);
    return e && mono_diff(e->at, now) < AUTH_CACHE_BAD_MS;
}

void auth_cache_put(struct auth_cache *c, const char *digest, mono_ms now, bool good)
{
    struct auth_entry *list = good ? c->good : c->bad, *e;
    size_t n = good ? AUTH_CACHE_GOOD : AUTH_CACHE_BAD;

    e = cache_find(list, n, digest) ?: cache_oldest(list, n);
    memcpy(e->digest, digest, sizeof(e->digest));
    e->at = now;
}
