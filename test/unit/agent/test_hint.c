/* What to check after an error: there is a hint for each class at each stage. */
#include "exporter/agent/hint.h"
#include "exporter/score/round_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void has_a_hint_for_each_error_at_each_stage(void **state)
{
    (void)state;
    for (enum round_error e = ROUND_OK; e < ROUND_ERRORS; e++)
        for (enum round_stage stage = STAGE_SOURCE; stage < ROUND_STAGES; stage++) {
            const char *hint = hint_of_error(e, stage);

            if (!hint || !*hint)
                fail_msg("no hint for %s at stage %s", round_error_word(e), round_stage_word(stage));
        }
}

static void tells_whose_client_gets_no_token(void **state)
{
    (void)state;
    assert_non_null(strstr(hint_of_error(ROUND_AUTH, STAGE_SOURCE), "the source's Secret"));
    assert_non_null(strstr(hint_of_error(ROUND_AUTH, STAGE_SCORING), "the scoring API's Secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_hint_for_each_error_at_each_stage),
        cmocka_unit_test(tells_whose_client_gets_no_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
