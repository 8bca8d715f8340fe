#include "exporter/base/buf.h"
#include "exporter/ui/out.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void puts_durations_in_the_unit_that_people_use(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } cases[] = {{0, "0.00 ms"},       {0.00042, "0.42 ms"}, {0.0031, "3.1 ms"},
                 {0.0099999, "10 ms"}, {0.085, "85 ms"},     {0.9996, "1 s"},
                 {1.25, "1.25 s"},     {59.94, "59.9 s"},    {60, "1m"},
                 {125.7, "2m 5s"},     {3600, "1h"},         {7500, "2h 5m"},
                 {86400, "1d"},        {356400, "4d 3h"},    {1e300, "104166666666d 16h"}};
    char out[WORDS_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        words_seconds(cases[i].seconds, out);
        assert_string_equal(out, cases[i].want);
    }
}

static void groups_digits_by_three(void **state)
{
    static const struct {
        uint64_t n;
        const char *want;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {1048575, "1,048,575"},
                 {UINT64_MAX, "18,446,744,073,709,551,615"}};
    char out[WORDS_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        words_count(cases[i].n, out);
        assert_string_equal(out, cases[i].want);
    }
}

static void keeps_its_first_error(void **state)
{
    BUF_AUTO(b, 4);
    struct out o;

    (void)state;
    assert_int_equal(buf_puts(&b, "a"), 0);
    o = out_begin(&b);
    out_puts(&o, "bc");
    out_puts(&o, "defg");
    out_puts(&o, "h");
    assert_int_equal(out_end(&o), -EFBIG);
    assert_true(str_eq(buf_str(&b), STR("a")));
}

static void hides_credentials_in_urls(void **state)
{
    BUF_AUTO(b, 1000);
    struct out o = out_begin(&b);

    (void)state;
    out_url(&o, "http://user:hunter2@host/path");
    assert_int_equal(out_end(&o), 0);
    assert_true(str_eq(buf_str(&b), STR("http://host/path")));
}

/* ---- JSON ---- */

static void writes_members_and_items_with_commas(void **state)
{
    BUF_AUTO(b, 1000);
    struct out o = out_begin(&b);

    (void)state;
    out_puts(&o, "{");
    member_text(&o, "text", "a\"[{\xff");
    member_text(&o, "none", NULL);
    member_words(&o, "empty", "");
    member_bool(&o, "yes", true);
    member_count(&o, "count", UINT64_MAX);
    member_number(&o, "number", 0.5);
    member_number(&o, "infinite", -INFINITY);
    member_time(&o, "never", 0);
    member_time(&o, "at", 1795242181123);
    member_url(&o, "url", "https://me:hunter2@h/x");
    member_object(&o, "object");
    out_puts(&o, "}");
    member_list(&o, "list");
    for (int i = 0; i < 2; i++) {
        member_item(&o);
        value_number(&o, i);
    }
    out_puts(&o, "]}");
    assert_int_equal(out_end(&o), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(
        b.p, "{\"text\":\"a\\\"[{\xef\xbf\xbd\",\"none\":null,\"empty\":null,\"yes\":true,"
             "\"count\":18446744073709551615,\"number\":0.5,\"infinite\":\"-Inf\",\"never\":null,"
             "\"at\":\"2026-11-21T06:23:01.123Z\",\"url\":\"https://h/x\",\"object\":{},\"list\":[0,1]}");
}

/* ---- Problems ---- */

static void lists_problems_by_line(void **state)
{
    static const struct {
        const char *problems, *json;
    } cases[] = {
        {NULL, "\"problems\":[]"},
        {"", "\"problems\":[]"},
        {"one\ntwo \"2\"\n", "\"problems\":[\"one\",\"two \\\"2\\\"\"]"},
        {"one\n\nlast", "\"problems\":[\"one\",\"last\"]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        BUF_AUTO(b, 1000);
        struct out o = out_begin(&b);
        member_problems(&o, cases[i].problems);
        assert_int_equal(out_end(&o), 0);
        assert_true(str_eq(buf_str(&b), str_of(cases[i].json)));
    }
}

/* What a file gives is in test/scenarios/test_web_config.py. */
static void writes_null_without_a_file(void **state)
{
    BUF_AUTO(b, 1000);
    struct out o = out_begin(&b);

    (void)state;
    member_web_config(&o, NULL);
    assert_int_equal(out_end(&o), 0);
    assert_true(str_eq(buf_str(&b), STR("\"webConfig\":null")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_null_without_a_file),
        cmocka_unit_test(puts_durations_in_the_unit_that_people_use),
        cmocka_unit_test(groups_digits_by_three),
        cmocka_unit_test(keeps_its_first_error),
        cmocka_unit_test(hides_credentials_in_urls),
        cmocka_unit_test(writes_members_and_items_with_commas),
        cmocka_unit_test(lists_problems_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
