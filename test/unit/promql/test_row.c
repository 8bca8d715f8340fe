#include "exporter/base/buf.h"
#include "exporter/promql/function.h"
#include "exporter/promql/row.h"
#include "test/oom.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The second column is what Prometheus 3 writes. */
static void writes_values_as_prometheus_does(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {1e-5, "0.00001"},
        {9.999e-6, "0.000009999"},
        {-1.25e-6, "-0.00000125"},
        {1e-6, "0.000001"},
        {9.99e-7, "9.99e-07"},
        {-5e-324, "-5e-324"},
        {1e-10, "1e-10"},
        {123456789.125, "123456789.125"},
        {1e17, "100000000000000000"},
        {-1.2345e20, "-123450000000000000000"},
        {9007199254740992, "9007199254740992"},
        {123456789012345680., "123456789012345680"},
        {999999999999999868928., "999999999999999900000"},
        {1e21, "1e+21"},
        {-1.7976931348623157e308, "-1.7976931348623157e+308"},
        {NAN, "NaN"},
        {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[ROW_VALUE_MAX + 1];
        size_t n = row_value(cases[i].v, text);

        text[n] = '\0';
        assert_string_equal(text, cases[i].text);
    }
}

static const struct tsdb_label labels[] = {{STR("__name__"), STR("m")}, {STR("a"), STR("x\"\n\xe2\x82\xac")}};

static void writes_points_with_milliseconds(void **state)
{
    double values[] = {value_absent(), 1, value_absent(), NAN, value_absent()}, none = value_absent();
    struct row rows[] = {{labels, 2, values}, {labels, 0, &none}, {NULL, 0, values}};
    struct row_points p;
    BUF_AUTO(out, 4096);

    (void)state;
    assert_int_equal(row_points_init(&p, 5, -500, 1005), 0);
    assert_int_equal(row_write(&rows[0], &p, &out), 1);
    assert_int_equal(row_write(&rows[2], &p, &out), 1);
    assert_true(str_eq(buf_str(&out),
                       STR("{\"metric\":{\"__name__\":\"m\",\"a\":\"x\\\"\\n\xe2\x82\xac\"},\"values\":"
                           "[[0.505,\"1\"],[2.515,\"NaN\"]]},"
                           "{\"metric\":{},\"values\":[[0.505,\"1\"],[2.515,\"NaN\"]]}")));
    row_points_done(&p);
    assert_int_equal(row_points_init(&p, 1, 0, 1), 0);
    assert_int_equal(row_write(&rows[1], &p, &out), 0);
    row_points_done(&p);
}

static void sorts_by_name_and_value(void **state)
{
    static const struct tsdb_label ab[] = {{STR("a"), STR("b")}, {STR("c"), STR("d")}},
                                   ac[] = {{STR("a"), STR("c")}}, b[] = {{STR("b"), STR("a")}};

    (void)state;
    assert_true(labels_compare(ab, 2, ac, 1) < 0);
    assert_true(labels_compare(ac, 1, ab, 2) > 0);
    assert_true(labels_compare(ac, 1, b, 1) < 0);
    assert_true(labels_compare(ab, 1, ab, 2) < 0);
    assert_true(labels_compare(ab, 2, ab, 1) > 0);
    assert_int_equal(labels_compare(ab, 2, ab, 2), 0);
    assert_int_equal(labels_compare(NULL, 0, NULL, 0), 0);
}

static void keeps_to_the_ceiling_and_survives_failed_allocations(void **state)
{
    double values[] = {1, 2, 3};
    struct row row = {labels, 2, values};

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct row_points p = {0};
        BUF_AUTO(out, 1024);
        BUF_AUTO(small, 100);
        int r = row_points_init(&p, 3, 0, 1);

        if (r == 0)
            r = row_write(&row, &p, &out);
        if (r == 1)
            r = row_write(&row, &p, &small);
        assert_int_equal(r, oom_happened() ? -ENOMEM : -EFBIG);
        row_points_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_values_as_prometheus_does),
        cmocka_unit_test(writes_points_with_milliseconds),
        cmocka_unit_test(sorts_by_name_and_value),
        cmocka_unit_test(keeps_to_the_ceiling_and_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
