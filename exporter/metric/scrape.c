/* Strings the blocks of a row together with what is of this moment. Each piece is sent from where it lies;
 * of a compressed answer, all pieces are one gzip member, whose end is computed from theirs:
 *
 *     gzip_begin | block | block | ... | the program's metrics | tail | CRC-32 and length
 *
 * Threads of the HTTP server, several at once, each with a scrape of its own. */
#include "exporter/metric/scrape.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/metric/block.h"
#include "exporter/metric/deflate.h"

#include <isa-l/crc.h>
#include <zlib.h>

struct scrape *scrape_free(struct scrape *s)
{
    if (!s)
        return NULL;
    s->row = page_row_unref(s->row);
    buf_done(&s->tail);
    free(s);
    return NULL;
}

static int scrape_make_blocks(struct scrape *s)
{
    struct block *b;
    int r = 0;

    for (size_t i = 0; r == 0 && (b = page_row_block(s->row, i, s->own)); i++)
        r = block_make(b, s->form);
    return r;
}

/* Compresses the tail, and writes the end of the member for all blocks. */
static int scrape_compress_tail(struct scrape *s)
{
    CLEANUP(buf_done) struct buf text = buf_take(&s->tail);
    int r = deflate_piece(&s->tail, buf_str(&text));
    const struct block *b;
    uint64_t bytes = 0;
    uint32_t crc = 0;

    if (r < 0)
        return r;
    for (size_t i = 0; (b = page_row_block(s->row, i, s->own)); i++) {
        crc = block_crc(b, crc);
        bytes += block_text_bytes(b);
    }
    crc = (uint32_t)crc32_combine64(crc, crc32_gzip_refl(0, (uint8_t *)text.p, text.n), (z_off64_t)text.n);
    gzip_end(s->end, crc, bytes + text.n);
    return 0;
}

static void scrape_put(struct scrape *s, const void *p, size_t n)
{
    if (n)
        s->parts[s->n_parts++] = (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n};
}

static void scrape_put_all(struct scrape *s)
{
    const struct block *b;

    if (s->form == BLOCK_GZIP)
        scrape_put(s, gzip_begin.p, gzip_begin.n);
    for (size_t i = 0; (b = page_row_block(s->row, i, s->own)); i++) {
        struct str bytes = block_form(b, s->form);

        scrape_put(s, bytes.p, bytes.n);
    }
    scrape_put(s, s->tail.p, s->tail.n);
    if (s->form == BLOCK_GZIP)
        scrape_put(s, s->end, sizeof(s->end));
}

int scrape_new(struct scrape **ret, struct page_row *row, enum own_format own, enum block_form form,
               struct buf *tail)
{
    enum { OTHER_PARTS = 4 }; /* begin, the program's metrics, tail, end */
    CLEANUP(cleanup_scrape_free)
    struct scrape *s = xcalloc(1, sizeof(*s) + (row->n + OTHER_PARTS) * sizeof(s->parts[0]));
    int r;

    s->row = row;
    s->own = own;
    s->form = form;
    s->tail = buf_take(tail);
    r = scrape_make_blocks(s);
    if (r < 0)
        return r;
    if (form == BLOCK_GZIP) {
        r = scrape_compress_tail(s);
        if (r < 0)
            return r;
    }
    scrape_put_all(s);
    *ret = TAKE_PTR(s);
    return 0;
}
