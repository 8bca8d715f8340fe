/* What a page is made of at one moment: a row of blocks, in the order in which a scrape strings them
 * together. It is filled by the loop, which then publishes it, and does not change any more: the loop and
 * the threads that serve scrapes hold references to it. */
#pragma once

#include "exporter/metric/block.h"

#include <stddef.h>
#include <stdint.h>

/* Whose lines of the program's own metrics a scrape gets. */
enum own_format { OWN_TEXT, OWN_OPENMETRICS, OWN_FORMATS };

struct page_row {
    unsigned refs;                  /* atomic */
    struct block *own[OWN_FORMATS]; /* the program's metrics, after the others; NULL before the first */
    size_t n;
    struct block *blocks[];
};

/* Of n blocks, which it references, without the program's metrics. */
struct page_row *page_row_new(struct block *const *blocks, size_t n);
/* Any thread may take and drop references. page_row_unref() takes NULL, and returns it. */
struct page_row *page_row_ref(struct page_row *row);
struct page_row *page_row_unref(struct page_row *row);

/* Block i of a scrape: the page's blocks, then the program's metrics; NULL after them. */
struct block *page_row_block(const struct page_row *row, size_t i, enum own_format own);
/* Bytes that all its blocks keep. */
uint64_t page_row_memory(const struct page_row *row);
