/* Owns what a round has ended with until its last reference is dropped: the values, the set that they
 * belong to, and the labels that were cut. Any thread. */
#include "exporter/metric/batch.h"

#include "exporter/base/invariant.h"

struct batch *batch_ref(struct batch *b)
{
    unsigned before = __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);

    invariant(before > 0);
    return b;
}

static void batch_free(struct batch *b)
{
    (void)series_set_unref(b->set);
    free(b->score_name);
    free(b->values);
    free(b->order);
    free(b->cuts);
    free(b);
}

struct batch *batch_unref(struct batch *b)
{
    unsigned before;

    if (!b)
        return NULL;
    before = __atomic_fetch_sub(&b->refs, 1, __ATOMIC_ACQ_REL);
    invariant(before > 0);
    if (before == 1)
        batch_free(b);
    return NULL;
}
