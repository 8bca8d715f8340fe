/* Agents' reports: what is kept of them, and that invalid ones change nothing. */
#include "controller/hub/rules/report.h"
#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/score/feature.h"
#include "exporter/score/scorer_state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void parse(struct report *r, const char *text)
{
    assert_int_equal(report_parse(r, str_of(text)), 0);
}

static const struct report_cell *find(const struct report *r, const char *name)
{
    return report_find(r, report_score(str_of(name)));
}

/* As written by agent_report.c. */
static const char sample[] =
    "{\"configurationInForce\":true,\"scorers\":["
    "{\"scoreName\":\"cpu\",\"state\":\"ok\",\"lastSuccess\":\"2026-01-01T00:00:00Z\"},"
    "{\"scoreName\":\"gpu\",\"state\":\"failing\",\"lastSuccess\":null,\"error\":\"connection refused\"},"
    "{\"scoreName\":\"ä\",\"state\":\"waiting\",\"lastSuccess\":null},"
    "{\"scoreName\":\"old\",\"state\":\"stale\",\"lastSuccess\":null,\"error\":\"HTTP "
    "500\",\"placementError\":\"403\"},"
    "{\"scoreName\":\"none\",\"state\":\"empty\",\"lastSuccess\":null},"
    "{\"scoreName\":\"place\",\"state\":\"ok\",\"lastSuccess\":null,\"placementError\":\"forbidden\"}],"
    "\"notShown\":3}";

static void reads_a_report(void **state)
{
    static const struct {
        const char *name;
        enum scorer_state state;
        bool fails;
        const char *error;
    } cases[] = {
        {"cpu", SCORER_OK, false, ""},     {"gpu", SCORER_FAILING, true, "connection refused"},
        {"ä", SCORER_WAITING, false, ""},  {"old", SCORER_STALE, true, "HTTP 500"},
        {"none", SCORER_EMPTY, false, ""}, {"place", SCORER_OK, true, "forbidden"},
    };
    CLEANUP(report_done) struct report r = {0};

    (void)state;
    parse(&r, sample);
    assert_true(r.exists && r.config_ok);
    assert_null(r.problem);
    assert_int_equal(r.n, ARRAY_SIZE(cases));
    assert_int_equal(r.not_shown, 3);
    assert_true(r.hash == hash_bytes(str_of(sample)));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct report_cell *c = find(&r, cases[i].name);

        assert_non_null(c);
        assert_int_equal(c->state, cases[i].state);
        assert_int_equal(report_cell_fails(c), cases[i].fails);
        assert_string_equal(report_error(&r, c), cases[i].error);
    }
    assert_null(find(&r, "other"));
    assert_null(find(&(struct report){0}, "cpu"));
}

static void reads_what_the_agent_knows(void **state)
{
    static const struct {
        const char *text;
        unsigned features;
    } cases[] = {
        {"{\"scorers\":[],\"features\":[\"a\",\"scoreItems\"]}", 1u << FEATURE_SCORE_ITEMS},
        {"{\"scorers\":[],\"features\":[\"scoreTolerance\",\"reversedScoreRange\"]}",
         1u << FEATURE_SCORE_TOLERANCE | 1u << FEATURE_REVERSED_RANGE},
        {"{\"scorers\":[],\"features\":[\"scoreItem\",7,null,{}]}", 0},
        {"{\"scorers\":[],\"features\":\"scoreItems\"}", 0},
        {"{\"scorers\":[]}", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};
        CLEANUP(report_done) struct report without = {0};

        parse(&r, cases[i].text);
        parse(&without, "{\"scorers\":[]}");
        assert_int_equal(r.features, cases[i].features);
        assert_int_equal(report_same(&r, &without), cases[i].features == 0);
    }
}

static void reads_the_offset_of_the_clock(void **state)
{
    static const struct {
        const char *value;
        int32_t seconds;
    } cases[] = {
        {"120", 120}, {"-45", -45}, {"0", 0},    {"1000000000", 0}, {"-99999999999999", 0},
        {"1.5", 0},   {"\"7\"", 0}, {"null", 0}, {"-", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};
        CLEANUP(report_done) struct report without = {0};
        char text[128];

        (void)snprintf(text, sizeof(text), "{\"scorers\":[],\"clockOffsetSeconds\":%s}", cases[i].value);
        if (report_parse(&r, str_of(text)) < 0)
            continue; /* not JSON */
        parse(&without, "{\"scorers\":[]}");
        assert_int_equal(r.clock_offset_s, cases[i].seconds);
        assert_int_equal(report_same(&r, &without), cases[i].seconds == 0);
    }
}

static void reads_every_state_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCORER_STATES; i++) {
        CLEANUP(report_done) struct report r = {0};
        char text[128];

        (void)snprintf(text, sizeof(text), "{\"scorers\":[{\"scoreName\":\"s\",\"state\":\"%s\"}]}",
                       scorer_state_word((enum scorer_state)i));
        parse(&r, text);
        assert_int_equal(find(&r, "s")->state, i);
    }
}

/* Agents of the version before do not say what became of the items. */
static void knows_whether_results_led_to_items(void **state)
{
    static const struct {
        const char *members;
        bool no_items;
        const char *error;
    } cases[] = {
        {"\"state\":\"ok\"", false, ""},
        {"\"state\":\"ok\",\"noItems\":\"\"", false, ""},
        {"\"state\":\"ok\",\"noItems\":7", false, ""},
        {"\"state\":\"ok\",\"noItems\":\"no item\"", true, "no item"},
        {"\"state\":\"empty\",\"noItems\":\"no results\"", true, "no results"},
        {"\"state\":\"failing\",\"noItems\":\"no item\"", false, ""},
        {"\"state\":\"waiting\",\"noItems\":\"no item\"", false, ""},
        {"\"state\":\"ok\",\"noItems\":\"no item\",\"placementError\":\"403\"", true, "403"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};
        const struct report_cell *c;
        char text[160];

        (void)snprintf(text, sizeof(text), "{\"scorers\":[{\"scoreName\":\"s\",%s}]}", cases[i].members);
        parse(&r, text);
        c = find(&r, "s");
        assert_int_equal(c->no_items, cases[i].no_items);
        assert_string_equal(report_error(&r, c), cases[i].error);
    }
}

/* Agents of the version before do not say at which stage a round failed. */
static void knows_whether_the_scoring_api_failed(void **state)
{
    static const struct {
        const char *members;
        bool failed;
    } cases[] = {
        {"\"state\":\"failing\",\"failedStage\":\"scoring\"", true},
        {"\"state\":\"stale\",\"failedStage\":\"scoring\",\"error\":\"no\"", true},
        {"\"state\":\"failing\",\"failedStage\":\"source\"", false},
        {"\"state\":\"failing\",\"failedStage\":1", false},
        {"\"state\":\"failing\"", false},
        {"\"state\":\"ok\",\"failedStage\":\"scoring\",\"placementError\":\"403\"", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};
        BUF_AUTO(text, 1024);

        buf_printf(&text, "{\"scorers\":[{\"scoreName\":\"s\",%s}]}", cases[i].members);
        assert_int_equal(buf_failed(&text), 0);
        assert_int_equal(report_parse(&r, buf_str(&text)), 0);
        assert_int_equal(find(&r, "s")->api_failed, cases[i].failed);
    }
}

static void rejects_what_is_not_a_report(void **state)
{
    static const char *const cases[] = {
        " ",
        "[]",
        "\"x\"",
        "null",
        "{}",
        "{\"other\":1}",
        "{\"scorers\":{}}",
        "{\"configurationInForce\":\"yes\"}",
        "{\"scorers\":[]",
        "{\"scorers\":[]} x",
        "{\"scorers\":[{\"scoreName\":\"a\",\"state\":\"ok\"},]}",
        "{\"scorers\":[{\"scoreName\":\"\xff\",\"state\":\"ok\"}]}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct report r = {.n = 5};

        if (report_parse(&r, str_of(cases[i])) != -EINVAL || r.n != 5)
            fail_msg("%s", cases[i]);
    }
}

static void reads_an_empty_text_as_no_report(void **state)
{
    CLEANUP(report_done) struct report r = {.n = 5, .exists = true};

    (void)state;
    parse(&r, "");
    assert_false(r.exists);
    assert_int_equal(r.n, 0);
    assert_int_equal(report_parse(&r, (struct str){0}), 0);
    assert_false(r.exists);
}

/* As other versions of the agent may write. */
static void ignores_unknown_members_and_types(void **state)
{
    static const struct {
        const char *text;
        uint32_t n, not_shown;
        bool config_ok;
        const char *problem;
    } cases[] = {
        {"{\"configurationInForce\":true}", 0, 0, true, NULL},
        {"{\"configurationInForce\":false,\"new\":{\"a\":[1]}}", 0, 0, false, NULL},
        {"{\"configurationInForce\":1,\"scorers\":[]}", 0, 0, false, NULL},
        {"{\"scorers\":[1,null,\"a\",[],{},{\"scoreName\":\"a\",\"state\":\"ok\",\"more\":{}}]}", 1, 0, false,
         NULL},
        {"{\"scorers\":[{\"scoreName\":\"\",\"state\":\"ok\"},{\"state\":\"ok\"},{\"scoreName\":3,\"state\":"
         "\"ok\"}]}",
         0, 0, false, NULL},
        {"{\"scorers\":[{\"scoreName\":\"a\"},{\"scoreName\":\"b\",\"state\":\"OK\"},{\"scoreName\":\"c\","
         "\"state\":1}]}",
         0, 0, false, NULL},
        {"{\"scorers\":[],\"notShown\":999999999}", 0, 999999999, false, NULL},
        {"{\"scorers\":[],\"notShown\":1e3}", 0, 0, false, NULL},
        {"{\"scorers\":[],\"notShown\":-4}", 0, 0, false, NULL},
        {"{\"scorers\":[],\"notShown\":\"4\"}", 0, 0, false, NULL},
        {"{\"scorers\":[],\"notShown\":99999999999999999999}", 0, 0, false, NULL},
        {"{\"scorers\":[],\"hubError\":\"no answer\"}", 0, 0, false, "no answer"},
        {"{\"scorers\":[],\"hubError\":\"no answer\",\"configurationProblems\":\"1:2: a\\n3:4: \\u001b[b\"}",
         0, 0, false, "1:2: a 3:4:  [b"},
        {"{\"scorers\":[],\"hubError\":\"no answer\",\"configurationProblems\":\" \\n\"}", 0, 0, false,
         "no answer"},
        {"{\"scorers\":[],\"hubError\":null,\"configurationProblems\":7}", 0, 0, false, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};

        parse(&r, cases[i].text);
        if (!r.exists || r.n != cases[i].n || r.not_shown != cases[i].not_shown ||
            r.config_ok != cases[i].config_ok || strcmp(cstr(r.problem), cstr(cases[i].problem)) != 0)
            fail_msg("%s: %u cells, problem `%s`", cases[i].text, r.n, cstr(r.problem));
    }
}

static void compares_escaped_names_and_states(void **state)
{
    CLEANUP(report_done) struct report r = {0};

    (void)state;
    parse(&r, "{\"scorers\":[{\"scoreName\":\"a\\/\\u00e4\\\"\",\"st\\u0061te\":\"o\\u006b\"}]}");
    assert_non_null(find(&r, "a/\xc3\xa4\""));
}

/* n failing scorers, with `different` errors in turn. */
static void put_failing(struct buf *text, unsigned n, unsigned different)
{
    buf_puts(text, "{\"scorers\":[{\"scoreName\":\"good\",\"state\":\"ok\",\"error\":\"not told\"}");
    for (unsigned i = 0; i < n; i++)
        buf_printf(text, ",{\"scoreName\":\"s%u\",\"state\":\"failing\",\"error\":\"e%u\"}", i,
                   i % different);
    buf_puts(text, "]}");
    assert_int_equal(buf_failed(text), 0);
}

/* With Prometheus down, all scorers share one error. */
static void keeps_each_error_once(void **state)
{
    static const struct {
        unsigned n, different;
    } cases[] = {{12, 12}, {300, 1}, {300, 64}, {300, 65}, {70, 70}};

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        CLEANUP(report_done) struct report r = {0};
        BUF_AUTO(text, 1 << 16);

        put_failing(&text, cases[k].n, cases[k].different);
        assert_int_equal(report_parse(&r, buf_str(&text)), 0);
        assert_int_equal(r.n_errors, cases[k].different < 64 ? cases[k].different : 64);
        for (unsigned i = 0; i < cases[k].n; i++) {
            char name[16], error[16];

            (void)snprintf(name, sizeof(name), "s%u", i);
            (void)snprintf(error, sizeof(error), "e%u", i % cases[k].different);
            assert_true(report_cell_fails(find(&r, name)));
            assert_string_equal(report_error(&r, find(&r, name)), i % cases[k].different < 64 ? error : "");
        }
        assert_string_equal(report_error(&r, find(&r, "good")), "");
    }
}

static void reads_times_in_seconds(void **state)
{
    static const struct {
        const char *text;
        uint32_t seconds;
    } cases[] = {
        {"null", 0},
        {"\"2026-11-21T06:23:01.123Z\"", 1795242181},
        {"\"2026-11-21T06:23:01Z\"", 1795242181},
        {"\"1970-01-01T00:00:00Z\"", 0},
        {"\"1969-01-01T00:00:00Z\"", 0},
        {"\"2106-02-07T06:28:15Z\"", UINT32_MAX},
        {"\"2106-02-07T06:28:16Z\"", 0},
        {"\"2026-11-21T06:23\"", 0},
        {"\"yesterday, or the day before\"", 0},
        {"\"\"", 0},
        {"1795242181", 0},
    };

    (void)state;
    assert_int_equal(sizeof(struct report_cell), 16);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};
        char text[256];

        (void)snprintf(text, sizeof(text),
                       "{\"scorers\":[{\"scoreName\":\"s\",\"lastSuccess\":%s,\"state\":\"ok\"}]}",
                       cases[i].text);
        parse(&r, text);
        if (find(&r, "s")->succeeded != cases[i].seconds)
            fail_msg("%s is %u", cases[i].text, find(&r, "s")->succeeded);
    }
}

static void compares_without_times(void **state)
{
#define ONE(state, time, more) \
    "{\"scorers\":[{\"scoreName\":\"cpu\",\"state\":\"" state "\",\"lastSuccess\":" time more "}]}"
#define AT(time) "\"2026-01-01T" time "Z\""
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {ONE("ok", AT("00:00:00"), ""), ONE("ok", AT("00:00:00"), ""), true},
        {ONE("ok", AT("00:00:00"), ""), ONE("ok", AT("00:10:00"), ""), true},
        {ONE("ok", "null", ""), ONE("ok", AT("00:00:00"), ""), false},
        {ONE("ok", "null", ""), ONE("empty", "null", ""), false},
        {ONE("failing", "null", ",\"error\":\"x\""), ONE("failing", "null", ",\"error\":\"y\""), false},
        {ONE("failing", "null", ",\"error\":\"x\""), ONE("failing", "null", ",\"error\":\"x\""), true},
        {ONE("ok", "null", ""), ONE("ok", "null", ",\"placementError\":\"x\""), false},
        {ONE("ok", "null", ""), "{\"scorers\":[]}", false},
        {"{\"scorers\":[]}", "", false},
        {"{\"scorers\":[]}", "{\"scorers\":[],\"notShown\":1}", false},
        {"{\"scorers\":[]}", "{\"scorers\":[],\"hubError\":\"x\"}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report a = {0}, b = {0};

        parse(&a, cases[i].a);
        parse(&b, cases[i].b);
        assert_int_equal(report_same(&a, &b), cases[i].same);
    }
}

static void tells_a_rejected_configuration_from_a_late_one(void **state)
{
    static const struct {
        const char *text;
        bool rejected;
    } cases[] = {
        {"{\"configurationInForce\":false,\"configurationProblems\":\"f:1:2: error: no\"}", true},
        {"{\"configurationInForce\":true,\"configurationProblems\":\"f:1:2: warning: odd\"}", false},
        {"{\"configurationInForce\":false,\"hubError\":\"no answer\"}", false}, /* none received yet */
        {"{\"configurationInForce\":false,\"configurationProblems\":\"\"}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report r = {0};

        parse(&r, cases[i].text);
        if (r.config_rejected != cases[i].rejected)
            fail_msg("%s", cases[i].text);
    }
}

/* An agent that has started anew says of all scorers that they wait. */
static void keeps_the_times_of_scorers_that_wait(void **state)
{
#define SCORER(state, more) "{\"scorers\":[{\"scoreName\":\"cpu\",\"state\":\"" state "\"" more "}]}"
#define BETWEEN(from, to)   ",\"lastSuccess\":\"2026-01-01T" from "Z\",\"validUntil\":\"2026-01-01T" to "Z\""
#define TIMES               BETWEEN("00:00:00", "00:01:30")
#define OTHER               BETWEEN("00:01:00", "00:02:00")
    static const struct {
        const char *last, *now;
        uint32_t life;
    } cases[] = {
        {SCORER("ok", TIMES), SCORER("waiting", ""), 90},
        {SCORER("waiting", TIMES), SCORER("waiting", ""), 90},
        {SCORER("ok", TIMES), SCORER("ok", OTHER), 60},
        {SCORER("ok", TIMES), SCORER("failing", ""), 0},
        {SCORER("ok", TIMES), SCORER("suspended", ""), 0},
        {SCORER("ok", ""), SCORER("waiting", ""), 0}, /* it is not known how long they are good */
        {SCORER("ok", TIMES ",\"placementError\":\"403\""), SCORER("waiting", ""), 0},
        {SCORER("ok", TIMES ",\"noItems\":\"no item\""), SCORER("waiting", ""), 0},
        {SCORER("empty", TIMES), SCORER("waiting", ""), 0},
        {SCORER("failing", TIMES), SCORER("waiting", ""), 0},
        {"{\"scorers\":[]}", SCORER("waiting", ""), 0},
        {"", SCORER("waiting", ""), 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(report_done) struct report last = {0};
        CLEANUP(report_done) struct report now = {0};
        const struct report_cell *c;

        parse(&last, cases[i].last);
        parse(&now, cases[i].now);
        report_carry_over(&now, &last);
        c = find(&now, "cpu");
        if (c->life != cases[i].life || !c->succeeded != !cases[i].life)
            fail_msg("%s after %s: %u", cases[i].now, cases[i].last, c->life);
    }
}

static void shortens_long_errors(void **state)
{
    CLEANUP(report_done) struct report r = {0};
    BUF_AUTO(text, 1 << 16);
    const char *error;

    (void)state;
    buf_puts(&text, "{\"scorers\":[{\"scoreName\":\"s\",\"state\":\"failing\",\"error\":\"\\n");
    for (unsigned i = 0; i < 300; i++)
        buf_puts(&text, "ä\\t");
    buf_puts(&text, "\"}]}");
    assert_int_equal(buf_failed(&text), 0);
    assert_int_equal(report_parse(&r, buf_str(&text)), 0);
    error = report_error(&r, find(&r, "s"));
    assert_in_range(strlen(error), REPORT_ERROR_BYTES - 6, REPORT_ERROR_BYTES - 1);
    assert_memory_equal(error, "ä ä ", 6);
    assert_non_null(strstr(error, "…"));
}

static void limits_the_number_of_cells(void **state)
{
    CLEANUP(report_done) struct report r = {0};
    BUF_AUTO(text, 1 << 20);

    (void)state;
    buf_puts(&text, "{\"notShown\":2,\"scorers\":[0");
    for (unsigned i = 0; i < REPORT_MAX_CELLS + 5; i++)
        buf_printf(&text, ",{\"scoreName\":\"s%u\",\"state\":\"ok\"}", i);
    buf_puts(&text, "]}");
    assert_int_equal(buf_failed(&text), 0);
    assert_int_equal(report_parse(&r, buf_str(&text)), 0);
    assert_int_equal(r.n, REPORT_MAX_CELLS);
    assert_int_equal(r.not_shown, 7);
    assert_non_null(find(&r, "s0"));
    assert_non_null(find(&r, "s4095"));
    assert_null(find(&r, "s4096"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_report),
        cmocka_unit_test(reads_what_the_agent_knows),
        cmocka_unit_test(reads_the_offset_of_the_clock),
        cmocka_unit_test(reads_every_state_word),
        cmocka_unit_test(knows_whether_results_led_to_items),
        cmocka_unit_test(knows_whether_the_scoring_api_failed),
        cmocka_unit_test(rejects_what_is_not_a_report),
        cmocka_unit_test(reads_an_empty_text_as_no_report),
        cmocka_unit_test(ignores_unknown_members_and_types),
        cmocka_unit_test(compares_escaped_names_and_states),
        cmocka_unit_test(keeps_each_error_once),
        cmocka_unit_test(reads_times_in_seconds),
        cmocka_unit_test(compares_without_times),
        cmocka_unit_test(tells_a_rejected_configuration_from_a_late_one),
        cmocka_unit_test(keeps_the_times_of_scorers_that_wait),
        cmocka_unit_test(shortens_long_errors),
        cmocka_unit_test(limits_the_number_of_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
