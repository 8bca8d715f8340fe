/* Threads that append, select and prune at once: what is read is a whole run of what was written. */
#include "exporter/base/regex.h"
#include "test/unit/tsdb/store.h"

#include <pthread.h>

enum { SERIES = 300, ROUNDS = 400, SELECTS = 60 };

struct world {
    struct tsdb *t;
    bool done;
};

/* Series s has the value s * ROUNDS + round at each round's time. */
static void *append_rounds(void *arg)
{
    struct world *w = arg;
    static struct tsdb_sample samples[SERIES];
    static enum tsdb_result results[SERIES];
    char text[64];

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < SERIES; i++) {
            (void)snprintf(text, sizeof(text), "__name__=m%u;pod=p%u", i % 3, i);
            assert_int_equal(store_ref(w->t, text, &samples[i].ref), TSDB_OK);
            samples[i].t_ms = NOW + round * 1000;
            samples[i].v = i * ROUNDS + round;
        }
        assert_int_equal(tsdb_append(w->t, samples, SERIES, results), 0);
    }
    __atomic_store_n(&w->done, true, __ATOMIC_RELAXED);
    return NULL;
}

static void *prune_meanwhile(void *arg)
{
    struct world *w = arg;

    while (!__atomic_load_n(&w->done, __ATOMIC_RELAXED))
        tsdb_prune(w->t);
    return NULL;
}

static void check_view(const struct tsdb_view *v)
{
    for (size_t i = 0; i < tsdb_view_count(v); i++) {
        struct tsdb_iter it;
        int64_t at, n = 0;
        double x, first = 0;

        for (tsdb_iter_init(&it, v, i); tsdb_iter_next(&it, &at, &x); n++) {
            first = n ? first : x;
            assert_int_equal(at, NOW + n * 1000);
            assert_true(x - first == (double)n && (int64_t)first % ROUNDS == 0);
        }
    }
}

static void reads_whole_runs_while_others_write(void **state)
{
    struct world w = {.t = store_new(UINT64_C(1) << 30, SERIES)};
    char why[REGEX_WHY_BYTES];
    struct regex *regex = NULL;
    struct tsdb_matcher by_regex = {.op = TSDB_RE, .name = STR("pod")};
    struct tsdb_matcher by_name = {.op = TSDB_EQ, .name = STR("__name__"), .value = STR("m1")};
    pthread_t appender, pruner;

    (void)state;
    assert_int_equal(regex_new(&regex, STR("p.*[13579]"), why), 0);
    by_regex.regex = regex;
    assert_int_equal(pthread_create(&appender, NULL, append_rounds, &w), 0);
    assert_int_equal(pthread_create(&pruner, NULL, prune_meanwhile, &w), 0);
    for (unsigned i = 0; i < SELECTS || !__atomic_load_n(&w.done, __ATOMIC_RELAXED); i++) {
        struct tsdb_view *v = store_view(w.t, i % 2 ? &by_regex : &by_name, 1, NOW, INT64_MAX);

        check_view(v);
        (void)tsdb_view_free(v);
    }
    assert_int_equal(pthread_join(appender, NULL), 0);
    assert_int_equal(pthread_join(pruner, NULL), 0);
    assert_int_equal(store_stats(w.t).samples, SERIES * ROUNDS);
    (void)regex_free(regex);
    (void)tsdb_free(w.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_whole_runs_while_others_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
