/* Conditions of a status. */
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const unix_ms now = {1795242181042};

static json_t *status(void)
{
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o,
                                     STR("{\"conditions\":[{\"type\":7},null,"
                                         "{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"
                                         "\"2020-01-01T00:00:00Z\"},"
                                         "{\"type\":\"Ready\",\"status\":\"False\"},"
                                         "{\"type\":\"Valid\",\"status\":\"False\"}]}"),
                                     NULL),
                     0);
    return o;
}

static void finds_the_first_condition_of_a_type(void **state)
{
    json_auto_t *o = status();

    (void)state;
    assert_true(kube_condition_is(kube_condition(o, "Ready"), "True"));
    assert_true(kube_condition_is(kube_condition(o, "Valid"), "False"));
    assert_null(kube_condition(o, "Other"));
    assert_null(kube_condition(NULL, "Ready"));
}

static void says_why_in_one_line(void **state)
{
    static const struct {
        const char *condition, *why;
    } cases[] = {
        {"{\"message\":\"no\\nlease\",\"reason\":\"Gone\"}", "no lease"},
        {"{\"message\":\"\",\"reason\":\"Gone\"}", "Gone"},
        {"{}", ""},
    };
    char why[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = NULL;

        assert_int_equal(kube_json_parse(&o, str_of(cases[i].condition), NULL), 0);
        kube_condition_why(o, why, sizeof(why));
        assert_string_equal(why, cases[i].why);
        json_decref(o);
    }
    kube_condition_why(NULL, why, sizeof(why));
    assert_string_equal(why, "");
}

static void has_no_status_when_absent(void **state)
{
    (void)state;
    assert_false(kube_condition_is(NULL, "True"));
    assert_false(kube_condition_is(NULL, "False"));
}

static void keeps_the_transition_time_while_the_status_is_the_same(void **state)
{
    json_auto_t *o = status();
    struct kube_condition c = {.type = "Ready", .status = "True"};

    (void)state;
    assert_string_equal(kube_condition_since(o, &c), "2020-01-01T00:00:00Z");
    c.status = "False";
    assert_null(kube_condition_since(o, &c));
    c.type = "Other";
    assert_null(kube_condition_since(o, &c));
}

static void prints_as(const struct kube_condition *c, const char *since, const char *expected)
{
    json_auto_t *value = kube_condition_value(c, since, now);
    BUF_AUTO(text, 4096);

    assert_int_equal(kube_json_print(value, &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_string_equal(text.p, expected);
}

static void writes_a_condition(void **state)
{
    struct kube_condition c = {.type = "Ready", .status = "False", .reason = "Why", .message = "because"};

    (void)state;
    prints_as(&c, NULL,
              "{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Why\",\"message\":\"because\","
              "\"lastTransitionTime\":\"2026-11-21T06:23:01Z\"}");
    c.generation = 3;
    prints_as(&c, "2020-01-01T00:00:00Z",
              "{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Why\",\"message\":\"because\","
              "\"lastTransitionTime\":\"2020-01-01T00:00:00Z\",\"observedGeneration\":3}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_condition_of_a_type),
        cmocka_unit_test(says_why_in_one_line),
        cmocka_unit_test(has_no_status_when_absent),
        cmocka_unit_test(keeps_the_transition_time_while_the_status_is_the_same),
        cmocka_unit_test(writes_a_condition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
