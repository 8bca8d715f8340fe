#include "exporter/score/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void finds_each_state_by_its_word(void **state)
{
    (void)state;
    for (enum scorer_state s = SCORER_WAITING; s < SCORER_STATES; s++)
        assert_int_equal(scorer_state_of_word(str_of(scorer_state_word(s))), s);
    assert_string_equal(scorer_state_word(SCORER_EMPTY), "empty");
}

static void knows_no_other_word(void **state)
{
    static const char *const words[] = {"", "OK", "ok ", "fail", "failing2", "notApplied"};

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        assert_int_equal(scorer_state_of_word(str_of(words[i])), SCORER_STATES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_state_by_its_word),
        cmocka_unit_test(knows_no_other_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
