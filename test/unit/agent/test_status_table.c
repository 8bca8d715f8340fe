#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/ranking.h"
#include "test/unit/agent/status_world.h"

#include <math.h>

static void assert_table(const struct world *w, unsigned width, const char *want)
{
    BUF_AUTO(b, OUTPUT_MAX);

    render_table(w, width, &b);
    assert_string_equal(b.p, want);
}

static void shows_what_a_good_scorer_did(void **state)
{
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    w->scorers[0].status.source_warnings = 1;
    (void)strcpy(w->scorers[0].status.source_warning, "slow\ndisk");
    w->scorers[0].status.invalid = 2;
    (void)strcpy(w->scorers[0].status.first_invalid, "results[3].score: missing");
    assert_table(w, 0,
                 "✓ ok  my_score, of sample\n"
                 "    12 series from the source in 3.1 ms → 2 results in 1.25 s → 2 scores\n"
                 "    1 warning from the source: slow disk\n"
                 "    2 invalid results ignored, the first: results[3].score: missing\n"
                 "\n"
                 "    NODE  POD    META  SCORE\n"
                 "    n1    web-1          0.25\n"
                 "    n2           gpu   -17\n"
                 "\n"
                 "1 scorer: 1 ok, 0 empty, 0 failed, 0 waiting; 2 scores\n");
}

static void shows_each_failure_with_a_hint(void **state)
{
    WORLD(w);

    (void)state;
    add(w, bad_scorer(SCORER_STALE, STAGE_SOURCE, ROUND_QUERY,
                      "bad_data: parse error: unexpected end of input"));
    add(w, bad_scorer(SCORER_STALE, STAGE_SCORING, ROUND_SHAPE, "no \"results\""));
    add(w, good_scorer((char *)"sample"));
    w->scorers[2].state = SCORER_EMPTY;
    w->scorers[2].status.source_series = w->scorers[2].status.results = 0;
    w->scorers[2].batch = batch_unref(w->scorers[2].batch);
    assert_table(
        w, 0,
        "✗ failed  bad_score, of sample\n"
        "    source failed: bad_data: parse error: unexpected end of input (query)\n"
        "    URL: http://prom:9090/api/v1/query_range\n"
        "    query: sum by (node) (up); rate(x[5m])\n"
        "    check the query in the UI of the query engine\n"
        "\n"
        "✗ failed  bad_score, of sample\n"
        "    scoring failed: no \"results\" (shape)\n"
        "    URL: http://scorer/scoring\n"
        "    check the response of the scoring API: {\"results\":[{\"metric\":{...},\"score\":1.5}]}\n"
        "\n"
        "○ empty  sample\n"
        "    0 series from the source in 3.1 ms → 0 results in 1.25 s → 0 scores\n"
        "    the source has no series for this query: sum by (node) (up); rate(x[5m])\n"
        "\n"
        "3 scorers: 0 ok, 1 empty, 2 failed, 0 waiting; 0 scores\n");
}

static void names_the_sources_of_a_scorer_with_several(void **state)
{
    WORLD(w);
    struct summary_source more[] = {{.endpoint = (char *)"http://other/q", .query = (char *)"down"}};

    (void)state;
    add(w, good_scorer((char *)"sample"));
    add(w, bad_scorer(SCORER_STALE, STAGE_SOURCE, ROUND_QUERY, "source 2 of 2: bad_data: no"));
    w->scorers[1].status.source = 1;
    add(w, bad_scorer(SCORER_STALE, STAGE_SCORING, ROUND_SHAPE, "no \"results\""));
    for (size_t i = 0; i < 3; i++) {
        w->scorers[i].summary.more_sources = more;
        w->scorers[i].summary.n_more_sources = 1;
    }
    w->scorers[0].state = SCORER_EMPTY;
    w->scorers[0].status.source_series = w->scorers[0].status.results = 0;
    w->scorers[0].batch = batch_unref(w->scorers[0].batch);
    assert_table(
        w, 0,
        "○ empty  sample\n"
        "    0 series from the sources in 3.1 ms → 0 results in 1.25 s → 0 scores\n"
        "    no source has series for its query: sum by (node) (up); rate(x[5m]); down\n"
        "\n"
        "✗ failed  bad_score, of sample\n"
        "    source failed: source 2 of 2: bad_data: no (query)\n"
        "    URL: http://prom:9090/api/v1/query_range\n"
        "    query: down\n"
        "    check the query in the UI of the query engine\n"
        "\n"
        "✗ failed  bad_score, of sample\n"
        "    scoring failed: no \"results\" (shape)\n"
        "    URL: http://scorer/scoring\n"
        "    check the response of the scoring API: {\"results\":[{\"metric\":{...},\"score\":1.5}]}\n"
        "\n"
        "3 scorers: 0 ok, 1 empty, 2 failed, 0 waiting; 0 scores\n");
}

static void says_how_to_add_the_first_scorer(void **state)
{
    WORLD(w);

    (void)state;
    assert_table(w, 80, "no scorers configured: add some under `summaries`\n");
}

static void is_coloured_only_for_a_terminal(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    BUF_AUTO(plain, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    render_table(w, 80, &b);
    assert_has(&b, "\033[32m✓ ok\033[0m");
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    render_table(w, 80, &plain);
    assert_lacks(&plain, "\033");
}

/* No line is longer than the terminal is wide, whatever the scores and errors are. */
static void keeps_to_the_width_of_the_terminal(void **state)
{
    static const char *const rows[][3] = {
        {"äöü-ein-sehr-langer-name-eines-knotens", "пример-очень-длинного-имени-пода-в-кластере", "m"},
        {"n2", "p", "日本語の長いラベルの値がここにあります"},
        {"evil\x1b[2J\xc2\x9b\xe2\x80\xae", "a\tb", "x"},
    };
    struct scorer s = bad_scorer(
        SCORER_FAILING, STAGE_SCORING, ROUND_HTTP_5XX,
        "HTTP 502 Bad Gateway: a-word-that-is-much-longer-than-any-terminal-could-be-wide-in-these-tests "
        "and some more words, so that there is a lot to fold");
    static const unsigned widths[] = {40, 60, 80, 100};
    WORLD(w);

    (void)state;
    (void)batch_unref(s.batch);
    s.batch = make_batch(rows, (const double[]){1234567.25, 1e-7, -0.5}, 3);
    add(w, s);
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
        BUF_AUTO(b, OUTPUT_MAX);
        render_table(w, widths[i], &b);
        assert_lacks(&b, "\x1b");
        assert_lacks(&b, "\xc2\x9b");
        assert_lacks(&b, "\xe2\x80\xae");
        assert_has(&b, "…");
        for (char *save, *line = strtok_r(b.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            if (grid_chars(str_of(line)) > widths[i])
                fail_msg("longer than %u: %s", widths[i], line);
    }
}

static void shows_the_highest_of_many_scores(void **state)
{
    enum { N = 1500 };
    CLEANUP(cleanup_free) double *values = calloc(N, sizeof(double));
    BUF_AUTO(b, OUTPUT_MAX);
    struct scorer s = good_scorer((char *)"x");
    WORLD(w);

    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = (double)i;
    values[7] = NAN;
    (void)batch_unref(s.batch);
    s.batch = make_batch(NULL, values, N);
    add(w, s);
    render_table(w, 0, &b);
    assert_has(&b, "    n001499  1499\n    n001498  1498\n");
    assert_has(&b, "    n001480  1480\n    … and 1,479 more\n    1 score is NaN\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_a_good_scorer_did),
        cmocka_unit_test(shows_each_failure_with_a_hint),
        cmocka_unit_test(names_the_sources_of_a_scorer_with_several),
        cmocka_unit_test(says_how_to_add_the_first_scorer),
        cmocka_unit_test(is_coloured_only_for_a_terminal),
        cmocka_unit_test(keeps_to_the_width_of_the_terminal),
        cmocka_unit_test(shows_the_highest_of_many_scores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
