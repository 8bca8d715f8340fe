#include "controller/placement/validity.h"
#include "exporter/base/def.h"
#include "remotewrite/timestamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const int64_t begin_ms = 1790000000123;

/* A scorer's rounds as exporter/agent/scorer.c times them: a round that takes longer than the interval counts
 * instead of it. Also over a change of the interval, of staleAfterIntervals and of the clock. */
struct scoring {
    int64_t interval_ms, stale_intervals, now_ms;
    int64_t life_ms, end_ms; /* of the series */
    int64_t written_ms;      /* validUntil on the hub */
    unsigned writes, rounds;
};

static int64_t below(int64_t n)
{
    return (int64_t)(((uint64_t)rand() << 31 | (uint64_t)rand()) % (uint64_t)n);
}

static void score(struct scoring *s)
{
    int64_t took_ms = below(4) ? below(s->interval_ms) : below(s->interval_ms * 3), wanted_ms;

    s->now_ms += s->interval_ms + took_ms;
    s->life_ms = (took_ms > s->interval_ms ? took_ms : s->interval_ms) * s->stale_intervals;
    s->end_ms = s->now_ms + s->life_ms;
    wanted_ms = validity_until(s->end_ms, s->life_ms);
    s->rounds++;
    if (!validity_is_due(s->written_ms, wanted_ms, s->life_ms, s->now_ms))
        return;
    s->written_ms = wanted_ms;
    s->writes++;
}

static void assert_valid(const struct scoring *s)
{
    if (s->written_ms > s->end_ms || s->written_ms < s->end_ms - s->life_ms / 2)
        fail_msg(
            "interval %lld ms, staleAfterIntervals %lld, life %lld ms: validUntil is %lld ms before the end",
            (long long)s->interval_ms, (long long)s->stale_intervals, (long long)s->life_ms,
            (long long)(s->end_ms - s->written_ms));
}

static void ends_with_the_series_or_half_a_validity_before(void **state)
{
    (void)state;
    srand(1);
    for (unsigned i = 0; i < 2000; i++) {
        struct scoring s = {.now_ms = begin_ms + below(1000)};

        for (unsigned k = 0; k < 40; k++) {
            if (k % 10 == 0) {
                s.interval_ms = 1000 * (below(2) ? 1 + below(7 * 86400) : 1 + below(60));
                s.stale_intervals = below(2) ? 1 + below(1000) : 1 + below(4);
                s.now_ms += below(3) ? 0 : below(86400000) - 43200000;
            }
            score(&s);
            assert_valid(&s);
        }
    }
}

static void holds_at_the_bounds(void **state)
{
    static const int64_t intervals_s[] = {1, 2, 3, 86400, 7 * 86400}, stale[] = {1, 2, 3, 4, 999, 1000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(intervals_s); i++)
        for (size_t k = 0; k < ARRAY_SIZE(stale); k++)
            for (int64_t ms = 0; ms < 1000; ms += 37) {
                struct scoring s = {.now_ms = begin_ms + ms,
                                    .interval_ms = 1000 * intervals_s[i],
                                    .stale_intervals = stale[k]};

                score(&s);
                assert_valid(&s);
                assert_int_equal(s.writes, 1);
            }
}

static void saves_writes(void **state)
{
    struct scoring s = {.now_ms = begin_ms, .interval_ms = 60000, .stale_intervals = 10};

    (void)state;
    while (s.rounds < 1000)
        score(&s);
    assert_in_range(s.writes, 1, s.rounds / 2);
}

static void writes_whole_seconds_unless_the_validity_is_short(void **state)
{
    (void)state;
    assert_int_equal(validity_until(5999, 2000), 5000);
    assert_int_equal(validity_until(5999, 1999), 5999);
}

static void leaves_what_another_replica_writes(void **state)
{
    static const struct {
        int64_t later_ms;
        bool matches;
    } cases[] = {
        {0, true},      {-123, true}, /* without its fraction */
        {-1000, false}, {1000, true}, {30000, true}, {31000, false}, {-begin_ms, false} /* absent */,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(validity_matches(begin_ms, begin_ms + cases[i].later_ms, 60000), cases[i].matches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_the_series_or_half_a_validity_before),
        cmocka_unit_test(holds_at_the_bounds),
        cmocka_unit_test(saves_writes),
        cmocka_unit_test(writes_whole_seconds_unless_the_validity_is_short),
        cmocka_unit_test(leaves_what_another_replica_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
