/* Owns the row of pieces and the server's own metrics, both behind `lock`. */
#include "exporter/metric/page.h"

#include "exporter/base/log.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/negotiate.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <pthread.h>

static const size_t PIECE_MAX_BYTES = (size_t)1 << 32;

/* Text, and the same compressed. Immutable, shared by rows. */
struct piece {
    unsigned refs;    /* atomic */
    char *score_name; /* of a scorer's block; NULL for the others */
    struct buf text, deflated;
    uint32_t crc, crc_shift;
};

/* What a scrape strings together, in order. Immutable, shared by scrapes. */
struct row {
    unsigned refs; /* atomic */
    size_t n;
    struct piece *own[2]; /* follows the blocks: as text, as OpenMetrics */
    uint32_t crc;         /* of all blocks' text */
    uint64_t text_bytes;  /* of all blocks */
    struct piece *pieces[];
};

struct page {
    struct sink sink;
    pthread_mutex_t lock;
    struct row *row;        /* written by the loop under the lock, read by the loop without */
    struct metrics *server; /* under the lock */
};

static struct piece *piece_ref(struct piece *p)
{
    if (p)
        (void)__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

static struct piece *piece_unref(struct piece *p)
{
    if (p && __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        free(p->score_name);
        buf_done(&p->text);
        buf_done(&p->deflated);
        free(p);
    }
    return NULL;
}
DEFINE_CLEANUP(struct piece, piece_unref)

/* Compresses text, which the piece takes over. */
static int piece_new(struct piece **ret, struct buf *text, const char *score_name)
{
    CLEANUP(cleanup_piece_unref) struct piece *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    p->refs = 1;
    buf_init(&p->deflated, PIECE_MAX_BYTES + PIECE_MAX_BYTES / 8 + 64);
    if (score_name) {
        p->score_name = strdup(score_name);
        if (!p->score_name)
            return -ENOMEM;
    }
    r = deflate_piece(&p->deflated, buf_str(text));
    if (r < 0)
        return r;
    buf_shrink(&p->deflated);
    buf_shrink(text);
    p->text = buf_take(text);
    p->crc = gzip_crc(buf_str(&p->text));
    p->crc_shift = gzip_crc_shift(p->text.n);
    *ret = TAKE_PTR(p);
    return 0;
}

static struct row *row_unref(struct row *row)
{
    if (row && __atomic_sub_fetch(&row->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        for (size_t i = 0; i < row->n; i++)
            (void)piece_unref(row->pieces[i]);
        (void)piece_unref(row->own[0]);
        (void)piece_unref(row->own[1]);
        free(row);
    }
    return NULL;
}
DEFINE_CLEANUP(struct row, row_unref)

static struct row *row_alloc(size_t n)
{
    struct row *row = calloc(1, sizeof(*row) + n * sizeof(row->pieces[0]));

    if (row)
        row->refs = 1;
    return row;
}

static void row_append(struct row *row, struct piece *p)
{
    row->pieces[row->n++] = piece_ref(p);
    row->crc = gzip_crc_join_shifted(row->crc, p->crc, p->crc_shift);
    row->text_bytes += p->text.n;
}

/* Builds a row like the page's with one scorer's block replaced, added or (block NULL) taken away. Blocks are
 * sorted by score name, after the head. */
static int row_with(struct row **ret, const struct row *old, const char *score_name, struct piece *block)
{
    struct row *row = row_alloc(old->n + 1);
    size_t i;

    if (!row)
        return -ENOMEM;
    for (i = 0; i < old->n; i++) {
        const char *name = old->pieces[i]->score_name;
        if (name && strcmp(name, score_name) >= 0)
            break;
        row_append(row, old->pieces[i]);
    }
    if (block)
        row_append(row, block);
    for (; i < old->n; i++)
        if (strcmp(old->pieces[i]->score_name, score_name) != 0)
            row_append(row, old->pieces[i]);
    row->own[0] = piece_ref(old->own[0]);
    row->own[1] = piece_ref(old->own[1]);
    *ret = row;
    return 0;
}

/* Loop thread. The old row is dropped after the lock: freeing megabytes takes time. */
static void swap_row(struct page *p, struct row *row)
{
    struct row *old;

    (void)pthread_mutex_lock(&p->lock);
    old = p->row;
    p->row = row;
    (void)pthread_mutex_unlock(&p->lock);
    (void)row_unref(old);
}

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

static int replace_block(struct page *p, const char *score_name, struct piece *block)
{
    struct row *row;
    int r = row_with(&row, p->row, score_name, block);

    if (r == 0)
        swap_row(p, row);
    return r;
}

static void sink_publish(struct sink *s, struct batch *b)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);
    CLEANUP(cleanup_piece_unref) struct piece *block = NULL;
    BUF_AUTO(text, PIECE_MAX_BYTES);
    int r = batch_render(b, &text);

    if (r == 0)
        r = piece_new(&block, &text, b->score_name);
    if (r == 0)
        r = replace_block(p, b->score_name, block);
    if (r < 0)
        log_error("scores not put on /metrics", L_STR("score_name", b->score_name), L_ERR(r));
}

static void sink_withdraw(struct sink *s, const char *score_name, unix_ms at)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);
    int r = replace_block(p, score_name, NULL);

    (void)at; /* Prometheus sees that a series is gone by its absence */
    if (r < 0)
        log_error("scores not taken off /metrics", L_STR("score_name", score_name), L_ERR(r));
}

static const struct sink_ops sink_ops = {
    .name = "metrics page", .publish = sink_publish, .withdraw = sink_withdraw};

static int first_row(struct row **ret, bool scores)
{
    CLEANUP(cleanup_piece_unref) struct piece *head = NULL;
    BUF_AUTO(text, 4096);
    int r = buf_puts(&text, "# TYPE " SCORE_METRIC " gauge\n# HELP " SCORE_METRIC " " SCORE_HELP "\n");

    if (r == 0 && scores)
        r = piece_new(&head, &text, NULL);
    if (r < 0)
        return r;
    *ret = row_alloc(1);
    if (!*ret)
        return -ENOMEM;
    if (head)
        row_append(*ret, head);
    return 0;
}

static int new_page(struct page **ret, bool scores)
{
    CLEANUP(cleanup_page_free) struct page *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    (void)pthread_mutex_init(&p->lock, NULL);
    p->sink.ops = &sink_ops;
    r = metrics_new(&p->server, METRIC_OWNER_SERVER);
    if (r == 0)
        r = first_row(&p->row, scores);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(p);
    return 0;
}

int page_new(struct page **ret)
{
    return new_page(ret, true);
}

int page_new_without_scores(struct page **ret)
{
    return new_page(ret, false);
}

struct page *page_free(struct page *p)
{
    if (!p)
        return NULL;
    (void)row_unref(p->row);
    (void)metrics_free(p->server);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

struct sink *page_sink(struct page *p)
{
    return &p->sink;
}

int page_set_own(struct page *p, const struct metrics *own)
{
    CLEANUP(cleanup_row_unref) struct row *row = row_alloc(p->row->n);

    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < p->row->n; i++)
        row_append(row, p->row->pieces[i]);
    for (int openmetrics = 0; openmetrics < 2; openmetrics++) {
        BUF_AUTO(text, PIECE_MAX_BYTES);
        int r = metrics_render(own, openmetrics, &text);
        if (r == 0)
            r = piece_new(&row->own[openmetrics], &text, NULL);
        if (r < 0)
            return r;
    }
    swap_row(p, TAKE_PTR(row));
    return 0;
}

size_t page_memory(const struct page *p)
{
    size_t bytes = 0;

    for (size_t i = 0; i < p->row->n; i++)
        bytes += p->row->pieces[i]->text.cap + p->row->pieces[i]->deflated.cap;
    for (size_t i = 0; i < 2; i++)
        if (p->row->own[i])
            bytes += p->row->own[i]->text.cap + p->row->own[i]->deflated.cap;
    return bytes;
}

/* One answer: the row, and what is made for this scrape alone. */
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

/* Server thread. What /proc tells is read before the lock is taken for the rest. */
static int render_tail(struct page *p, bool openmetrics, struct buf *tail, struct row **ret_row)
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

static struct iovec part(const void *p, size_t n)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n};
}

static unsigned put_plain(struct scrape *s, struct piece *own)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->row->n; i++)
        if (s->row->pieces[i]->text.n)
            s->parts[n++] = part(s->row->pieces[i]->text.p, s->row->pieces[i]->text.n);
    if (own && own->text.n)
        s->parts[n++] = part(own->text.p, own->text.n);
    s->parts[n++] = part(s->tail.p, s->tail.n);
    return n;
}

/* Compresses the tail and writes the member's end for all that stands before it. */
static int compress_tail(struct scrape *s, const struct piece *own)
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

static unsigned put_gzip(struct scrape *s, struct piece *own)
{
    unsigned n = 0;

    s->parts[n++] = part(gzip_begin.p, gzip_begin.n);
    for (size_t i = 0; i < s->row->n; i++)
        if (s->row->pieces[i]->deflated.n)
            s->parts[n++] = part(s->row->pieces[i]->deflated.p, s->row->pieces[i]->deflated.n);
    if (own && own->deflated.n)
        s->parts[n++] = part(own->deflated.p, own->deflated.n);
    s->parts[n++] = part(s->tail.p, s->tail.n);
    s->parts[n++] = part(s->end, sizeof(s->end));
    return n;
}

static int scrape(struct page *p, bool openmetrics, bool gzip, struct scrape **ret, unsigned *ret_parts)
{
    BUF_AUTO(tail, 1u << 20);
    CLEANUP(cleanup_row_unref) struct row *row = NULL;
    struct scrape *s;
    int r = render_tail(p, openmetrics, &tail, &row);

    if (r < 0)
        return r;
    /* Besides the blocks: begin, own, tail, end. */
    s = calloc(1, sizeof(*s) + (row->n + 4) * sizeof(s->parts[0]));
    if (!s)
        return -ENOMEM;
    s->row = TAKE_PTR(row);
    s->tail = buf_take(&tail);
    if (gzip) {
        r = compress_tail(s, s->row->own[openmetrics]);
        if (r < 0) {
            scrape_free(s);
            return r;
        }
    }
    *ret_parts = gzip ? put_gzip(s, s->row->own[openmetrics]) : put_plain(s, s->row->own[openmetrics]);
    *ret = s;
    return 0;
}

void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply)
{
    enum expo_format format = negotiate_format(rq->accept);
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct scrape *s;
    int r = scrape(page, format != EXPO_TEXT, gzip, &s, &reply->n_parts);

    if (r < 0) {
        log_error("scrape not answered", L_ERR(r));
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
    int r = scrape(p, false, false, &s, &n);

    if (r < 0)
        return r;
    for (unsigned i = 0; r == 0 && i < n; i++)
        r = buf_put(into, s->parts[i].iov_base, s->parts[i].iov_len);
    scrape_free(s);
    return r;
}
