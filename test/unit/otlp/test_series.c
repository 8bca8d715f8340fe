#include "exporter/otlp/series.h"

#include "exporter/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { NOW = 1700000000 };

static int64_t wall_ms;

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){0};
}

static unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){wall_ms};
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

static struct store *new_store(uint64_t max_bytes, uint64_t max_series)
{
    struct store *s;

    wall_ms = NOW * INT64_C(1000);
    s = store_new(&fake_clock);
    store_set_limits(s, max_bytes, max_series);
    return s;
}

static enum store_result append(struct store *s, unsigned series, int64_t t_ms, double v)
{
    char text[64];
    struct str labels = {text, (size_t)snprintf(text, sizeof(text), "__name__\xffm\xffn\xff%u\xff", series)};
    enum store_result r = STORE_OK;
    struct series *x;

    store_lock(s);
    x = store_find(s, series + 1);
    store_unlock(s);
    if (!x)
        r = store_enter(s, labels, series + 1, &x);
    if (r != STORE_OK)
        return r;
    store_lock(s);
    r = store_append(s, x, t_ms, v);
    store_release(s, x);
    store_unlock(s);
    return r;
}

/* The samples of all series from a time on; SIZE_MAX after an error. */
static size_t count_samples(struct store *s, int64_t from_ms)
{
    CLEANUP(series_reader_done)
    struct series_reader in = {.store = s, .from_ms = from_ms, .to_ms = INT64_MAX};
    size_t n = 0;
    int r;

    while ((r = series_next(&in)) > 0)
        n += in.n;
    return r < 0 ? SIZE_MAX : n;
}

static void keeps_samples_in_order(void **state)
{
    struct store *s = new_store(1 << 20, 10);
    int64_t now = wall_ms;

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(append(s, 0, now - 100000 + i * 1000, i), STORE_OK);
    assert_int_equal(append(s, 0, now - 1000, 99), STORE_OK); /* the very same */
    assert_int_equal(append(s, 0, now - 1000, 1), STORE_DUPLICATE);
    assert_int_equal(append(s, 0, now - 2000, 1), STORE_OUT_OF_ORDER);
    assert_int_equal(append(s, 1, now - STORE_MIN_AGE_MS - 1, 1), STORE_TOO_OLD);
    assert_int_equal(append(s, 1, now + STORE_MAX_AHEAD_MS + 1, 1), STORE_TOO_NEW);
    assert_int_equal(count_samples(s, 0), 100);
    assert_int_equal(count_samples(s, now - 10000), 10);
    (void)store_free(s);
}

static void drops_what_is_older_than_the_age(void **state)
{
    struct store *s = new_store(64 << 20, 10000);
    struct store_stats stats;
    uint64_t empty;

    (void)state;
    store_stats(s, &stats);
    empty = stats.bytes;
    for (int t = 0; t < 20; t++)
        for (unsigned i = 0; i < 3000; i++)
            assert_int_equal(append(s, i, wall_ms + t * 1000, t), STORE_OK);
    assert_int_equal(count_samples(s, 0), 60000);
    for (unsigned i = 0; i < 1000; i++) /* these go on */
        assert_int_equal(append(s, i, wall_ms + STORE_MIN_AGE_MS, 1), STORE_OK);
    wall_ms += STORE_MIN_AGE_MS + 60000;
    store_prune(s);
    store_stats(s, &stats);
    assert_int_equal(stats.series, 1000);
    assert_in_range(count_samples(s, 0), 1000, 17000);
    assert_int_equal(append(s, 2999, wall_ms, 7), STORE_OK); /* created anew */
    wall_ms += 2 * STORE_MIN_AGE_MS;
    store_prune(s);
    assert_int_equal(append(s, 5, wall_ms, 1), STORE_OK);
    store_stats(s, &stats);
    assert_int_equal(stats.series, 1);
    assert_int_equal(stats.samples, 1);
    assert_in_range(stats.bytes, empty, empty + (256 << 10));
    assert_int_equal(stats.samples_evicted, 0);
    (void)store_free(s);
}

/* Nothing is computed from half of the data, and memory stays below its limit. */
static void evicts_the_oldest_for_lack_of_memory(void **state)
{
    enum { MAX_BYTES = 1 << 20 };
    struct store *s = new_store(MAX_BYTES, 10000);
    struct store_stats stats;
    int64_t from = wall_ms - 500000;

    (void)state;
    for (int t = 0; t < 500; t++) {
        for (unsigned i = 0; i < 400; i++)
            assert_int_equal(append(s, i, from + t * 1000, t), STORE_OK);
        store_stats(s, &stats);
        assert_in_range(stats.bytes, 0, MAX_BYTES);
    }
    assert_in_range(stats.samples_evicted, 1, 200000);
    assert_int_equal(count_samples(s, from), SIZE_MAX);
    assert_int_equal(count_samples(s, wall_ms - 40000), 400 * 40);
    assert_int_equal(append(s, 9999, wall_ms, 1), STORE_BYTES_LIMIT);
    store_stats(s, &stats);
    assert_int_equal(stats.bytes_limit_ms, wall_ms);
    (void)store_free(s);
}

/* Whatever the limit is, and wherever in the growth of a series it is reached. */
static void evicts_in_time_for_a_single_series(void **state)
{
    enum { SAMPLES = 100000, LIMITS = 8 };

    (void)state;
    for (unsigned i = 0; i < LIMITS; i++) {
        struct store *s = new_store((1 << 20) + i * 3000, 10);

        store_set_age(s, 900 * 1000);
        for (int64_t t = 0; t < SAMPLES; t++)
            if (append(s, 0, wall_ms - 300 * 1000 + t, 1) != STORE_OK)
                fail_msg("sample %d was refused with %u more bytes", (int)t, i * 3000);
        (void)store_free(s);
    }
}

static void finds_its_series_while_others_come_and_go(void **state)
{
    enum { SERIES = 5000 };
    CLEANUP(cleanup_store_free) struct store *s = new_store(64 << 20, SERIES);
    CLEANUP(series_reader_done) struct series_reader in = {.store = s, .to_ms = INT64_MAX};
    size_t n = 0;

    (void)state;
    for (unsigned i = 0; i < SERIES; i++)
        assert_int_equal(append(s, i, wall_ms + 1, i), STORE_OK);
    assert_int_equal(append(s, SERIES, wall_ms, 1), STORE_SERIES_LIMIT);
    while (series_next(&in) > 0 && ++n < SERIES / 2)
        ;
    for (unsigned i = 0; i < SERIES; i += 2)
        assert_int_equal(append(s, i, wall_ms + STORE_MIN_AGE_MS, i), STORE_OK);
    wall_ms += STORE_MIN_AGE_MS + 2;
    for (unsigned i = 0; i < 4; i++)
        store_prune(s);
    for (unsigned i = 0; i < SERIES / 4; i++) /* the tables are rebuilt */
        assert_int_equal(append(s, 2 * SERIES + i, wall_ms, i), STORE_OK);
    while (series_next(&in) > 0)
        n++;
    assert_int_equal(n, SERIES / 2 + SERIES / 4 + SERIES / 4);
}

/* More than are copied while the lock is held. */
static void reads_a_long_series(void **state)
{
    enum { SAMPLES = 20000 };
    CLEANUP(cleanup_store_free) struct store *s = new_store(64 << 20, 10);
    CLEANUP(series_reader_done)
    struct series_reader in = {.store = s, .from_ms = wall_ms + 10, .to_ms = wall_ms + SAMPLES - 11};

    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        assert_int_equal(append(s, 0, wall_ms + i, i), STORE_OK);
    assert_int_equal(series_next(&in), 1);
    assert_int_equal(in.n, SAMPLES - 20);
    for (size_t i = 0; i < in.n; i++)
        assert_int_equal(in.samples[i].t, in.from_ms + (int64_t)i);
    assert_int_equal(series_next(&in), 0);
}

static void keeps_no_series_without_a_sample(void **state)
{
    CLEANUP(cleanup_store_free) struct store *s = new_store(64 << 20, 1);
    struct store_stats stats;

    (void)state;
    assert_int_equal(append(s, 0, wall_ms - STORE_MIN_AGE_MS - 1, 1), STORE_TOO_OLD);
    store_stats(s, &stats);
    assert_int_equal(stats.series, 0);
    assert_int_equal(append(s, 1, wall_ms, 1), STORE_OK);
}

/* It is released without a sample while the sweep, which has looked at all before it, would go on with it. */
static void sweeps_on_after_a_series_without_a_sample(void **state)
{
    enum { SERIES = 8192, STEP = 32 /* of which one is where the sweep pauses */ };
    CLEANUP(cleanup_store_free) struct store *s = new_store(64 << 20, 2 * SERIES);
    struct str labels = STR("__name__\xff"
                            "nothing\xff");
    struct store_stats stats;

    (void)state;
    for (unsigned i = 0; i < SERIES; i++) {
        struct series *empty;

        assert_int_equal(append(s, i, wall_ms, 1), STORE_OK);
        if ((i + 1) % STEP)
            continue;
        assert_int_equal(store_enter(s, labels, 0, &empty), STORE_OK);
        store_prune(s);
        store_lock(s);
        store_release(s, empty);
        store_unlock(s);
        store_prune(s);
    }
    store_stats(s, &stats);
    assert_int_equal(stats.series, SERIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_samples_in_order),
        cmocka_unit_test(drops_what_is_older_than_the_age),
        cmocka_unit_test(evicts_the_oldest_for_lack_of_memory),
        cmocka_unit_test(evicts_in_time_for_a_single_series),
        cmocka_unit_test(finds_its_series_while_others_come_and_go),
        cmocka_unit_test(reads_a_long_series),
        cmocka_unit_test(keeps_no_series_without_a_sample),
        cmocka_unit_test(sweeps_on_after_a_series_without_a_sample),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
