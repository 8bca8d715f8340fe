/* Compressed pieces that can be strung together into one gzip member (RFC 1952):
 *
 *     gzip_begin | piece | piece | ... | gzip_end()
 *
 * A piece is a row of deflate blocks (RFC 1951), none of which is the last one; it ends on a byte border.
 * The checksum of the whole is combined from those of the pieces. Several members would be valid too, but
 * curl and browsers read just the first. Any thread. */
#pragma once

#include "exporter/base/buf.h"

/* Compresses one piece, part by part. ISA-L's state takes 100 to 360 KiB, so it is freed after each piece: a
 * program at rest compresses one small piece per scrape. */
struct deflater;

/* For a piece of about text_bytes. */
struct deflater *deflater_new(size_t text_bytes);
/* Takes NULL, returns NULL. */
struct deflater *deflater_free(struct deflater *d);
DEFINE_CLEANUP(struct deflater, deflater_free)

/* Appends the next part of the text, compressed; more follow. Each part has less than 4 GiB. -EFBIG past the
 * buffer's ceiling, -ENOMEM. */
MUST_USE int deflater_put(struct deflater *d, struct str part, struct buf *into);
/* The same for the last part, which may be empty. The piece ends on a byte border then. */
MUST_USE int deflater_end(struct deflater *d, struct str part, struct buf *into);

/* Appends a piece of one part. */
MUST_USE int deflate_piece(struct buf *into, struct str text);

enum { GZIP_END_BYTES = 10 };

/* The head of a member: deflate, no name, no time, fastest, Unix. */
extern const struct str gzip_begin;
/* What ends it: an empty last block, the CRC-32 of the text and its length. */
void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes);
