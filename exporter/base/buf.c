#include "exporter/base/buf.h"

#include "exporter/base/memory.h"

#include <errno.h>
#include <stdio.h>

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
    p = realloc(b->p, cap);
    if (!p)
        return -ENOMEM;
    b->p = p;
    b->cap = cap;
    huge_pages(p, cap);
    return 0;
}

int buf_room(struct buf *b, size_t n, char **ret)
{
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

int buf_put(struct buf *b, const void *p, size_t n)
{
    char *to;
    int r;

    if (n == 0)
        return 0;
    r = buf_room(b, n, &to);
    if (r < 0)
        return r;
    memcpy(to, p, n);
    b->n += n;
    return 0;
}

int buf_putc(struct buf *b, char c)
{
    return buf_put(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char small[256], *to;
    int n, r;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof(small), fmt, again);
    va_end(again);
    if (n < 0)
        return -EINVAL;
    if ((size_t)n < sizeof(small))
        return buf_put(b, small, (size_t)n);

    /* One more byte for vsnprintf()'s NUL, which does not count against the ceiling. */
    if ((size_t)n > b->max || b->n > b->max - (size_t)n)
        return -EFBIG;
    to = malloc((size_t)n + 1);
    if (!to)
        return -ENOMEM;
    (void)vsnprintf(to, (size_t)n + 1, fmt, ap);
    r = buf_put(b, to, (size_t)n);
    free(to);
    return r;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

void buf_shrink(struct buf *b)
{
    char *p;

    if (b->n == b->cap)
        return;
    if (b->n == 0) {
        buf_done(b);
        return;
    }
    p = realloc(b->p, b->n);
    if (!p)
        return;
    b->p = p;
    b->cap = b->n;
}
