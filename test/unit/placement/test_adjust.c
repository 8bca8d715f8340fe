/* Adjustments: what is read, and what becomes of values. */
#include "controller/kube/list_error.h"
#include "controller/placement/adjust.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void refuses_what_is_not_an_entry(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{}", "adjustments: expected a list of at most 100 entries"},
        {"[7]", "adjustments[0]: expected an object"},
        {"[{\"scoreName\":\"*\",\"add\":1}]",
         "adjustments[0].name: expected 1 to 63 letters, digits, '-', '_' and '.'"},
        {"[{\"name\":\"a\",\"add\":1}]",
         "adjustments[0].scoreName: expected a name or a pattern with * and ?"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\"}]", "adjustments[0]: expected exactly one of add and set"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1,\"set\":1}]",
         "adjustments[0]: expected exactly one of add and set"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"set\":101}]",
         "adjustments[0].set: expected a whole number from -100 to 100"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":-201}]",
         "adjustments[0].add: expected a whole number from -200 to 200"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":0.5}]",
         "adjustments[0].add: expected a whole number from -200 to 200"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1,\"until\":\"tomorrow\"}]",
         "adjustments[0].until: expected a time such as 2026-12-01T06:00:00Z"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1,\"until\":\"2026-12-01T06:00:00\"}]",
         "adjustments[0].until: expected a time such as 2026-12-01T06:00:00Z"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1,\"until\":\"2026-12-01T06:00:00+9\"}]",
         "adjustments[0].until: expected a time such as 2026-12-01T06:00:00Z"},
        {"[{\"name\":\"a@b\",\"scoreName\":\"*\",\"add\":1}]",
         "adjustments[0].name: expected 1 to 63 letters, digits, '-', '_' and '.'"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1},{\"name\":\"\"}]",
         "adjustments[1].name: expected 1 to 63 letters, digits, '-', '_' and '.'"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct adjustments a = {0};
        BUF_AUTO(why, LIST_ERROR_BYTES);

        assert_int_equal(adjustments_parse(&a, str_of(cases[i].text), &why), -EINVAL);
        buf_putc(&why, '\0');
        assert_string_equal(why.p, cases[i].why);
        assert_null(a.list);
    }
}

#define UNTIL_10S "\"until\":\"1970-01-01T00:00:10Z\""

static void applies_entries_in_their_order(void **state)
{
    static const struct {
        const char *list;
        int64_t now_s;
        double value, want;
        const char *words;
    } cases[] = {
        {"", 1, 7, 7, ""},
        {"[]", 1, 7, 7, ""},
        {"[{\"name\":\"a\",\"scoreName\":\"c*\",\"add\":-30,\"reason\":\"new kernel\",\"later\":1}]", 1, 7,
         -23, "\"a\" adds -30: new kernel"},
        {"[{\"name\":\"a\",\"scoreName\":\"m*\",\"add\":-30}]", 1, 7, 7, ""},
        {"[{\"name\":\"a\",\"scoreName\":\"cp?\",\"add\":5},{\"name\":\"b\",\"scoreName\":\"*\",\"set\":-100}"
         "]",
         1, 7, -100, "\"a\" adds 5; \"b\" sets -100"},
        {"[{\"name\":\"b\",\"scoreName\":\"*\",\"set\":0},{\"name\":\"a\",\"scoreName\":\"*\",\"add\":5}]", 1,
         7, 5, "\"b\" sets 0; \"a\" adds 5"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":150}]", 1, 7, 157, "\"a\" adds 150"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1," UNTIL_10S "}]", 9, 7, 8, "\"a\" adds 1"},
        {"[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1," UNTIL_10S "}]", 10, 7, 7, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(adjustments_done) struct adjustments a = {0};
        const struct adjuster by = {.all = &a, .now = {cases[i].now_s * 1000}};
        BUF_AUTO(words, 1024);
        BUF_AUTO(why, LIST_ERROR_BYTES);

        assert_int_equal(adjustments_parse(&a, str_of(cases[i].list), &why), 0);
        assert_float_equal(adjust_value(&by, "cpu", cases[i].value), cases[i].want, 0);
        adjust_put(&by, "cpu", &words);
        buf_putc(&words, '\0');
        assert_int_equal(buf_failed(&words), 0);
        assert_string_equal(words.p, cases[i].words);
    }
}

static void knows_when_the_next_entry_ends(void **state)
{
    static const char list[] =
        "[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1},"
        "{\"name\":\"b\",\"scoreName\":\"*\",\"add\":1,\"until\":\"1970-01-01T00:00:20Z\"},"
        "{\"name\":\"c\",\"scoreName\":\"*\",\"add\":1," UNTIL_10S "}]";
    CLEANUP(adjustments_done) struct adjustments a = {0};
    BUF_AUTO(why, LIST_ERROR_BYTES);

    (void)state;
    assert_int_equal(adjustments_parse(&a, str_of(list), &why), 0);
    assert_int_equal(adjustments_next_end(&a, (unix_ms){1000}).ms, 10000);
    assert_int_equal(adjustments_next_end(&a, (unix_ms){10000}).ms, 20000);
    assert_int_equal(adjustments_next_end(&a, (unix_ms){20000}).ms, 0);
}

/* As the CRD takes them: RFC 3339. */
static void reads_times_with_their_zone(void **state)
{
    static const struct {
        const char *until;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:10Z", 10000},      {"1970-01-01t00:00:10z", 10000},
        {"1970-01-01T00:00:10.999Z", 10000},  {"1970-01-01T09:00:10+09:00", 10000},
        {"1969-12-31T19:00:10-05:00", 10000}, {"1970-01-01T00:30:10.5+00:30", 10000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(adjustments_done) struct adjustments a = {0};
        BUF_AUTO(list, 256);
        BUF_AUTO(why, LIST_ERROR_BYTES);

        buf_printf(&list, "[{\"name\":\"a\",\"scoreName\":\"*\",\"add\":1,\"until\":\"%s\"}]",
                   cases[i].until);
        assert_int_equal(adjustments_parse(&a, buf_str(&list), &why), 0);
        assert_int_equal(a.list[0].until.ms, cases[i].ms);
    }
}

/* The first of them, and how many more; what applies is told apart all the same. */
static void says_no_more_than_fits(void **state)
{
    CLEANUP(adjustments_done) struct adjustments a = {0}, other = {0};
    const struct adjuster by = {.all = &a}, by_other = {.all = &other};
    BUF_AUTO(list, 1 << 20);
    BUF_AUTO(words, 1 << 20);
    BUF_AUTO(why, LIST_ERROR_BYTES);

    (void)state;
    for (int i = 0; i < ADJUST_MAX; i++) {
        buf_printf(&list, "%s{\"name\":\"n%d\",\"scoreName\":\"*\",\"add\":1,\"reason\":\"", i ? "," : "[",
                   i);
        for (int k = 0; k < 256; k++)
            buf_putc(&list, 'x');
        buf_puts(&list, "\"}");
    }
    buf_puts(&list, "]");
    assert_int_equal(adjustments_parse(&a, buf_str(&list), &why), 0);
    *(char *)memrchr(list.p, '1', list.n) = '2'; /* add of the last one */
    assert_int_equal(adjustments_parse(&other, buf_str(&list), &why), 0);
    adjust_put(&by, "cpu", &words);
    assert_int_equal(buf_failed(&words), 0);
    assert_true(words.n < ADJUST_TEXT_BYTES);
    assert_memory_equal(words.p + words.n - 5, " more", 5);
    assert_true(adjust_hash(&by, "cpu") != adjust_hash(&by_other, "cpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_not_an_entry),   cmocka_unit_test(applies_entries_in_their_order),
        cmocka_unit_test(knows_when_the_next_entry_ends), cmocka_unit_test(reads_times_with_their_zone),
        cmocka_unit_test(says_no_more_than_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
