/* Server thread: one scrape, from the row to the response. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/negotiate.h"
#include "exporter/metric/page_internal.h"
#include "exporter/num/num.h"

#include <errno.h>

/* One response: the bytes of the row that it sends, and what is rendered for this scrape alone. */
struct scrape {
    uint64_t version;
    struct buf tail; /* process and server metrics, `# EOF`: plain or compressed */
    char end[GZIP_END_BYTES];
    unsigned n_parts, n_shared;
    struct bytes **shared; /* after the parts */
    struct iovec parts[];
};

static void scrape_free(void *arg)
{
    struct scrape *s = arg;

    for (unsigned i = 0; i < s->n_shared; i++)
        (void)bytes_unref(s->shared[i]);
    buf_done(&s->tail);
    free(s);
}

/* Server thread. /proc is read before the lock is taken. */
static int scrape_render_tail(struct page *p, bool openmetrics, struct buf *tail, struct row **ret_row,
                              uint64_t *ret_version)
{
    CLEANUP(cleanup_metrics_free) struct metrics *process = NULL;
    int r = metrics_new(&process, METRIC_OWNER_SERVER);

    if (r < 0)
        return r;
    metrics_set_process(process);
    r = metrics_render(process, openmetrics, tail);
    (void)pthread_mutex_lock(&p->lock);
    if (r == 0)
        r = metrics_render(p->server, openmetrics, tail);
    if (r == 0) {
        (void)__atomic_add_fetch(&p->row->refs, 1, __ATOMIC_RELAXED);
        *ret_row = p->row;
        *ret_version = p->version;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (r == 0 && openmetrics)
        r = buf_puts(tail, "# EOF\n");
    return r;
}

static void scrape_put(struct scrape *s, const void *p, size_t n)
{
    if (n)
        s->parts[s->n_parts++] = (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n};
}

static void scrape_put_piece(struct scrape *s, const struct piece *p, bool gzip)
{
    struct bytes *b = gzip ? p->deflated : p->text;

    s->shared[s->n_shared++] = bytes_ref(b);
    scrape_put(s, b->buf.p, b->buf.n);
}

/* Compresses the tail, and writes the end of the member for all parts. */
static int scrape_compress_tail(struct scrape *s, const struct row *row, const struct piece *own)
{
    BUF_AUTO(text, 1u << 20);
    uint32_t crc = row->crc;
    uint64_t bytes = row->text_bytes;
    int r;

    text = buf_take(&s->tail);
    r = deflate_piece(&s->tail, buf_str(&text));
    if (r < 0)
        return r;
    if (own) {
        crc = gzip_crc_join(crc, own->crc, own->text->buf.n);
        bytes += own->text->buf.n;
    }
    crc = gzip_crc_join(crc, gzip_crc(buf_str(&text)), text.n);
    gzip_end(s->end, crc, bytes + text.n);
    return 0;
}

static void scrape_put_all(struct scrape *s, const struct row *row, const struct piece *own, bool gzip)
{
    if (gzip)
        scrape_put(s, gzip_begin.p, gzip_begin.n);
    for (size_t i = 0; i < row->n; i++)
        scrape_put_piece(s, row->pieces[i], gzip);
    if (own)
        scrape_put_piece(s, own, gzip);
    scrape_put(s, s->tail.p, s->tail.n);
    if (gzip)
        scrape_put(s, s->end, sizeof(s->end));
}

static int scrape_new(struct page *p, bool openmetrics, bool gzip, struct scrape **ret)
{
    BUF_AUTO(tail, 1u << 20);
    CLEANUP(cleanup_row_unref) struct row *row = NULL;
    uint64_t version = 0;
    struct scrape *s;
    int r = scrape_render_tail(p, openmetrics, &tail, &row, &version);

    if (r < 0)
        return r;
    /* Besides the blocks: begin, own, tail, end. */
    s = calloc(1, sizeof(*s) + (row->n + 4) * (sizeof(s->parts[0]) + sizeof(s->shared[0])));
    if (!s)
        return -ENOMEM;
    s->shared = (void *)(s->parts + row->n + 4);
    s->version = version;
    s->tail = buf_take(&tail);
    r = gzip ? scrape_compress_tail(s, row, row->own[openmetrics]) : 0;
    if (r < 0) {
        scrape_free(s);
        return r;
    }
    scrape_put_all(s, row, row->own[openmetrics], gzip);
    *ret = s;
    return 0;
}

void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply)
{
    enum expo_format format = negotiate_format(rq->accept);
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct scrape *s;
    int r = scrape_new(page, format != EXPO_TEXT, gzip, &s);

    if (r < 0) {
        log_error("cannot answer scrape", L_ERR(r));
        reply->status = 500;
        return;
    }
    reply->content_type = expo_content_type(format);
    reply->content_encoding = gzip ? "gzip" : NULL;
    reply->vary = "Accept, Accept-Encoding";
    reply->version = s->version;
    reply->parts = s->parts;
    reply->n_parts = s->n_parts;
    reply->release = scrape_free;
    reply->arg = s;
}

void page_count_request(void *page, const char *route, unsigned status, uint64_t bytes)
{
    struct page *p = page;
    char code[NUM_MAX];

    code[num_put_u64(code, status)] = '\0';
    (void)pthread_mutex_lock(&p->lock);
    metric_add(p->server, METRIC_HTTP_REQUESTS, LV(code, route), 1);
    metric_add(p->server, METRIC_HTTP_BYTES, LV(route), (double)bytes);
    (void)pthread_mutex_unlock(&p->lock);
}

void page_count_cut(void *page, unsigned n)
{
    struct page *p = page;

    (void)pthread_mutex_lock(&p->lock);
    metric_add(p->server, METRIC_HTTP_READERS_CUT, LV_NONE, n);
    (void)pthread_mutex_unlock(&p->lock);
}

int page_print(struct page *p, struct buf *into)
{
    struct scrape *s;
    int r = scrape_new(p, false, false, &s);

    if (r < 0)
        return r;
    for (unsigned i = 0; r == 0 && i < s->n_parts; i++)
        r = buf_put(into, s->parts[i].iov_base, s->parts[i].iov_len);
    scrape_free(s);
    return r;
}
