/* One answer to a scrape: the row of blocks that it sends, and what was rendered for it alone, strung
 * together as the parts of a body. Belongs to the thread that serves it. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/block.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/page_row.h"

#include <sys/uio.h>

struct scrape {
    struct page_row *row; /* a reference */
    enum own_format own;
    enum block_form form;
    struct buf tail; /* after the blocks: plain or compressed */
    char end[GZIP_END_BYTES];
    unsigned n_parts;
    struct iovec parts[];
};

/* Takes the reference to the row and, as text, what comes after its blocks, both also on failure. Makes the
 * blocks' forms that nobody has asked for yet. -ENOMEM, -EFBIG. */
MUST_USE int scrape_new(struct scrape **ret, struct page_row *row, enum own_format own, enum block_form form,
                        struct buf *tail);
/* Takes NULL, returns NULL. */
struct scrape *scrape_free(struct scrape *s);
DEFINE_CLEANUP(struct scrape, scrape_free)
