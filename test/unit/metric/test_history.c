/* What a plot of the last measurements relies on: the newest rows stay, in order, and columns keep apart. */
#include "exporter/base/clock.h"
#include "exporter/metric/history.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COLUMNS = 2 };

static void add(struct history **h, int64_t seconds)
{
    const double values[COLUMNS] = {(double)seconds, -(double)seconds};

    history_add(h, COLUMNS, (unix_ms){seconds * 1000 + 999}, values);
}

static void assert_row(const struct history *h, size_t row, int64_t seconds)
{
    assert_int_equal(history_seconds(h, row), seconds);
    assert_true(history_value(h, row, 0) == (double)seconds);
    assert_true(history_value(h, row, 1) == -(double)seconds);
}

static void begins_empty(void **state)
{
    (void)state;
    assert_int_equal(history_rows(NULL), 0);
    assert_null(history_free(NULL));
}

static void keeps_the_newest_rows_in_order(void **state)
{
    struct history *h = NULL;

    (void)state;
    for (int64_t i = 0; i < 3 * HISTORY_LENGTH; i++) {
        int64_t first = i < HISTORY_LENGTH ? 0 : i + 1 - HISTORY_LENGTH;

        add(&h, i);
        assert_int_equal(history_rows(h), i + 1 - first);
        for (int64_t k = first; k <= i; k++)
            assert_row(h, (size_t)(k - first), k);
    }
    h = history_free(h);
}

static void keeps_what_was_not_measured_apart_from_zero(void **state)
{
    struct history *h = NULL;

    (void)state;
    history_add(&h, COLUMNS, (unix_ms){0}, (const double[COLUMNS]){NAN, 0});
    assert_true(isnan(history_value(h, 0, 0)));
    assert_true(history_value(h, 0, 1) == 0);
    h = history_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_empty),
        cmocka_unit_test(keeps_the_newest_rows_in_order),
        cmocka_unit_test(keeps_what_was_not_measured_apart_from_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
