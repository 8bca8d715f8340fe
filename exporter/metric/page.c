/* Owns what scrapes see. The loop builds a new row of blocks (page_row.h) beside the one in use and swaps
 * a pointer; threads of the HTTP server hold a reference to the row that they send (scrape.h), so that a
 * round never waits for a scrape, nor a scrape for a round. `lock` protects that pointer and the server's
 * own metrics, and is never held while something is rendered for a batch. */
#include "exporter/metric/page.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/log.h"
#include "exporter/metric/block.h"
#include "exporter/metric/negotiate.h"
#include "exporter/metric/page_row.h"
#include "exporter/metric/scrape.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <pthread.h>

enum { TAIL_MAX_BYTES = 1 << 20, HEAD_MAX_BYTES = 4096 };

struct page {
    struct lock lock;
    struct page_row *row;   /* the loop writes it under the lock and reads it without */
    struct block **blocks;  /* of the next row, sorted by score name; the head has none. The loop's alone */
    size_t n_blocks;        /* the loop's alone */
    uint64_t version;       /* counts rows. Under the lock */
    uint64_t fresh;         /* bytes of the blocks that came after the row. Under the lock */
    uint64_t allocated;     /* atomic: bytes of all blocks that exist, also those that only scrapes hold */
    struct metrics *server; /* under the lock */
};

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
    p->row = page_row_new(p->blocks, p->n_blocks);
    p->fresh = 0;
    metric_set(p->server, METRIC_HTTP_READERS_CUT, LV_NONE, 0);
    return p;
}

struct page *page_free(struct page *p)
{
    if (!p)
        return NULL;
    (void)page_row_unref(p->row);
    for (size_t i = 0; i < p->n_blocks; i++)
        (void)block_unref(p->blocks[i]);
    free(p->blocks);
    (void)metrics_free(p->server);
    lock_done(&p->lock);
    free(p);
    return NULL;
}

/* Renders the program's metrics for a row; on failure takes those of the row before. Scrapes make OpenMetrics
 * of the text: most rows are replaced before anyone has asked for either. */
static int page_render_own(struct page_row *row, const struct page_row *before, const struct metrics *own,
                           struct page *p)
{
    BUF_AUTO(text, BLOCK_MAX_BYTES);
    int r;

    metrics_render(own, &text);
    r = buf_failed(&text);
    if (r < 0) {
        for (enum own_format f = 0; f < OWN_FORMATS; f++)
            row->own[f] = block_ref(before->own[f]);
        return r;
    }
    row->own[OWN_TEXT] = block_of_text(&text, &p->allocated);
    row->own[OWN_OPENMETRICS] = block_derived(row->own[OWN_TEXT], metrics_put_openmetrics, &p->allocated);
    return 0;
}

int page_set_own(struct page *p, const struct metrics *own)
{
    struct page_row *row = page_row_new(p->blocks, p->n_blocks), *before = p->row;
    int r = page_render_own(row, before, own, p);

    lock_take(&p->lock);
    p->row = row; /* also if a rendering failed: scores do not wait for memory */
    p->version++;
    p->fresh = 0;
    lock_release(&p->lock);
    (void)page_row_unref(before); /* not under the lock: freeing megabytes takes time */
    return r;
}

size_t page_own_bytes(const struct page *p)
{
    const struct block *own = p->row->own[OWN_TEXT];

    return own ? block_form(own, BLOCK_TEXT).n : 0;
}

size_t page_memory(const struct page *p)
{
    return page_row_memory(p->row);
}

/* ---- What scrapes get of it. Threads of the HTTP server ---- */

static int page_put_tail(struct buf *tail, struct str text, bool openmetrics)
{
    if (openmetrics) {
        metrics_put_openmetrics(tail, text);
        buf_puts(tail, "# EOF\n");
    } else {
        buf_put_str(tail, text);
    }
    return buf_failed(tail);
}

/* Renders what is of this moment, and takes the row that belongs to it: both under one lock, so that a scrape
 * is of one moment. /proc is read before the lock is taken. */
static int page_take_row(struct page *p, bool openmetrics, struct buf *tail, struct page_row **ret_row,
                         uint64_t *ret_version)
{
    CLEANUP(cleanup_metrics_free) struct metrics *process = metrics_new(METRIC_OWNER_SERVER);
    BUF_AUTO(text, TAIL_MAX_BYTES);
    int r;

    metrics_set_process(process);
    metrics_render(process, &text);
    lock_take(&p->lock);
    metrics_render(p->server, &text);
    *ret_row = page_row_ref(p->row);
    *ret_version = p->version;
    lock_release(&p->lock);
    r = buf_failed(&text);
    if (r == 0)
        r = page_put_tail(tail, buf_str(&text), openmetrics);
    if (r < 0)
        *ret_row = page_row_unref(*ret_row);
    return r;
}

static int page_scrape(struct page *p, enum own_format own, enum block_form form, struct scrape **ret,
                       uint64_t *ret_version)
{
    BUF_AUTO(tail, TAIL_MAX_BYTES);
    struct page_row *row = NULL;
    int r = page_take_row(p, own == OWN_OPENMETRICS, &tail, &row, ret_version);

    return r < 0 ? r : scrape_new(ret, row, own, form, &tail);
}

/* For httpd_reply.release. */
static void page_release_scrape(void *arg)
{
    (void)scrape_free(arg);
}

void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply)
{
    enum expo_format format = negotiate_format(rq->accept);
    enum own_format own = format == EXPO_TEXT ? OWN_TEXT : OWN_OPENMETRICS;
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct scrape *s;
    int r = page_scrape(page, own, gzip ? BLOCK_GZIP : BLOCK_TEXT, &s, &reply->version);

    if (r < 0) {
        log_error("cannot answer scrape", L_ERR(r));
        reply->status = 500;
        reply->version = 0;
        return;
    }
    reply->content_type = expo_content_types[format];
    reply->content_encoding = gzip ? "gzip" : NULL;
    reply->vary = "Accept, Accept-Encoding";
    reply->parts = s->parts;
    reply->n_parts = s->n_parts;
    reply->release = page_release_scrape;
    reply->arg = s;
}

int page_print(struct page *p, struct buf *into)
{
    CLEANUP(cleanup_scrape_free) struct scrape *s = NULL;
    uint64_t version;
    int r = page_scrape(p, OWN_TEXT, BLOCK_TEXT, &s, &version);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < s->n_parts; i++)
        buf_put(into, s->parts[i].iov_base, s->parts[i].iov_len);
    return buf_failed(into);
}

/* ---- What the HTTP server tells the page. Its threads ---- */

uint64_t page_old_bytes(void *page, uint64_t *ret_version, uint64_t *ret_bytes)
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
