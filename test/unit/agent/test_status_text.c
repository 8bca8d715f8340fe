#include "exporter/agent/status_text.h"
#include "test/unit/agent/status_world.h"

#include <math.h>

/* ---- Words ---- */

static void words_for_times(void **state)
{
    static const struct {
        int64_t ago;
        const char *want;
    } cases[] = {
        {0, "now"},
        {999, "now"},
        {-999, "now"},
        {1000, "1 s ago"},
        {59999, "59 s ago"},
        {60000, "1m ago"},
        {190000, "3m 10s ago"},
        {3600000, "1h ago"},
        {7500000, "2h 5m ago"},
        {86400000, "1d ago"},
        {4 * 86400000LL + 3 * 3600000, "4d 3h ago"},
        {-12000, "in 12 s"},
        {NOW - 1, "20778d 6h ago"},
    };
    char out[STATUS_WORD];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        status_when(NOW, NOW - cases[i].ago, out);
        assert_string_equal(out, cases[i].want);
    }
    status_when(NOW, 0, out);
    assert_string_equal(out, "never");
    status_duration(-5, out);
    assert_string_equal(out, "0 s");
    status_when(INT64_MAX, 1, out);
    status_when(1, INT64_MAX, out);
}

static void words_for_amounts(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } seconds[] = {{0, "0.00 ms"},   {0.00042, "0.42 ms"}, {0.0031, "3.1 ms"},         {0.0099999, "10 ms"},
                   {0.085, "85 ms"}, {0.9996, "1 s"},      {1.25, "1.25 s"},           {59.94, "59.9 s"},
                   {60, "1m"},       {125.7, "2m 5s"},     {1e300, "106751991167d 7h"}};
    static const struct {
        uint64_t n;
        const char *bytes, *count;
    } amounts[] = {{0, "0 B", "0"},
                   {1023, "1023 B", "1,023"},
                   {1024, "1 KiB", "1,024"},
                   {1536, "1.5 KiB", "1,536"},
                   {1048575, "1 MiB", "1,048,575"},
                   {256u << 20, "256 MiB", "268,435,456"},
                   {UINT64_MAX, "16 EiB", "18,446,744,073,709,551,615"}};
    char out[STATUS_WORD];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
        status_seconds(seconds[i].seconds, out);
        assert_string_equal(out, seconds[i].want);
    }
    for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
        status_bytes(amounts[i].n, out);
        assert_string_equal(out, amounts[i].bytes);
        status_count(amounts[i].n, out);
        assert_string_equal(out, amounts[i].count);
    }
}

static void each_error_has_a_hint(void **state)
{
    (void)state;
    for (enum round_error e = ROUND_OK; e < ROUND_ERRORS; e++) {
        assert_non_null(status_hint(e, STAGE_SOURCE));
        assert_true(*status_hint(e, STAGE_SCORING));
    }
}

/* ---- Ranking ---- */

static void ranks_scores(void **state)
{
    const double values[] = {3, NAN, -INFINITY, 3, INFINITY, -0.0, 0, NAN};
    CLEANUP(cleanup_batch_unref) struct batch *b = make_batch(NULL, values, ARRAY_SIZE(values));
    const size_t high[] = {4, 0, 3, 5}, low[] = {2, 5, 6, 0};
    struct ranking r;

    (void)state;
    status_rank(b, 4, &r);
    assert_int_equal(r.numbers, 6);
    assert_int_equal(r.nans, 2);
    assert_int_equal(r.n, 4);
    assert_memory_equal(r.highest, high, sizeof(high));
    assert_memory_equal(r.lowest, low, sizeof(low));
    status_rank(NULL, 4, &r);
    assert_int_equal(r.numbers + r.nans + r.n, 0);
}

static void ranks_many_scores(void **state)
{
    enum { N = 100000 };
    CLEANUP(cleanup_free) double *values = calloc(N, sizeof(double));
    CLEANUP(cleanup_batch_unref) struct batch *b = NULL;
    struct ranking r;

    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = (double)(i * 7919 % N); /* each value once */
    b = make_batch(NULL, values, N);
    status_rank(b, RANKED_MAX, &r);
    assert_int_equal(r.n, RANKED_MAX);
    for (size_t i = 0; i < RANKED_MAX; i++) {
        assert_true(b->values[r.highest[i]] == (double)(N - 1 - i));
        assert_true(b->values[r.lowest[i]] == (double)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_for_times),       cmocka_unit_test(words_for_amounts),
        cmocka_unit_test(each_error_has_a_hint), cmocka_unit_test(ranks_scores),
        cmocka_unit_test(ranks_many_scores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
