#include "exporter/promql/window.h"
#include "test/oom.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { SAMPLES = 3000 };

static uint64_t draw_state;

static uint64_t draw(uint64_t n)
{
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (draw_state >> 33) % n;
}

/* Whole numbers, so that sums are exact in any order; sometimes NaN. */
static double draw_value(void)
{
    return draw(20) == 0 ? NAN : (double)draw(1000) - 500;
}

struct samples {
    int64_t t[SAMPLES];
    double v[SAMPLES];
    size_t first, end; /* those that the window should hold */
};

static void expect_same(double got, double want)
{
    if (!(got == want || (isnan(got) && isnan(want))))
        fail_msg("got %g, expected %g", got, want);
}

static void expect_fold(const struct window *w, const struct samples *s)
{
    double sum = 0, min = NAN, max = NAN, got;

    if (s->first == s->end)
        return;
    got = window_fold(w).value;
    for (size_t i = s->first; i < s->end; i++) {
        sum += s->v[i];
        min = s->v[i] < min || isnan(min) ? s->v[i] : min;
        max = s->v[i] > max || isnan(max) ? s->v[i] : max;
    }
    expect_same(got, w->track == TRACK_SUM ? sum : w->track == TRACK_MIN ? min : max);
}

static void expect_resets(const struct window *w, const struct samples *s)
{
    size_t at = w->first_reset;

    for (size_t i = s->first + 1; i < s->end; i++)
        if (s->v[i] < s->v[i - 1])
            assert_int_equal(w->resets[at++] - w->first, i - s->first);
    assert_int_equal(at, w->end_reset);
}

static void slide(enum window_track track)
{
    static struct samples s;
    struct window w;
    int64_t t = 0;

    s.first = s.end = 0;
    window_init(&w, track, SIZE_MAX / 2);
    while (s.end < SAMPLES) {
        uint64_t pushes = draw(2) ? draw(5) : draw(300);
        int64_t drop_to;

        for (uint64_t i = 0; i < pushes && s.end < SAMPLES; i++, s.end++) {
            s.t[s.end] = t += 1 + (int64_t)draw(3);
            s.v[s.end] = draw_value();
            assert_int_equal(window_push(&w, s.t[s.end], s.v[s.end]), 0);
        }
        drop_to = t - (int64_t)draw(400);
        window_drop(&w, drop_to);
        while (s.first < s.end && s.t[s.first] <= drop_to)
            s.first++;
        assert_int_equal(window_count(&w), s.end - s.first);
        for (size_t i = s.first; i < s.end; i++)
            assert_true(w.t[w.first + i - s.first] == s.t[i]);
        if (track == TRACK_RESETS)
            expect_resets(&w, &s);
        else if (track != TRACK_NOTHING)
            expect_fold(&w, &s);
    }
    window_done(&w);
}

static void slides_over_samples(void **state)
{
    static const enum window_track tracks[] = {TRACK_NOTHING, TRACK_RESETS, TRACK_SUM, TRACK_MIN, TRACK_MAX};

    (void)state;
    for (draw_state = 0; draw_state < 20; draw_state++)
        for (size_t i = 0; i < ARRAY_SIZE(tracks); i++) {
            uint64_t seed = draw_state;

            slide(tracks[i]);
            draw_state = seed;
        }
}

static void prefers_the_older_of_equal_values(void **state)
{
    static const enum window_track tracks[] = {TRACK_MIN, TRACK_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(tracks); i++) {
        struct window w;

        window_init(&w, tracks[i], SIZE_MAX / 2);
        assert_int_equal(window_push(&w, 1, -0.0), 0);
        assert_int_equal(window_push(&w, 2, 0.0), 0);
        assert_true(signbit(window_fold(&w).value));
        window_drop(&w, 1);
        assert_false(signbit(window_fold(&w).value));
        window_done(&w);
    }
}

static void limits_its_samples(void **state)
{
    struct window w;
    int r = 0;

    (void)state;
    window_init(&w, TRACK_SUM, 100);
    for (int64_t t = 0; r == 0; t++)
        r = window_push(&w, t, 1);
    assert_int_equal(r, -EFBIG);
    assert_in_range(window_count(&w), 100, 200);
    window_done(&w);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct window w;
        int r = 0;

        window_init(&w, TRACK_RESETS, SIZE_MAX / 2);
        for (int64_t t = 0; t < 200 && r == 0; t++)
            r = window_push(&w, t, (double)(t % 3));
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        window_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slides_over_samples),
        cmocka_unit_test(prefers_the_older_of_equal_values),
        cmocka_unit_test(limits_its_samples),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
