/* The framer: the first byte says in what pieces the rest comes, and the lines are the same as in one
 * piece. */
#include "controller/kube/lines.h"
#include "exporter/base/buf.h"

#include <assert.h>
#include <errno.h>

enum { MAX_LINE = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_line(void *arg, struct str line)
{
    assert(line.n > 0 && line.n <= MAX_LINE && !memchr(line.p, '\n', line.n));
    assert(buf_put_str(arg, line) == 0 && buf_putc(arg, '\n') == 0);
    return 0;
}

static int feed(struct buf *lines, struct str all, size_t step, size_t *left)
{
    struct lines l;
    int r = 0;

    lines_init(&l, MAX_LINE);
    while (all.n && r == 0) {
        size_t n = size_min(step, all.n);
        r = lines_feed(&l, (struct str){all.p, n}, on_line, lines);
        all = (struct str){all.p + n, all.n - n};
    }
    *left = l.partial.n;
    assert(*left <= MAX_LINE + 1);
    lines_done(&l);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str all = {(const char *)data, size};
    BUF_AUTO(pieces, 1u << 30);
    BUF_AUTO(whole, 1u << 30);
    size_t left_pieces, left_whole;
    int r;

    if (size < 2)
        return 0;
    all = (struct str){all.p + 1, all.n - 1};
    r = feed(&pieces, all, (size_t)data[0] % 32 + 1, &left_pieces);
    assert(r == 0 || r == -EFBIG);
    assert(feed(&whole, all, all.n, &left_whole) == r);
    assert(str_eq(buf_str(&pieces), buf_str(&whole)) && (r < 0 || left_pieces == left_whole));
    return 0;
}
