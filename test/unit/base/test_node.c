#include "exporter/base/buf.h"
#include "exporter/base/doc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct doc *d;
    struct problems p;
    const struct node *root;
};

static void open_doc(struct fixture *f, const char *text)
{
    *f = (struct fixture){0};
    problems_init(&f->p, "f");
    assert_int_equal(doc_parse(&f->d, str_of(text), &f->p), 0);
    f->root = f->d->root;
}

/* Compares what was said, without the place in front. */
static void close_doc(struct fixture *f, const char *want)
{
    const char *got = f->p.n ? f->p.list[0].text : "";

    if (f->p.n > 1 || strcmp(got, want) != 0)
        fail_msg("%zu problems, got:\n%s\nexpected:\n%s", f->p.n, got, want);
    doc_free(f->d);
    problems_done(&f->p);
}

static void finds_members(void **state)
{
    struct fixture f;
    int64_t v;

    (void)state;
    open_doc(&f, "a: 1\nb: null\n");
    assert_true(node_to_int(node_get(f.root, "a"), &v) && v == 1);
    assert_non_null(node_get(f.root, "b"));
    assert_null(node_given(f.root, "b"));
    assert_null(node_get(f.root, "c"));
    assert_null(node_get(node_get(f.root, "a"), "a"));
    assert_null(node_get(NULL, "a"));
    close_doc(&f, "");
}

static void reads_whole_numbers(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t v;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+7", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999", false, 0},
        {"1.0", false, 0},
        {"\"1\"", false, 0},
        {"[]", false, 0},
        {"", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;
        int64_t v = -1;

        open_doc(&f, cases[i].text);
        assert_int_equal(node_to_int(f.root, &v), cases[i].good);
        assert_true(!cases[i].good || v == cases[i].v);
        close_doc(&f, "");
    }
}

static void reads_strings(void **state)
{
    static const struct {
        const char *text, *want, *said;
    } cases[] = {
        {"k: abc", "abc", ""},
        {"k: ''", "", ""},
        {"k:", "was", ""},
        {"{}", "was", ""},
        {"k: 12", "was", "k: expected a string (put it in quotes), got 12"},
        {"k: true", "was", "k: expected a string (put it in quotes), got true"},
        {"k: [a]", "was", "k: expected a string, got a list"},
        {"k: {a: b}", "was", "k: expected a string, got an object"},
        {"k: \"a\\0b\"", "was", "k: expected a string without NUL characters, got the string \"a\\x00b\""},
        {"{\"k\":\"\\u0000\"}", "was",
         "k: expected a string without NUL characters, got the string \"\\x00\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct str s = STR("was");
        struct fixture f;

        open_doc(&f, cases[i].text);
        assert_int_equal(node_str(f.root, "k", &f.p, &s), *cases[i].said == '\0');
        assert_true(str_eq(s, str_of(cases[i].want)));
        close_doc(&f, cases[i].said);
    }
}

static void reads_bools_and_bounded_ints(void **state)
{
    struct fixture f;
    bool b = false;
    int64_t v = 5;

    (void)state;
    open_doc(&f, "t: true\nf: False\ns: 'true'\ni: 10\nlow: 9\nhigh: 21\n");
    assert_true(node_bool(f.root, "t", &f.p, &b) && b);
    assert_true(node_bool(f.root, "f", &f.p, &b) && !b);
    assert_true(node_bool(f.root, "none", &f.p, &b) && !b);
    assert_true(node_int(f.root, "none", &f.p, 10, 20, &v) && v == 5);
    assert_true(node_int(f.root, "i", &f.p, 10, 20, &v) && v == 10);
    assert_false(node_bool(f.root, "s", &f.p, &b));
    assert_string_equal(f.p.list[0].text, "s: expected true or false, got the string \"true\"");
    assert_false(node_int(f.root, "low", &f.p, 10, 20, &v));
    assert_string_equal(f.p.list[1].text, "low: expected a whole number from 10 to 20, got 9");
    assert_false(node_int(f.root, "high", &f.p, 10, 20, &v));
    assert_int_equal(f.p.list[2].line, 6);
    assert_int_equal(f.p.list[2].column, 7);
    assert_int_equal(v, 10);
    problems_done(&f.p);
    doc_free(f.d);
}

static void reads_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t want; /* 0: refused */
    } cases[] = {
        {"1024", 1024},
        {"1KiB", 1024},
        {"4 MiB", 4 << 20},
        {"1GiB", 1 << 30},
        {"5kb", 5000},
        {"2MB", 2000000},
        {"1GB", 1000000000},
        {"\"64KiB\"", 64 << 10},
        {"1023", 0},
        {"1073741825", 0},
        {"2GiB", 0},
        {"\"2048\"", 0},
        {"2048.0", 0},
        {"-1", 0},
        {"KiB", 0},
        {"1.5KiB", 0},
        {"1Ki", 0},
        {"1KiB2", 0},
        {"[1]", 0},
        {"18446744073709551616", 0},
        {"17179869184GiB", 0},
        {"18446744073709551617KiB", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(text, 64);
        struct fixture f;
        uint64_t v = 7;

        buf_printf(&text, "k: %s%c", cases[i].text, 0);
        assert_int_equal(buf_failed(&text), 0);
        open_doc(&f, text.p);
        if (node_bytes(f.root, "k", &f.p, 1 << 10, 1 << 30, &v) != (cases[i].want != 0))
            fail_msg("%s: %llu", cases[i].text, (unsigned long long)v);
        assert_int_equal(v, cases[i].want ? cases[i].want : 7);
        assert_int_equal(f.p.n, cases[i].want ? 0 : 1);
        doc_free(f.d);
        problems_done(&f.p);
    }
}

static void reads_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } cases[] = {
        {"30", 30000},
        {"1.5", 1500},
        {"0.001", 1},
        {".25", 250},
        {"2.", 2000},
        {"1.2500", 1250},
        {"30s", 30000},
        {"500ms", 500},
        {"5m", 300000},
        {"1h30m", 5400000},
        {"1d", 86400000},
        {"1w", 604800000},
        {"\"0\"", 0},
        {"0s", 0},
        {"1h1m1s1ms", 3661001},
        {"+3", 3000},
        {"-1", -1},
        {"1.0005", -1},
        {"1e3", -1},
        {"\"30\"", -1},
        {"30m1h", -1},
        {"1h1h", -1},
        {"1", 1000},
        {"5 m", -1},
        {"5min", -1},
        {"s", -1},
        {"5S", -1},
        {"8d", -1},
        {"99999999999999999999s", -1},
        {"584942417y", -1},
        {".inf", -1},
        {".nan", -1},
        {"true", -1},
        {"[1s]", -1},
        {"\"\"", -1},
        {"1h ", 3600000},
        {"1s2", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(text, 64);
        struct fixture f;
        int64_t v = 7;

        buf_printf(&text, "k: %s%c", cases[i].text, 0);
        assert_int_equal(buf_failed(&text), 0);
        open_doc(&f, text.p);
        if (node_duration(f.root, "k", &f.p, 0, 604800000, &v) != (cases[i].want >= 0))
            fail_msg("%s: %lld", cases[i].text, (long long)v);
        assert_int_equal(v, cases[i].want >= 0 ? cases[i].want : 7);
        assert_int_equal(f.p.n, cases[i].want >= 0 ? 0 : 1);
        doc_free(f.d);
        problems_done(&f.p);
    }
}

static void names_bounds_in_the_largest_unit(void **state)
{
    struct fixture f;
    uint64_t b;
    int64_t ms;

    (void)state;
    open_doc(&f, "k: x");
    assert_false(node_bytes(f.root, "k", &f.p, 100, 4ull << 30, &b));
    close_doc(
        &f,
        "k: expected a size from 100 bytes to 4GiB (a number of bytes, or like 64MiB), got the string \"x\"");
    open_doc(&f, "k: x");
    assert_false(node_duration(f.root, "k", &f.p, 0, 90000, &ms));
    close_doc(&f, "k: expected a duration from 0s to 90s (a number of seconds, or like 30s, 5m, 1h30m), "
                  "got the string \"x\"");
}

static void describes_what_is_there(void **state)
{
    static const char *const cases[][2] = {
        {"k: 12", "k: expected X, got 12"},
        {"k: 1.5", "k: expected X, got 1.5"},
        {"k: false", "k: expected X, got false"},
        {"k: ~", "k: expected X, got null"},
        {"k: ''", "k: expected X, got an empty string"},
        {"k: http://a:b@c/d", "k: expected X, got the string \"http://***@c/d\""},
        {"k: []", "k: expected X, got a list"},
        {"k: {}", "k: expected X, got an object"},
    };
    static const char *const roots[][2] = {
        {"a secret", "expected X, got a string"},
        {"123", "expected X, got a single value"},
        {"", "expected X, got nothing"},
        {"[]", "expected X, got a list"},
    };
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_doc(&f, cases[i][0]);
        node_expected(node_get(f.root, "k"), &f.p, "%s", "X");
        close_doc(&f, cases[i][1]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        open_doc(&f, roots[i][0]);
        node_expected(f.root, &f.p, "X");
        close_doc(&f, roots[i][1]);
    }
}

static void says_nothing_more_of_a_broken_value(void **state)
{
    struct fixture f;
    int64_t v;

    (void)state;
    open_doc(&f, "k: !!float 1");
    assert_int_equal(node_get(f.root, "k")->kind, NODE_BROKEN);
    assert_false(node_int(f.root, "k", &f.p, 0, 9, &v));
    close_doc(&f, "tags other than !!str and !!int are not supported");
}

static void writes_paths(void **state)
{
    struct fixture f;

    (void)state;
    open_doc(&f, "a: [0, [{b-c: {\"d e\": 1}}]]");
    node_problem(node_get(node_get(node_get(f.root, "a")->items[1]->items[0], "b-c"), "d e"), &f.p,
                 PROBLEM_ERROR, "X");
    close_doc(&f, "a[1][0].b-c[\"d e\"]: X");
    open_doc(&f, "a: 1");
    node_problem(f.root, &f.p, PROBLEM_ERROR, "X");
    close_doc(&f, "X");
    open_doc(&f, "a: 1");
    node_missing(f.root, "z", &f.p, "an X");
    close_doc(&f, "z: missing, expected an X");
}

static void offers_the_nearest_key(void **state)
{
    static const char *const known[] = {"scoreName", "scoringInterval", "sourceRange", "name", NULL};
    static const char *const cases[][2] = {
        {"name: 1", ""},
        {"scorename: 1", "scorename: unknown key, did you mean scoreName?"},
        {"scroeName: 1", "scroeName: unknown key, did you mean scoreName?"},
        {"scoringIntervalSec: 1", "scoringIntervalSec: unknown key, did you mean scoringInterval?"},
        {"nmae: 1", "nmae: unknown key, did you mean name?"},
        {"nome: 1", "nome: unknown key, did you mean name?"},
        {"range: 1", "range: unknown key, expected one of scoreName, scoringInterval, sourceRange, name"},
        {"'': 1", "[\"\"]: unknown key, expected one of scoreName, scoringInterval, sourceRange, name"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: 1",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: unknown key, expected one of "
         "scoreName, "
         "scoringInterval, sourceRange, name"},
        {"- name", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;

        open_doc(&f, cases[i][0]);
        node_only_keys(f.root, known, PROBLEM_WARNING, &f.p);
        assert_int_equal(f.p.errors, 0);
        close_doc(&f, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_members),
        cmocka_unit_test(reads_whole_numbers),
        cmocka_unit_test(reads_strings),
        cmocka_unit_test(reads_bools_and_bounded_ints),
        cmocka_unit_test(reads_sizes),
        cmocka_unit_test(reads_durations),
        cmocka_unit_test(names_bounds_in_the_largest_unit),
        cmocka_unit_test(describes_what_is_there),
        cmocka_unit_test(says_nothing_more_of_a_broken_value),
        cmocka_unit_test(writes_paths),
        cmocka_unit_test(offers_the_nearest_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
