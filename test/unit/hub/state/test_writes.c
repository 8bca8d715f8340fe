#include "controller/hub/state/writes.h"
#include "exporter/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static int64_t note(struct last_write *w, bool same, int64_t at_ms)
{
    return last_write_note(w, same, (mono_ms){at_ms}, "Kind", "name");
}

static void counts_a_repeated_write_as_undone(void **state)
{
    struct last_write w = {0};

    (void)state;
    assert_int_equal(note(&w, true, MINUTE), -1);
    assert_true(note(&w, true, 2 * MINUTE) > 0);
    assert_int_equal(w.undone, 1);
    assert_int_equal(note(&w, false, 3 * MINUTE), -1);
    assert_int_equal(w.undone, 0);
}

static void forgets_after_ten_minutes(void **state)
{
    struct last_write w = {0};

    (void)state;
    (void)note(&w, true, MINUTE);
    assert_true(note(&w, true, 2 * MINUTE) > 0);
    assert_int_equal(note(&w, true, 12 * MINUTE), -1);
    assert_int_equal(w.undone, 0);
}

static void waits_longer_each_time_up_to_a_minute(void **state)
{
    struct last_write w = {0};
    int64_t wait_ms = 0;

    (void)state;
    (void)note(&w, true, MINUTE);
    for (unsigned i = 1; i <= 20; i++) {
        wait_ms = note(&w, true, MINUTE + i);
        if (i == 1)
            assert_in_range(wait_ms, 1, SECOND);
        assert_in_range(wait_ms, 1, MINUTE + MINUTE / 2);
    }
    assert_in_range(wait_ms, MINUTE / 2, MINUTE + MINUTE / 2);
}

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
        cmocka_unit_test(counts_a_repeated_write_as_undone),
        cmocka_unit_test(forgets_after_ten_minutes),
        cmocka_unit_test(waits_longer_each_time_up_to_a_minute),
        cmocka_unit_test(finds_what_a_patch_would_change),
        cmocka_unit_test(ignores_times_or_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
