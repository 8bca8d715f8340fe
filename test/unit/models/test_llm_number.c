#include "exporter/base/def.h"
#include "exporter/models/llm.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct {
    const char *text;
    double number; /* NAN: none */
} numbers[] = {
    {"0.83", 0.83},
    {" 85\n", 85},
    {"-2.5", -2.5},
    {"+7", 7},
    {".5", 0.5},
    {"007", 7},
    {"1e3", 1000},
    {"2.5E-2", 0.025},
    {"\xe2\x88\x92"
     "4.5",
     -4.5},
    {"1,234.5", 1234.5},
    {"12,345,678", 12345678},
    {"The next value is 1,234.", 1234},
    {"The forecast is **0.42**.", 0.42},
    {"`0.42`", 0.42},
    {"$0.42$", 0.42},
    {"85%", 85},
    {"Answer:0.42", 0.42},
    {"value = 0.42 (rising)", 0.42},
    {"{\"value\":0.42}", 0.42},
    {"[0.42, 0.43]", 0.42},
    {"0.42, 0.43", 0.42},
    {"In 2024-06-17 12:30:00 it was high: 0.42", 0.42},
    {"1. The next value is 0.42\n2. It rises", 0.42},
    {"1.\n", 1},
    {"Qwen2.5 says 3", 3},
    {"after the 10th step: 7", 7},
    {"over 60s it is 8", 8},
    {"", NAN},
    {"I'm sorry, but I can't help with that.", NAN},
    {"12:30", NAN},
    {"2024/06/17", NAN},
    {"1,23", NAN},
    {"1234,567", NAN},
    {",5", 5},
    {"1,234,56", NAN},
    {"1e999", NAN},
    {"NaN", NAN},
    {"Infinity", NAN},
    {"--5", NAN},
    {"1.2.3", NAN},
    {"- -", NAN},
    {"\xe2\x88\x92", NAN},
};

static void finds_the_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        double v = NAN;
        bool found = llm_find_number(str_of(numbers[i].text), &v);
        if (found == isnan(numbers[i].number) || (found && v != numbers[i].number))
            fail_msg("\"%s\": %s %g, want %g", numbers[i].text, found ? "found" : "nothing, not", v,
                     numbers[i].number);
    }
}

static void reads_long_words(void **state)
{
    char text[300];
    double v;

    (void)state;
    memset(text, '1', sizeof(text));
    assert_false(llm_find_number((struct str){text, sizeof(text)}, &v));
    text[63] = ' ';
    assert_true(llm_find_number((struct str){text, sizeof(text)}, &v));
    memcpy(text, "\xe2\x88\x92", 3);
    assert_true(llm_find_number((struct str){text, sizeof(text)}, &v));
    assert_true(v < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_number),
        cmocka_unit_test(reads_long_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
