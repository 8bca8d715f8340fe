/* Sealing a batch: with the last set if the series are the same, else with a new one. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/metric/series_set.h"
#include "exporter/metric/spellings.h"

#include "exporter/base/hash.h"

#include <errno.h>

static int compare_fresh_names(const void *x, const void *y, void *text)
{
    const struct fresh *a = x, *b = y;

    return str_cmp((struct str){(const char *)text + a->at, a->name_n},
                   (struct str){(const char *)text + b->at, b->name_n});
}

static size_t kept_bytes(const struct batch_builder *b)
{
    size_t bytes = 0;

    for (size_t i = 0; i < batch_last_count(b); i++)
        if (b->seen[i])
            bytes += series_record(b->last, i).n;
    return bytes;
}

/* Merges the series of the last set that were seen again, which are in order, with the fresh ones, which
 * it sorts, into a new set with its values and order. moved[] maps the place of each until now to its
 * place in the new set. */
static int merge_series(struct batch_builder *b, struct batch *batch, uint32_t *moved)
{
    size_t n = b->n_seen + b->n_fresh, old_n = batch_last_count(b);
    CLEANUP(cleanup_series_set_unref) struct series_set *set = NULL;
    CLEANUP(cleanup_free) double *values = calloc(size_max(n, 1), sizeof(*values));
    CLEANUP(cleanup_free) uint32_t *order = calloc(size_max(n, 1), sizeof(*order));
    size_t i = 0, k = 0;
    int r;

    if (!values || !order)
        return -ENOMEM;
    r = series_set_new(&set, n, kept_bytes(b) + b->fresh_text.n);
    if (r < 0)
        return r;
    if (b->n_fresh)
        qsort_r(b->fresh, b->n_fresh, sizeof(*b->fresh), compare_fresh_names, b->fresh_text.p);
    while (set->n < n) {
        const struct fresh *f = k < b->n_fresh ? &b->fresh[k] : NULL;
        struct str record = f ? (struct str){b->fresh_text.p + f->at, f->n} : (struct str){NULL, 0};

        while (i < old_n && !b->seen[i])
            i++;
        if (!f || (i < old_n && str_cmp(series_name(b->last, i), (struct str){record.p, f->name_n}) < 0)) {
            struct str name = series_name(b->last, i);

            moved[i] = (uint32_t)set->n;
            values[set->n] = b->values[i];
            order[set->n] = b->results[i];
            series_set_append(set, series_record(b->last, i++), name.n, hash_bytes(name));
        } else {
            moved[old_n + f->id] = (uint32_t)set->n;
            values[set->n] = f->value;
            order[set->n] = f->result;
            series_set_append(set, record, f->name_n, f->hash);
            k++;
        }
    }
    batch->set = TAKE_PTR(set);
    batch->values = TAKE_PTR(values);
    batch->order = TAKE_PTR(order);
    return 0;
}

static int batch_new(struct batch **ret, const struct batch_builder *b, unix_ms at)
{
    struct batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return -ENOMEM;
    batch->refs = 1;
    batch->at = at;
    batch->score_name = str_dup(str_of(b->score_name));
    *ret = batch;
    return batch->score_name ? 0 : -ENOMEM;
}

static int seal_new_set(struct batch_builder *b, struct batch *batch)
{
    CLEANUP(cleanup_free) uint32_t *moved = calloc(batch_last_count(b) + b->n_fresh + 1, sizeof(*moved));
    int r = moved ? merge_series(b, batch, moved) : -ENOMEM;

    if (r < 0)
        return r;
    (void)series_set_unref(b->last);
    b->last = series_set_ref(batch->set);
    spellings_keep(&b->spellings, moved);
    batch_seal_cuts(b, moved, batch);
    return 0;
}

int batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    int r = batch_new(&batch, b, at);

    if (r < 0)
        return r;
    if (b->last && b->n_fresh == 0 && b->n_seen == series_count(b->last)) {
        batch->set = series_set_ref(b->last);
        batch->values = TAKE_PTR(b->values);
        batch->order = TAKE_PTR(b->results);
        spellings_keep(&b->spellings, NULL);
        batch_seal_cuts(b, NULL, batch);
    } else {
        r = seal_new_set(b, batch);
        if (r < 0)
            return r;
    }
    if (ret_duplicates)
        *ret_duplicates = b->duplicates;
    batch_abandon(b);
    *ret = TAKE_PTR(batch);
    return 0;
}
