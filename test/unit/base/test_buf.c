#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/spare.h"
#include "test/unit/base/last_line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_holds(const struct buf *b, struct str want)
{
    assert_int_equal(b->n, want.n);
    if (want.n)
        assert_memory_equal(b->p, want.p, want.n);
    assert_true(b->cap >= b->n && b->n <= b->max);
}

static void grows_to_its_ceiling_and_no_further(void **state)
{
    BUF_AUTO(b, 1000);

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_putc(&b, (char)('a' + i % 26));
    assert_int_equal(buf_failed(&b), 0);
    buf_putc(&b, 'x');
    assert_int_equal(buf_failed(&b), -EFBIG);
    assert_int_equal(b.n, 1000);
    assert_int_equal(b.cap, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(b.p[i], 'a' + i % 26);
}

static void remembers_that_an_append_failed(void **state)
{
    BUF_AUTO(b, 6);
    char *to = NULL;

    (void)state;
    buf_puts(&b, "abc");
    assert_int_equal(buf_failed(&b), 0);
    buf_puts(&b, "1234");
    assert_int_equal(buf_failed(&b), -EFBIG);
    buf_putc(&b, 'd'); /* would fit, but after a hole */
    buf_printf(&b, "%d", 1);
    assert_int_equal(buf_reserve(&b, 1, &to), -EFBIG);
    assert_holds(&b, STR("abc"));
    buf_truncate(&b, 2);
    assert_int_equal(buf_failed(&b), -EFBIG);
    assert_holds(&b, STR("ab"));
    buf_clear(&b);
    assert_int_equal(buf_failed(&b), 0);
    buf_puts(&b, "abcdef");
    assert_int_equal(buf_failed(&b), 0);
    assert_holds(&b, STR("abcdef"));
}

static void goes_back_to_a_mark(void **state)
{
    BUF_AUTO(b, 4);
    struct buf_mark before, after;

    (void)state;
    buf_puts(&b, "ab");
    before = buf_mark(&b);
    buf_puts(&b, "cde");
    after = buf_mark(&b); /* the same place, but a failure is before it */
    buf_rollback(&b, after);
    assert_int_equal(buf_failed(&b), -EFBIG);
    buf_rollback(&b, before);
    assert_int_equal(buf_failed(&b), 0);
    buf_puts(&b, "cd");
    assert_holds(&b, STR("abcd"));
    buf_rollback(&b, before);
    assert_holds(&b, STR("ab"));
}

static void keeps_what_is_whole_or_what_was_before(void **state)
{
    BUF_AUTO(b, 4);
    struct buf_mark mark;

    (void)state;
    buf_puts(&b, "ab");
    mark = buf_mark(&b);
    buf_puts(&b, "c");
    buf_puts(&b, "de");
    assert_int_equal(buf_commit(&b, mark), -EFBIG);
    assert_int_equal(buf_failed(&b), 0);
    assert_holds(&b, STR("ab"));
    buf_puts(&b, "cd");
    assert_int_equal(buf_commit(&b, mark), 0);
    assert_holds(&b, STR("abcd"));
}

/* Reserving is an attempt: what fails there has put nothing. */
static void forgets_that_a_reservation_failed(void **state)
{
    BUF_AUTO(b, 4);
    char *to = NULL;

    (void)state;
    assert_int_equal(buf_reserve(&b, 5, &to), -EFBIG);
    assert_int_equal(buf_failed(&b), 0);
    buf_puts(&b, "abcd");
    assert_holds(&b, STR("abcd"));
}

/* Sums that wrap around must not look small. */
static void refuses_sizes_that_overflow(void **state)
{
    BUF_AUTO(b, SIZE_MAX);
    BUF_AUTO(small, 10);
    char *to = NULL;

    (void)state;
    buf_puts(&b, "abc");
    assert_int_equal(buf_failed(&b), 0);
    assert_int_equal(buf_reserve(&b, SIZE_MAX, &to), -EFBIG);
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 2, &to), -EFBIG);
    assert_int_equal(buf_reserve(&small, SIZE_MAX, &to), -EFBIG);
    buf_put(&small, "", SIZE_MAX - 3);
    assert_int_equal(buf_failed(&small), -EFBIG);
    assert_null(to);
    assert_holds(&b, STR("abc"));
}

static void takes_nothing(void **state)
{
    BUF_AUTO(b, 0);
    char *to = NULL;

    (void)state;
    buf_put(&b, NULL, 0);
    buf_puts(&b, "");
    buf_put_str(&b, (struct str){NULL, 0});
    buf_printf(&b, "%s", "");
    assert_int_equal(buf_failed(&b), 0);
    assert_int_equal(buf_reserve(&b, 0, &to), 0);
    buf_putc(&b, 'x');
    assert_int_equal(buf_failed(&b), -EFBIG);
    assert_holds(&b, STR(""));
    buf_shrink(&b);
    buf_done(&b);
    buf_done(&b);
}

/* Around the size of printf's own room on the stack. */
static void prints_any_length(void **state)
{
    static const int lengths[] = {0, 1, 254, 255, 256, 257, 5000};
    static char text[5001];

    (void)state;
    memset(text, 'y', sizeof(text) - 1);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        BUF_AUTO(b, 2 + (size_t)lengths[i]);
        buf_puts(&b, "<");
        buf_printf(&b, "%.*s>", lengths[i], text);
        assert_int_equal(buf_failed(&b), 0);
        assert_int_equal(b.n, 2 + lengths[i]);
        assert_true(b.p[0] == '<' && b.p[b.n - 1] == '>');
        buf_printf(&b, "%.*s>", lengths[i], text);
        assert_int_equal(buf_failed(&b), -EFBIG);
        assert_int_equal(b.n, 2 + lengths[i]);
    }
}

static void moves_out_what_it_holds(void **state)
{
    BUF_AUTO(b, 100);

    (void)state;
    buf_puts(&b, "abc");
    assert_int_equal(buf_failed(&b), 0);
    struct buf taken = buf_take(&b);
    assert_holds(&taken, STR("abc"));
    assert_holds(&b, STR(""));
    assert_null(b.p);
    assert_int_equal(b.max, 100);
    buf_puts(&b, "next");
    assert_int_equal(buf_failed(&b), 0);
    assert_holds(&b, STR("next"));
    buf_done(&taken);
    assert_int_equal(taken.max, 100);
}

static void takes_a_failure_unasked(void)
{
    BUF_AUTO(b, 4);
    struct buf taken;

    buf_puts(&b, "ab");
    buf_puts(&b, "cde");
    taken = buf_take(&b);
    buf_done(&taken);
}

/* Whoever writes for another does not ask for it. */
static void is_not_asked_by_what_escapes(void **state)
{
    BUF_AUTO(json, 4);
    BUF_AUTO(url, 4);

    (void)state;
    buf_put_json(&json, STR("a\nb\nc"));
    buf_put_url(&url, STR("a b c"));
    assert_false(json.asked);
    assert_false(url.asked);
    assert_int_equal(buf_failed(&json), -EFBIG);
    assert_int_equal(buf_failed(&url), -EFBIG);
}

/* Bytes with a hole are for those only who know it. */
static void must_be_asked_before_a_failure_is_taken(void **state)
{
    BUF_AUTO(b, 4);
    struct buf taken;
    char line[1024];

    (void)state;
    last_line_of(takes_a_failure_unasked, line, sizeof(line));
    assert_non_null(strstr(line, "invariant failed: !b->error || b->asked"));
    buf_puts(&b, "ab");
    buf_puts(&b, "cde");
    assert_int_equal(buf_failed(&b), -EFBIG);
    taken = buf_take(&b);
    assert_holds(&taken, STR("ab"));
    buf_done(&taken);
}

static void expects_what_may_not_fit(void **state)
{
    BUF_AUTO(b, 100);

    (void)state;
    buf_expect(&b, 80);
    assert_true(b.cap >= 80 && b.n == 0);
    buf_expect(&b, 101);
    assert_int_equal(buf_failed(&b), 0);
}

static void gives_memory_back(void **state)
{
    BUF_AUTO(b, 1000);

    (void)state;
    buf_shrink(&b);
    buf_puts(&b, "abc");
    assert_int_equal(buf_failed(&b), 0);
    assert_true(b.cap > 3);
    buf_shrink(&b);
    assert_int_equal(b.cap, 3);
    assert_holds(&b, STR("abc"));
    buf_puts(&b, "d");
    assert_int_equal(buf_failed(&b), 0);
    buf_clear(&b);
    buf_shrink(&b);
    assert_null(b.p);
    assert_int_equal(b.cap, 0);
}

/* Appending a million bytes one at a time must not copy them all each time. */
/* ---- Pages ---- */

long __real_sysconf(int name);
long __wrap_sysconf(int name);
int __wrap_madvise(void *p, size_t n, int advice);

static size_t page_bytes;         /* as the kernel has them, if not 0 */
static unsigned advised, refused; /* calls of madvise() */

long __wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE && page_bytes ? (long)page_bytes : __real_sysconf(name);
}

/* The kernel refuses what does not begin with a page. */
int __wrap_madvise(void *p, size_t n, int advice)
{
    (void)n, (void)advice;
    if (page_bytes && (uintptr_t)p % page_bytes)
        refused++;
    else
        advised++;
    return 0;
}

static void advises_the_kernel_on_its_pages(void **state)
{
    static const size_t sizes[] = {4 << 10, 16 << 10, 64 << 10};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        BUF_AUTO(b, 64 << 20);
        char *to;

        page_bytes = sizes[i];
        advised = refused = 0;
        assert_int_equal(buf_reserve(&b, 8 << 20, &to), 0); /* large pages */
        b.n = 8 << 20;
        buf_keep(&b); /* free until it is used again */
        spare_trim();
        assert_int_equal(advised, 2);
        assert_int_equal(refused, 0);
    }
    page_bytes = 0;
}

static void grows_by_a_share_of_its_size(void **state)
{
    BUF_AUTO(b, 10u << 20);
    size_t moves = 0;

    (void)state;
    for (size_t i = 0, cap = 0; i < 1000000; i++) {
        buf_putc(&b, 'x');
        assert_int_equal(buf_failed(&b), 0);
        moves += b.cap != cap;
        cap = b.cap;
    }
    assert_in_range(moves, 1, 40);
}

static size_t room_after_keeping(size_t kept, size_t wanted, size_t max)
{
    BUF_AUTO(first, SIZE_MAX);
    BUF_AUTO(next, max);
    char *p;

    assert_int_equal(buf_reserve(&first, kept, &p), 0);
    memset(p, 'x', kept);
    buf_keep(&first);
    assert_int_equal(first.cap, 0);
    assert_int_equal(buf_reserve(&next, wanted, &p), 0);
    memset(p, 'y', wanted); /* all of it is there */
    for (int i = 0; i < 5; i++)
        spare_trim();
    return next.cap;
}

/* The room of a large buffer, which the next one of about this size finds in the spare block. */
static size_t with_slack(size_t n)
{
    return n + n / 32;
}

static void keeps_large_memory_for_buffers_of_that_size(void **state)
{
    enum { MB = 1 << 20 };

    (void)state;
    assert_int_equal(room_after_keeping(8 * MB, 5 * MB, SIZE_MAX), with_slack(8 * MB));
    assert_int_equal(room_after_keeping(8 * MB, 8 * MB, SIZE_MAX), with_slack(8 * MB));
    assert_int_equal(room_after_keeping(8 * MB, 8 * MB + 100, SIZE_MAX), with_slack(8 * MB));
    assert_int_equal(room_after_keeping(8 * MB, 9 * MB, SIZE_MAX), with_slack(9 * MB));
    assert_int_equal(room_after_keeping(8 * MB, 3 * MB, SIZE_MAX), with_slack(3 * MB)); /* much waste */
    assert_int_equal(room_after_keeping(8 * MB, 5 * MB, 7 * MB), with_slack(5 * MB));   /* its ceiling */
    assert_int_equal(room_after_keeping(8 * MB, 7 * MB, 7 * MB), 7 * MB);
    assert_int_equal(room_after_keeping(MB / 2, MB / 4, SIZE_MAX), MB / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_its_ceiling_and_no_further),
        cmocka_unit_test(remembers_that_an_append_failed),
        cmocka_unit_test(goes_back_to_a_mark),
        cmocka_unit_test(forgets_that_a_reservation_failed),
        cmocka_unit_test(refuses_sizes_that_overflow),
        cmocka_unit_test(takes_nothing),
        cmocka_unit_test(prints_any_length),
        cmocka_unit_test(moves_out_what_it_holds),
        cmocka_unit_test(keeps_what_is_whole_or_what_was_before),
        cmocka_unit_test(must_be_asked_before_a_failure_is_taken),
        cmocka_unit_test(is_not_asked_by_what_escapes),
        cmocka_unit_test(expects_what_may_not_fit),
        cmocka_unit_test(gives_memory_back),
        cmocka_unit_test(keeps_large_memory_for_buffers_of_that_size),
        cmocka_unit_test(grows_by_a_share_of_its_size),
        cmocka_unit_test(advises_the_kernel_on_its_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
