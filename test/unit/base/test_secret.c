#include "exporter/base/buf.h"
#include "exporter/base/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void finds_a_token_between_white_space(void **state)
{
    static const struct {
        struct str value, token;
    } cases[] = {
        {STR("abc"), STR("abc")},
        {STR("abc\n"), STR("abc")},
        {STR(" \tabc\r\n\n"), STR("abc")},
        {STR("eyJhbGciOi.J9-_~+/=="), STR("eyJhbGciOi.J9-_~+/==")},
        {STR("!~"), STR("!~")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct str token;

        assert_null(secret_token(cases[i].value, &token));
        assert_true(str_eq(token, cases[i].token));
    }
}

static void refuses_what_cannot_go_into_a_header(void **state)
{
    static const struct str bad[] = {
        STR("two words"),    STR("tab\tinside"), STR("secret\r\nX-Evil: 1"), STR("secret\nsecond"),
        STR("secret\0rest"), STR("secret\x7f"),  STR("secr\xc3\xa9t"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct str token = STR("untouched");

        assert_string_equal(secret_token(bad[i], &token),
                            "not a token: it contains white space or characters not allowed in a header");
        assert_true(str_eq(token, STR("untouched")));
    }
}

static void refuses_an_empty_value(void **state)
{
    struct str token;

    (void)state;
    assert_string_equal(secret_token(STR(""), &token), "empty");
    assert_string_equal(secret_token(STR(" \n\n"), &token), "empty");
}

static void leaves_nothing_behind(void **state)
{
    struct buf b = {.max = 100};

    (void)state;
    buf_puts(&b, "secret");
    assert_int_equal(buf_failed(&b), 0);
    secret_done(&b);
    assert_null(b.p);
    assert_int_equal(b.max, 100);
    secret_done(&b); /* an empty one too */
    assert_null(secret_free(str_dup(STR("secret"))));
    assert_null(secret_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_token_between_white_space),
        cmocka_unit_test(refuses_what_cannot_go_into_a_header),
        cmocka_unit_test(refuses_an_empty_value),
        cmocka_unit_test(leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
