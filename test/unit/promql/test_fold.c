#include "exporter/base/def.h"
#include "exporter/promql/fold.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MAX_VALUES = 6 };

/* The second and third columns are what Prometheus gives as sum_over_time() and avg_over_time(). */
static void adds_as_prometheus_does(void **state)
{
    static const struct {
        double values[MAX_VALUES], sum, mean;
        unsigned n;
    } cases[] = {
        {{1e300, 1, -1e300}, 1, 1. / 3, 3},
        {{1, 1e100, 1, -1e100}, 2, 0.5, 4},
        {{0.1, 0.2, 0.3}, 0.6, 0.2, 3},
        {{INFINITY, 1}, INFINITY, INFINITY, 2},
        {{INFINITY, -INFINITY}, NAN, NAN, 2},
        {{1, NAN, 2}, NAN, NAN, 3},
        {{1e308, 1e308, 1e308}, INFINITY, 1e308, 3}, /* the sum overflows, the mean must not */
        {{-1e308, -1e308, 1e308, 1e308}, -INFINITY, 0, 4},
        {{5}, 5, 5, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fold sum = {0};
        struct mean mean = {.count = 0};
        double got[2], want[] = {cases[i].sum, cases[i].mean};

        for (unsigned k = 0; k < cases[i].n; k++) {
            fold_add(&sum, cases[i].values[k]);
            mean_add(&mean, cases[i].values[k]);
        }
        got[0] = fold_total(&sum);
        got[1] = mean_value(&mean);
        for (unsigned k = 0; k < 2; k++)
            if (!(got[k] == want[k] || (isnan(got[k]) && isnan(want[k]))))
                fail_msg("case %zu, %s: got %.17g, expected %.17g", i, k ? "mean" : "sum", got[k], want[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_as_prometheus_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
