#include "exporter/metric/deflate.h"

#include "exporter/base/def.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <zlib.h>

enum {
    SMALL_BYTES = 8 << 10, /* up to this, the small match table is as fast */
    SLACK_BYTES = 1024,    /* headers of blocks, for text that does not get smaller */
};

/* Freed after each piece: ISA-L's state takes 100 to 360 KiB, and a program at rest compresses one small
 * piece per scrape. */
struct deflater {
    struct isal_zstream z;
    uint8_t table[];
};

/* Compresses all of z's input. Output that does not fit continues in more room. */
static int deflate_all(struct isal_zstream *z, struct buf *into)
{
    do {
        size_t room = size_min(z->avail_in + z->avail_in / 8 + SLACK_BYTES, into->max - into->n);
        char *to;
        int r = room ? buf_room(into, room, &to) : -EFBIG;

        if (r < 0)
            return r;
        z->next_out = (uint8_t *)to;
        z->avail_out = (uint32_t)size_min(into->cap - into->n, UINT32_MAX);
        if (isal_deflate(z) != COMP_OK)
            return -EINVAL;
        into->n += (size_t)((char *)z->next_out - to);
    } while (z->avail_in || z->avail_out == 0);
    return 0;
}

int deflate_piece(struct buf *into, struct str text)
{
    size_t mark = into->n, table = text.n <= SMALL_BYTES ? ISAL_DEF_LVL1_MIN : ISAL_DEF_LVL1_DEFAULT;
    CLEANUP(cleanup_free) struct deflater *d = NULL;
    int r;

    if (text.n == 0)
        return 0;
    if (text.n > UINT32_MAX / 2)
        return -EFBIG;
    d = xmalloc(sizeof(*d) + table);
    isal_deflate_init(&d->z);
    d->z.level = 1;
    d->z.level_buf = d->table;
    d->z.level_buf_size = (uint32_t)table;
    d->z.flush = SYNC_FLUSH; /* ends on a byte border, in an empty stored block */
    d->z.next_in = (uint8_t *)(uintptr_t)text.p;
    d->z.avail_in = (uint32_t)text.n;
    r = deflate_all(&d->z, into);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

/* Deflate, no name, no time, fastest, Unix. */
const struct str gzip_begin = {"\x1f\x8b\x08\0\0\0\0\0\x04\x03", 10};

void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes)
{
    uint32_t n = (uint32_t)text_bytes;

    out[0] = 3; /* last block, fixed codes, its end at once */
    out[1] = 0;
    for (unsigned i = 0; i < 4; i++) {
        out[2 + i] = (char)(crc >> (8 * i));
        out[6 + i] = (char)(n >> (8 * i));
    }
}

uint32_t gzip_crc(struct str text)
{
    return text.n ? crc32_gzip_refl(0, (const uint8_t *)text.p, text.n) : 0;
}

uint32_t gzip_crc_join(uint32_t first, uint32_t second, uint64_t second_bytes)
{
    return gzip_crc_join_shifted(first, second, gzip_crc_shift(second_bytes));
}

uint32_t gzip_crc_shift(uint64_t bytes)
{
    return (uint32_t)crc32_combine_gen64((z_off64_t)bytes);
}

uint32_t gzip_crc_join_shifted(uint32_t first, uint32_t second, uint32_t second_shift)
{
    return (uint32_t)crc32_combine_op(first, second, second_shift);
}
