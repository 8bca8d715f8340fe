/* A block: lines of the /metrics page that stay together, as text and as a compressed piece (deflate.h).
 * Each of these two forms is made when the first scrape asks for it, and kept until the last reference to
 * the block is dropped; a scorer's scores that nobody scrapes are never rendered.
 *
 * A block is shared by the pages (page.h) that contain it, and so by the loop and all threads that serve
 * scrapes. What it was made of never changes. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/batch.h"

struct block;

enum block_form { BLOCK_TEXT, BLOCK_GZIP, BLOCK_FORMS };

/* Text of more bytes than this is refused. */
#define BLOCK_MAX_BYTES ((size_t)1 << 31)

/* The lines of a batch. `total` counts the bytes of all blocks that were given it, while they exist; it is
 * atomic and outlives the block. -EFBIG if the lines could take more than BLOCK_MAX_BYTES. */
MUST_USE int block_of_batch(struct block **ret, struct batch *b, uint64_t *total);
/* A text, which the block takes over: its ceiling is at most BLOCK_MAX_BYTES. */
struct block *block_of_text(struct buf *text, uint64_t *total);

/* A text that `derive` makes of that of another block, which was given it, when the first scrape asks. The
 * result has no more bytes than what it is made of. */
typedef void block_derive_fn(struct buf *into, struct str text);
struct block *block_derived(struct block *from, block_derive_fn *derive, uint64_t *total);

/* Any thread may take and drop references. Both take NULL; block_unref() returns NULL. */
struct block *block_ref(struct block *b);
struct block *block_unref(struct block *b);

/* The score name of the batch; "" without one. As long as the block. */
const char *block_name(const struct block *b);
/* Bytes that the block keeps, its batch included; 0 for NULL. Any thread. */
uint64_t block_memory(const struct block *b);

/* Makes a form unless it is there. Any thread. -ENOMEM, -EFBIG. */
MUST_USE int block_make(struct block *b, enum block_form form);
/* A form that block_make() has made; or the text of a block that was given one. As long as the block. */
struct str block_form(const struct block *b, enum block_form form);
/* With BLOCK_GZIP made: the CRC-32 of a member's text so far, continued by this block's text, and the length
 * of that text. */
uint32_t block_crc(const struct block *b, uint32_t crc_before);
uint64_t block_text_bytes(const struct block *b);

/* Appends the exposition lines of a batch: `name value\n` each. -EFBIG. */
MUST_USE int batch_render(const struct batch *b, struct buf *into);
