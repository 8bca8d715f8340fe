#include "controller/check/findings.h"
#include "controller/check/rules.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void fill(struct findings *f)
{
    struct call_row *row;

    findings_init(f);
    f->url = strdup("http://user:secret@h/config");
    row = findings_add_row(f, "GET /healthz");
    row->status = 200;
    row->seconds = 0.0015;
    (void)findings_add_row(f, "10 series");
    findings_add(f, RULE_CONTENT_TYPE, "it is %s", "text/plain");
    findings_add(f, RULE_SCORE, "results[0].score: missing\n\x1b[31m");
    (void)findings_add_row(f, "the same again");
    findings_add(f, RULE_SCORE, "again");
}

static void keeps_one_finding_for_each_rule(void **state)
{
    struct findings f;

    (void)state;
    fill(&f);
    assert_int_equal(f.n_findings, 2);
    assert_int_equal(f.by_level[RULE_PROBLEM], 1);
    assert_int_equal(f.by_level[RULE_WARNING], 1);
    assert_string_equal(f.findings[1].what, "10 series");
    assert_true(findings_has(&f, RULE_SCORE) && !findings_has(&f, RULE_JSON) && findings_has_problems(&f));
    assert_true(f.rows[0].ok && !f.rows[1].ok && !f.rows[2].ok);
    findings_done(&f);
}

static void has_no_problem_with_a_warning(void **state)
{
    struct findings f;

    (void)state;
    findings_init(&f);
    (void)findings_add_row(&f, "10 series");
    findings_add(&f, RULE_SCORE_RANGE, "1 of 2 values are clamped");
    assert_true(f.rows[0].ok && !findings_has_problems(&f));
    findings_done(&f);
}

static void shows_neither_credentials_nor_control_characters(void **state)
{
    struct findings f;
    BUF_AUTO(table, 1 << 20);
    BUF_AUTO(json, 1 << 20);

    (void)state;
    fill(&f);
    assert_int_equal(findings_table(&f, 0, &table), 0);
    assert_int_equal(findings_json(&f, &json), 0);
    assert_int_equal(buf_putc(&table, '\0'), 0);
    assert_int_equal(buf_putc(&json, '\0'), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_null(strstr(i ? json.p : table.p, "secret"));
        assert_null(strchr(i ? json.p : table.p, '\x1b'));
    }
    assert_non_null(strstr(table.p, "✗ score: "));
    assert_non_null(strstr(table.p, "http://h/config: 1 problem, 1 warning\n"));
    assert_non_null(strstr(json.p, "\"rule\":\"score\",\"level\":\"problem\",\"call\":\"10 series\""));
    findings_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_one_finding_for_each_rule),
        cmocka_unit_test(has_no_problem_with_a_warning),
        cmocka_unit_test(shows_neither_credentials_nor_control_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
