/* What both ways of showing the status have in common. */
#include "exporter/agent/status.h"
#include "exporter/base/buf.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/state.h"
#include "exporter/ui/list.h"
#include "test/oom.h"
#include "test/unit/agent/status_world.h"

#include <errno.h>

static void survives_each_failed_allocation(void **state)
{
    const struct list_query all = list_query_all();
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    add(w, bad_scorer(SCORER_STALE, STAGE_SOURCE, ROUND_DNS, "no such host"));
    for (int form = 0; form < 2; form++) {
        FOR_EACH_ALLOCATION_FAILURE(n)
        {
            BUF_AUTO(b, OUTPUT_MAX);
            int r = form ? status_json(&w->agent, &all, &b) : status_table(&w->agent, 60, &b);

            assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
            assert_true(r == 0 || b.n == 0);
        }
    }
}

static void leaves_a_buffer_that_is_too_small_unchanged(void **state)
{
    const struct list_query all = list_query_all();
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    for (size_t max = 2; max < 150; max += 7) {
        BUF_AUTO(b, max);
        assert_int_equal(buf_puts(&b, "x"), 0);
        assert_int_equal(status_json(&w->agent, &all, &b), -EFBIG);
        assert_int_equal(status_table(&w->agent, 0, &b), -EFBIG);
        assert_true(str_eq(buf_str(&b), STR("x")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_each_failed_allocation),
        cmocka_unit_test(leaves_a_buffer_that_is_too_small_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
