/* The framer gives the same lines however the stream is cut into pieces. */
#include "controller/kube/lines.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct got {
    struct buf all; /* lines, each with "|" behind */
    unsigned n, stop_at;
    struct lines *free_there;
};

static int on_line(void *arg, struct str line)
{
    struct got *g = arg;

    assert_true(line.n > 0);
    if (buf_put_str(&g->all, line) < 0 || buf_putc(&g->all, '|') < 0)
        return -ENOMEM;
    if (++g->n != g->stop_at)
        return 0;
    if (g->free_there) {
        lines_done(g->free_there);
        memset(g->free_there, 0x5a, sizeof(*g->free_there));
    }
    return 7;
}

static const struct {
    const char *stream, *lines;
    size_t left;
} cases[] = {
    {"", "", 0},
    {"a", "", 1},
    {"a\n", "a|", 0},
    {"a\nb", "a|", 1},
    {"a\r\nb\n", "a|b|", 0},
    {"\n\n\r\na\n\n", "a|", 0},
    {"a\rb\n", "a\rb|", 0},
    {"12345678\n", "12345678|", 0},
    {"12345678\r\n", "12345678|", 0},
    {"1\n12345678", "1|", 8},
    {"12345678\r", "", 9},
};

static void finds_the_same_lines_however_the_stream_is_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t step = 1; step <= strlen(cases[i].stream) + 1; step++) {
            struct str rest = str_of(cases[i].stream);
            struct got g = {.all.max = 100};
            struct lines l;
            lines_init(&l, 8);
            while (rest.n) {
                size_t n = size_min(step, rest.n);
                assert_int_equal(lines_feed(&l, (struct str){rest.p, n}, on_line, &g), 0);
                rest = (struct str){rest.p + n, rest.n - n};
            }
            assert_int_equal(l.partial.n, cases[i].left);
            assert_int_equal(g.all.n, strlen(cases[i].lines));
            assert_memory_equal(cstr(g.all.p), cases[i].lines, g.all.n);
            lines_done(&l);
            buf_done(&g.all);
        }
}

static void rejects_a_line_over_the_ceiling(void **state)
{
    static const char *const long_ones[] = {"123456789\n", "123456789", "12345678\r\r\n", "1\n123456789a"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(long_ones); i++)
        for (size_t step = 1; step < 14; step++) {
            struct str rest = str_of(long_ones[i]);
            struct got g = {.all.max = 100};
            struct lines l;
            int r = 0;
            lines_init(&l, 8);
            while (rest.n && r == 0) {
                size_t n = size_min(step, rest.n);
                r = lines_feed(&l, (struct str){rest.p, n}, on_line, &g);
                rest = (struct str){rest.p + n, rest.n - n};
            }
            /* Nine bytes without an end may still be eight and a "\r". */
            if (strcmp(long_ones[i], "123456789") != 0)
                assert_int_equal(r, -EFBIG);
            assert_true(l.partial.n <= 9);
            lines_done(&l);
            buf_done(&g.all);
        }
}

static void may_be_freed_by_its_callback(void **state)
{
    (void)state;
    for (unsigned at = 1; at <= 3; at++) {
        struct got g = {.all.max = 100, .stop_at = at};
        struct lines l;
        lines_init(&l, 8);
        g.free_there = &l;
        assert_int_equal(lines_feed(&l, STR("a"), on_line, &g), 0);
        assert_int_equal(lines_feed(&l, STR("a\nb\nc\nd\n"), on_line, &g), 7);
        assert_int_equal(g.n, at);
        buf_done(&g.all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_same_lines_however_the_stream_is_split),
        cmocka_unit_test(rejects_a_line_over_the_ceiling),
        cmocka_unit_test(may_be_freed_by_its_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
