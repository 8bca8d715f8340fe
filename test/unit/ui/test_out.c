#include "exporter/base/buf.h"
#include "exporter/ui/out.h"

#include <errno.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_durations_in_the_unit_that_people_use),
        cmocka_unit_test(groups_digits_by_three),
        cmocka_unit_test(keeps_its_first_error),
        cmocka_unit_test(hides_credentials_in_urls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
