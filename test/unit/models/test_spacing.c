#include "exporter/models/model.h"
#include "exporter/models/request.h"
#include "exporter/models/spacing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MIN_SAMPLES = 4, MAX_SAMPLES = 16 };

struct case_of {
    const char *name;
    double times[MAX_SAMPLES], values[MAX_SAMPLES]; /* up to the first time of 0 */
    double want[2 * MAX_SAMPLES];                   /* up to the first 0 */
    double last, step;
    enum left_out why; /* where there is nothing wanted */
};

static const struct case_of cases[] = {
    {"even", {30, 60, 90, 120}, {1, 2, 3, 4}, {1, 2, 3, 4}, 120, 30, 0},
    {"nearly even", {30, 60.2, 90.1, 120}, {1, 2, 3, 4}, {1, 2, 3, 4}, 120, 29.9, 0},
    {"two missing", {10, 20, 50, 60, 70}, {1, 2, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}, 70, 10, 0},
    {"NaN within", {1, 2, 3, 4, 5}, {1, NAN, 3, 4, 5}, {1, 2, 3, 4, 5}, 5, 1, 0},
    {"infinite", {1, 2, 3, 4, 5, 6}, {1, 2, INFINITY, 4, -INFINITY, 6}, {1, 2, 3, 4, 5, 6}, 6, 1, 0},
    {"NaN at both ends", {1, 2, 3, 4, 5, 6}, {NAN, 2, 3, 4, 5, NAN}, {2, 3, 4, 5}, 5, 1, 0},
    {"long gap first", {1, 2, 20, 21, 22, 23}, {9, 9, 1, 2, 3, 4}, {1, 2, 3, 4}, 23, 1, 0},
    {"huge values", {1, 2, 4, 5}, {1e308, 1e308, -1e308, 1e308}, {1e308, 1e308, 0, -1e308, 1e308}, 5, 1, 0},
    {"none", {0}, {0}, {0}, 0, 0, LEFT_OUT_SHORT},
    {"short", {1, 2, 3}, {1, 2, 3}, {0}, 0, 0, LEFT_OUT_SHORT},
    {"long gap late", {1, 2, 3, 4, 5, 30, 31}, {1, 2, 3, 4, 5, 6, 7}, {0}, 0, 0, LEFT_OUT_GAPPY},
    {"mostly missing", {1, 2, 6, 11, 16, 20}, {1, 1, 1, 1, 1, 1}, {0}, 0, 0, LEFT_OUT_GAPPY},
    {"one in a million", {1, 2, 1e9, 1e9 + 1, 1e18}, {1, 1, 1, 1, 1}, {0}, 0, 0, LEFT_OUT_GAPPY},
    {"mostly NaN", {1, 2, 3, 4, 5}, {1, NAN, NAN, 1, 1}, {0}, 0, 0, LEFT_OUT_GAPPY},
    {"only NaN", {1, 2, 3, 4}, {NAN, NAN, NAN, NAN}, {0}, 0, 0, LEFT_OUT_NOT_FINITE},
    {"a time twice", {1, 2, 2, 3}, {1, 2, 3, 4}, {0}, 0, 0, LEFT_OUT_DISORDERED},
    {"backwards", {4, 3, 2, 1}, {1, 2, 3, 4}, {0}, 0, 0, LEFT_OUT_DISORDERED},
};

/* One case, with values at the last place exactly where `out` ends. */
static void check_case(const struct case_of *c)
{
    struct input_series in = {.times = c->times, .values = c->values};
    struct spacing got = {0};
    enum left_out why = LEFT_OUTS;
    size_t n = 0;
    double *out;
    bool usable;

    while (in.n < MAX_SAMPLES && c->times[in.n] != 0)
        in.n++;
    out = malloc(2 * in.n * sizeof(*out) + 1);
    assert_non_null(out);
    usable = space_evenly(&in, MIN_SAMPLES, out, &got, &why);
    if (usable != (c->step > 0) || (!usable && why != c->why))
        fail_msg("%s: %d, why %d", c->name, usable, (int)why);
    for (; usable && n < got.n; n++)
        if (fabs(out[n] - c->want[n]) > 1e-9)
            fail_msg("%s: value %zu is %g", c->name, n, out[n]);
    if (usable && (c->want[n] != 0 || fabs(got.last - c->last) > 1e-9 || fabs(got.step - c->step) > 1e-9))
        fail_msg("%s: %zu values to %g at step %g", c->name, got.n, got.last, got.step);
    free(out);
}

static void fills_short_gaps_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_short_gaps_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
