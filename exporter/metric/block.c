/* Owns the two forms of a block. `lock` is held while one of them is made, which takes as long as rendering
 * and compressing do; a thread that wants the same form waits for it. A form that is there does not change
 * any more and is read without the lock. */
#include "exporter/metric/block.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/deflate.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <zlib.h>

enum { PART_BYTES = 64 << 10 }; /* of text that is rendered only to be compressed */

struct block {
    unsigned refs;       /* atomic */
    uint64_t *total;     /* atomic: counts its bytes while it exists */
    struct batch *batch; /* NULL for a block that was given its text, or derives it */
    struct block *from;  /* of a block that derives its text; else NULL */
    block_derive_fn *derive;
    uint64_t memory; /* atomic: bytes of the forms, and of the batch that they are made of */
    struct lock lock;
    struct buf forms[BLOCK_FORMS];
    uint64_t text_bytes; /* with BLOCK_GZIP: the length of its text */
    uint32_t crc;        /* of that text */
    uLong crc_shift;     /* for crc32_combine_op(); it depends on the text's length alone */
};

/* ---- The lines of a batch ---- */

/* Appends lines from series *i on, until `into` has so many bytes. */
static int render_some(const struct batch *b, size_t *i, size_t enough, struct buf *into)
{
    for (size_t n = series_count(b->set); *i < n && into->n < enough; ++*i) {
        struct str name = series_name(b->set, *i);
        char *to, *end;
        int r = buf_reserve(into, name.n + NUM_MAX + 2, &to);

        if (r < 0)
            return r;
        end = mempcpy(to, name.p, name.n);
        *end++ = ' ';
        end += num_put_double(end, b->values[*i]);
        *end++ = '\n';
        into->n += (size_t)(end - to);
    }
    return 0;
}

/* What the batch takes as text at most. */
static size_t batch_text_max(const struct batch *b)
{
    return series_names_bytes(b->set) + series_count(b->set) * (NUM_MAX + 2);
}

int batch_render(const struct batch *b, struct buf *into)
{
    size_t i = 0;
    char *to;
    int r = buf_reserve(into, batch_text_max(b), &to);

    return r < 0 ? r : render_some(b, &i, SIZE_MAX, into);
}

/* ---- Life ---- */

static void block_count(struct block *b, uint64_t bytes)
{
    (void)__atomic_add_fetch(&b->memory, bytes, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(b->total, bytes, __ATOMIC_RELAXED);
}

static struct block *block_new(uint64_t *total)
{
    struct block *b = xcalloc(1, sizeof(*b));

    b->refs = 1;
    b->total = total;
    lock_init(&b->lock);
    buf_init(&b->forms[BLOCK_TEXT], BLOCK_MAX_BYTES);
    buf_init(&b->forms[BLOCK_GZIP], BLOCK_MAX_BYTES / 8 * 9 + 4096);
    return b;
}

int block_of_batch(struct block **ret, struct batch *batch, uint64_t *total)
{
    struct block *b;

    if (batch_text_max(batch) > BLOCK_MAX_BYTES)
        return -EFBIG;
    b = block_new(total);
    b->batch = batch_ref(batch);
    block_count(b, batch_text_max(batch));
    *ret = b;
    return 0;
}

struct block *block_of_text(struct buf *text, uint64_t *total)
{
    struct block *b = block_new(total);

    invariant(text->n <= BLOCK_MAX_BYTES);
    b->forms[BLOCK_TEXT] = buf_take(text);
    buf_shrink(&b->forms[BLOCK_TEXT]);
    block_count(b, b->forms[BLOCK_TEXT].cap);
    return b;
}

struct block *block_derived(struct block *from, block_derive_fn *derive, uint64_t *total)
{
    struct block *b = block_new(total);

    invariant(!from->batch && !from->from);
    b->from = block_ref(from);
    b->derive = derive;
    return b;
}

struct block *block_ref(struct block *b)
{
    if (b) {
        unsigned before = __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);

        invariant(before > 0);
    }
    return b;
}

static void block_free(struct block *b)
{
    uint64_t counted = __atomic_fetch_sub(b->total, block_memory(b), __ATOMIC_RELAXED);

    invariant(counted >= block_memory(b));
    (void)batch_unref(b->batch);
    (void)block_unref(b->from);
    for (enum block_form f = 0; f < BLOCK_FORMS; f++)
        buf_done(&b->forms[f]);
    lock_done(&b->lock);
    free(b);
}

struct block *block_unref(struct block *b)
{
    if (b) {
        unsigned before = __atomic_fetch_sub(&b->refs, 1, __ATOMIC_ACQ_REL);

        invariant(before > 0);
        if (before == 1)
            block_free(b);
    }
    return NULL;
}

const char *block_name(const struct block *b)
{
    return b->batch ? b->batch->score_name : "";
}

uint64_t block_memory(const struct block *b)
{
    return b ? __atomic_load_n(&b->memory, __ATOMIC_RELAXED) : 0;
}

/* ---- Forms ---- */

/* Continues the checksum and the length by a part of the text. */
static void block_add_text(struct block *b, struct str part)
{
    b->crc = crc32_gzip_refl(b->crc, (const uint8_t *)part.p, part.n);
    b->text_bytes += part.n;
}

/* Renders a part of the batch at a time, so that the whole text is never in memory. */
static int block_deflate_batch(struct block *b, struct deflater *d, struct buf *into)
{
    const size_t n = series_count(b->batch->set);
    BUF_AUTO(part, BLOCK_MAX_BYTES);
    size_t i = 0;
    int r = 0;

    while (r == 0 && i < n) {
        buf_clear(&part);
        r = render_some(b->batch, &i, PART_BYTES, &part);
        if (r == 0) {
            block_add_text(b, buf_str(&part));
            r = deflater_put(d, buf_str(&part), into);
        }
    }
    return r < 0 ? r : deflater_end(d, STR(""), into);
}

static int block_deflate(struct block *b, struct buf *into)
{
    struct str text = buf_str(&b->forms[BLOCK_TEXT]);
    bool renders = b->batch && text.n == 0;
    CLEANUP(cleanup_deflater_free)
    struct deflater *d = deflater_new(renders ? batch_text_max(b->batch) : text.n);
    int r;

    b->crc = 0;
    b->text_bytes = 0;
    if (renders) {
        r = block_deflate_batch(b, d, into);
    } else {
        block_add_text(b, text);
        r = deflater_end(d, text, into);
    }
    b->crc_shift = crc32_combine_gen64((z_off64_t)b->text_bytes);
    return r;
}

/* The text of a block that was given it is there, and does not change. */
static int block_derive(const struct block *b, struct buf *into)
{
    b->derive(into, buf_str(&b->from->forms[BLOCK_TEXT]));
    return buf_failed(into);
}

static int block_make_form(struct block *b, enum block_form form)
{
    struct buf *into = &b->forms[form];
    int r = 0;

    if (form == BLOCK_GZIP)
        r = block_deflate(b, into);
    else if (b->batch)
        r = batch_render(b->batch, into);
    else if (b->from)
        r = block_derive(b, into);
    if (r < 0)
        buf_clear(into);
    buf_shrink(into);
    block_count(b, into->cap);
    return r;
}

int block_make(struct block *b, enum block_form form)
{
    int r = 0;

    lock_take(&b->lock);
    if (form == BLOCK_GZIP && b->from && b->forms[BLOCK_TEXT].n == 0)
        r = block_make_form(b, BLOCK_TEXT);
    if (r == 0 && b->forms[form].n == 0)
        r = block_make_form(b, form);
    lock_release(&b->lock);
    return r;
}

struct str block_form(const struct block *b, enum block_form form)
{
    return buf_str(&b->forms[form]);
}

uint32_t block_crc(const struct block *b, uint32_t crc_before)
{
    return (uint32_t)crc32_combine_op(crc_before, b->crc, b->crc_shift);
}

uint64_t block_text_bytes(const struct block *b)
{
    return b->text_bytes;
}
