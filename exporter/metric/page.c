/* Owns the row of pieces and the server's own metrics, both behind `lock`. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/metric/page_internal.h"
#include "exporter/metric/series.h"

#include <errno.h>

/* Loop thread. The old row is dropped after the lock: freeing megabytes takes time. */
static void page_swap_row(struct page *p, struct row *row)
{
    struct row *old;

    (void)pthread_mutex_lock(&p->lock);
    old = p->row;
    p->row = row;
    p->version++;
    p->fresh = 0;
    (void)pthread_mutex_unlock(&p->lock);
    (void)row_unref(old);
}

static const struct row *page_latest(const struct page *p)
{
    return p->next ? p->next : p->row;
}

static int page_replace_block(struct page *p, const char *score_name, struct piece *block)
{
    struct row *row;
    int r = row_with(&row, page_latest(p), score_name, block);

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&p->lock);
    p->fresh += piece_memory(block);
    (void)pthread_mutex_unlock(&p->lock);
    (void)row_unref(p->next);
    p->next = row;
    return 0;
}

static void page_publish(struct sink *s, struct batch *b)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);
    CLEANUP(cleanup_piece_unref) struct piece *block = NULL;
    BUF_AUTO(text, PIECE_MAX_BYTES);
    int r =
        b->rendering ? piece_of(&block, &p->allocated, b->rendering, b->score_name) : batch_render(b, &text);

    if (r == 0 && !block)
        r = piece_new(&block, &p->allocated, &text, b->score_name);
    rendering_free(b->rendering);
    b->rendering = NULL;
    if (r == 0)
        r = page_replace_block(p, b->score_name, block);
    if (r < 0)
        log_error("cannot publish scores on /metrics", L_STR("score_name", b->score_name), L_ERR(r));
}

static void page_withdraw(struct sink *s, const char *score_name, unix_ms at)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);
    int r = page_replace_block(p, score_name, NULL);

    (void)at; /* Prometheus sees that a series is gone by its absence */
    if (r < 0)
        log_error("cannot remove scores from /metrics", L_STR("score_name", score_name), L_ERR(r));
}

static const struct sink_ops page_sink_ops = {
    .name = "metrics page", .publish = page_publish, .withdraw = page_withdraw};

static int page_first_row(struct page *p, bool scores)
{
    CLEANUP(cleanup_piece_unref) struct piece *head = NULL;
    BUF_AUTO(text, 4096);
    int r = buf_puts(&text, "# TYPE " SCORE_METRIC " gauge\n# HELP " SCORE_METRIC " " SCORE_HELP "\n");

    if (r == 0 && scores)
        r = piece_new(&head, &p->allocated, &text, NULL);
    if (r < 0)
        return r;
    p->row = row_alloc(1);
    if (!p->row)
        return -ENOMEM;
    if (head)
        row_append(p->row, head);
    return 0;
}

static int page_new_with(struct page **ret, bool scores)
{
    CLEANUP(cleanup_page_free) struct page *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    (void)pthread_mutex_init(&p->lock, NULL);
    p->sink.ops = &page_sink_ops;
    p->version = 1;
    r = metrics_new(&p->server, METRIC_OWNER_SERVER) ?: page_first_row(p, scores);
    if (r < 0)
        return r;
    metric_set(p->server, METRIC_HTTP_READERS_CUT, LV_NONE, 0);
    *ret = TAKE_PTR(p);
    return 0;
}

int page_new(struct page **ret)
{
    return page_new_with(ret, true);
}

int page_new_without_scores(struct page **ret)
{
    return page_new_with(ret, false);
}

struct page *page_free(struct page *p)
{
    if (!p)
        return NULL;
    (void)row_unref(p->row);
    (void)row_unref(p->next);
    (void)metrics_free(p->server);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

struct sink *page_sink(struct page *p)
{
    return &p->sink;
}

static int row_with_own(struct row **ret, struct page *p, const struct metrics *own)
{
    const struct row *old = page_latest(p);
    CLEANUP(cleanup_row_unref) struct row *row = row_alloc(old->n);

    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < old->n; i++)
        row_append(row, old->pieces[i]);
    for (int openmetrics = 0; openmetrics < 2; openmetrics++) {
        struct piece *piece = NULL;
        BUF_AUTO(text, PIECE_MAX_BYTES);
        int r = metrics_render(own, openmetrics, &text) ?: piece_new(&piece, &p->allocated, &text, NULL);
        if (r < 0)
            return r;
        row_set_own(row, openmetrics, piece);
    }
    *ret = TAKE_PTR(row);
    return 0;
}

int page_set_own(struct page *p, const struct metrics *own)
{
    struct row *row = NULL;
    int r = row_with_own(&row, p, own);

    if (r < 0) /* scores do not wait for memory */
        row = TAKE_PTR(p->next);
    p->next = row_unref(p->next);
    if (row)
        page_swap_row(p, row);
    return r;
}

size_t page_own_bytes(const struct page *p)
{
    return p->row->own[0] ? p->row->own[0]->text->buf.n : 0;
}

size_t page_memory(const struct page *p)
{
    return page_latest(p)->memory;
}

uint64_t page_held(void *page, uint64_t *ret_version, uint64_t *ret_bytes)
{
    struct page *p = page;
    uint64_t allocated, needed;

    (void)pthread_mutex_lock(&p->lock);
    allocated = __atomic_load_n(&p->allocated, __ATOMIC_RELAXED);
    *ret_version = p->version;
    *ret_bytes = p->row->memory;
    needed = p->row->memory + p->fresh;
    (void)pthread_mutex_unlock(&p->lock);
    return allocated > needed ? allocated - needed : 0;
}
