#include "controller/kube/lines.h"

#include <errno.h>

void lines_init(struct lines *l, size_t max)
{
    *l = (struct lines){.max = max};
    /* One more for a "\r" that may belong to the line's end. */
    buf_init(&l->partial, max + 1);
}

void lines_done(struct lines *l)
{
    buf_done(&l->partial);
}

static int lines_emit(struct lines *l, struct str line, int (*on_line)(void *arg, struct str line), void *arg)
{
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n > l->max)
        return -EFBIG;
    return line.n ? on_line(arg, line) : 0;
}

/* Moves the bytes out first, since on_line may free l. */
static int lines_emit_partial(struct lines *l, int (*on_line)(void *arg, struct str line), void *arg)
{
    BUF_AUTO(whole, 0);

    whole = buf_take(&l->partial);
    return lines_emit(l, buf_str(&whole), on_line, arg);
}

int lines_feed(struct lines *l, struct str piece, int (*on_line)(void *arg, struct str line), void *arg)
{
    while (piece.n) {
        const char *end = memchr(piece.p, '\n', piece.n);
        struct str part = {piece.p, end ? (size_t)(end - piece.p) : piece.n};
        int r = 0;

        if (l->partial.n || !end)
            r = buf_put_str(&l->partial, part);
        if (r == 0 && end)
            r = l->partial.n ? lines_emit_partial(l, on_line, arg) : lines_emit(l, part, on_line, arg);
        if (r != 0)
            return r;
        if (!end)
            return 0;
        piece = (struct str){end + 1, piece.n - part.n - 1};
    }
    return 0;
}
