/* Secrets in text. */
#include "exporter/base/secret.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void expect(const char *text, const char *want)
{
    char *copy = strdup(text);

    secret_hide_text(copy);
    assert_string_equal(copy, want);
    free(copy);
}

static void changes_nothing_without_secrets(void **state)
{
    (void)state;
    expect("Bearer tok-5ecret/+1", "Bearer tok-5ecret/+1");
    expect("", "");
}

static void hides_every_form(void **state)
{
    static const char *const cases[][2] = {
        {"tok-5ecret/+1", "***"},
        {"a tok-5ecret/+1 and tok-5ecret/+1tok-5ecret/+1", "a *** and ******"},
        {"tok-5ecret/+", "tok-5ecret/+"},
        {"tok-5ecret%2F%2b1.", "***."},
        {"%74%6f%6B-5ecret%2F+1", "***"},
        {"{\"a\":\"tok-5ecret\\/+1\"}", "{\"a\":\"***\"}"},
        {"tok-5ecret/\\u002B1", "***"},
        {"tok-5ecret/&#43;1", "***"},
        /* base64 of the token after "", "a", "ab", and with digits of the URL alphabet */
        {"dG9rLTVlY3JldC8rMQ==", "***Q=="},
        {"YXRvay01ZWNyZXQvKzE=", "YX***E="},
        {"YWJ0b2stNWVjcmV0Lysx", "YWJ***"},
        {"YWJ0b2stNWVjcmV0Lysx%3D", "YWJ***%3D"},
        {"pass w\xc3\xb6rt&co", "***"},
        {"pass%20w%C3%B6rt%26co", "***"},
        {"pass w\xc3\xb6rt&amp;co", "***"},
        {"Basic dXNlcjpwYTU1IHcwcmQ=", "Basic ***Q="},
        {"user:pa55 w0rd", "***"},
        {"pa55 w0rd", "***"},
        {"ZFhObGNqcHdZVFUxSUhjd2NtUT0=", "***UT0="},
        {"short", "short"},
        {"", ""},
    };

    (void)state;
    secret_used(STR("tok-5ecret/+1"));
    secret_used(STR("pass w\xc3\xb6rt&co"));
    secret_used_basic(STR("user"), STR("pa55 w0rd"));
    secret_used(STR("short"));
    secret_used(STR(""));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect(cases[i][0], cases[i][1]);
}

static void hides_the_longer_of_two(void **state)
{
    (void)state;
    secret_used(STR("prefix-of-it"));
    secret_used(STR("prefix-of-it-and-more"));
    expect("prefix-of-it-and-more, prefix-of-it", "***, ***");
}

static void knows_thousands(void **state)
{
    char text[64];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(text, sizeof(text), "number-%d-of-many", i);
        secret_used(str_of(text));
    }
    expect("number-0-of-many number-4999-of-many number-5000-of-many", "*** *** number-5000-of-many");
}

static void *use_and_hide(void *arg)
{
    for (int i = 0; i < 200; i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "thread-%u-secret-%d", *(const unsigned *)arg, i);
        secret_used(str_of(text));
        secret_hide_text(text);
        assert_string_equal(text, "***");
    }
    return NULL;
}

static void serves_several_threads(void **state)
{
    unsigned names[] = {1, 2, 3};
    pthread_t threads[ARRAY_SIZE(names)];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_and_hide, &names[i]), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_nothing_without_secrets), /* first */
        cmocka_unit_test(hides_every_form),
        cmocka_unit_test(hides_the_longer_of_two),
        cmocka_unit_test(knows_thousands),
        cmocka_unit_test(serves_several_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
