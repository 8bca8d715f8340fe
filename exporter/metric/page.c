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
    PART_BYTES = 64 << 10, /* of text that is rendered to be compressed */
};

/* Freed after each piece: ISA-L's state takes 100 to 360 KiB, and a program at rest compresses one small
 * piece per scrape. */
struct deflater {
    struct isal_zstream z;
    uint8_t table[];
};

/* For a text of about n bytes. */
static struct deflater *deflater_new(size_t n)
{
    size_t table = n <= SMALL_BYTES ? ISAL_DEF_LVL1_MIN : ISAL_DEF_LVL1_DEFAULT;
    struct deflater *d = xmalloc(sizeof(*d) + table);

    isal_deflate_init(&d->z);
    d->z.level = 1;
    d->z.level_buf = d->table;
    d->z.level_buf_size = (uint32_t)table;
    return d;
}

/* Compresses a part of a text; the last one ends on a byte border, in an empty stored block. */
static int deflate_part(struct deflater *d, struct str text, bool last, struct buf *into)
{
    d->z.flush = last ? SYNC_FLUSH : NO_FLUSH;
    d->z.next_in = (uint8_t *)(uintptr_t)text.p;
    d->z.avail_in = (uint32_t)text.n;
    do { /* output that does not fit continues in more room */
        size_t room = size_min(d->z.avail_in + d->z.avail_in / 8 + SLACK_BYTES, into->max - into->n);
        char *to;
        int r = room ? buf_room(into, room, &to) : -EFBIG;

        if (r < 0)
            return r;
        d->z.next_out = (uint8_t *)to;
        d->z.avail_out = (uint32_t)size_min(into->cap - into->n, UINT32_MAX);
        if (isal_deflate(&d->z) != COMP_OK)
            return -EINVAL;
        into->n += (size_t)((char *)d->z.next_out - to);
    } while (d->z.avail_in || d->z.avail_out == 0);
    return 0;
}

int deflate_piece(struct buf *into, struct str text)
{
    CLEANUP(cleanup_free) struct deflater *d = deflater_new(text.n);

    return deflate_part(d, text, true, into);
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

/* ---- The page ---- */

enum form { FORM_TEXT, FORM_GZIP, FORMS };

/* Text, and the same compressed. A scrape needs one of them, which is made when the first one asks for it.
 * Shared by rows. */
struct piece {
    unsigned refs;        /* atomic */
    uint64_t *total;      /* atomic: counts its bytes while they are kept */
    struct batch *batch;  /* of a scorer's block; NULL for the others, which have their text */
    const char *name;     /* the batch's; "" without one */
    uint64_t memory;      /* atomic: bytes of the forms, and of the batch that they are made of */
    pthread_mutex_t lock; /* of what follows, which does not change once it is there */
    struct buf forms[FORMS];
    uint64_t text_bytes;  /* with the compressed form: of its text */
    uLong crc, crc_shift; /* for crc32_combine_op(); the latter depends on the text's length alone */
};

/* What a scrape strings together, in order. Immutable. */
struct row {
    unsigned refs; /* atomic */
    size_t n;
    struct piece *own[2]; /* the program's metrics, after the blocks: as text, as OpenMetrics */
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

/* The lines of a batch. */

/* Appends lines from series *i on, until there are so many bytes. */
static int render_some(const struct batch *b, size_t *i, size_t enough, struct buf *into)
{
    for (size_t n = series_count(b->set); *i < n && into->n < enough; ++*i) {
        struct str name = series_name(b->set, *i);
        char *to, *o;
        int r = buf_room(into, name.n + NUM_MAX + 2, &to);

        if (r < 0)
            return r;
        o = mempcpy(to, name.p, name.n);
        *o++ = ' ';
        o += num_put_double(o, b->values[*i]);
        *o++ = '\n';
        into->n += (size_t)(o - to);
    }
    return 0;
}

/* What the batch takes as text at most. */
static size_t batch_bytes(const struct batch *b)
{
    return series_names_bytes(b->set) + series_count(b->set) * (NUM_MAX + 2);
}

int batch_render(const struct batch *b, struct buf *into)
{
    char *to;
    size_t i = 0;

    return buf_room(into, batch_bytes(b), &to) ?: render_some(b, &i, SIZE_MAX, into);
}

/* The pieces of the page, and the rows that string them together. */

static uint64_t piece_memory(const struct piece *p)
{
    return p ? __atomic_load_n(&p->memory, __ATOMIC_RELAXED) : 0;
}

static void piece_count(struct piece *p, uint64_t bytes)
{
    (void)__atomic_add_fetch(&p->memory, bytes, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(p->total, bytes, __ATOMIC_RELAXED);
}

static struct piece *piece_ref(struct piece *p)
{
    if (p)
        (void)__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

static struct piece *piece_unref(struct piece *p)
{
    if (p && __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        (void)__atomic_sub_fetch(p->total, piece_memory(p), __ATOMIC_RELAXED);
        (void)batch_unref(p->batch);
        for (enum form f = 0; f < FORMS; f++)
            buf_done(&p->forms[f]);
        (void)pthread_mutex_destroy(&p->lock);
        free(p);
    }
    return NULL;
}

/* Of a batch (else NULL), or of a text, which the piece takes over. */
static struct piece *piece_new(struct page *page, struct batch *b, struct buf *text)
{
    struct piece *p = xcalloc(1, sizeof(*p));

    p->refs = 1;
    p->total = &page->allocated;
    p->batch = b ? batch_ref(b) : NULL;
    p->name = b ? b->score_name : "";
    (void)pthread_mutex_init(&p->lock, NULL);
    p->forms[FORM_TEXT] = buf_take(text);
    buf_shrink(&p->forms[FORM_TEXT]);
    buf_init(&p->forms[FORM_GZIP], PIECE_MAX_BYTES / 8 * 9 + 4096);
    piece_count(p, p->forms[FORM_TEXT].cap + (b ? batch_bytes(b) : 0));
    return p;
}

/* The text as it is, or a part of the batch's at a time: the whole is never in memory. */
static int piece_deflate(struct piece *p)
{
    const struct batch *b = p->batch;
    struct str text = buf_str(&p->forms[FORM_TEXT]);
    size_t i = 0, n = b && !text.n ? series_count(b->set) : 0;
    CLEANUP(cleanup_free) struct deflater *d = deflater_new(n ? batch_bytes(b) : text.n);
    BUF_AUTO(part, PIECE_MAX_BYTES);
    int r = 0;

    p->crc = p->text_bytes = 0;
    do {
        buf_truncate(&part, 0);
        if (n) {
            r = render_some(b, &i, PART_BYTES, &part);
            text = buf_str(&part);
        }
        r = r ?: deflate_part(d, text, i == n, &p->forms[FORM_GZIP]);
        p->crc = crc32_gzip_refl((uint32_t)p->crc, (const uint8_t *)text.p, text.n);
        p->text_bytes += text.n;
    } while (r == 0 && i < n);
    p->crc_shift = crc32_combine_gen64((z_off64_t)p->text_bytes);
    return r;
}

/* Makes a form unless it is there. Any thread. -ENOMEM, -EFBIG. */
static int piece_make(struct piece *p, enum form f)
{
    struct buf *form = &p->forms[f];
    int r = 0;

    (void)pthread_mutex_lock(&p->lock);
    if (form->n == 0) {
        r = f == FORM_GZIP ? piece_deflate(p) : p->batch ? batch_render(p->batch, form) : 0;
        buf_truncate(form, r < 0 ? 0 : form->n);
        buf_shrink(form);
        piece_count(p, form->cap);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return r;
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
    for (; row->n < p->n_blocks; row->n++)
        row->pieces[row->n] = piece_ref(p->blocks[row->n]);
    return row;
}

/* Piece i of a scrape: the blocks, then the program's metrics; NULL behind them. */
static struct piece *row_piece(const struct row *row, size_t i, bool openmetrics)
{
    return i < row->n ? row->pieces[i] : i == row->n ? row->own[openmetrics] : NULL;
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

/* Replaces, adds or (block NULL) removes one scorer's block, which the page takes over. */
static void page_replace_block(struct page *p, const char *score_name, struct piece *block)
{
    size_t i = 0;

    while (i < p->n_blocks && strcmp(p->blocks[i]->name, score_name) < 0)
        i++;
    if (i < p->n_blocks && strcmp(p->blocks[i]->name, score_name) == 0) {
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
    (void)pthread_mutex_lock(&p->lock);
    p->fresh += piece_memory(block);
    (void)pthread_mutex_unlock(&p->lock);
}

static void page_publish(struct sink *s, struct batch *b)
{
    struct page *p = CONTAINER_OF(s, struct page, sink);
    BUF_AUTO(none, PIECE_MAX_BYTES);

    if (batch_bytes(b) > PIECE_MAX_BYTES)
        log_error("cannot publish scores on /metrics", L_STR("score_name", b->score_name), L_ERR(-EFBIG));
    else
        page_replace_block(p, b->score_name, piece_new(p, b, &none));
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
    BUF_AUTO(text, 4096);
    int r = buf_puts(&text, "# TYPE " SCORE_METRIC " gauge\n# HELP " SCORE_METRIC " " SCORE_HELP "\n");

    (void)pthread_mutex_init(&p->lock, NULL);
    p->sink.ops = &page_sink_ops;
    p->version = 1;
    p->server = metrics_new(METRIC_OWNER_SERVER);
    if (r == 0 && has_scores)
        page_replace_block(p, "", piece_new(p, NULL, &text));
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

    for (int i = 0; i < 2; i++) {
        BUF_AUTO(text, PIECE_MAX_BYTES);

        r = r ?: metrics_render(own, i, &text);
        /* Scores do not wait for memory. */
        row->own[i] = r < 0 ? piece_ref(old->own[i]) : piece_new(p, NULL, &text);
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
    return p->row->own[0] ? p->row->own[0]->forms[FORM_TEXT].n : 0;
}

size_t page_memory(const struct page *p)
{
    const struct row *row = p->row;
    uint64_t bytes = piece_memory(row->own[0]) + piece_memory(row->own[1]);

    for (size_t i = 0; i < row->n; i++)
        bytes += piece_memory(row->pieces[i]);
    return bytes;
}

uint64_t page_held(void *page, uint64_t *ret_version, uint64_t *ret_bytes)
{
    struct page *p = page;
    uint64_t allocated, needed;

    (void)pthread_mutex_lock(&p->lock);
    allocated = __atomic_load_n(&p->allocated, __ATOMIC_RELAXED);
    *ret_version = p->version;
    *ret_bytes = page_memory(p);
    needed = *ret_bytes + p->fresh;
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
static int scrape_compress_tail(struct scrape *s, const struct row *row, bool openmetrics)
{
    BUF_AUTO(text, 1u << 20);
    const struct piece *p;
    uint64_t bytes = 0;
    uLong crc = 0;
    int r;

    text = buf_take(&s->tail);
    r = deflate_piece(&s->tail, buf_str(&text));
    for (size_t i = 0; (p = row_piece(row, i, openmetrics)); i++) {
        crc = crc32_combine_op(crc, p->crc, p->crc_shift);
        bytes += p->text_bytes;
    }
    crc = crc32_combine64(crc, crc32_gzip_refl(0, (uint8_t *)text.p, text.n), (z_off64_t)text.n);
    gzip_end(s->end, (uint32_t)crc, bytes + text.n);
    return r;
}

static void scrape_put_all(struct scrape *s, const struct row *row, bool openmetrics, enum form f)
{
    const struct piece *p;

    if (f == FORM_GZIP)
        scrape_put(s, gzip_begin.p, gzip_begin.n);
    for (size_t i = 0; (p = row_piece(row, i, openmetrics)); i++)
        scrape_put(s, p->forms[f].p, p->forms[f].n);
    scrape_put(s, s->tail.p, s->tail.n);
    if (f == FORM_GZIP)
        scrape_put(s, s->end, sizeof(s->end));
}

static int scrape_new(struct page *p, bool openmetrics, enum form f, struct scrape **ret)
{
    BUF_AUTO(tail, 1u << 20);
    struct row *row = NULL;
    uint64_t version = 0;
    struct piece *piece;
    struct scrape *s;
    int r = scrape_render_tail(p, openmetrics, &tail, &row, &version);

    if (r < 0)
        return r;
    /* Besides the blocks: begin, own, tail, end. */
    s = xcalloc(1, sizeof(*s) + (row->n + 4) * sizeof(s->parts[0]));
    s->row = row;
    s->version = version;
    s->tail = buf_take(&tail);
    for (size_t i = 0; r == 0 && (piece = row_piece(row, i, openmetrics)); i++)
        r = piece_make(piece, f);
    if (r == 0 && f == FORM_GZIP)
        r = scrape_compress_tail(s, row, openmetrics);
    if (r < 0) {
        scrape_free(s);
        return r;
    }
    scrape_put_all(s, row, openmetrics, f);
    *ret = s;
    return 0;
}

void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply)
{
    enum expo_format format = negotiate_format(rq->accept);
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct scrape *s;
    int r = scrape_new(page, format != EXPO_TEXT, gzip ? FORM_GZIP : FORM_TEXT, &s);

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
    int r = scrape_new(p, false, FORM_TEXT, &s);

    if (r < 0)
        return r;
    for (unsigned i = 0; r == 0 && i < s->n_parts; i++)
        r = buf_put(into, s->parts[i].iov_base, s->parts[i].iov_len);
    scrape_free(s);
    return r;
}
