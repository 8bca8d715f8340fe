#include "exporter/base/def.h"
#include "exporter/base/header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void knows_names(void **state)
{
    static const struct str good[] = {STR("X-Scope-OrgID"), STR("a"), STR("!#$%&'*+-.^_`|~09")},
                            bad[] = {STR(""),    STR("a b"),  STR("a:"),
                                     STR("a\r"), STR("a\0b"), STR("h\xc3\xa9")};
    static char large[257];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(header_is_name(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(header_is_name(bad[i]));
    memset(large, 'n', sizeof(large));
    assert_true(header_is_name((struct str){large, 256}));
    assert_false(header_is_name((struct str){large, 257}));
}

static void knows_values(void **state)
{
    static const struct str good[] = {STR("x"), STR("two words\tand a tab"), STR("h\xc3\xa9")},
                            bad[] = {STR(""), STR("a\nb"), STR("a\rb"), STR("a\0b"), STR("\x7f")};
    static char large[HEADER_VALUE_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(header_is_value(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(header_is_value(bad[i]));
    memset(large, 'v', sizeof(large));
    assert_true(header_is_value((struct str){large, HEADER_VALUE_MAX}));
    assert_false(header_is_value((struct str){large, HEADER_VALUE_MAX + 1}));
}

static void knows_reserved_names_in_any_case(void **state)
{
    (void)state;
    assert_true(header_is_reserved(STR("Host")));
    assert_true(header_is_reserved(STR("content-LENGTH")));
    assert_true(header_is_reserved(STR("Transfer-Encoding")));
    assert_true(header_is_reserved(STR("authorization")));
    assert_false(header_is_reserved(STR("X-API-Key")));
    assert_false(header_is_reserved(STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_names),
        cmocka_unit_test(knows_values),
        cmocka_unit_test(knows_reserved_names_in_any_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
