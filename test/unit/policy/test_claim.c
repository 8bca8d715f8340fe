/* What the Policies of a cluster say together. */
#include "controller/kube/json.h"
#include "controller/policy/claim.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ENTRY(time, message) "{\"lastTimestamp\":\"2026-11-21T06:" time "Z\",\"message\":\"" message "\"}"
#define POLICY(generation, edited, compliant, ...)                                                         \
    "{\"metadata\":{\"uid\":\"u\",\"generation\":" generation                                              \
    ",\"creationTimestamp\":\"2026-11-21T06:00:00Z\",\"managedFields\":[{\"time\":\"2026-11-21T06:" edited \
    "Z\"},{\"subresource\":\"status\",\"time\":\"2026-11-21T06:59:59Z\"}]},\"status\":{\"compliant\":"     \
    "\"" compliant "\",\"details\":[" __VA_ARGS__ "]}}"
#define DETAIL(...) "{\"history\":[" __VA_ARGS__ "]}"

static struct policy read_policy(const char *text)
{
    json_auto_t *o = NULL;
    struct policy p;

    assert_int_equal(kube_json_parse(&o, str_of(text), NULL), 0);
    policy_read(&p, o);
    return p;
}

/* Seconds after 06:00:00. */
static int64_t after_six(unix_ms t)
{
    enum { SIX_S = 1795240800 };

    return t.ms / 1000 - SIX_S;
}

static void reads_the_state(void **state)
{
    static const struct {
        const char *policy;
        enum policy_state state;
    } cases[] = {
        {"{\"status\":{\"compliant\":\"Compliant\"}}", POLICY_COMPLIANT},
        {"{\"status\":{\"compliant\":\"NonCompliant\"}}", POLICY_NONCOMPLIANT},
        {"{\"status\":{\"compliant\":\"Pending\"}}", POLICY_PENDING},
        {"{\"status\":{\"compliant\":\"compliant\"}}", POLICY_UNKNOWN},
        {"{\"status\":{}}", POLICY_UNKNOWN},
        {"{}", POLICY_UNKNOWN},
        {"{\"spec\":{\"disabled\":true},\"status\":{\"compliant\":\"Compliant\"}}", POLICY_DISABLED},
        {"{\"spec\":{\"disabled\":\"true\"}}", POLICY_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(read_policy(cases[i].policy).state, cases[i].state);
}

static void reads_since_when_it_is_compliant(void **state)
{
    static const struct {
        const char *policy;
        int64_t since, broken_at; /* 0: unknown, never; since is rounded up */
    } cases[] = {
        {POLICY("1", "00:10", "Compliant", DETAIL(ENTRY("01:00", "Compliant; x"))), 61, 0},
        {POLICY("1", "00:10", "Compliant",
                DETAIL(ENTRY("03:00", "Compliant; x") "," ENTRY("02:00", "Compliant; y") "," ENTRY(
                    "01:00", "NonCompliant; z") "," ENTRY("00:30", "Compliant; x"))),
         121, 60},
        /* Of several templates the last. */
        {POLICY("1", "00:10", "Compliant",
                DETAIL(ENTRY("01:00", "Compliant; x")) "," DETAIL(
                    ENTRY("02:00", "compliant") "," ENTRY("01:30", "Pending; z"))),
         121, 90},
        /* An edit after it. */
        {POLICY("2", "05:00", "Compliant", DETAIL(ENTRY("01:00", "Compliant; x"))), 301, 0},
        {POLICY("1", "00:10", "Compliant",
                DETAIL(ENTRY("01:00", "(combined from similar events): Compliant; x"))),
         61, 0},
        /* Without a history, or one that does not fit the state, the time is unknown. */
        {POLICY("1", "00:10", "Compliant", ""), 0, 0},
        {POLICY("1", "00:10", "Compliant", DETAIL()), 0, 0},
        {POLICY("1", "00:10", "Compliant", DETAIL(ENTRY("01:00", "Compliant")) "," DETAIL()), 0, 0},
        {POLICY("1", "00:10", "Compliant", DETAIL("{\"message\":\"Compliant\"}")), 0, 0},
        {POLICY("1", "00:10", "Compliant", DETAIL(ENTRY("01:00", "NonCompliant"))), 0, 60},
        {"{\"status\":{\"compliant\":\"Compliant\",\"details\":[" DETAIL(ENTRY("01:00", "Compliant")) "]}}",
         0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct policy p = read_policy(cases[i].policy);

        assert_int_equal(p.since.ms ? after_six(p.since) : 0, cases[i].since);
        assert_int_equal(p.broken_at.ms ? after_six(p.broken_at) : 0, cases[i].broken_at);
    }
}

static void notices_each_break(void **state)
{
    struct policy is = read_policy(POLICY("1", "00:10", "Compliant", DETAIL(ENTRY("01:00", "Compliant"))));
    struct policy later =
        read_policy(POLICY("1", "00:10", "Compliant",
                           DETAIL(ENTRY("02:00", "Compliant; again") "," ENTRY("01:00", "Compliant"))));
    struct policy unseen = read_policy(POLICY(
        "1", "00:10", "Compliant", DETAIL(ENTRY("03:00", "Compliant") "," ENTRY("02:00", "NonCompliant"))));
    struct policy edited =
        read_policy(POLICY("2", "00:10", "Compliant", DETAIL(ENTRY("01:00", "Compliant"))));
    struct policy pending = read_policy(POLICY("1", "00:10", "Pending", DETAIL(ENTRY("01:00", "Compliant"))));

    (void)state;
    assert_true(policy_stayed_compliant(&is, &later));
    assert_false(policy_stayed_compliant(&is, &unseen));
    assert_false(policy_stayed_compliant(&is, &edited));
    assert_false(policy_stayed_compliant(&is, &pending));
    assert_false(policy_stayed_compliant(&pending, &is));
    /* A history has ten entries: the break may have left it. */
    assert_true(policy_stayed_compliant(&unseen, &is));
}

static void counts_enabled_policies(void **state)
{
    struct policy_tally t = {0};

    (void)state;
    assert_false(policy_tally_is_compliant(&t));
    policy_tally_add(&t, &(struct policy){.state = POLICY_DISABLED});
    assert_int_equal(policy_tally_enabled(&t), 0);
    assert_false(policy_tally_is_compliant(&t));
    policy_tally_add(&t, &(struct policy){.state = POLICY_COMPLIANT, .since = {1000}});
    assert_int_equal(policy_tally_enabled(&t), 1);
    assert_true(policy_tally_is_compliant(&t));
    policy_tally_add(&t, &(struct policy){.state = POLICY_UNKNOWN});
    assert_int_equal(policy_tally_enabled(&t), 2);
    assert_false(policy_tally_is_compliant(&t));
}

static void counts_from_the_latest_time(void **state)
{
    struct policy_tally t = {0};

    (void)state;
    assert_int_equal(policy_tally_stable_ms(&t, (unix_ms){9000}), 0);
    policy_tally_add(&t, &(struct policy){.state = POLICY_COMPLIANT, .since = {3000}});
    policy_tally_add(&t, &(struct policy){.state = POLICY_COMPLIANT, .since = {5000}});
    assert_int_equal(policy_tally_stable_ms(&t, (unix_ms){8000}), 3000);
    assert_int_equal(policy_tally_stable_ms(&t, (unix_ms){4000}), 0);
    policy_tally_add(&t, &(struct policy){.state = POLICY_COMPLIANT});
    assert_int_equal(policy_tally_stable_ms(&t, (unix_ms){8000}), 0);
}

static void knows_who_wrote_the_value(void **state)
{
    static const struct {
        const char *fields;
        int64_t at;
    } cases[] = {
        {"{\"manager\":\"me\",\"time\":\"2026-11-21T06:01:00Z\",\"fieldsV1\":{\"f:spec\":{\"f:value\":{}}}}",
         60},
        {"{\"manager\":\"you\",\"time\":\"2026-11-21T06:01:00Z\",\"fieldsV1\":{\"f:spec\":{\"f:value\":{}}}}",
         0},
        {"{\"manager\":\"me\",\"time\":\"2026-11-21T06:01:00Z\",\"fieldsV1\":{\"f:metadata\":{}}}", 0},
        {"7", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *entry = json_loads(cases[i].fields, JSON_DECODE_ANY, NULL);
        json_auto_t *o = json_pack("{s:{s:[O]}}", "metadata", "managedFields", entry);
        unix_ms at = claim_written_at(o, "me");

        assert_int_equal(at.ms ? after_six(at) : 0, cases[i].at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_state),
        cmocka_unit_test(reads_since_when_it_is_compliant),
        cmocka_unit_test(notices_each_break),
        cmocka_unit_test(counts_enabled_policies),
        cmocka_unit_test(counts_from_the_latest_time),
        cmocka_unit_test(knows_who_wrote_the_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
