/* Owns references to the blocks of one row, which the last reference to the row drops. */
#include "exporter/metric/page_row.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

struct page_row *page_row_new(struct block *const *blocks, size_t n)
{
    struct page_row *row = xcalloc(1, sizeof(*row) + n * sizeof(row->blocks[0]));

    row->refs = 1;
    for (size_t i = 0; i < n; i++)
        row->blocks[i] = block_ref(blocks[i]);
    row->n = n;
    return row;
}

struct page_row *page_row_ref(struct page_row *row)
{
    unsigned before = __atomic_fetch_add(&row->refs, 1, __ATOMIC_RELAXED);

    invariant(before > 0);
    return row;
}

static void page_row_free(struct page_row *row)
{
    for (size_t i = 0; i < row->n; i++)
        (void)block_unref(row->blocks[i]);
    for (size_t i = 0; i < OWN_FORMATS; i++)
        (void)block_unref(row->own[i]);
    free(row);
}

struct page_row *page_row_unref(struct page_row *row)
{
    unsigned before;

    if (!row)
        return NULL;
    before = __atomic_fetch_sub(&row->refs, 1, __ATOMIC_ACQ_REL);
    invariant(before > 0);
    if (before == 1)
        page_row_free(row);
    return NULL;
}

struct block *page_row_block(const struct page_row *row, size_t i, enum own_format own)
{
    if (i < row->n)
        return row->blocks[i];
    return i == row->n ? row->own[own] : NULL;
}

uint64_t page_row_memory(const struct page_row *row)
{
    uint64_t bytes = block_memory(row->own[OWN_TEXT]) + block_memory(row->own[OWN_OPENMETRICS]);

    for (size_t i = 0; i < row->n; i++)
        bytes += block_memory(row->blocks[i]);
    return bytes;
}
