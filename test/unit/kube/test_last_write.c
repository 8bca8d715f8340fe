#include "controller/kube/last_write.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_a_repeated_write_as_undone),
        cmocka_unit_test(forgets_after_ten_minutes),
        cmocka_unit_test(waits_longer_each_time_up_to_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
