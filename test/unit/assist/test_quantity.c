/* Kubernetes' quantities in thousandths. */

#include "controller/assist/quantity.h"
#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void reads_every_form(void **state)
{
    static const struct {
        const char *text;
        int64_t expected;
    } cases[] = {
        {"2", 2000},
        {"0", 0},
        {"500m", 500},
        {"1.5", 1500},
        {"2Ki", 2048000},
        {"+1", 1000},
        {"1e3", 1000000},
        {"1E-1", 100},
        {"0.0001", 1},
        {"1n", 1},
        {".5", 500},
        {"5.", 5000},
        {"1.0005", 1001},
        {"48Gi", 51539607552000},
        {"1k", 1000000},
        {"1M", 1000000000},
        {"1e12", QUANTITY_MAX},
        {"0.5Ki", 512000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t v = -1;

        if (!quantity_parse(cases[i].text, &v) || v != cases[i].expected)
            fail_msg("%s: %lld", cases[i].text, (long long)v);
    }
}

static void refuses_what_is_no_amount(void **state)
{
    static const char *const cases[] = {"",
                                        "-1",
                                        "x",
                                        "1x",
                                        "1 ",
                                        "1.2.3",
                                        "e3",
                                        "1e",
                                        ".",
                                        "m",
                                        "1ki",
                                        "1e99",
                                        "2e12",
                                        "1EKi",
                                        "8Ei",
                                        "1Pi",
                                        "1234567890123456789",
                                        "0x10",
                                        "inf",
                                        "nan",
                                        "1e3k"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t v = 7;

        if (quantity_parse(cases[i], &v) || v != 7)
            fail_msg("%s: %lld", cases[i], (long long)v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_form),
        cmocka_unit_test(refuses_what_is_no_amount),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
