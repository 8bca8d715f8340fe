#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "exporter/models/power_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Reads a list of applications; the first problem's text, or "", into `why`. */
static void read_config(struct power_config *c, const char *text, struct buf *why)
{
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;

    assert_int_equal(problems_init(&p, "config.json"), 0);
    assert_int_equal(doc_parse(&doc, str_of(text), &p), 0);
    power_config_read(c, doc_root(doc), &p);
    buf_truncate(why, 0);
    assert_int_equal(buf_printf(why, "%s%c", p.n ? p.list[0].text : "", 0), 0);
}

static void takes_the_first_alias_that_matches(void **state)
{
    CLEANUP(power_config_done) struct power_config c = {0};
    BUF_AUTO(why, 1000);

    (void)state;
    read_config(&c,
                "- {name: a, device_candidates: [all, 2g.24gb], pod_alias: ['vllm-a-?', 'shared-*']}\n"
                "- {name: b, device_candidates: [all], pod_alias: ['shared-b', 'vllm-*']}\n",
                &why);
    assert_string_equal(why.p, "");
    assert_string_equal(power_config_app(&c, "vllm-a-1"), "a");
    assert_string_equal(power_config_app(&c, "vllm-a-12"), "b");
    assert_string_equal(power_config_app(&c, "shared-b"), "a");
    assert_null(power_config_app(&c, "my-vllm-a-1"));
    assert_int_equal(c.n_pairs, 3);
    assert_int_equal(power_config_pair(&c, "a", "2g.24gb"), 1);
    assert_int_equal(power_config_pair(&c, "b", "2g.24gb"), 3);
}

static void knows_devices_by_the_profile(void **state)
{
    static const char *const cases[][2] = {
        {"3g.47gb", "3g.48gb"}, {"3g.47gb.me", "3g.48gb"}, {"2g.24gb", "2g.24gb"},
        {"2g.23gb", "2g.24gb"}, {"1g.12gb", "1g.12gb"},    {"1g.12gb+me", "1g.12gb"},
        {"3g.40gb", "all"},     {"7g.94gb", "all"},        {"", "all"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(power_device(cases[i][0]), cases[i][1]);
}

static void names_the_field_that_is_wrong(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "expected a list of applications"},
        {"[7]", "[0]: expected an object with \"name\", \"device_candidates\" and \"pod_alias\""},
        {"- {device_candidates: [all], pod_alias: [a]}",
         "[0].name: missing, expected the application's name"},
        {"- {name: a, pod_alias: [a]}", "[0].device_candidates: missing, expected a list of strings"},
        {"- {name: a, device_candidates: all, pod_alias: [a]}", "[0].device_candidates: expected a list"},
        {"- {name: a, device_candidates: [all], pod_alias: ['']}", "[0].pod_alias[0]: expected a string"},
        {"- {name: a, device_candidates: [all], pod_alias: [a], devices: []}", "[0].devices: unknown"},
    };
    BUF_AUTO(why, 1000);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(power_config_done) struct power_config c = {0};

        read_config(&c, cases[i][0], &why);
        if (!strstr(why.p, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], why.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_first_alias_that_matches),
        cmocka_unit_test(knows_devices_by_the_profile),
        cmocka_unit_test(names_the_field_that_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
