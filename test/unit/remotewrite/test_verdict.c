#include "remotewrite/verdict.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Each status once more, by the rules as they are written down. */
static enum rw_verdict expected(long status)
{
    if (status / 100 == 2)
        return VERDICT_SENT;
    if (status / 100 == 5 || status / 100 == 3 || status == 429)
        return VERDICT_RETRY;
    if (status == 400 || status == 413 || status == 422)
        return VERDICT_HALVE;
    return status == 415 ? VERDICT_STEP_DOWN : VERDICT_DROP;
}

static void all_statuses(void **state)
{
    (void)state;
    for (long status = 0; status <= 1000; status++)
        assert_int_equal(verdict_of(HTTP_OK, status), expected(status));
}

static void no_answer_is_tried_again(void **state)
{
    (void)state;
    for (enum http_error e = HTTP_OK + 1; e < HTTP_ERRORS; e++)
        assert_int_equal(verdict_of(e, 400), VERDICT_RETRY);
}

static void words(void **state)
{
    (void)state;
    for (enum rw_verdict v = 0; v < VERDICTS; v++)
        assert_true(*verdict_word(v));
}

static void backoff_grows_with_jitter_to_its_ceiling(void **state)
{
    bool differs = false;
    int64_t first = verdict_backoff(8, 100, 60000, -1);

    (void)state;
    for (unsigned nth = 1; nth < 100; nth++) {
        int64_t whole = nth > 10 ? 60000 : 100ll << (nth - 1), ms = verdict_backoff(nth, 100, 60000, -1);

        if (whole > 60000)
            whole = 60000;
        assert_in_range(ms, whole / 2, whole);
        differs = differs || verdict_backoff(8, 100, 60000, -1) != first;
    }
    assert_true(differs);
    assert_in_range(verdict_backoff(4000000000u, 100, 60000, -1), 30000, 60000);
}

static void retry_after_is_heeded_up_to_an_hour(void **state)
{
    (void)state;
    assert_int_equal(verdict_backoff(1, 100, 60000, 90000), 90000);
    assert_int_equal(verdict_backoff(1, 100, 60000, 86400000), 3600000);
    assert_in_range(verdict_backoff(1, 100, 60000, 0), 50, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_statuses),
        cmocka_unit_test(no_answer_is_tried_again),
        cmocka_unit_test(words),
        cmocka_unit_test(backoff_grows_with_jitter_to_its_ceiling),
        cmocka_unit_test(retry_after_is_heeded_up_to_an_hour),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
