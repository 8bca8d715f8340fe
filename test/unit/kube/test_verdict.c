/* What answers mean. The bodies are those of real API servers. */

#include "controller/kube/answer.h"
#include "controller/kube/verdict.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define STATUS(reason, message, more)                                                          \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" message \
    "\",\"reason\":\"" reason "\"" more "}"

static const struct {
    long http;
    const char *body;
    enum kube_verdict verdict;
    const char *reason, *message;
} answers[] = {
    {200, "whatever", KUBE_OK, "", ""},
    {201, "", KUBE_OK, "", ""},
    {302, "", KUBE_RETRY, "", "HTTP 302 Found"},
    {600, "", KUBE_RETRY, "", "HTTP 600"},
    {400, STATUS("BadRequest", "the object provided is unrecognized", ""), KUBE_INVALID, "BadRequest",
     "the object provided is unrecognized"},
    {401, STATUS("Unauthorized", "Unauthorized", ""), KUBE_UNAUTHORIZED, "Unauthorized", "Unauthorized"},
    {403, STATUS("Forbidden", "x is forbidden: User \\\"u\\\" cannot get x", ""), KUBE_FORBIDDEN, "Forbidden",
     "forbidden: cannot get x (User \"u\")"},
    {403, STATUS("Forbidden", "x is forbidden: User \\\" cannot get x", ""), KUBE_FORBIDDEN, "Forbidden",
     "x is forbidden: User \" cannot get x"},
    {403, STATUS("Forbidden", "x is forbidden: User \\\"u", ""), KUBE_FORBIDDEN, "Forbidden",
     "x is forbidden: User \"u"},
    {403, STATUS("Forbidden", "x is forbidden: ValidatingAdmissionPolicy 'p' denied request", ""),
     KUBE_FORBIDDEN, "Forbidden", "x is forbidden: ValidatingAdmissionPolicy 'p' denied request"},
    {403,
     STATUS("Forbidden",
            "addonplacementscores.cluster.open-cluster-management.io \\\"energy\\\" is forbidden: User "
            "\\\"system:open-cluster-management:cluster:cluster1:addon:dynamic-scoring:agent:"
            "dynamic-scoring-6c9f\\\" cannot patch resource \\\"addonplacementscores/status\\\" in API group "
            "\\\"cluster.open-cluster-management.io\\\" in the namespace \\\"cluster1\\\"",
            ""),
     KUBE_FORBIDDEN, "Forbidden",
     "forbidden: cannot patch resource \"addonplacementscores/status\" in API group "
     "\"cluster.open-cluster-management.io\" in the namespace \"cluster1\" (User "
     "\"system:open-cluster-management:cluster:…:dynamic-scoring-6c9f\")"},
    {404,
     STATUS("NotFound", "configmaps \\\"x\\\" not found",
            ",\"details\":{\"name\":\"x\",\"kind\":\"configmaps\"}"),
     KUBE_NOT_FOUND, "NotFound", "configmaps \"x\" not found"},
    {404, STATUS("NotFound", "the server could not find the requested resource", ",\"details\":{}"),
     KUBE_NO_KIND, "NotFound", "the server could not find the requested resource"},
    {404, "404 page not found\n", KUBE_NO_KIND, "", "HTTP 404 Not Found: 404 page not found"},
    {408, "", KUBE_RETRY, "", "HTTP 408 Request Timeout"},
    {409, STATUS("AlreadyExists", "already exists", ""), KUBE_EXISTS, "AlreadyExists", "already exists"},
    {409, STATUS("Conflict", "the object has been modified", ""), KUBE_CONFLICT, "Conflict",
     "the object has been modified"},
    {410, STATUS("Expired", "The provided continue parameter is too old", ""), KUBE_GONE, "Expired",
     "The provided continue parameter is too old"},
    {413, "", KUBE_TOO_LARGE, "", "HTTP 413 Content Too Large"},
    {415, STATUS("UnsupportedMediaType", "no", ""), KUBE_INVALID, "UnsupportedMediaType", "no"},
    {422, STATUS("Invalid", "status.scores[0].value: Invalid value: 101", ""), KUBE_INVALID, "Invalid",
     "status.scores[0].value: Invalid value: 101"},
    {429, "Too many requests, please try again later.\n", KUBE_RETRY, "",
     "HTTP 429 Too Many Requests: Too many requests, please try again later."},
    {500, STATUS("", "etcdserver: request is too large", ""), KUBE_TOO_LARGE, "",
     "etcdserver: request is too large"},
    {500,
     STATUS("", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)",
            ""),
     KUBE_TOO_LARGE, "",
     "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"},
    {500, STATUS("InternalError", "boom", ""), KUBE_RETRY, "InternalError", "boom"},
    {503, "<html>\r\nbad\x01gateway", KUBE_RETRY, "", "HTTP 503 Service Unavailable: <html>  bad gateway"},
    {504, STATUS("Timeout", "Too large resource version: 100, current: 50", ""), KUBE_GONE, "Timeout",
     "Too large resource version: 100, current: 50"},
    {500, "{\"message\":7,\"reason\":{}}", KUBE_RETRY, "", "HTTP 500 Internal Server Error"},
    {500, "{broken", KUBE_RETRY, "", "HTTP 500 Internal Server Error: {broken"},
    {500, "[]", KUBE_RETRY, "", "HTTP 500 Internal Server Error: []"},
};

static void judges_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct kube_answer s = {0};
        kube_status_of_answer(answers[i].http, str_of(answers[i].body), &s);
        print_message("%ld %s\n", answers[i].http, s.why);
        assert_string_equal(kube_verdict_word(s.verdict), kube_verdict_word(answers[i].verdict));
        assert_string_equal(s.reason, answers[i].reason);
        assert_string_equal(s.why, answers[i].message);
        assert_int_equal(s.retry_after_ms, -1);
    }
}

static void reads_retry_after_from_a_status(void **state)
{
    static const struct {
        const char *seconds;
        int64_t ms;
    } cases[] = {{"1", 1000}, {"0", 0}, {"-1", -1}, {"86401", -1}, {"\"1\"", -1}, {"1.5", -1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char body[200];
        struct kube_answer s = {0};
        (void)snprintf(body, sizeof(body),
                       STATUS("Timeout", "later", ",\"details\":{\"retryAfterSeconds\":%s}"),
                       cases[i].seconds);
        kube_status_of_answer(503, str_of(body), &s);
        assert_int_equal(s.retry_after_ms, cases[i].ms);
    }
}

static void cuts_a_message_at_a_character(void **state)
{
    char body[4096] = "{\"message\":\"";
    struct kube_answer s = {0};

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        (void)strcat(body, "\xc3\xa4");
    (void)strcat(body, "\"}");
    kube_status_of_answer(500, str_of(body), &s);
    assert_true(strlen(s.why) > 500 && strlen(s.why) < sizeof(s.why));
    assert_non_null(strstr(s.why, "…"));
    assert_int_equal((strlen(s.why) - 3) % 2, 0);
}

static void judges_error_events(void **state)
{
    static const struct {
        const char *body;
        enum kube_verdict verdict;
    } cases[] = {
        {"{\"code\":410,\"reason\":\"Expired\",\"message\":\"too old resource version: 1 (2)\"}", KUBE_GONE},
        {"{\"code\":410,\"reason\":\"Gone\"}", KUBE_GONE},
        {"{\"reason\":\"Expired\"}", KUBE_GONE},
        {"{\"code\":500,\"reason\":\"InternalError\"}", KUBE_RETRY},
        {"{\"code\":200}", KUBE_RETRY},
        {"{\"code\":99999999999}", KUBE_RETRY},
        {"{\"code\":403}", KUBE_FORBIDDEN},
        {"{}", KUBE_RETRY},
        {"[]", KUBE_RETRY},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = json_loads(cases[i].body, 0, NULL);
        struct kube_answer s = {0};
        kube_status_of_event(o, &s);
        assert_string_equal(kube_verdict_word(s.verdict), kube_verdict_word(cases[i].verdict));
        assert_true(s.why[0]);
    }
}

/* base.test_backoff has the rest. */
static void backs_off_for_at_most_two_minutes_of_retry_after(void **state)
{
    (void)state;
    assert_in_range(kube_backoff_ms(1, 1000, 60000, 120000), 120000, 150000);
    assert_in_range(kube_backoff_ms(1, 1000, 60000, 86400000), 120000, 150000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges_answers),
        cmocka_unit_test(reads_retry_after_from_a_status),
        cmocka_unit_test(cuts_a_message_at_a_character),
        cmocka_unit_test(judges_error_events),
        cmocka_unit_test(backs_off_for_at_most_two_minutes_of_retry_after),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
