/* The pieces of the page, and the rows that string them together. */
#include "exporter/metric/deflate.h"
#include "exporter/metric/page_internal.h"

#include <errno.h>

static int bytes_new(struct bytes **ret, uint64_t *total, struct buf *from)
{
    struct bytes *b = malloc(sizeof(*b));

    if (!b)
        return -ENOMEM;
    buf_shrink(from);
    *b = (struct bytes){.refs = 1, .total = total, .buf = buf_take(from)};
    (void)__atomic_add_fetch(total, b->buf.cap, __ATOMIC_RELAXED);
    *ret = b;
    return 0;
}

struct bytes *bytes_ref(struct bytes *b)
{
    (void)__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

struct bytes *bytes_unref(struct bytes *b)
{
    if (b && __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        (void)__atomic_sub_fetch(b->total, b->buf.cap, __ATOMIC_RELAXED);
        buf_done(&b->buf);
        free(b);
    }
    return NULL;
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
        free(p->score_name);
        (void)bytes_unref(p->text);
        (void)bytes_unref(p->deflated);
        free(p);
    }
    return NULL;
}

int piece_of(struct piece **ret, uint64_t *total, struct rendering *r, const char *score_name)
{
    CLEANUP(cleanup_piece_unref) struct piece *p = calloc(1, sizeof(*p));
    int e;

    if (!p)
        return -ENOMEM;
    p->refs = 1;
    if (score_name) {
        p->score_name = strdup(score_name);
        if (!p->score_name)
            return -ENOMEM;
    }
    e = bytes_new(&p->deflated, total, &r->deflated) ?: bytes_new(&p->text, total, &r->text);
    if (e < 0)
        return e;
    p->crc = r->crc;
    p->crc_shift = r->crc_shift;
    *ret = TAKE_PTR(p);
    return 0;
}

int piece_new(struct piece **ret, uint64_t *total, struct buf *text, const char *score_name)
{
    CLEANUP(rendering_done) struct rendering r = {0};
    int e = rendering_make(&r, text);

    return e < 0 ? e : piece_of(ret, total, &r, score_name);
}

struct row *row_unref(struct row *row)
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

struct row *row_alloc(size_t n)
{
    struct row *row = calloc(1, sizeof(*row) + n * sizeof(row->pieces[0]));

    if (row)
        row->refs = 1;
    return row;
}

uint64_t piece_memory(const struct piece *p)
{
    return p ? p->text->buf.cap + p->deflated->buf.cap : 0;
}

void row_set_own(struct row *row, bool openmetrics, struct piece *p)
{
    row->own[openmetrics] = p;
    row->memory += piece_memory(p);
}

void row_append(struct row *row, struct piece *p)
{
    row->pieces[row->n++] = piece_ref(p);
    row->crc = gzip_crc_join_shifted(row->crc, p->crc, p->crc_shift);
    row->text_bytes += p->text->buf.n;
    row->memory += piece_memory(p);
}

int row_with(struct row **ret, const struct row *old, const char *score_name, struct piece *block)
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
    row_set_own(row, false, piece_ref(old->own[0]));
    row_set_own(row, true, piece_ref(old->own[1]));
    *ret = row;
    return 0;
}
