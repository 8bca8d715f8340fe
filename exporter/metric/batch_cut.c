/* Label values that were truncated: results that became one series by that, and what tells them apart. */
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"

#include <errno.h>

static const uint32_t not_cut[DS_LABELS];

/* Keeps the hashes of the result that gave the series its value. */
static int cut_append(struct batch_builder *b, size_t place, uint32_t *slot)
{
    if (b->n_cuts == b->cuts_cap) {
        size_t cap = size_max(16, b->cuts_cap * 2);
        struct cut_labels *cuts = realloc(b->cuts, cap * sizeof(*cuts));

        if (!cuts)
            return -ENOMEM;
        b->cuts = cuts;
        b->cuts_cap = cap;
    }
    b->cuts[b->n_cuts] = (struct cut_labels){.series = (uint32_t)place};
    *slot = (uint32_t)++b->n_cuts;
    return 0;
}

int batch_note_cut(struct batch_builder *b, size_t place, bool repeated, const uint32_t *uncut)
{
    size_t known = batch_last_count(b);
    uint32_t *slot;

    if (!b->known_cut && !(b->known_cut = calloc(size_max(known, 1), sizeof(*b->known_cut))))
        return -ENOMEM;
    slot = place < known ? &b->known_cut[place] : &b->fresh[place - known].cut;
    if (!uncut)
        uncut = not_cut;
    if (repeated && memcmp(*slot ? b->cuts[*slot - 1].uncut : not_cut, uncut, sizeof(not_cut)) != 0)
        b->merged_by_cut++;
    if (!*slot && uncut != not_cut && cut_append(b, place, slot) < 0)
        return -ENOMEM;
    if (*slot)
        memcpy(b->cuts[*slot - 1].uncut, uncut, sizeof(not_cut));
    return 0;
}

static int compare_series(const void *x, const void *y)
{
    const struct cut_labels *a = x, *b = y;

    return a->series < b->series ? -1 : a->series > b->series;
}

void batch_seal_cuts(struct batch_builder *b, const uint32_t *moved, struct batch *batch)
{
    for (size_t i = 0; moved && i < b->n_cuts; i++)
        b->cuts[i].series = moved[b->cuts[i].series];
    if (b->n_cuts)
        qsort(b->cuts, b->n_cuts, sizeof(*b->cuts), compare_series);
    batch->cuts = TAKE_PTR(b->cuts);
    batch->n_cuts = b->n_cuts;
    batch->merged_by_cut = b->merged_by_cut;
}
