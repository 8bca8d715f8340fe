#include "exporter/base/buf.h"
#include "exporter/models/llm_prompt.h"

#include "exporter/base/def.h"
#include "test/oom.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const double times[] = {1718600000, 1718600060, 1718600120.5};
static const double values[] = {5, NAN, -0.25};
static const char labels[] = "{\"namespace\":\"n\",\"pod\":\"p\\u0031\"}";
static const struct llm_series series = {{labels, sizeof(labels) - 1}, times, values, ARRAY_SIZE(times)};

static void fills_placeholders(void **state)
{
    static const struct {
        const char *text, *prompt;
    } cases[] = {
        {"${values}", "1718600000 : 5\n1718600120.5 : -0.25\n"},
        {"a ${app_name} b", "a p1 b"},
        {"${labels}", "{\"namespace\":\"n\",\"pod\":\"p\\u0031\"}"},
        {"${timeseries_kind}/${tendency}", "KIND/it ${rises}"},
        {"costs $5, $ and $", "costs $5, $ and $"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_template t = {cases[i].text, "KIND", "it ${rises}"};
        BUF_AUTO(b, 1000);
        assert_int_equal(llm_put_prompt(&b, &t, &series), 0);
        assert_int_equal(buf_putc(&b, '\0'), 0);
        assert_string_equal(b.p, cases[i].prompt);
    }
}

static void names_a_series_without_a_pod(void **state)
{
    static const struct llm_template t = {"${app_name}", "", ""};
    struct llm_series other = series;
    BUF_AUTO(b, 1000);

    (void)state;
    other.labels = STR("{\"namespace\":\"n\",\"pod\":7}");
    assert_int_equal(llm_put_prompt(&b, &t, &other), 0);
    other.labels = STR("{}");
    assert_int_equal(llm_put_prompt(&b, &t, &other), 0);
    assert_true(str_eq(buf_str(&b), STR("nunknown")));
}

static void checks_templates(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"${values}", NULL},
        {llm_default_template, NULL},
        {"$ {values} ${values} {labels}", NULL},
        {"a\n${values} ${what}", "line 2: unknown placeholder \"${what}\""},
        {"${values", "line 1: unknown placeholder \"${values\""},
        {"only ${labels}", "no ${values}"},
        {"", "no ${values}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *why = NULL;
        assert_int_equal(llm_template_check(cases[i].text, &why), cases[i].why ? -EINVAL : 0);
        assert_true(!cases[i].why || strstr(why, cases[i].why));
        free(why);
    }
}

static void survives_a_lack_of_memory(void **state)
{
    static const struct llm_template t = {llm_default_template, "KIND", ""};

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(b, 1000);
        char *why = NULL;
        int r = llm_put_prompt(&b, &t, &series) ?: llm_template_check("${x}", &why);
        assert_true((r == -EINVAL && why) || (r == -ENOMEM && oom_happened()));
        free(why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_placeholders),
        cmocka_unit_test(names_a_series_without_a_pod),
        cmocka_unit_test(checks_templates),
        cmocka_unit_test(survives_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
