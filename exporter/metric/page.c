/* Owns what scrapes see. The loop builds a new row of blocks beside the one in use and swaps a pointer;
 * threads of the HTTP server hold a reference to the row that they send, so that a round never waits for a
 * scrape, nor a scrape for a round. `lock` protects that pointer and the server's own metrics, and is never
 * held while something is rendered for a batch. */
#include "exporter/metric/page.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/log.h"
#include "exporter/metric/block.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/negotiate.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <zlib.h>

enum { TAIL_MAX_BYTES = 1 << 20, HEAD_MAX_BYTES = 4096 };

/* Whose lines of the program's own metrics a scrape gets. */
enum own_format { OWN_TEXT, OWN_OPENMETRICS, OWN_FORMATS };

/* What a scrape strings together, in order. Immutable. */
struct row {
    unsigned refs;                  /* atomic */
    struct block *own[OWN_FORMATS]; /* the program's metrics, after the others; NULL before the first */
    size_t n;
    struct block *blocks[];
};

struct page {
    struct lock lock;
    struct row *row;        /* the loop writes it under the lock and reads it without */
    struct block **blocks;  /* of the next row, sorted by score name; the head has none. The loop's alone */
    size_t n_blocks;        /* the loop's alone */
    uint64_t version;       /* counts rows. Under the lock */
    uint64_t fresh;         /* bytes of the blocks that came after the row. Under the lock */
    uint64_t allocated;     /* atomic: bytes of all blocks that exist, also those that only scrapes hold */
    struct metrics *server; /* under the lock */
};

/* ---- Rows ---- */

/* A row of the page's blocks, without the program's metrics. */
static struct row *row_new(const struct page *p)
{
    struct row *row = xcalloc(1, sizeof(*row) + p->n_blocks * sizeof(row->blocks[0]));

    row->refs = 1;
    for (size_t i = 0; i < p->n_blocks; i++)
        row->blocks[i] = block_ref(p->blocks[i]);
    row->n = p->n_blocks;
    return row;
}

static struct row *row_ref(struct row *row)
{
    unsigned before = __atomic_fetch_add(&row->refs, 1, __ATOMIC_RELAXED);

    invariant(before > 0);
    return row;
}

static void row_free(struct row *row)
{
    for (size_t i = 0; i < row->n; i++)
        (void)block_unref(row->blocks[i]);
    for (size_t i = 0; i < OWN_FORMATS; i++)
        (void)block_unref(row->own[i]);
    free(row);
}

static void row_unref(struct row *row)
{
    unsigned before;

    if (!row)
        return;
    before = __atomic_fetch_sub(&row->refs, 1, __ATOMIC_ACQ_REL);
    invariant(before > 0);
    if (before == 1)
        row_free(row);
}

/* Block i of a scrape: the scorers' blocks, then the program's metrics; NULL after them. */
static struct block *row_block(const struct row *row, size_t i, enum own_format own)
{
    if (i < row->n)
        return row->blocks[i];
    return i == row->n ? row->own[own] : NULL;
}

/* ---- What the loop puts on the page ---- */

/* The index of the first block whose name is not less. */
static size_t page_find_block(const struct page *p, const char *score_name)
{
    size_t i = 0;

    while (i < p->n_blocks && strcmp(block_name(p->blocks[i]), score_name) < 0)
        i++;
    return i;
}

static void page_remove_block(struct page *p, const char *score_name)
{
    size_t i = page_find_block(p, score_name);

    if (i == p->n_blocks || strcmp(block_name(p->blocks[i]), score_name) != 0)
        return;
    (void)block_unref(p->blocks[i]);
    p->n_blocks--;
    memmove(&p->blocks[i], &p->blocks[i + 1], (p->n_blocks - i) * sizeof(struct block *));
}

/* Adds a block that the page takes over, in place of that of the same name. */
static void page_put_block(struct page *p, struct block *block)
{
    size_t i;

    page_remove_block(p, block_name(block));
    i = page_find_block(p, block_name(block));
    p->blocks = xreallocarray(p->blocks, p->n_blocks + 1, sizeof(struct block *));
    memmove(&p->blocks[i + 1], &p->blocks[i], (p->n_blocks - i) * sizeof(struct block *));
    p->blocks[i] = block;
    p->n_blocks++;
    lock_take(&p->lock);
    p->fresh += block_memory(block);
    lock_release(&p->lock);
}

void page_publish(struct page *p, struct batch *b)
{
    struct block *block;
    int r = block_of_batch(&block, b, &p->allocated);

    if (r < 0)
        log_error("cannot publish scores on /metrics", L_STR("score_name", b->score_name), L_ERR(r));
    else
        page_put_block(p, block);
}

void page_withdraw(struct page *p, const char *score_name)
{
    page_remove_block(p, score_name);
}

/* The block before all scorers': it has no name, which sorts first. */
static struct block *page_head(struct page *p)
{
    BUF_AUTO(text, HEAD_MAX_BYTES);

    buf_puts(&text, "# TYPE " SCORE_METRIC " gauge\n# HELP " SCORE_METRIC " " SCORE_HELP "\n");

    invariant(buf_failed(&text) == 0);
    return block_of_text(&text, &p->allocated);
}

struct page *page_new(bool has_scores)
{
    struct page *p = xcalloc(1, sizeof(*p));

    lock_init(&p->lock);
    p->version = 1;
    p->server = metrics_new(METRIC_OWNER_SERVER);
    if (has_scores)
        page_put_block(p, page_head(p));
    p->row = row_new(p);
    p->fresh = 0;
    metric_set(p->server, METRIC_HTTP_READERS_CUT, LV_NONE, 0);
    return p;
}

struct page *page_free(struct page *p)
{
    if (!p)
        return NULL;
    row_unref(p->row);
    for (size_t i = 0; i < p->n_blocks; i++)
        (void)block_unref(p->blocks[i]);
    free(p->blocks);
    (void)metrics_free(p->server);
    lock_done(&p->lock);
    free(p);
    return NULL;
}

/* Renders the program's metrics for a row; on failure takes those of the row before. */
static int row_set_own(struct row *row, enum own_format format, const struct row *before,
                       const struct metrics *own, struct page *p)
{
    BUF_AUTO(text, BLOCK_MAX_BYTES);
    int r;

    metrics_render(own, format == OWN_OPENMETRICS, &text);
    r = buf_failed(&text);
    if (r < 0)
        row->own[format] = block_ref(before->own[format]);
    else
        row->own[format] = block_of_text(&text, &p->allocated);
    return r;
}

int page_set_own(struct page *p, const struct metrics *own)
{
    struct row *row = row_new(p), *before = p->row;
    int text = row_set_own(row, OWN_TEXT, before, own, p);
    int openmetrics = row_set_own(row, OWN_OPENMETRICS, before, own, p);

    lock_take(&p->lock);
    p->row = row; /* also if a rendering failed: scores do not wait for memory */
    p->version++;
    p->fresh = 0;
    lock_release(&p->lock);
    row_unref(before); /* not under the lock: freeing megabytes takes time */
    return text < 0 ? text : openmetrics;
}

size_t page_own_bytes(const struct page *p)
{
    const struct block *own = p->row->own[OWN_TEXT];

    return own ? block_form(own, BLOCK_TEXT).n : 0;
}

size_t page_memory(const struct page *p)
{
    const struct row *row = p->row;
    uint64_t bytes = block_memory(row->own[OWN_TEXT]) + block_memory(row->own[OWN_OPENMETRICS]);

    for (size_t i = 0; i < row->n; i++)
        bytes += block_memory(row->blocks[i]);
    return bytes;
}

/* ---- A scrape: from the row to the response. Threads of the HTTP server ---- */

/* One response: the row that it sends, and what is rendered for this scrape alone. */
struct scrape {
    struct row *row;
    enum own_format own;
    enum block_form form;
    uint64_t version;
    struct buf tail; /* process and server metrics, `# EOF`: plain or compressed */
    char end[GZIP_END_BYTES];
    unsigned n_parts;
    struct iovec parts[];
};

static struct scrape *scrape_free(struct scrape *s)
{
    if (!s)
        return NULL;
    row_unref(s->row);
    buf_done(&s->tail);
    free(s);
    return NULL;
}
DEFINE_CLEANUP(struct scrape, scrape_free)

/* For httpd_reply.release. */
static void scrape_release(void *arg)
{
    (void)scrape_free(arg);
}

/* Renders what is of this moment, and takes the row that belongs to it: both under one lock, so that a scrape
 * is of one moment. /proc is read before the lock is taken. */
static int scrape_render_tail(struct page *p, bool openmetrics, struct buf *tail, struct row **ret_row,
                              uint64_t *ret_version)
{
    CLEANUP(cleanup_metrics_free) struct metrics *process = metrics_new(METRIC_OWNER_SERVER);

    metrics_set_process(process);
    metrics_render(process, openmetrics, tail);
    lock_take(&p->lock);
    metrics_render(p->server, openmetrics, tail);
    *ret_row = row_ref(p->row);
    *ret_version = p->version;
    lock_release(&p->lock);
    if (openmetrics)
        buf_puts(tail, "# EOF\n");
    return buf_failed(tail);
}

/* The scrape of the page as it is now; its blocks' forms are not made yet. */
static int scrape_begin(struct page *p, enum own_format own, enum block_form form, struct scrape **ret)
{
    enum { OTHER_PARTS = 4 }; /* begin, the program's metrics, tail, end */
    BUF_AUTO(tail, TAIL_MAX_BYTES);
    struct row *row = NULL;
    struct scrape *s;
    uint64_t version;
    int r = scrape_render_tail(p, own == OWN_OPENMETRICS, &tail, &row, &version);

    if (r < 0) {
        row_unref(row);
        return r;
    }
    s = xcalloc(1, sizeof(*s) + (row->n + OTHER_PARTS) * sizeof(s->parts[0]));
    s->row = row;
    s->own = own;
    s->form = form;
    s->version = version;
    s->tail = buf_take(&tail);
    *ret = s;
    return 0;
}

static int scrape_make_blocks(struct scrape *s)
{
    struct block *b;
    int r = 0;

    for (size_t i = 0; r == 0 && (b = row_block(s->row, i, s->own)); i++)
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
    for (size_t i = 0; (b = row_block(s->row, i, s->own)); i++) {
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
    for (size_t i = 0; (b = row_block(s->row, i, s->own)); i++) {
        struct str bytes = block_form(b, s->form);

        scrape_put(s, bytes.p, bytes.n);
    }
    scrape_put(s, s->tail.p, s->tail.n);
    if (s->form == BLOCK_GZIP)
        scrape_put(s, s->end, sizeof(s->end));
}

static int scrape_new(struct page *p, enum own_format own, enum block_form form, struct scrape **ret)
{
    CLEANUP(cleanup_scrape_free) struct scrape *s = NULL;
    int r = scrape_begin(p, own, form, &s);

    if (r < 0)
        return r;
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

void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply)
{
    enum expo_format format = negotiate_format(rq->accept);
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct scrape *s;
    int r = scrape_new(page, format == EXPO_TEXT ? OWN_TEXT : OWN_OPENMETRICS, gzip ? BLOCK_GZIP : BLOCK_TEXT,
                       &s);

    if (r < 0) {
        log_error("cannot answer scrape", L_ERR(r));
        reply->status = 500;
        return;
    }
    reply->content_type = expo_content_types[format];
    reply->content_encoding = gzip ? "gzip" : NULL;
    reply->vary = "Accept, Accept-Encoding";
    reply->version = s->version;
    reply->parts = s->parts;
    reply->n_parts = s->n_parts;
    reply->release = scrape_release;
    reply->arg = s;
}

int page_print(struct page *p, struct buf *into)
{
    CLEANUP(cleanup_scrape_free) struct scrape *s = NULL;
    int r = scrape_new(p, OWN_TEXT, BLOCK_TEXT, &s);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < s->n_parts; i++)
        buf_put(into, s->parts[i].iov_base, s->parts[i].iov_len);
    return buf_failed(into);
}

/* ---- What the HTTP server tells the page. Its threads ---- */

uint64_t page_held(void *page, uint64_t *ret_version, uint64_t *ret_bytes)
{
    struct page *p = page;
    uint64_t allocated, needed;

    lock_take(&p->lock);
    allocated = __atomic_load_n(&p->allocated, __ATOMIC_RELAXED);
    *ret_version = p->version;
    *ret_bytes = page_memory(p);
    needed = *ret_bytes + p->fresh;
    lock_release(&p->lock);
    return allocated > needed ? allocated - needed : 0;
}

void page_count_request(void *page, const char *route, unsigned status, uint64_t bytes)
{
    struct page *p = page;
    char code[NUM_MAX];

    code[num_put_u64(code, status)] = '\0';
    lock_take(&p->lock);
    metric_add(p->server, METRIC_HTTP_REQUESTS, LV(code, route), 1);
    metric_add(p->server, METRIC_HTTP_BYTES, LV(route), (double)bytes);
    lock_release(&p->lock);
}

void page_count_cut(void *page, unsigned n)
{
    struct page *p = page;

    lock_take(&p->lock);
    metric_add(p->server, METRIC_HTTP_READERS_CUT, LV_NONE, n);
    lock_release(&p->lock);
}
