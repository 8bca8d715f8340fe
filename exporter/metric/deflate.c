/* ISA-L's igzip at level 1 compresses: half the time of zlib's fastest, and a third smaller. */
#include "exporter/metric/deflate.h"

#include "exporter/base/alloc.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>

enum {
    SMALL_BYTES = 8 << 10, /* up to this, the small match table is as fast */
    SLACK_BYTES = 1024     /* headers of blocks, for text that does not get smaller */
};

struct deflater {
    struct isal_zstream z;
    uint8_t table[];
};

struct deflater *deflater_new(size_t text_bytes)
{
    size_t table = text_bytes <= SMALL_BYTES ? ISAL_DEF_LVL1_MIN : ISAL_DEF_LVL1_DEFAULT;
    struct deflater *d = xmalloc(sizeof(*d) + table);

    isal_deflate_init(&d->z);
    d->z.level = 1;
    d->z.level_buf = d->table;
    d->z.level_buf_size = (uint32_t)table;
    return d;
}

struct deflater *deflater_free(struct deflater *d)
{
    free(d);
    return NULL;
}

/* Gives ISA-L room for what is left of the part. -EFBIG, -ENOMEM. */
static int deflater_reserve(struct deflater *d, struct buf *into)
{
    size_t wanted = d->z.avail_in + d->z.avail_in / 8 + SLACK_BYTES;
    size_t room = size_min(wanted, into->max - into->n);
    char *to;
    int r;

    if (room == 0)
        return -EFBIG;
    r = buf_reserve(into, room, &to);
    if (r < 0)
        return r;
    d->z.next_out = (uint8_t *)to;
    d->z.avail_out = (uint32_t)size_min(into->cap - into->n, UINT32_MAX);
    return 0;
}

static int deflater_run(struct deflater *d, struct str part, struct buf *into)
{
    d->z.next_in = (uint8_t *)(uintptr_t)part.p;
    d->z.avail_in = (uint32_t)part.n;
    do { /* output that does not fit continues in more room */
        int r = deflater_reserve(d, into);

        if (r < 0)
            return r;
        if (isal_deflate(&d->z) != COMP_OK)
            return -EINVAL;
        into->n = (size_t)((char *)d->z.next_out - into->p);
    } while (d->z.avail_in || d->z.avail_out == 0);
    return 0;
}

int deflater_put(struct deflater *d, struct str part, struct buf *into)
{
    d->z.flush = NO_FLUSH;
    return deflater_run(d, part, into);
}

int deflater_end(struct deflater *d, struct str part, struct buf *into)
{
    d->z.flush = SYNC_FLUSH; /* an empty stored block, which ends on a byte border */
    return deflater_run(d, part, into);
}

int deflate_piece(struct buf *into, struct str text)
{
    CLEANUP(cleanup_deflater_free) struct deflater *d = deflater_new(text.n);

    return deflater_end(d, text, into);
}

const struct str gzip_begin = {"\x1f\x8b\x08\0\0\0\0\0\x04\x03", 10};

void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes)
{
    const uint32_t ends[] = {htole32(crc), htole32((uint32_t)text_bytes)}; /* the length modulo 2^32 */

    out[0] = 3; /* last block, fixed codes, its end at once */
    out[1] = 0;
    memcpy(out + 2, ends, sizeof(ends));
}
