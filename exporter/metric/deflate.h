/* A small compressor (RFC 1951) for exposition text, made so that compressed pieces can be strung together.
 *
 * A page is many pieces that change at different times. Each is compressed once, when it changes, to deflate blocks that
 * end on a byte border and never say "last"; a scrape then only joins them into one gzip member
 * (RFC 1952), whose checksum is combined from the pieces' own. Members strung together would be valid too, but
 * curl and browsers read just the first.
 *
 * Greedy matching by one hash table and the fixed Huffman codes: what repeats here are long stretches of label text, and
 * finding those fast matters more than the last tenth of size. */
#ifndef DS_METRIC_DEFLATE_H
#define DS_METRIC_DEFLATE_H

#include "exporter/base/buf.h"

/* Appends `text` compressed: whole blocks, none the last, ending on a byte border. -ENOMEM, -EFBIG. Any thread. */
MUST_USE int deflate_piece(struct buf *into, struct str text);

/* Begins a gzip member: ten bytes. */
extern const struct str gzip_begin;
/* Ends one: an empty last block, then CRC-32 and length (modulo 2^32) of the text, as RFC 1952 wants them. */
enum { GZIP_END_BYTES = 10 };
void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes);

/* CRC-32 of some text, and of two texts one after the other. */
uint32_t gzip_crc(struct str text);
uint32_t gzip_crc_join(uint32_t first, uint32_t second, uint64_t second_bytes);
/* The same in two steps, where a text is joined to others again and again: what its length means is worked out once. */
uint32_t gzip_crc_shift(uint64_t bytes);
uint32_t gzip_crc_join_shifted(uint32_t first, uint32_t second, uint32_t second_shift);

#endif
