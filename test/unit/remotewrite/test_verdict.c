#include "exporter/base/http.h"
#include "remotewrite/verdict.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The rules, written a second way. */
static enum rw_verdict expected(long status)
{
    if (status / 100 == 2)
        return VERDICT_SENT;
    if (status / 100 == 5 || status / 100 == 3 || status == 429)
        return VERDICT_RETRY;
    if (status == 400 || status == 422)
        return VERDICT_HALVE;
    if (status == 413)
        return VERDICT_SHRINK;
    return status == 415 ? VERDICT_STEP_DOWN : VERDICT_DROP;
}

static void decides_by_status(void **state)
{
    (void)state;
    for (long status = 0; status <= 1000; status++)
        assert_int_equal(verdict_of(HTTP_OK, status), expected(status));
}

static void retries_without_a_response(void **state)
{
    (void)state;
    for (enum http_error e = HTTP_OK + 1; e < HTTP_ERRORS; e++)
        assert_int_equal(verdict_of(e, 400), VERDICT_RETRY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides_by_status),
        cmocka_unit_test(retries_without_a_response),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
