/* Growth and ceilings. A buffer belongs to whoever has it; nothing here knows other threads, but for the
 * blocks of spare.h. A failed call never changes what is in the buffer. */
#include "exporter/base/buf.h"

#include "exporter/base/alloc.h"
#include "exporter/base/huge_page.h"
#include "exporter/base/invariant.h"
#include "exporter/base/spare.h"

#include <errno.h>
#include <stdio.h>

enum {
    SPARE_SLACK_PART = 32, /* a large buffer is larger by this part: as a spare block it serves for the next
                              body, too, which mostly is longer or shorter by a few bytes */
};

void buf_keep(struct buf *b)
{
    if (b->cap >= SPARE_MIN_BYTES)
        spare_keep(TAKE_PTR(b->p), b->cap);
    buf_done(b);
}

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf){.max = b->max};
}

/* Grows by half, so that large bodies (which the allocator moves by remapping pages, not by copying) waste
 * little. */
static int buf_grow(struct buf *b, size_t need)
{
    size_t cap = size_max(b->cap + b->cap / 2, 64);
    char *p;

    cap = size_min(size_max(cap, need), b->max);
    p = NULL;
    if (!b->p && cap >= SPARE_MIN_BYTES) {
        p = spare_take(cap, b->max, &cap);
        if (!p)
            cap = size_min(cap + cap / SPARE_SLACK_PART, b->max);
    }
    if (!p) {
        p = realloc(b->p, cap);
        if (!p)
            return -ENOMEM;
        huge_page_advise(p, cap);
    }
    b->p = p;
    b->cap = cap;
    return 0;
}

void buf_rollback(struct buf *b, struct buf_mark mark)
{
    invariant(mark.n <= b->n);
    b->n = mark.n;
    b->error = mark.error;
}

int buf_commit(struct buf *b, struct buf_mark mark)
{
    int r = buf_failed(b);

    if (r < 0)
        buf_rollback(b, mark);
    return r;
}

void buf_truncate(struct buf *b, size_t n)
{
    invariant(n <= b->n);
    b->n = n;
}

int buf_reserve(struct buf *b, size_t n, char **ret)
{
    if (b->error)
        return b->error;
    if (n > b->max || b->n > b->max - n)
        return -EFBIG;
    if (b->cap < b->n + n || !b->p) {
        int r = buf_grow(b, size_max(b->n + n, 1));
        if (r < 0)
            return r;
    }
    *ret = b->p + b->n;
    return 0;
}

void buf_expect(struct buf *b, size_t n)
{
    char *room;

    if (buf_reserve(b, n, &room) < 0)
        return; /* the append that needs it will fail, and say so */
}

void buf_fail(struct buf *b, int error)
{
    if (b->error)
        return;
    b->error = error;
    b->asked = false;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
    char *to;
    int r;

    if (n == 0 || b->error)
        return;
    r = buf_reserve(b, n, &to);
    if (r < 0) {
        buf_fail(b, r);
        return;
    }
    memcpy(to, p, n);
    b->n += n;
}

void buf_putc(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    char small[256], *large;
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof(small), fmt, again);
    va_end(again);
    if (n < 0) { /* over INT_MAX */
        buf_fail(b, -EFBIG);
        return;
    }
    if ((size_t)n < sizeof(small)) {
        buf_put(b, small, (size_t)n);
        return;
    }
    large = xvasprintf(fmt, ap);
    buf_put(b, large, (size_t)n);
    free(large);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

struct buf buf_take(struct buf *b)
{
    struct buf out = *b;

    invariant(!b->error || b->asked);
    *b = (struct buf){.max = out.max};
    return out;
}

void buf_shrink(struct buf *b)
{
    if (b->n == 0) {
        buf_done(b);
    } else if (b->n < b->cap) {
        b->p = xrealloc(b->p, b->n);
        b->cap = b->n;
    }
}
