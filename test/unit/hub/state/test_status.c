#include "controller/hub/state/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool compare(bool (*f)(const json_t *, const json_t *), const char *a, const char *b)
{
    json_auto_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);

    assert_true(x && y);
    return f(x, y);
}

static void finds_what_a_patch_would_change(void **state)
{
    static const struct {
        const char *status, *patch;
        bool changes;
    } cases[] = {
        {"{}", "{}", false},
        {"{\"a\":1}", "{\"a\":1}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
        {"{\"a\":1}", "{\"a\":2}", true},
        {"{\"a\":1}", "{\"b\":null}", false},
        {"{\"a\":1}", "{\"a\":null}", true},
        {"{}", "{\"a\":1}", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (compare(status_would_change, cases[i].status, cases[i].patch) != cases[i].changes)
            fail_msg("%s with %s", cases[i].status, cases[i].patch);
}

#define CONDITION(message, time) \
    "\"conditions\":[{\"type\":\"Ready\",\"message\":\"" message "\",\"lastTransitionTime\":\"" time "\"}]"

static void ignores_times_or_counts(void **state)
{
    static const struct {
        const char *a, *b;
        bool but_times, but_counts;
    } cases[] = {
        {"{\"s\":1," CONDITION("m", "t") "}", "{\"s\":1," CONDITION("m", "t") "}", true, true},
        {"{" CONDITION("m", "t") "}", "{" CONDITION("m", "u") "}", true, false},
        {"{" CONDITION("m", "t") "}", "{" CONDITION("n", "t") "}", false, true},
        {"{\"clusters\":1}", "{\"clusters\":2,\"failingClusters\":[]}", false, true},
        {"{\"s\":1}", "{\"s\":2}", false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(compare(status_equal_but_times, cases[i].a, cases[i].b), cases[i].but_times);
        assert_int_equal(compare(status_equal_but_counts, cases[i].a, cases[i].b), cases[i].but_counts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_patch_would_change),
        cmocka_unit_test(ignores_times_or_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
