#include "exporter/base/def.h"
#include "exporter/base/httpd.h"
#include "exporter/web/bearer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool is_probe(const struct httpd_request *rq)
{
    return strcmp(rq->path, "/healthz") == 0;
}

/* 200, or the status of the refusal. */
static unsigned status_of(const struct bearer *b, const char *method, const char *path,
                          const char *authorization)
{
    const struct httpd_request rq = {.method = method, .path = path, .authorization = authorization};
    const struct httpd_guard *g = bearer_guard(b);
    struct httpd_refusal refusal = {0};

    if (g->check(g->arg, &rq, NULL, &refusal) == HTTPD_ALLOW)
        return 200;
    assert_int_equal(refusal.challenge != NULL, refusal.status == 401);
    return refusal.status;
}

static void requires_the_token(void **state)
{
    static const struct {
        const char *authorization;
        unsigned status;
    } cases[] = {
        {"Bearer s3cret", 200}, {"bEARER  s3cret ", 200}, {"", 401},
        {"Bearer", 401},        {"Bearer ", 401},         {"Bearer s3cre", 401},
        {"s3cret", 401},        {"Bearer s3cret2", 401},  {"Basic s3cret", 401},
        {"Bearer S3CRET", 401}, {"Bearers3cret", 401},
    };
    struct bearer b;

    (void)state;
    bearer_init(&b, NULL, "s3cret", is_probe);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(status_of(&b, "POST", "/scoring", cases[i].authorization), cases[i].status);
    assert_int_equal(status_of(&b, "GET", "/config", ""), 401);
    assert_int_equal(status_of(&b, "GET", "/healthz", ""), 200);
}

static void refuses_all_calls_without_a_readable_token(void **state)
{
    struct bearer b;

    (void)state;
    bearer_init(&b, "/nonexistent/token", NULL, is_probe);
    assert_int_equal(status_of(&b, "POST", "/scoring", "Bearer x"), 503);
    bearer_init(&b, NULL, "", is_probe);
    assert_int_equal(status_of(&b, "POST", "/scoring", "Bearer x"), 503);
    bearer_init(&b, NULL, NULL, is_probe);
    assert_null(bearer_guard(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requires_the_token),
        cmocka_unit_test(refuses_all_calls_without_a_readable_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
