#include "exporter/tsdb/tsdb.h"

#include "test/oom.h"
#include "test/unit/tsdb/store.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PLENTY (UINT64_C(1) << 30)

static void has_a_word_for_each_result(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TSDB_RESULTS; i++)
        assert_string_not_equal(tsdb_result_word((enum tsdb_result)i), "unknown");
}

static void gives_equal_labels_the_same_series(void **state)
{
    struct tsdb *t = store_new(PLENTY, 10);
    uint64_t a, b, c;

    (void)state;
    assert_int_equal(store_ref(t, "__name__=m;job=x", &a), TSDB_OK);
    assert_int_equal(store_ref(t, "__name__=m;job=x", &b), TSDB_OK);
    assert_int_equal(store_ref(t, "__name__=m;job=y", &c), TSDB_OK);
    assert_true(a != 0 && a == b && a != c);
    assert_int_equal(store_stats(t).series, 2);
    (void)tsdb_free(t);
}

static void rejects_labels_that_are_not_sorted_unique_and_short(void **state)
{
    static char big[TSDB_MAX_LABEL_BYTES];
    static struct tsdb_label many[TSDB_MAX_LABELS + 1];
    static char names[TSDB_MAX_LABELS + 1][4];
    static const char *const bad[] = {"", "b=1;a=2", "a=1;a=2", "=1", "a=", "a=1;b="};
    struct tsdb *t = store_new(PLENTY, 10);
    uint64_t ref;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(store_ref(t, bad[i], &ref), TSDB_BAD_LABELS);
    for (unsigned i = 0; i <= TSDB_MAX_LABELS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%03u", i);
        many[i] = (struct tsdb_label){str_of(names[i]), STR("x")};
    }
    assert_int_equal(tsdb_ref(t, many, TSDB_MAX_LABELS, &ref), TSDB_OK);
    assert_int_equal(tsdb_ref(t, many, TSDB_MAX_LABELS + 1, &ref), TSDB_BAD_LABELS);
    memset(big, 'x', sizeof(big));
    assert_int_equal(tsdb_ref(t, &(struct tsdb_label){STR("a"), {big, sizeof(big) - 1}}, 1, &ref), TSDB_OK);
    assert_int_equal(tsdb_ref(t, &(struct tsdb_label){STR("ab"), {big, sizeof(big) - 1}}, 1, &ref),
                     TSDB_BAD_LABELS);
    (void)tsdb_free(t);
}

static void counts_samples_that_it_rejects_by_reason(void **state)
{
    struct tsdb *t = store_new(PLENTY, 10);
    uint64_t ref = store_put(t, "__name__=m", NOW, 1);
    struct tsdb_stats stats;

    (void)state;
    assert_int_equal(store_append(t, ref, NOW, 1), TSDB_OK);
    assert_int_equal(store_append(t, ref, NOW, 2), TSDB_DUPLICATE);
    assert_int_equal(store_append(t, ref, NOW, -1), TSDB_DUPLICATE);
    assert_int_equal(store_append(t, ref, NOW - 1, 1), TSDB_OUT_OF_ORDER);
    assert_int_equal(store_append(t, ref, NOW + TSDB_MAX_AHEAD_MS, 1), TSDB_OK);
    assert_int_equal(store_append(t, ref, NOW + TSDB_MAX_AHEAD_MS + 1, 1), TSDB_TOO_NEW);
    assert_int_equal(store_ref(t, "__name__=other", &ref), TSDB_OK);
    assert_int_equal(store_append(t, ref, NOW - TSDB_MIN_AGE_MS - 1, 1), TSDB_TOO_OLD);
    assert_int_equal(store_append(t, ref, NOW - TSDB_MIN_AGE_MS, 1), TSDB_OK);
    assert_int_equal(store_append(t, ref ^ UINT64_C(1) << 40, NOW, 1), TSDB_NO_SERIES);
    assert_int_equal(store_append(t, ref + 1000, NOW, 1), TSDB_NO_SERIES);
    assert_int_equal(store_append(t, 0, NOW, 1), TSDB_NO_SERIES);
    stats = store_stats(t);
    assert_int_equal(stats.results[TSDB_OK], 4);
    assert_int_equal(stats.results[TSDB_DUPLICATE], 2);
    assert_int_equal(stats.results[TSDB_OUT_OF_ORDER], 1);
    assert_int_equal(stats.results[TSDB_TOO_OLD], 1);
    assert_int_equal(stats.results[TSDB_TOO_NEW], 1);
    assert_int_equal(stats.results[TSDB_NO_SERIES], 3);
    assert_int_equal(stats.samples, 3);
    (void)tsdb_free(t);
}

static void tells_zeros_and_nans_apart(void **state)
{
    struct tsdb *t = store_new(PLENTY, 10);
    uint64_t ref = store_put(t, "__name__=m", NOW, 0.0), stale = TSDB_STALE_BITS;
    double marker;

    (void)state;
    memcpy(&marker, &stale, sizeof(marker));
    assert_int_equal(store_append(t, ref, NOW, -0.0), TSDB_DUPLICATE);
    assert_int_equal(store_append(t, ref, NOW + 1, marker), TSDB_OK);
    assert_int_equal(store_append(t, ref, NOW + 1, marker), TSDB_OK);
    assert_int_equal(store_append(t, ref, NOW + 1, (double)NAN), TSDB_DUPLICATE);
    (void)tsdb_free(t);
}

static void refuses_series_beyond_the_limit(void **state)
{
    struct tsdb *t = store_new(PLENTY, 3);
    uint64_t ref;

    (void)state;
    (void)store_put(t, "__name__=a", NOW, 1);
    (void)store_put(t, "__name__=b", NOW, 1);
    (void)store_put(t, "__name__=c", NOW, 1);
    assert_int_equal(store_stats(t).series_limit_ms, 0);
    assert_int_equal(store_ref(t, "__name__=d", &ref), TSDB_SERIES_LIMIT);
    assert_int_equal(store_stats(t).series_limit_ms, NOW);
    assert_int_equal(store_stats(t).bytes_limit_ms, 0);
    assert_int_equal(store_ref(t, "__name__=c", &ref), TSDB_OK);
    assert_int_equal(store_stats(t).series, 3);
    (void)tsdb_free(t);
}

static void removes_series_without_samples_in_the_age(void **state)
{
    struct tsdb *t = store_new(PLENTY, 2);
    uint64_t a = store_put(t, "__name__=a", NOW, 1), b = store_put(t, "__name__=b", NOW, 1), c;

    (void)state;
    tsdb_set_age(t, 30 * MINUTE);
    store_now = NOW + 20 * MINUTE;
    assert_int_equal(store_append(t, b, store_now, 2), TSDB_OK);
    tsdb_prune(t);
    assert_int_equal(store_stats(t).series, 2);
    store_now = NOW + 31 * MINUTE;
    tsdb_prune(t);
    assert_int_equal(store_stats(t).series, 1);
    assert_int_equal(store_stats(t).series_expired, 1);
    assert_int_equal(store_stats(t).samples_expired, 1);
    assert_int_equal(store_append(t, a, store_now, 1), TSDB_NO_SERIES);
    assert_int_equal(store_ref(t, "__name__=c", &c), TSDB_OK);
    assert_int_equal(store_append(t, a, store_now, 1), TSDB_NO_SERIES); /* also if its place is taken */
    assert_int_equal(store_append(t, b, store_now, 1), TSDB_OK);
    (void)tsdb_free(t);
}

static void returns_memory_with_the_last_series(void **state)
{
    struct tsdb *t = store_new(PLENTY, 5000);
    uint64_t empty = store_stats(t).bytes;
    char text[64];

    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(text, sizeof(text), "__name__=m%u;job=j%u;pod=p", i % 10, i);
        (void)store_put(t, text, NOW, i);
    }
    store_now = NOW + 60 * MINUTE;
    for (unsigned i = 0; i < 5; i++)
        tsdb_prune(t);
    assert_int_equal(store_stats(t).series, 0);
    assert_int_equal(store_stats(t).samples, 0);
    /* The index keeps its size. */
    assert_true(store_stats(t).bytes < empty + 5000 * 3 * 2 * 8 * 2);
    (void)tsdb_free(t);
}

static void drops_old_chunks_of_series_that_go_on(void **state)
{
    struct tsdb *t = store_new(PLENTY, 10);
    uint64_t ref = store_put(t, "__name__=m", NOW, 0);
    const uint64_t in_age = 60 * 4;

    (void)state;
    tsdb_set_age(t, 60 * MINUTE);
    for (unsigned i = 1; i < 10000; i++) {
        store_now += 15000;
        assert_int_equal(store_append(t, ref, store_now, i), TSDB_OK);
        if (i > in_age)
            assert_in_range(store_stats(t).samples, in_age, in_age * 2);
    }
    (void)tsdb_free(t);
}

/* Appends to all series in turn until some sample is not stored, or `rounds` are over. */
static enum tsdb_result fill(struct tsdb *t, const uint64_t *refs, unsigned n, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        store_now += 15000;
        for (unsigned i = 0; i < n; i++) {
            enum tsdb_result result = store_append(t, refs[i], store_now, drand48());

            if (result != TSDB_OK)
                return result;
        }
    }
    return TSDB_OK;
}

static void evicts_the_oldest_samples_at_the_limit_and_says_so(void **state)
{
    enum { SERIES = 200 };
    static uint64_t refs[SERIES];
    struct tsdb *t = store_new(1 << 20, 1000);
    struct tsdb_view *v = NULL;
    char text[64], why[TSDB_WHY_BYTES];
    uint64_t ref;

    (void)state;
    tsdb_set_age(t, 24 * 60 * MINUTE);
    for (unsigned i = 0; i < SERIES; i++) {
        (void)snprintf(text, sizeof(text), "__name__=m;pod=p%u", i);
        refs[i] = store_put(t, text, NOW, 0);
    }
    assert_int_equal(fill(t, refs, SERIES, 4000), TSDB_OK);
    assert_true(store_stats(t).samples_evicted > 0);
    assert_true(store_stats(t).bytes <= 1 << 20);
    assert_int_equal(store_ref(t, "__name__=new", &ref), TSDB_BYTES_LIMIT);
    assert_int_equal(store_ref(t, "__name__=m;pod=p0", &ref), TSDB_OK);
    /* What was evicted cannot be queried; what is later is complete. */
    assert_int_equal(tsdb_select(t, NULL, 0, NOW, store_now, UINT64_MAX, &v, why), -ENODATA);
    assert_string_equal(
        why, "samples of the time range were evicted: limits.otlpMemory (1048576 bytes) is reached");
    v = store_view(t, NULL, 0, store_now - 15000 * 40, store_now);
    assert_int_equal(tsdb_view_count(v), SERIES);
    for (unsigned i = 0; i < SERIES; i++) {
        struct tsdb_iter it;
        int64_t at, n = 0;
        double x;

        for (tsdb_iter_init(&it, v, i); tsdb_iter_next(&it, &at, &x); n++)
            assert_int_equal(at, store_now - 15000 * (40 - n));
        assert_int_equal(n, 41);
    }
    (void)tsdb_view_free(v);
    (void)tsdb_free(t);
}

static void refuses_new_series_once_less_is_allowed_than_is_used(void **state)
{
    struct tsdb *t = store_new(PLENTY, 100);
    uint64_t a = store_put(t, "__name__=a", NOW, 1), b;

    (void)state;
    tsdb_set_limits(t, 4096, 100);
    assert_int_equal(store_ref(t, "__name__=b", &b), TSDB_BYTES_LIMIT);
    assert_int_equal(store_stats(t).bytes_limit_ms, NOW);
    assert_int_equal(store_append(t, a, NOW + 1, 2), TSDB_OK);
    tsdb_set_limits(t, PLENTY, 1);
    assert_int_equal(store_ref(t, "__name__=b", &b), TSDB_SERIES_LIMIT);
    tsdb_set_limits(t, 0, 2);
    assert_int_equal(store_ref(t, "__name__=b", &b), TSDB_OK);
    assert_in_range(store_stats(t).max_bytes, 1 << 20, TSDB_DEFAULT_BYTES);
    assert_int_equal(store_stats(t).max_series, 2);
    (void)tsdb_free(t);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct tsdb *t = NULL;
        uint64_t ref = 0;
        enum tsdb_result result;

        if (tsdb_new(&t, &(struct tsdb_options){&store_clock, PLENTY, 10}) < 0) {
            assert_true(oom_happened());
            continue;
        }
        result = store_ref(t, "__name__=m;job=x;pod=y", &ref);
        if (result == TSDB_OK)
            result = store_append(t, ref, store_now, 1);
        assert_int_equal(result, oom_happened() ? TSDB_NO_MEMORY : TSDB_OK);
        (void)store_put(t, "__name__=m;job=x;pod=y", store_now + 1, 1);
        assert_int_equal(store_stats(t).series, 1);
        (void)tsdb_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_word_for_each_result),
        cmocka_unit_test(gives_equal_labels_the_same_series),
        cmocka_unit_test(rejects_labels_that_are_not_sorted_unique_and_short),
        cmocka_unit_test(counts_samples_that_it_rejects_by_reason),
        cmocka_unit_test(tells_zeros_and_nans_apart),
        cmocka_unit_test(refuses_series_beyond_the_limit),
        cmocka_unit_test(removes_series_without_samples_in_the_age),
        cmocka_unit_test(returns_memory_with_the_last_series),
        cmocka_unit_test(drops_old_chunks_of_series_that_go_on),
        cmocka_unit_test(evicts_the_oldest_samples_at_the_limit_and_says_so),
        cmocka_unit_test(refuses_new_series_once_less_is_allowed_than_is_used),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
