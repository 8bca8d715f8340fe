#include "exporter/score/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void has_words_and_ops_for_each_type(void **state)
{
    (void)state;
    for (size_t i = 0; source_type_words[i]; i++)
        assert_int_equal(source_type_of(source_type_words[i]), source_type_at((unsigned)i));
    for (enum source_type t = SOURCE_UNSET + 1; t < SOURCE_TYPES; t++) {
        assert_non_null(source_type_word(t));
        assert_ptr_equal(source_type_word(t), source_type_words[t - 1]);
        assert_int_equal(source_type_of(source_type_word(t)), t);
        assert_true(source_of_type(t)->start && source_of_type(t)->free);
    }
}

static void keeps_the_words_of_the_contract(void **state)
{
    (void)state;
    assert_string_equal(source_type_word(SOURCE_PROMETHEUS), "Prometheus");
    assert_string_equal(source_type_word(SOURCE_NONE), "None");
    assert_string_equal(source_type_word(SOURCE_OPENTELEMETRY), "OpenTelemetry");
    assert_null(source_type_word(SOURCE_UNSET));
}

static void finds_a_type_by_its_word_in_any_case(void **state)
{
    static const struct {
        const char *word;
        enum source_type type;
    } cases[] = {
        {"Prometheus", SOURCE_PROMETHEUS},
        {"prometheus", SOURCE_PROMETHEUS},
        {"NONE", SOURCE_NONE},
        {"opentelemetry", SOURCE_OPENTELEMETRY},
        {"OTel", SOURCE_OPENTELEMETRY},
        {"otlp", SOURCE_OPENTELEMETRY},
        {"Prom", SOURCE_UNSET},
        {"None ", SOURCE_UNSET},
        {"", SOURCE_UNSET},
        {NULL, SOURCE_UNSET},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(source_type_of(cases[i].word), cases[i].type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_words_and_ops_for_each_type),
        cmocka_unit_test(keeps_the_words_of_the_contract),
        cmocka_unit_test(finds_a_type_by_its_word_in_any_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
