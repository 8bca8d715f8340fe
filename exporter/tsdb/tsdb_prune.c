/* Dropping samples: too old, or the oldest to make room. */
#include "exporter/tsdb/tsdb_internal.h"

/* Series looked at while the lock is held, and how often that is in one call. */
enum { PRUNE_PIECE = 256, PRUNE_PIECES = 8, EVICT_PIECES = 4 };
/* The part of the age by which the cut moves with each turn over all series. */
enum { EVICT_PARTS = 16 };

/* Lock held. */
static void prune_one(struct tsdb *t, uint32_t id, int64_t before)
{
    struct series *s = series_find(t, id);
    uint64_t samples = t->samples;

    if (!s)
        return;
    if (s->codec.t >= before) {
        t->stats.samples_expired += series_drop_before(t, s, before);
    } else if (t->readers == 0) {
        series_remove(t, id);
        t->stats.samples_expired += samples - t->samples;
        t->stats.series_expired++;
    }
}

void tsdb_prune(struct tsdb *t)
{
    int64_t now = t->options.clock->wall(t->options.clock).ms;

    for (unsigned piece = 0; piece < PRUNE_PIECES; piece++) {
        uint32_t last;

        tsdb_lock(t);
        last = slab_last(&t->series);
        for (unsigned i = 0; i < PRUNE_PIECE && t->prune_at < last; i++)
            prune_one(t, ++t->prune_at, now - t->age_ms);
        if (t->prune_at >= last)
            t->prune_at = 0;
        tsdb_unlock(t);
        if (t->prune_at == 0)
            return;
    }
}

/* Lock held. */
static void evict_one(struct tsdb *t, int64_t now)
{
    struct series *s = series_find(t, ++t->evict_at);
    uint64_t dropped = s ? series_drop_before(t, s, t->evict_before) : 0;

    if (dropped && t->complete_from < t->evict_before)
        t->complete_from = t->evict_before;
    t->stats.samples_evicted += dropped;
    if (t->evict_at < slab_last(&t->series))
        return;
    t->evict_at = 0;
    if (t->evict_before < now)
        t->evict_before += t->age_ms / EVICT_PARTS;
}

/* Each turn over all series drops what is older than a cut, which moves from the oldest samples towards now.
 * Queries that begin before the cut fail, since some series would lack samples that others have. */
void tsdb_evict(struct tsdb *t, int64_t now)
{
    bool more = true;

    for (unsigned piece = 0; more && piece < EVICT_PIECES; piece++) {
        tsdb_lock(t);
        more = tsdb_bytes_left(t) < t->budget.max / 16;
        if (more && t->evict_before < now - t->age_ms)
            t->evict_before = now - t->age_ms;
        for (unsigned i = 0; more && i < PRUNE_PIECE; i++)
            evict_one(t, now);
        tsdb_unlock(t);
    }
}
