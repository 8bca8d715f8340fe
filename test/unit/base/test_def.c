#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum color { RED, GREEN, BLUE, COLORS };

static WORD_TABLE(color_word, enum color, COLORS, {[RED] = "red", [BLUE] = "blue"});

static void word_table_names_each_enumerator(void **state)
{
    (void)state;
    assert_string_equal(color_word(RED), "red");
    assert_string_equal(color_word(BLUE), "blue");
}

static void word_table_survives_values_without_a_word(void **state)
{
    (void)state;
    assert_string_equal(color_word(GREEN), "unknown");
    assert_string_equal(color_word(COLORS), "unknown");
    assert_string_equal(color_word((enum color)1000), "unknown");
}

static void take_ptr_moves_ownership(void **state)
{
    int x = 1, *p = &x;

    (void)state;
    assert_ptr_equal(TAKE_PTR(p), &x);
    assert_null(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word_table_names_each_enumerator),
        cmocka_unit_test(word_table_survives_values_without_a_word),
        cmocka_unit_test(take_ptr_moves_ownership),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
