/* Compressed pieces that can be strung together into one gzip member (RFC 1952), whose checksum is combined
 * from those of the pieces. Several members would be valid too, but curl and browsers read just the first.
 * ISA-L's igzip at level 1 compresses, and computes the checksums; zlib combines them. */
#ifndef DS_METRIC_DEFLATE_H
#define DS_METRIC_DEFLATE_H

#include "exporter/base/buf.h"

/* Appends `text`, of up to 2 GiB, as deflate blocks (RFC 1951): none is the last, and they end on a byte
 * border. -ENOMEM, -EFBIG. Any thread. */
MUST_USE int deflate_piece(struct buf *into, struct str text);

/* Begins a gzip member: ten bytes. */
extern const struct str gzip_begin;
/* Ends one: an empty last block, then CRC-32 and length (modulo 2^32) of the text, as RFC 1952 wants them. */
enum { GZIP_END_BYTES = 10 };
void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes);

/* CRC-32 of some text, and of two texts one after the other. */
uint32_t gzip_crc(struct str text);
uint32_t gzip_crc_join(uint32_t first, uint32_t second, uint64_t second_bytes);
/* gzip_crc_join() in two steps: the first depends on the length alone and is kept for a text that is
 * joined again and again. */
uint32_t gzip_crc_shift(uint64_t bytes);
uint32_t gzip_crc_join_shifted(uint32_t first, uint32_t second, uint32_t second_shift);

#endif
