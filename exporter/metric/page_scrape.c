/* Server thread: one scrape, from the row to the response. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/negotiate.h"
#include "exporter/metric/page_internal.h"
#include "exporter/num/num.h"

#include <errno.h>

/* One response: the row, and what is rendered for this scrape alone. */
struct scrape {
    struct row *row;
    struct buf tail; /* process and server metrics, `# EOF`: plain or compressed */
    char end[GZIP_END_BYTES];
    struct iovec parts[];
};

static void scrape_free(void *arg)
{
    struct scrape *s = arg;

    (void)row_unref(s->row);
    buf_done(&s->tail);
    free(s);
}

/* Server thread. /proc is read before the lock is taken. */
static int scrape_render_tail(struct page *p, bool openmetrics, struct buf *tail, struct row **ret_row)
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
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (r == 0 && openmetrics)
        r = buf_puts(tail, "# EOF\n");
    return r;
}

static struct iovec scrape_part(const void *p, size_t n)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n};
}

static unsigned scrape_put_plain(struct scrape *s, struct piece *own)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->row->n; i++)
        if (s->row->pieces[i]->text.n)
            s->parts[n++] = scrape_part(s->row->pieces[i]->text.p, s->row->pieces[i]->text.n);
    if (own && own->text.n)
        s->parts[n++] = scrape_part(own->text.p, own->text.n);
    s->parts[n++] = scrape_part(s->tail.p, s->tail.n);
    return n;
}

/* Compresses the tail, and writes the end of the member for all parts. */
static int scrape_compress_tail(struct scrape *s, const struct piece *own)
{
    BUF_AUTO(text, 1u << 20);
    uint32_t crc = s->row->crc;
    uint64_t bytes = s->row->text_bytes;
    int r;

    text = buf_take(&s->tail);
    r = deflate_piece(&s->tail, buf_str(&text));
    if (r < 0)
        return r;
    if (own) {
        crc = gzip_crc_join(crc, own->crc, own->text.n);
        bytes += own->text.n;
    }
    crc = gzip_crc_join(crc, gzip_crc(buf_str(&text)), text.n);
    gzip_end(s->end, crc, bytes + text.n);
    return 0;
}

static unsigned scrape_put_gzip(struct scrape *s, struct piece *own)
{
    unsigned n = 0;

    s->parts[n++] = scrape_part(gzip_begin.p, gzip_begin.n);
    for (size_t i = 0; i < s->row->n; i++)
        if (s->row->pieces[i]->deflated.n)
            s->parts[n++] = scrape_part(s->row->pieces[i]->deflated.p, s->row->pieces[i]->deflated.n);
    if (own && own->deflated.n)
        s->parts[n++] = scrape_part(own->deflated.p, own->deflated.n);
    s->parts[n++] = scrape_part(s->tail.p, s->tail.n);
    s->parts[n++] = scrape_part(s->end, sizeof(s->end));
    return n;
}

static int scrape_new(struct page *p, bool openmetrics, bool gzip, struct scrape **ret, unsigned *ret_parts)
{
    BUF_AUTO(tail, 1u << 20);
    CLEANUP(cleanup_row_unref) struct row *row = NULL;
    struct scrape *s;
    int r = scrape_render_tail(p, openmetrics, &tail, &row);

    if (r < 0)
        return r;
    /* Besides the blocks: begin, own, tail, end. */
    s = calloc(1, sizeof(*s) + (row->n + 4) * sizeof(s->parts[0]));
    if (!s)
        return -ENOMEM;
    s->row = TAKE_PTR(row);
    s->tail = buf_take(&tail);
    if (gzip) {
        r = scrape_compress_tail(s, s->row->own[openmetrics]);
        if (r < 0) {
            scrape_free(s);
            return r;
        }
    }
    *ret_parts =
        gzip ? scrape_put_gzip(s, s->row->own[openmetrics]) : scrape_put_plain(s, s->row->own[openmetrics]);
    *ret = s;
    return 0;
}

void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply)
{
    enum expo_format format = negotiate_format(rq->accept);
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct scrape *s;
    int r = scrape_new(page, format != EXPO_TEXT, gzip, &s, &reply->n_parts);

    if (r < 0) {
        log_error("cannot answer scrape", L_ERR(r));
        reply->status = 500;
        return;
    }
    reply->content_type = expo_content_type(format);
    reply->content_encoding = gzip ? "gzip" : NULL;
    reply->vary = "Accept, Accept-Encoding";
    reply->parts = s->parts;
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

int page_print(struct page *p, struct buf *into)
{
    struct scrape *s;
    unsigned n;
    int r = scrape_new(p, false, false, &s, &n);

    if (r < 0)
        return r;
    for (unsigned i = 0; r == 0 && i < n; i++)
        r = buf_put(into, s->parts[i].iov_base, s->parts[i].iov_len);
    scrape_free(s);
    return r;
}
