#include "exporter/base/buf.h"
#include "exporter/base/problems.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_text(const struct buf *b, const char *want)
{
    struct str got = buf_str(b);

    if (!str_eq(got, str_of(want)))
        fail_msg("got:\n%.*s\nexpected:\n%s", STR_ARG(got), want);
}

static void prints_in_order_of_place(void **state)
{
    BUF_AUTO(out, 4096);
    struct problems p;

    (void)state;
    problems_init(&p, "agent.yaml");
    problems_add(&p, PROBLEM_ERROR, 7, 3, "third");
    problems_add(&p, PROBLEM_WARNING, 2, 9, "second %d", 2);
    problems_add(&p, PROBLEM_ERROR, 2, 1, "first");
    problems_add(&p, PROBLEM_ERROR, 0, 0, "of the whole file");
    problems_add(&p, PROBLEM_WARNING, 7, 3, "a warning after the error of its place");
    assert_int_equal(p.errors, 3);
    problems_sort(&p);
    assert_int_equal(problems_print(&p, &out), 0);
    assert_text(&out, "agent.yaml: error: of the whole file\n"
                      "agent.yaml:2:1: error: first\n"
                      "agent.yaml:2:9: warning: second 2\n"
                      "agent.yaml:7:3: error: third\n"
                      "agent.yaml:7:3: warning: a warning after the error of its place\n");
    problems_done(&p);
}

static void counts_what_is_past_the_ceiling(void **state)
{
    BUF_AUTO(out, 1 << 20);
    struct problems p;

    (void)state;
    problems_init(&p, "f");
    for (unsigned i = 0; i < PROBLEMS_MAX + 5; i++)
        problems_add(&p, PROBLEM_ERROR, i + 1, 1, "x");
    assert_int_equal(p.n, PROBLEMS_MAX);
    assert_int_equal(p.errors, PROBLEMS_MAX + 5);
    assert_int_equal(p.left_out, 5);
    assert_int_equal(problems_print(&p, &out), 0);
    assert_non_null(memmem(out.p, out.n, "\nf: 5 more problems are not shown\n", 34));
    problems_done(&p);
}

static void prints_all_or_nothing(void **state)
{
    BUF_AUTO(out, 24);
    struct problems p;

    (void)state;
    problems_init(&p, "f");
    assert_int_equal(buf_puts(&out, "kept"), 0);
    problems_add(&p, PROBLEM_ERROR, 1, 1, "short");
    problems_add(&p, PROBLEM_ERROR, 2, 1, "does not fit any more");
    assert_int_equal(problems_print(&p, &out), -EFBIG);
    assert_text(&out, "kept");
    problems_done(&p);
}

static void quotes_for_people(void **state)
{
    static const struct {
        struct str text;
        const char *want;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {STR("plain"), "\"plain\""},
        {STR("h\xc3\xa9 \xe2\x82\xac"), "\"h\xc3\xa9 \xe2\x82\xac\""},
        {STR("a\nb\x1b[0m\x7f"), "\"a\\x0ab\\x1b[0m\\x7f\""},
        {STR("bad \xff\xc3 utf"), "\"bad \\xff\\xc3 utf\""},
        {STR("nul\0inside"), "\"nul\\x00inside\""},
        {STR("http://host:9090/path"), "\"http://host:9090/path\""},
        {STR("http://me:pw@host/path"), "\"http://***@host/path\""},
        {STR("http://me:p@w/d?x@host/path"), "\"http://***@host/path\""},
        {STR("http://host/path?token=pw"), "\"http://host/path...\""},
        {STR("me:pw@host"), "\"***@host\""},
        {STR("me:pw@"), "\"***@\""},
        {STR("pw@x http://host"), "\"***@x http://host\""},
        {STR("is it?"), "\"is it?\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(out, 1024);

        assert_int_equal(problem_quote(cases[i].text, &out), 0);
        assert_text(&out, cases[i].want);
    }
}

static void cuts_quotes_between_characters(void **state)
{
    char text[101];
    BUF_AUTO(out, 1024);
    BUF_AUTO(small, 40);

    (void)state;
    memset(text, 'a', 79);
    memcpy(text + 79, "\xe2\x82\xac and more", 13);
    assert_int_equal(problem_quote(str_of(text), &out), 0);
    assert_int_equal(out.n, 1 + 79 + 4);
    assert_memory_equal(out.p + 79, "a...\"", 5);
    assert_int_equal(problem_quote(str_of(text), &small), -EFBIG);
    assert_int_equal(small.n, 0);
}

static void holds_the_field_apart_from_the_message(void **state)
{
    static const struct problem at = {.kind = PROBLEM_ERROR, .missing = true, .line = 2, .column = 1};
    BUF_AUTO(out, 4096);
    struct problems p;

    (void)state;
    problems_init(&p, "f");
    problems_add_field(&p, &at, STR("a[1].b"), STR("missing: c"));
    problems_add_field(&p, &at, STR(""), STR("nothing at all"));
    problems_add(&p, PROBLEM_WARNING, 3, 1, "x: y");
    assert_true(str_eq(p.list[0].path, STR("a[1].b")) && str_eq(p.list[0].message, STR("missing: c")));
    assert_true(p.list[0].missing);
    assert_true(p.list[1].path.n == 0 && str_eq(p.list[1].message, STR("nothing at all")));
    assert_true(p.list[2].path.n == 0 && str_eq(p.list[2].message, STR("x: y")));
    assert_int_equal(problems_print(&p, &out), 0);
    assert_text(&out, "f:2:1: error: a[1].b: missing: c\n"
                      "f:2:1: error: nothing at all\n"
                      "f:3:1: warning: x: y\n");
    assert_int_equal(p.errors, 2);
    problems_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_in_order_of_place),
        cmocka_unit_test(counts_what_is_past_the_ceiling),
        cmocka_unit_test(prints_all_or_nothing),
        cmocka_unit_test(quotes_for_people),
        cmocka_unit_test(cuts_quotes_between_characters),
        cmocka_unit_test(holds_the_field_apart_from_the_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
