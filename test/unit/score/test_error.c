#include "exporter/base/http.h"
#include "exporter/score/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* They become label values: all there, all different, all plain. */
static void gives_each_error_a_word_fit_for_labels(void **state)
{
    (void)state;
    for (enum round_error e = ROUND_OK; e < ROUND_ERRORS; e++) {
        const char *word = round_error_word(e);
        assert_non_null(word);
        assert_true(*word && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(word));
        for (enum round_error other = ROUND_OK; other < e; other++)
            assert_string_not_equal(word, round_error_word(other));
    }
    assert_string_equal(round_error_word(ROUND_TIMEOUT), "timeout");
    assert_string_equal(round_error_word(ROUND_HTTP_5XX), "http_5xx");
}

static void classifies_responses_and_says_when_to_retry(void **state)
{
    static const struct {
        enum http_error error;
        long status;
        enum round_error want;
        enum round_retry retry;
    } cases[] = {
        {HTTP_URL, 0, ROUND_URL, ROUND_RETRY_NEXT},
        {HTTP_DNS, 0, ROUND_DNS, ROUND_RETRY_SOON},
        {HTTP_CONNECT, 0, ROUND_CONNECT, ROUND_RETRY_SOON},
        {HTTP_TLS, 0, ROUND_TLS, ROUND_RETRY_SOON},
        {HTTP_TIMEOUT, 0, ROUND_TIMEOUT, ROUND_RETRY_SOON},
        {HTTP_TIMEOUT, 200, ROUND_TIMEOUT, ROUND_RETRY_SOON}, /* the headers came, the body did not */
        {HTTP_TOO_LARGE, 200, ROUND_TOO_LARGE, ROUND_RETRY_NEXT},
        {HTTP_BROKEN, 0, ROUND_BROKEN, ROUND_RETRY_SOON},
        {HTTP_MEMORY, 0, ROUND_MEMORY, ROUND_RETRY_SOON},
        {HTTP_OK, 200, ROUND_OK, ROUND_RETRY_NEXT},
        {HTTP_OK, 204, ROUND_OK, ROUND_RETRY_NEXT},
        {HTTP_OK, 299, ROUND_OK, ROUND_RETRY_NEXT},
        {HTTP_OK, 300, ROUND_HTTP_OTHER, ROUND_RETRY_NEXT},
        {HTTP_OK, 304, ROUND_HTTP_OTHER, ROUND_RETRY_NEXT},
        {HTTP_OK, 199, ROUND_HTTP_OTHER, ROUND_RETRY_NEXT},
        {HTTP_OK, 0, ROUND_HTTP_OTHER, ROUND_RETRY_NEXT},
        {HTTP_OK, 400, ROUND_HTTP_4XX, ROUND_RETRY_NEXT},
        {HTTP_OK, 401, ROUND_HTTP_4XX, ROUND_RETRY_NEXT},
        {HTTP_OK, 404, ROUND_HTTP_4XX, ROUND_RETRY_NEXT},
        {HTTP_OK, 429, ROUND_HTTP_5XX, ROUND_RETRY_SOON}, /* too many requests: passes by itself */
        {HTTP_OK, 499, ROUND_HTTP_4XX, ROUND_RETRY_NEXT},
        {HTTP_OK, 500, ROUND_HTTP_5XX, ROUND_RETRY_SOON},
        {HTTP_OK, 503, ROUND_HTTP_5XX, ROUND_RETRY_SOON},
        {HTTP_OK, 599, ROUND_HTTP_5XX, ROUND_RETRY_SOON},
        {HTTP_OK, 600, ROUND_HTTP_OTHER, ROUND_RETRY_NEXT},
        {HTTP_OK, 999, ROUND_HTTP_OTHER, ROUND_RETRY_NEXT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_answer a = {.error = cases[i].error, .status = cases[i].status};
        assert_string_equal(round_error_word(round_error_of_answer(&a)), round_error_word(cases[i].want));
        assert_int_equal(round_error_retry(cases[i].want), cases[i].retry);
    }
}

static void takes_no_failed_transfer_for_a_success(void **state)
{
    (void)state;
    for (enum http_error e = HTTP_OK + 1; e < HTTP_ERRORS; e++)
        assert_int_not_equal(round_error_of_answer(&(struct http_answer){.error = e, .status = 200}),
                             ROUND_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_each_error_a_word_fit_for_labels),
        cmocka_unit_test(classifies_responses_and_says_when_to_retry),
        cmocka_unit_test(takes_no_failed_transfer_for_a_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
