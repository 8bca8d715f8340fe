/* The pieces of the page, and the rows that string them together. */
#include "exporter/metric/deflate.h"
#include "exporter/metric/page_internal.h"

#include <errno.h>

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
        buf_done(&p->text);
        buf_done(&p->deflated);
        free(p);
    }
    return NULL;
}

int piece_new(struct piece **ret, struct buf *text, const char *score_name)
{
    CLEANUP(cleanup_piece_unref) struct piece *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    p->refs = 1;
    buf_init(&p->deflated, PIECE_MAX_BYTES / 8 * 9 + 4096);
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

void row_append(struct row *row, struct piece *p)
{
    row->pieces[row->n++] = piece_ref(p);
    row->crc = gzip_crc_join_shifted(row->crc, p->crc, p->crc_shift);
    row->text_bytes += p->text.n;
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
    row->own[0] = piece_ref(old->own[0]);
    row->own[1] = piece_ref(old->own[1]);
    *ret = row;
    return 0;
}
