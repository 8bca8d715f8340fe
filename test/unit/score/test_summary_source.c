/* A summary's list `sources`: what is read, what is refused and where, and that copies and comparisons cover
 * it. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define URL "an absolute http or https URL with a host"

/* Reads one summary whose other fields are good; *said is what was wrong, printed. */
static struct summaries read_with(const char *fields, enum problem_kind unknown, struct buf *said)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    BUF_AUTO(text, 1 << 16);
    struct summaries s = {0};
    struct problems p;

    buf_printf(&text, "- {scoreName: a, scoringEndpoint: 'http://s/x', %s}", fields);
    assert_int_equal(buf_failed(&text), 0);
    problems_init(&p, "f");
    assert_int_equal(doc_parse(&d, buf_str(&text), &p), 0);
    summaries_parse(&s, d->root, unknown, &p);
    if (p.errors) /* as for a configuration */
        summaries_done(&s);
    problems_sort(&p);
    problems_print(&p, said);
    assert_int_equal(buf_failed(said), 0);
    problems_done(&p);
    return s;
}

static struct summaries read_good(const char *fields)
{
    BUF_AUTO(said, 1 << 16);
    struct summaries s = read_with(fields, PROBLEM_ERROR, &said);

    if (said.n || s.n != 1)
        fail_msg("%s\n%.*s", fields, STR_ARG(buf_str(&said)));
    return s;
}

static void assert_source(const struct summary *s, size_t i, const struct summary_source *want)
{
    struct summary_source got = s->sources[i];

    assert_string_equal(got.endpoint, want->endpoint);
    assert_string_equal(got.query, want->query);
    assert_string_equal(cstr(got.auth.name), cstr(want->auth.name));
    assert_string_equal(cstr(got.auth.key), cstr(want->auth.key));
    assert_int_equal(got.range_s, want->range_s);
    assert_int_equal(got.step_s, want->step_s);
}

static void reads_each_source_of_the_list(void **state)
{
    struct summaries s =
        read_good("sources: [{sourceEndpoint: 'http://p1', sourceQuery: 'up;down'}, "
                  "{sourceType: prometheus, sourceEndpoint: 'http://p2/q', sourceEndpointAuthName: n, "
                  "sourceEndpointAuthKey: k, sourceQuery: x, sourceRange: 7200, sourceStep: 30}, "
                  "{sourceEndpoint: 'http://p1', sourceQuery: up, sourceEndpointAuthName: '', "
                  "sourceEndpointAuthKey: '', sourceRange: 0, sourceStep: 0}, "
                  "{sourceEndpoint: 'http://p1', sourceQuery: up, sourceEndpointAuthName: no-token}]");
    const struct summary *x = &s.list[0];

    (void)state;
    assert_int_equal(x->sources[0].type, SOURCE_PROMETHEUS);
    assert_int_equal(x->n_sources, 4);
    assert_source(x, 0,
                  &(struct summary_source){
                      .endpoint = (char *)(uintptr_t) "http://p1/api/v1/query_range",
                      .query = (char *)(uintptr_t) "up;down",
                      .range_s = 3600,
                      .step_s = 60,
                  });
    assert_source(x, 1,
                  &(struct summary_source){
                      .endpoint = (char *)(uintptr_t) "http://p2/q",
                      .auth = {(char *)(uintptr_t) "n", (char *)(uintptr_t) "k"},
                      .query = (char *)(uintptr_t) "x",
                      .range_s = 7200,
                      .step_s = 30,
                  });
    assert_source(x, 2,
                  &(struct summary_source){
                      .endpoint = (char *)(uintptr_t) "http://p1/api/v1/query_range",
                      .query = (char *)(uintptr_t) "up",
                      .range_s = 3600,
                      .step_s = 60,
                  });
    assert_string_equal(x->sources[3].auth.name, "no-token");
    assert_null(x->sources[3].auth.key);
    assert_string_equal(x->sources[0].query,
                        "up;down"); /* the first, where readers of a single source look */
    summaries_done(&s);
}

/* The list counts, not the fields beside it; a list without any entry is as none. */
static void prefers_the_list_to_the_own_fields(void **state)
{
    static const struct {
        const char *fields;
        size_t n;
        const char *first;
    } cases[] = {
        {"sourceEndpoint: ignored, sourceQuery: 5, sourceType: x, sourceRange: -1, sources: "
         "[{sourceEndpoint: 'http://p/q', sourceQuery: up}]",
         1, "http://p/q"},
        {"sourceType: None, sources: [{sourceEndpoint: 'http://p/q', sourceQuery: up}]", 1, "http://p/q"},
        {"sourceEndpoint: 'http://p/q', sourceQuery: up, sources: []", 1, "http://p/q"},
        {"sourceEndpoint: 'http://p/q', sourceQuery: up, sources: ~", 1, "http://p/q"},
        {"sourceEndpoint: 'http://p/q', sourceQuery: up, sources: [{sourceType: None}]", 0, NULL},
        {"sources: [{sourceType: none, sourceEndpoint: [1]}, {sourceType: NONE}]", 0, NULL},
        {"sourceType: None, sources: []", 0, NULL},
        {"sources: [{sourceType: None}, {sourceEndpoint: 'http://p/q', sourceQuery: up}, {sourceType: None}, "
         "{sourceEndpoint: 'http://p/r', sourceQuery: up}]",
         2, "http://p/q"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct summaries s = read_good(cases[i].fields);
        const struct summary *x = &s.list[0];

        if (x->n_sources != cases[i].n ||
            (x->n_sources && strcmp(x->sources[0].endpoint, cases[i].first) != 0))
            fail_msg("%s: %zu", cases[i].fields, x->n_sources);
        for (size_t k = 0; k < x->n_sources; k++)
            assert_true(x->sources[k].type == SOURCE_PROMETHEUS && x->sources[k].range_s == 3600 &&
                        x->sources[k].step_s == 60);
        summaries_done(&s);
    }
}

#define GOOD "{sourceEndpoint: 'http://p', sourceQuery: up}"

static void reports_each_invalid_field(void **state)
{
    static const char *const cases[][2] = {
        {"sources: {}", ".sources: expected a list of sources, got an object"},
        {"sources: 'http://p'", ".sources: expected a list of sources, got the string \"http://p\""},
        {"sources: [" GOOD ", http]",
         ".sources[1]: expected a source: an object with sourceEndpoint, sourceQuery and so on, got the "
         "string \"http\""},
        {"sources: [~]", ".sources[0]: expected a source: an object with sourceEndpoint, sourceQuery and so "
                         "on, got null"},
        {"sources: [" GOOD ", {sourceEndpoint: 'http://p'}]",
         ".sources[1].sourceQuery: missing, expected a PromQL query"},
        {"sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: ' ; '}]",
         ".sources[1].sourceQuery: expected a PromQL query, got the string \" ; \""},
        {"sources: [" GOOD ", {sourceQuery: up}]", ".sources[1].sourceEndpoint: missing, expected " URL},
        {"sources: [{sourceEndpoint: p, sourceQuery: up}]",
         ".sources[0].sourceEndpoint: expected " URL ", got the string \"p\""},
        {"sources: [{sourceType: Graphite, sourceEndpoint: 'http://p', sourceQuery: up}]",
         ".sources[0].sourceType: expected Prometheus, None, OpenTelemetry, OTel or OTLP, got the string "
         "\"Graphite\""},
        {"sources: [{sourceEndpoint: 'http://p', sourceQuery: up, sourceEndpointAuthKey: k}]",
         ".sources[0].sourceEndpointAuthKey: sourceEndpointAuthName must be set too"},
        {"sources: [{sourceEndpoint: 'http://p', sourceQuery: up, sourceRange: 1.5}]",
         ".sources[0].sourceRange: expected a whole number of seconds from 1 to 31622400, got 1.5"},
        {"sources: [{sourceEndpoint: 'http://p', sourceQuery: up, sourceStep: -1}]",
         ".sources[0].sourceStep: expected a whole number of seconds from 1 to 86400, got -1"},
        {"sources: [{sourceEndpoint: 'http://p', sourceQeury: up, sourceQuery: up}]",
         ".sources[0].sourceQeury: unknown key, did you mean sourceQuery?"},
        {"sources: [{sourceType: None, scoringEndpoint: x}]",
         ".sources[0].scoringEndpoint: unknown key, expected one of sourceType, sourceEndpoint, "
         "sourceEndpointAuthName, sourceEndpointAuthKey, sourceQuery, sourceRange, sourceStep"},
        {"sources: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]",
         ".sources: expected at most 16 sources, got 17"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(said, 4096);
        struct summaries s = read_with(cases[i][0], PROBLEM_ERROR, &said);
        const char *at = said.n ? memmem(said.p, said.n, "error: [0]", 10) : NULL;

        if (!at || !str_eq(str_trim((struct str){at + 10, (size_t)(said.p + said.n - at - 10)}),
                           str_of(cases[i][1])))
            fail_msg("%s\ngot:\n%.*s\nexpected:\n%s", cases[i][0], STR_ARG(buf_str(&said)), cases[i][1]);
        assert_int_equal(s.n, 0);
        summaries_done(&s);
    }
}

static void warns_about_each_source(void **state)
{
    BUF_AUTO(said, 4096);
    struct summaries s =
        read_with("sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: up, other: 1, "
                  "sourceRange: 31622400}]",
                  PROBLEM_WARNING, &said);

    (void)state;
    assert_int_equal(s.n, 1);
    assert_int_equal(s.list[0].n_sources, 2);
    assert_non_null(memmem(said.p, said.n, "warning: [0].sources[1].other: unknown key", 42));
    assert_non_null(memmem(said.p, said.n, "warning: [0].sources[1].sourceRange: 31622400 s", 47));
    summaries_done(&s);
}

static void accepts_sixteen_sources(void **state)
{
    BUF_AUTO(fields, 4096);
    struct summaries s;

    (void)state;
    for (int i = 0; i < SUMMARY_MAX_SOURCES; i++)
        buf_printf(&fields, "%s{sourceEndpoint: 'http://p%d/q', sourceQuery: up}", i ? ", " : "sources: [",
                   i);
    buf_put(&fields, "]", 2);
    assert_int_equal(buf_failed(&fields), 0);
    s = read_good(fields.p);
    assert_int_equal(s.list[0].n_sources, SUMMARY_MAX_SOURCES);
    assert_string_equal(s.list[0].sources[15].endpoint, "http://p15/q");
    summaries_done(&s);
}

static void compares_and_copies(void **state)
{
    static const char *const lists[] = {
        "sources: [" GOOD "]",
        "sources: [" GOOD ", " GOOD "]",
        "sources: [" GOOD ", " GOOD ", " GOOD "]",
        "sources: [" GOOD ", {sourceEndpoint: 'http://other', sourceQuery: up}]",
        "sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: down}]",
        "sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: up, sourceRange: 60}]",
        "sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: up, sourceStep: 61}]",
        "sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: up, sourceEndpointAuthName: n, "
        "sourceEndpointAuthKey: k}]",
        "sources: [" GOOD ", {sourceEndpoint: 'http://p', sourceQuery: up, sourceEndpointAuthName: n, "
        "sourceEndpointAuthKey: l}]",
        "sources: [{sourceEndpoint: 'http://other', sourceQuery: up}, " GOOD "]",
    };
    struct summaries all[ARRAY_SIZE(lists)];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        all[i] = read_good(lists[i]);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct summary copy = summary_copy(&all[i].list[0]);

        for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
            assert_int_equal(summary_same(&copy, &all[k].list[0]), i == k);
        summary_done(&copy);
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        summaries_done(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_source_of_the_list), cmocka_unit_test(prefers_the_list_to_the_own_fields),
        cmocka_unit_test(reports_each_invalid_field),    cmocka_unit_test(warns_about_each_source),
        cmocka_unit_test(accepts_sixteen_sources),       cmocka_unit_test(compares_and_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
