/* The loop builds a new row beside the old one and swaps a pointer. Threads of the HTTP server hold a
 * reference to the row that they send. `lock` protects that pointer and the server's own metrics. */
#include "exporter/metric/page.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <zlib.h>

/* ---- Compressed pieces that can be strung together into one gzip member (RFC 1952), whose checksum is
 * combined from those of the pieces. Several members would be valid too, but curl and browsers read just
 * the first. ISA-L's igzip at level 1 compresses, and computes the checksums; zlib combines them. ---- */

enum { GZIP_END_BYTES = 10 };

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

/* Begins a gzip member: deflate, no name, no time, fastest, Unix. */
static const struct str gzip_begin = {"\x1f\x8b\x08\0\0\0\0\0\x04\x03", 10};

/* Ends one: an empty last block, then CRC-32 and length (modulo 2^32) of the text, as RFC 1952 wants them. */
static void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes)
{
    const uint32_t ends[] = {htole32(crc), htole32((uint32_t)text_bytes)};

    out[0] = 3; /* last block, fixed codes, its end at once */
    out[1] = 0;
    memcpy(out + 2, ends, sizeof(ends));
}

uint32_t gzip_crc(struct str text)
{
    return text.n ? crc32_gzip_refl(0, (const uint8_t *)text.p, text.n) : 0;
}

/* ---- The page ---- */

/* Text, and the same compressed: a scrape needs one of them. Immutable, shared by rows. */
struct piece {
    unsigned refs;    /* atomic */
    uint64_t *total;  /* atomic: counts its bytes while they are allocated; NULL before the page has it */
    char *score_name; /* of a scorer's block; NULL for the others */
    struct buf text, deflated;
    uLong crc, crc_shift; /* for crc32_combine_op(); the latter depends on the text's length alone */
};

/* What a scrape strings together, in order. Immutable. */
struct row {
    unsigned refs; /* atomic */
    size_t n;
    struct piece *own[2]; /* the program's metrics, after the blocks: as text, as OpenMetrics */
    uLong crc;            /* of the blocks' text */
    uint64_t text_bytes;  /* of the blocks */
    uint64_t memory;      /* allocated for all pieces */
    struct piece *pieces[];
};

struct page {
    struct sink sink;
    pthread_mutex_t lock;
    struct row *row;        /* the loop writes it under the lock and reads it without */
    struct piece **blocks;  /* of the next row, sorted by score name: the head has none. The loop's alone */
    size_t n_blocks;        /* as well */
    uint64_t version;       /* counts rows. Under the lock */
    uint64_t fresh;         /* bytes of the blocks that came after the row. Under the lock */
    uint64_t allocated;     /* atomic: bytes of these rows' pieces, and of earlier ones' that scrapes hold */
    struct metrics *server; /* under the lock */
};

static const size_t PIECE_MAX_BYTES = (size_t)1 << 31; /* of text */

/* The pieces of the page, and the rows that string them together. */

/* Bytes allocated for it; 0 for NULL. */
static uint64_t piece_memory(const struct piece *p)
{
    return p ? p->text.cap + p->deflated.cap : 0;
}

static struct piece *piece_ref(struct piece *p)
{
    if (p)
        (void)__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

struct piece *piece_unref(struct piece *p)
{
    if (p && __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        if (p->total)
            (void)__atomic_sub_fetch(p->total, piece_memory(p), __ATOMIC_RELAXED);
        free(p->score_name);
        buf_done(&p->text);
        buf_done(&p->deflated);
        free(p);
    }
    return NULL;
}

/* Compresses text, which the piece takes over. -ENOMEM, -EFBIG. */
static int piece_new(struct piece **ret, struct buf *text)
{
    CLEANUP(cleanup_piece_unref) struct piece *p = xcalloc(1, sizeof(*p));
    int r;

    p->refs = 1;
    buf_init(&p->deflated, PIECE_MAX_BYTES / 8 * 9 + 4096);
    r = deflate_piece(&p->deflated, buf_str(text));
    if (r < 0)
        return r;
    p->text = buf_take(text);
    p->crc = gzip_crc(buf_str(&p->text));
    p->crc_shift = crc32_combine_gen64((z_off64_t)p->text.n);
    buf_shrink(&p->text);
    buf_shrink(&p->deflated);
    *ret = TAKE_PTR(p);
    return 0;
}

/* From now on `total` counts the piece's bytes. */
static void piece_count(struct piece *p, uint64_t *total)
{
    p->total = total;
    (void)__atomic_add_fetch(total, piece_memory(p), __ATOMIC_RELAXED);
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

/* A row of the page's blocks, without the program's metrics. */
static struct row *row_new(const struct page *p)
{
    struct row *row = xcalloc(1, sizeof(*row) + p->n_blocks * sizeof(row->pieces[0]));

    row->refs = 1;
    for (; row->n < p->n_blocks; row->n++) {
        struct piece *block = row->pieces[row->n] = piece_ref(p->blocks[row->n]);

        row->crc = crc32_combine_op(row->crc, block->crc, block->crc_shift);
        row->text_bytes += block->text.n;
        row->memory += piece_memory(block);
    }
    return row;
}

/* 0..1000; an invalid value counts as 0, so that it selects nothing. */
static int q_value(struct str s)
{
    int q = 0, unit = 1000;

    if (s.n == 0 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
        return 0;
    q = (s.p[0] - '0') * 1000;
    for (size_t i = 2; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        unit /= 10;
        q += (s.p[i] - '0') * unit;
    }
    return q > 1000 ? 0 : q;
}

/* One element of an Accept or Accept-Encoding header with the parameters that matter. */
struct wish {
    struct str what, version;
    int q;
};

static struct wish read_wish(struct str element)
{
    struct wish w = {.what = str_trim(str_take(&element, ';')), .q = 1000};

    while (element.n) {
        struct str value = str_trim(str_take(&element, ';'));
        struct str key = str_trim(str_take(&value, '='));
        value = str_trim(value);
        if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
            value = (struct str){value.p + 1, value.n - 2};
        if (str_eq_nocase(key, STR("q")))
            w.q = q_value(value);
        else if (str_eq_nocase(key, STR("version")))
            w.version = value;
    }
    return w;
}

static bool matches(enum expo_format f, const struct wish *w)
{
    if (str_eq(w->what, STR("*/*")))
        return f == EXPO_TEXT;
    if (f == EXPO_TEXT)
        return str_eq_nocase(w->what, STR("text/*")) ||
               (str_eq_nocase(w->what, STR("text/plain")) &&
                (w->version.n == 0 || str_eq(w->version, STR("0.0.4"))));
    if (!str_eq_nocase(w->what, STR("application/openmetrics-text")))
        return false;
    if (f == EXPO_OPENMETRICS_001)
        return str_eq(w->version, STR("0.0.1"));
    return w->version.n == 0 || str_eq(w->version, STR("1.0.0"));
}

enum expo_format negotiate_format(const char *accept)
{
    struct str rest = str_of(accept);
    enum expo_format best = EXPO_TEXT;
    int best_q = 0;

    while (rest.n) {
        struct wish w = read_wish(str_trim(str_take(&rest, ',')));
        for (enum expo_format f = EXPO_TEXT; f < EXPO_FORMATS; f++)
            /* Of equal wishes the richer format wins. */
            if (matches(f, &w) && (w.q > best_q || (w.q == best_q && w.q > 0 && f > best))) {
                best = f;
                best_q = w.q;
            }
    }
    return best;
}

bool negotiate_gzip(const char *accept_encoding)
{
    struct str rest = str_of(accept_encoding);
    int gzip = -1, any = -1, identity = -1;

    while (rest.n) {
        struct wish w = read_wish(str_trim(str_take(&rest, ',')));
        if (str_eq_nocase(w.what, STR("gzip")) || str_eq_nocase(w.what, STR("x-gzip")))
            gzip = w.q;
        else if (str_eq(w.what, STR("*")))
            any = w.q;
        else if (str_eq_nocase(w.what, STR("identity")))
            identity = w.q;
    }
    if (gzip < 0)
        gzip = any;
    if (identity < 0) /* "*" covers it too; without either it is always acceptable */
        identity = any;
    return gzip > 0 && gzip >= identity;
}

const char *const expo_content_types[EXPO_FORMATS] = {
    [EXPO_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
    [EXPO_OPENMETRICS_001] = "application/openmetrics-text; version=0.0.1; charset=utf-8",
    [EXPO_OPENMETRICS_1] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/* What a batch becomes on the page: its lines, and the same compressed. */

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
        o = mempcpy(o, name.p, name.n);
        *o++ = ' ';
        o += num_put_double(o, b->values[i]);
        *o++ = '\n';
    }
    into->n += (size_t)(o - to);
    return 0;
}

int batch_prepare(struct batch *b)
{
    BUF_AUTO(text, PIECE_MAX_BYTES);
    int r = batch_render(b, &text) ?: piece_new(&b->piece, &text);

    if (r == 0)
        b->piece->score_name = xstrdup(b->score_name);
    return r;
}

/* Replaces, adds or (block NULL) removes one scorer's block, which the page takes over. */
static void page_replace_block(struct page *p, const char *score_name, struct piece *block)
{
    size_t i = 0;

    while (i < p->n_blocks && strcmp(cstr(p->blocks[i]->score_name), score_name) < 0)
        i++;
    if (i < p->n_blocks && strcmp(cstr(p->blocks[i]->score_name), score_name) == 0) {
        (void)piece_unref(p->blocks[i]);
        p->n_blocks--;
        memmove(&p->blocks[i], &p->blocks[i + 1], (p->n_blocks - i) * sizeof(*p->blocks));
    }
    if (!block)
        return;
    p->blocks = xreallocarray(p->blocks, p->n_blocks + 1, sizeof(*p->blocks));
    memmove(&p->blocks[i + 1], &p->blocks[i], (p->n_blocks - i) * sizeof(*p->blocks));
    p->blocks[i] = block;
    p->n_blocks++;
    piece_count(block, &p->allocated);
    (void)pthread_mutex_lock(&p->lock);
    p->fresh += piece_memory(block);
    (void)pthread_mutex_unlock(&p->lock);
}

static void page_publish(struct sink *s, struct batch *b)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);
    int r = b->piece ? 0 : batch_prepare(b);

    if (r < 0)
        log_error("cannot publish scores on /metrics", L_STR("score_name", b->score_name), L_ERR(r));
    else
        page_replace_block(p, b->score_name, TAKE_PTR(b->piece));
}

static void page_withdraw(struct sink *s, const char *score_name, unix_ms at)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);

    (void)at; /* Prometheus sees that a series is gone by its absence */
    page_replace_block(p, score_name, NULL);
}

static const struct sink_ops page_sink_ops = {.publish = page_publish, .withdraw = page_withdraw};

struct page *page_new(bool has_scores)
{
    struct page *p = xcalloc(1, sizeof(*p));
    struct piece *head;
    BUF_AUTO(text, 4096);
    int r = buf_puts(&text, "# TYPE " SCORE_METRIC " gauge\n# HELP " SCORE_METRIC " " SCORE_HELP "\n");

    (void)pthread_mutex_init(&p->lock, NULL);
    p->sink.ops = &page_sink_ops;
    p->version = 1;
    p->server = metrics_new(METRIC_OWNER_SERVER);
    if (r == 0 && has_scores && piece_new(&head, &text) == 0)
        page_replace_block(p, "", head);
    p->row = row_new(p);
    p->fresh = 0;
    metric_set(p->server, METRIC_HTTP_READERS_CUT, LV_NONE, 0);
    return p;
}

struct page *page_free(struct page *p)
{
    if (!p)
        return NULL;
    (void)row_unref(p->row);
    for (size_t i = 0; i < p->n_blocks; i++)
        (void)piece_unref(p->blocks[i]);
    free(p->blocks);
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
    struct row *row = row_new(p), *old = p->row;
    int r = 0;

    for (int openmetrics = 0; openmetrics < 2; openmetrics++) {
        BUF_AUTO(text, PIECE_MAX_BYTES);

        r = r ?: metrics_render(own, openmetrics, &text) ?: piece_new(&row->own[openmetrics], &text);
        if (r == 0)
            piece_count(row->own[openmetrics], &p->allocated);
    }
    for (int i = 0; i < 2; i++) {
        if (r < 0) { /* scores do not wait for memory */
            (void)piece_unref(row->own[i]);
            row->own[i] = piece_ref(old->own[i]);
        }
        row->memory += piece_memory(row->own[i]);
    }
    (void)pthread_mutex_lock(&p->lock);
    p->row = row;
    p->version++;
    p->fresh = 0;
    (void)pthread_mutex_unlock(&p->lock);
    (void)row_unref(old); /* not under the lock: freeing megabytes takes time */
    return r;
}

size_t page_own_bytes(const struct page *p)
{
    return p->row->own[0] ? p->row->own[0]->text.n : 0;
}

size_t page_memory(const struct page *p)
{
    uint64_t bytes = piece_memory(p->row->own[0]) + piece_memory(p->row->own[1]);

    for (size_t i = 0; i < p->n_blocks; i++)
        bytes += piece_memory(p->blocks[i]);
    return bytes;
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

/* Server thread: one scrape, from the row to the response. */

/* One response: the row that it sends, and what is rendered for this scrape alone. */
struct scrape {
    struct row *row;
    uint64_t version;
    struct buf tail; /* process and server metrics, `# EOF`: plain or compressed */
    char end[GZIP_END_BYTES];
    unsigned n_parts;
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
static int scrape_render_tail(struct page *p, bool openmetrics, struct buf *tail, struct row **ret_row,
                              uint64_t *ret_version)
{
    CLEANUP(cleanup_metrics_free) struct metrics *process = metrics_new(METRIC_OWNER_SERVER);
    int r;

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

/* Compresses the tail, and writes the end of the member for all parts. */
static int scrape_compress_tail(struct scrape *s, const struct row *row, const struct piece *own)
{
    BUF_AUTO(text, 1u << 20);
    uint64_t bytes = row->text_bytes;
    uLong crc = row->crc;
    int r;

    text = buf_take(&s->tail);
    r = deflate_piece(&s->tail, buf_str(&text));
    if (r < 0)
        return r;
    if (own) {
        crc = crc32_combine_op(crc, own->crc, own->crc_shift);
        bytes += own->text.n;
    }
    crc = crc32_combine64(crc, gzip_crc(buf_str(&text)), (z_off64_t)text.n);
    gzip_end(s->end, (uint32_t)crc, bytes + text.n);
    return 0;
}

static void scrape_put_all(struct scrape *s, const struct row *row, const struct piece *own, bool gzip)
{
    if (gzip)
        scrape_put(s, gzip_begin.p, gzip_begin.n);
    for (size_t i = 0; i < row->n + (own != NULL); i++) {
        const struct piece *p = i < row->n ? row->pieces[i] : own;
        const struct buf *b = gzip ? &p->deflated : &p->text;

        scrape_put(s, b->p, b->n);
    }
    scrape_put(s, s->tail.p, s->tail.n);
    if (gzip)
        scrape_put(s, s->end, sizeof(s->end));
}

static int scrape_new(struct page *p, bool openmetrics, bool gzip, struct scrape **ret)
{
    BUF_AUTO(tail, 1u << 20);
    struct row *row = NULL;
    uint64_t version = 0;
    struct scrape *s;
    int r = scrape_render_tail(p, openmetrics, &tail, &row, &version);

    if (r < 0)
        return r;
    /* Besides the blocks: begin, own, tail, end. */
    s = xcalloc(1, sizeof(*s) + (row->n + 4) * sizeof(s->parts[0]));
    s->row = row;
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
    reply->content_type = expo_content_types[format];
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
