#include "exporter/agent/status_page.h"
#include "test/unit/agent/status_world.h"

#include <math.h>

static void page_shows_everything(void **state)
{
    static const char *const all[] = {
        "<title>c1 · dynamic-scoring</title>",
        "<h1><bdi>c1</bdi></h1>",
        "<h3><bdi>my_score</bdi></h3><span class=\"state ok\">ok</span>",
        "scorer <bdi>sample</bdi>",
        "12 s ago<span class=\"soft\">2026-11-21 06:22:49 UTC</span>",
        "in 48 s<span class=\"soft\">every 1m</span>",
        "12 from the source → 2 results → 2 exposed",
        "source 3.1 ms, scoring 1.25 s",
        "1.5 KiB from the source, 2 KiB to the scorer, 100 B back",
        "15, the last one good",
        "<i>node</i><bdi>n1</bdi></span> <span><i>pod</i><bdi>web-1</bdi></span> </td><td "
        "class=\"n\">0.25</td>",
        "<i>node</i><bdi>n2</bdi></span> <span><i>meta</i><bdi>gpu</bdi></span> </td><td "
        "class=\"n\">-17</td>",
        "<pre><bdi>sum by (node) (up)</bdi></pre><pre><bdi>rate(x[5m])</bdi></pre>",
        "over 1h, a point every 1m",
        "http://prom:9090/api/v1/query_range",
        "token from Secret <code><bdi>prom-token</bdi></code>, key <code><bdi>token</bdi></code>",
        "http://scorer/scoring",
        "<dt>File</dt><dd><code><bdi>/etc/config.yaml</bdi></code>",
        "<code>:8080</code>, <code>[::1]:9</code>",
        "<code>seriesPerScorer</code></th><td class=\"n\">100,000</td>",
        "<dt>Up for</dt><dd>3h 5m</dd>",
        "<a href=\"/metrics\">",
        "<a href=\"/api/v1/status\">",
        "<a href=\"/-/healthy\">",
        "<a href=\"/-/ready\">",
        "lang=\"en\"",
        "name=\"viewport\"",
        "<dt>/metrics page</dt><dd>12 KiB</dd>",
    };
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    render(w, HTML, 0, &b);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        assert_has(&b, all[i]);
    assert_lacks(&b, "hunter2");
    assert_lacks(&b, "<script");
    assert_lacks(&b, "style=\"");
    assert_lacks(&b, "src=");
}

static void page_shows_what_is_wrong(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    struct scorer s =
        bad_scorer(SCORER_FAILING, STAGE_SCORING, ROUND_HTTP_5XX, "HTTP 502 Bad Gateway: <b>no & \"no\"</b>");
    WORLD(w);

    (void)state;
    s.status.source_warnings = 2;
    (void)strcpy(s.status.source_warning, "PromQL info: <x>");
    s.status.invalid = 3;
    (void)strcpy(s.status.first_invalid, "results[3].score: expected a number, got null");
    s.status.duplicates = 1;
    s.status.cut = 1234;
    add(w, good_scorer((char *)"fine"));
    add(w, s);
    w->agent.reload = (struct reload_status){.at_ms = NOW - 1000,
                                             .problems = (char *)"f:3:4: error: <no>\nf:9:1: error: b\n"};
    render(w, HTML, 0, &b);
    assert_has(&b, "<title>1 failing · c1");
    assert_has(&b, "<b>Scoring failed: http_5xx</b>, 3 rounds in a row</p>"
                   "<pre>HTTP 502 Bad Gateway: &lt;b&gt;no &amp; &quot;no&quot;&lt;/b&gt;</pre><p>Look at "
                   "the scorer&#39;s own log.");
    assert_has(&b, "<b>The source warns</b>, 2 times; first:</p><pre>PromQL info: &lt;x&gt;</pre>");
    assert_has(
        &b,
        "3 results that are not valid; first:</p><pre>results[3].score: expected a number, got null</pre>");
    assert_has(&b, "1 result replaced an earlier one");
    assert_has(&b, "1,234 label values longer");
    assert_has(&b, "The configuration file was refused; the configuration before it stays in force.");
    assert_has(&b, "<pre>f:3:4: error: &lt;no&gt;\nf:9:1: error: b\n</pre>");
    assert_true(strstr(b.p, "href=\"#s1\"") < strstr(b.p, "href=\"#s0\"")); /* what fails comes first */
}

static void page_shows_each_endpoint(void **state)
{
    const struct endpoint_status endpoints[] = {
        {.name = "hub",
         .url = "http://hub/api/v1/write",
         .state = "ok",
         .protocol = "2.0",
         .behind_s = 75,
         .samples_sent = 1234567,
         .spool = true,
         .spool_bytes = 2560,
         .sent_at_ms = NOW - 3000},
        {.name = "far",
         .url = "http://far/w",
         .state = "failing",
         .protocol = "1.0",
         .error = "HTTP 503: later"},
    };
    static const char *const words[] = {
        "Remote write", "hub",     "http://hub/api/v1/write", "2.0", "1m 15s", "1,234,567", "2.5 KiB",
        "3 s ago",      "failing", "HTTP 503: later"};
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    w->agent.endpoints = endpoints;
    w->agent.n_endpoints = 2;
    render(w, HTML, 0, &b);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        assert_has(&b, words[i]);
}

static void page_of_no_scorers(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    BUF_AUTO(without, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    render(w, HTML, 0, &b);
    assert_has(&b, "No scorers configured: add some under <code>summaries</code>");
    w->agent.config = NULL;
    w->agent.reload = (struct reload_status){.at_ms = NOW, .problems = (char *)"f: error: gone\n"};
    render(w, HTML, 0, &without);
    assert_has(&without, "No configuration is in force.");
    assert_has(&without, "f: error: gone");
}

static void page_of_scorers_at_the_start(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    struct scorer s = good_scorer((char *)"new");
    WORLD(w);

    (void)state;
    s.batch = batch_unref(s.batch);
    s.state = SCORER_WAITING;
    s.status = (struct scorer_status){.running = true, .started_ms = NOW - 3000};
    s.summary.source_type = SOURCE_NONE;
    s.summary.source_endpoint = s.summary.source_query = NULL;
    add(w, s);
    render(w, HTML, 0, &b);
    assert_has(&b, "<dt>Last round</dt><dd>never</dd>");
    assert_has(&b, "under way for 3 s");
    assert_has(&b, "none exposed");
    assert_has(&b, "None: the scorer is asked without series");
}

static void page_of_many_scorers(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    static char names[MANY][16];
    WORLD(w);

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "score_%zu", i);
        add(w, good_scorer(names[i]));
    }
    render(w, HTML, 0, &b);
    assert_has(&b, "id=\"s255\"");
    assert_has(&b, "<dt>series exposed</dt><dd>512</dd>");
    assert_lacks(&b, "<details open");
}

static void page_ranks_many_scores(void **state)
{
    const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, NAN};
    BUF_AUTO(b, OUTPUT_MAX);
    struct scorer s = good_scorer((char *)"x");
    WORLD(w);

    (void)state;
    (void)batch_unref(s.batch);
    s.batch = make_batch(NULL, values, ARRAY_SIZE(values));
    add(w, s);
    render(w, HTML, 0, &b);
    assert_has(&b, "<caption>Highest scores</caption>");
    assert_has(&b, "<caption>Lowest scores</caption>");
    assert_has(&b, "<bdi>n000004</bdi>");
    assert_lacks(&b, "<bdi>n000005</bdi>");
    assert_has(&b, "<bdi>n000006</bdi>");
    assert_has(&b, "1 score is NaN");
}

/* Every place where other people's words come in. */
static void nothing_hostile_gets_out(void **state)
{
    static const char evil[] =
        "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\x01\x1b[2J&amp;\xff";
    static const char *const rows[][3] = {{"\"><script>a</script>", "\\\"", "a\nb"}};
    BUF_AUTO(b, OUTPUT_MAX);
    struct scorer s = bad_scorer(SCORER_FAILING, STAGE_SOURCE, ROUND_QUERY, evil);
    struct endpoint_status endpoint = {.name = evil, .url = evil, .state = "failing", .protocol = "1.0"};
    WORLD(w);

    (void)state;
    (void)batch_unref(s.batch);
    s.batch = make_batch(rows, (const double[]){1}, 1);
    s.summary.name = s.summary.score_name = s.summary.source_endpoint = s.summary.source_query = (char *)evil;
    s.summary.scoring_endpoint = s.summary.scoring_auth.name = s.summary.scoring_auth.key = (char *)evil;
    s.summary.name = (char *)"<other>";
    s.status.source_warnings = s.status.invalid = 1;
    (void)strcpy(s.status.source_warning, evil);
    (void)strcpy(s.status.first_invalid, evil);
    add(w, s);
    w->config.cluster_name = w->config.listen[0] = w->config.secrets_dir = w->config.storage_path =
        (char *)evil;
    w->agent.reload.problems = (char *)evil;
    (void)strcpy(endpoint.error, evil);
    w->agent.endpoints = &endpoint;
    w->agent.n_endpoints = 1;
    render(w, HTML, 0, &b);
    assert_lacks(&b, "<script");
    assert_lacks(&b, "<img");
    assert_lacks(&b, "<other");
    assert_lacks(&b, "\x01");
    assert_lacks(&b, "\x1b");
    assert_lacks(&b, "\xff");
    assert_has(&b, "&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"
                   "\xef\xbf\xbd\xef\xbf\xbd[2J&amp;amp;\xef\xbf\xbd");
    assert_has(&b, "<i>pod</i><bdi>\\&quot;</bdi>");
    assert_has(&b, "<i>meta</i><bdi>a\nb</bdi>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_shows_everything),    cmocka_unit_test(page_shows_what_is_wrong),
        cmocka_unit_test(page_of_no_scorers),       cmocka_unit_test(page_of_scorers_at_the_start),
        cmocka_unit_test(page_of_many_scorers),     cmocka_unit_test(page_ranks_many_scores),
        cmocka_unit_test(nothing_hostile_gets_out), cmocka_unit_test(page_shows_each_endpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
