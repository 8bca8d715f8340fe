#include "exporter/score/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Old agents and hubs read these words. */
static void keeps_the_words_of_reports(void **state)
{
    static const char *const words[SCORER_STATES] = {"waiting", "ok", "empty", "failing", "stale"};

    (void)state;
    for (size_t i = 0; i < SCORER_STATES; i++)
        assert_string_equal(scorer_state_word((enum scorer_state)i), words[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_words_of_reports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
