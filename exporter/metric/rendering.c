/* What a batch becomes on the page: its lines, and the same compressed. */
#include "exporter/base/buf.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/page_internal.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"

int batch_render(const struct batch *b, struct buf *into)
{
    size_t n = series_count(b->set);
    char *to, *o;
    int r = buf_room(into, series_names_bytes(b->set) + n * (NUM_MAX + 2), &to);

    if (r < 0)
        return r;
    o = to;
    for (size_t i = 0; i < n; i++) {
        struct str name = series_name(b->set, i);
        memcpy(o, name.p, name.n);
        o += name.n;
        *o++ = ' ';
        o += num_put_double(o, b->values[i]);
        *o++ = '\n';
    }
    into->n += (size_t)(o - to);
    return 0;
}

void rendering_done(struct rendering *r)
{
    buf_done(&r->text);
    buf_done(&r->deflated);
}

void rendering_free(struct rendering *r)
{
    if (r)
        rendering_done(r);
    free(r);
}

int rendering_make(struct rendering *r, struct buf *text)
{
    int e;

    *r = (struct rendering){.deflated = {.max = PIECE_MAX_BYTES / 8 * 9 + 4096}};
    e = deflate_piece(&r->deflated, buf_str(text));
    if (e < 0) {
        rendering_done(r);
        return e;
    }
    r->text = buf_take(text);
    r->crc = gzip_crc(buf_str(&r->text));
    r->crc_shift = gzip_crc_shift(r->text.n);
    return 0;
}

void batch_prepare(struct batch *b)
{
    struct rendering *r = calloc(1, sizeof(*r));
    BUF_AUTO(text, PIECE_MAX_BYTES);

    if (r && batch_render(b, &text) == 0 && rendering_make(r, &text) == 0) {
        buf_shrink(&r->text);
        buf_shrink(&r->deflated);
        b->rendering = r;
    } else {
        free(r);
    }
}
