/* The status page, the JSON and the table of agents in every state. The agent and its scorers are stand-ins: their accessors are
 * defined here, so the library's own are not linked. */
#include "exporter/agent/status.h"

#include "exporter/agent/status_grid.h"
#include "exporter/agent/status_page.h"
#include "test/oom.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- Stand-ins ---- */

enum { MANY = 256, OUTPUT_MAX = 64 << 20 };

static const int64_t NOW = 1795242181123; /* 2026-11-21T06:23:01.123Z */

struct scorer {
    struct summary summary;
    struct scorer_status status;
    enum scorer_state state;
    struct batch *batch;
};

struct agent {
    struct config *config;
    struct scorer *scorers;
    size_t n;
    struct reload_status reload;
    struct loop *loop;
};

const struct config *agent_config(const struct agent *a)
{
    return a->config;
}

struct page *agent_page(struct agent *a)
{
    (void)a;
    return NULL;
}

size_t page_memory(const struct page *p)
{
    (void)p;
    return 12345;
}

struct loop *agent_loop(struct agent *a)
{
    return a->loop;
}

size_t agent_scorers(const struct agent *a)
{
    return a->n;
}

const struct scorer *agent_scorer(const struct agent *a, size_t i)
{
    return &a->scorers[i];
}

const struct reload_status *agent_reload_status(const struct agent *a)
{
    return &a->reload;
}

int64_t agent_started_ms(const struct agent *a)
{
    (void)a;
    return NOW - 11100000;
}

const struct summary *scorer_summary(const struct scorer *s)
{
    return &s->summary;
}

const struct scorer_status *scorer_status(const struct scorer *s)
{
    return &s->status;
}

struct batch *scorer_batch(const struct scorer *s)
{
    return s->batch;
}

enum scorer_state scorer_state(const struct scorer *s)
{
    return s->state;
}

const char *scorer_state_word(enum scorer_state state)
{
    static const char *const words[] = {"waiting", "ok", "empty", "failing", "stale"};

    return words[state];
}

static mono_ms no_time(const struct clock *c)
{
    (void)c;
    return (mono_ms){1000};
}

static unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){NOW};
}

static const struct clock fixed_clock = {no_time, fixed_wall};

/* ---- What they hold ---- */

struct world {
    struct agent agent;
    struct config config;
    struct scorer scorers[MANY];
};

static struct batch *make_batch(const char *const (*rows)[3], const double *values, size_t n)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    const struct batch_options o = {.cluster_name = "c1", .score_name = "s", .max_series = 1000000};
    struct batch *ret;
    char made[32];

    assert_int_equal(batch_builder_new(&b, &o), 0);
    assert_int_equal(batch_begin(b), 0);
    for (size_t i = 0; i < n; i++) {
        struct batch_labels labels = {.escapes = (1u << DS_LABELS) - 1};
        (void)snprintf(made, sizeof(made), "n%06zu", i);
        labels.value[DS_NODE] = str_of(rows ? rows[i][0] : made);
        labels.value[DS_POD] = str_of(rows ? rows[i][1] : NULL);
        labels.value[DS_META] = str_of(rows ? rows[i][2] : NULL);
        assert_int_equal(batch_add(b, &labels, values[i]), 0);
    }
    assert_int_equal(batch_seal(b, (unix_ms){NOW - 12000}, &ret, NULL), 0);
    return ret;
}

static struct batch *two_scores(void)
{
    static const char *const rows[][3] = {{"n1", "web-1", NULL}, {"n2", NULL, "gpu"}};

    return make_batch(rows, (const double[]){0.25, -17}, 2);
}

static struct scorer good_scorer(char *score_name)
{
    return (struct scorer){
        .summary = {.name = (char *)"sample",
                    .score_name = score_name,
                    .source_type = SOURCE_PROMETHEUS,
                    .source_endpoint = (char *)"http://user:hunter2@prom:9090/api/v1/query_range",
                    .source_auth = {(char *)"prom-token", (char *)"token"},
                    .source_query = (char *)"sum by (node) (up); rate(x[5m])",
                    .source_range_s = 3600,
                    .source_step_s = 60,
                    .scoring_endpoint = (char *)"http://scorer/scoring",
                    .interval_ms = 60000},
        .status = {.rounds = 15,
                   .started_ms = NOW - 12500,
                   .ended_ms = NOW - 12000,
                   .succeeded_ms = NOW - 12000,
                   .next_ms = NOW + 48000,
                   .fetch_s = 0.0031,
                   .perform_s = 1.25,
                   .received = {1536, 100},
                   .sent = {0, 2048},
                   .source_series = 12,
                   .results = 2},
        .state = SCORER_OK,
        .batch = two_scores(),
    };
}

static struct scorer bad_scorer(enum scorer_state state, enum round_stage stage, enum round_error error,
                                const char *why)
{
    struct scorer s = good_scorer((char *)"bad_score");

    s.state = state;
    s.status.error = error;
    s.status.stage = stage;
    s.status.failures = 3;
    s.status.succeeded_ms = 0;
    (void)snprintf(s.status.reason, sizeof(s.status.reason), "%s", why);
    s.batch = state == SCORER_STALE ? batch_unref(s.batch) : s.batch;
    return s;
}

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    assert_int_equal(loop_new(&w->agent.loop, &fixed_clock), 0);
    w->config = (struct config){.cluster_name = (char *)"c1",
                                .listen = {(char *)":8080", (char *)"[::1]:9"},
                                .n_listen = 2,
                                .secrets_dir = (char *)"/run/secrets",
                                .limits = {256 << 20, 100000, 1000000, 256, 300000, 3},
                                .loaded_at_ms = NOW - 3600000};
    w->agent.config = &w->config;
    w->agent.scorers = w->scorers;
    w->agent.reload = (struct reload_status){.ok = true, .at_ms = NOW - 3600000};
    return w;
}

static struct world *world_free(struct world *w)
{
    for (size_t i = 0; i < w->agent.n; i++)
        (void)batch_unref(w->scorers[i].batch);
    (void)loop_free(w->agent.loop);
    free(w);
    return NULL;
}

DEFINE_CLEANUP(struct world, world_free)
#define WORLD(name) CLEANUP(cleanup_world_free) struct world *name = world_new()

static void add(struct world *w, struct scorer s)
{
    w->scorers[w->agent.n++] = s;
}

/* ---- Looking at what was written ---- */

enum form { HTML, JSON, TABLE };

static void render(const struct world *w, enum form form, unsigned width, struct buf *into)
{
    int r = form == HTML   ? status_html(&w->agent, into)
            : form == JSON ? status_json(&w->agent, into)
                           : status_table(&w->agent, width, into);

    assert_int_equal(r, 0);
    assert_int_equal(buf_putc(into, '\0'), 0);
    into->n--;
}

static void assert_has(const struct buf *b, const char *what)
{
    if (!memmem(b->p, b->n, what, strlen(what)))
        fail_msg("not there: %s\nin:\n%s", what, b->p);
}

static void assert_lacks(const struct buf *b, const char *what)
{
    if (memmem(b->p, b->n, what, strlen(what)))
        fail_msg("there, and should not be: %s\nin:\n%s", what, b->p);
}

static json_t *rendered_json(const struct world *w)
{
    BUF_AUTO(b, OUTPUT_MAX);
    json_error_t e;
    json_t *j;

    render(w, JSON, 0, &b);
    j = json_loadb(b.p, b.n, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("%s at %d in %s", e.text, e.position, b.p);
    return j;
}

/* Whether two JSON texts mean the same. */
static void assert_json(const json_t *got, const char *want)
{
    json_auto_t *w = json_loads(want, JSON_DECODE_ANY, NULL);
    CLEANUP(cleanup_free) char *text = json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS);

    assert_non_null(w);
    if (!got || !json_equal(got, w))
        fail_msg("got %s\nexpected %s", text ? text : "nothing", want);
}

static json_t *first_scorer(const json_t *j)
{
    return json_array_get(json_object_get(j, "scorers"), 0);
}

/* ---- Words ---- */

static void words_for_times(void **state)
{
    static const struct {
        int64_t ago;
        const char *want;
    } cases[] = {
        {0, "now"},
        {999, "now"},
        {-999, "now"},
        {1000, "1 s ago"},
        {59999, "59 s ago"},
        {60000, "1m ago"},
        {190000, "3m 10s ago"},
        {3600000, "1h ago"},
        {7500000, "2h 5m ago"},
        {86400000, "1d ago"},
        {4 * 86400000LL + 3 * 3600000, "4d 3h ago"},
        {-12000, "in 12 s"},
        {NOW - 1, "20778d 6h ago"},
    };
    char out[STATUS_WORD];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        status_when(NOW, NOW - cases[i].ago, out);
        assert_string_equal(out, cases[i].want);
    }
    status_when(NOW, 0, out);
    assert_string_equal(out, "never");
    status_duration(-5, out);
    assert_string_equal(out, "0 s");
    status_when(INT64_MAX, 1, out);
    status_when(1, INT64_MAX, out);
}

static void words_for_amounts(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } seconds[] = {{0, "0.00 ms"},   {0.00042, "0.42 ms"}, {0.0031, "3.1 ms"},         {0.0099999, "10 ms"},
                   {0.085, "85 ms"}, {0.9996, "1 s"},      {1.25, "1.25 s"},           {59.94, "59.9 s"},
                   {60, "1m"},       {125.7, "2m 5s"},     {1e300, "106751991167d 7h"}};
    static const struct {
        uint64_t n;
        const char *bytes, *count;
    } amounts[] = {{0, "0 B", "0"},
                   {1023, "1023 B", "1,023"},
                   {1024, "1 KiB", "1,024"},
                   {1536, "1.5 KiB", "1,536"},
                   {1048575, "1 MiB", "1,048,575"},
                   {256u << 20, "256 MiB", "268,435,456"},
                   {UINT64_MAX, "16 EiB", "18,446,744,073,709,551,615"}};
    char out[STATUS_WORD];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
        status_seconds(seconds[i].seconds, out);
        assert_string_equal(out, seconds[i].want);
    }
    for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
        status_bytes(amounts[i].n, out);
        assert_string_equal(out, amounts[i].bytes);
        status_count(amounts[i].n, out);
        assert_string_equal(out, amounts[i].count);
    }
}

static void each_error_has_a_hint(void **state)
{
    (void)state;
    for (enum round_error e = ROUND_OK; e < ROUND_ERRORS; e++) {
        assert_non_null(status_hint(e, STAGE_SOURCE));
        assert_true(*status_hint(e, STAGE_SCORING));
    }
}

/* ---- Ranking ---- */

static void ranks_scores(void **state)
{
    const double values[] = {3, NAN, -INFINITY, 3, INFINITY, -0.0, 0, NAN};
    CLEANUP(cleanup_batch_unref) struct batch *b = make_batch(NULL, values, ARRAY_SIZE(values));
    const size_t high[] = {4, 0, 3, 5}, low[] = {2, 5, 6, 0};
    struct ranking r;

    (void)state;
    status_rank(b, 4, &r);
    assert_int_equal(r.numbers, 6);
    assert_int_equal(r.nans, 2);
    assert_int_equal(r.n, 4);
    assert_memory_equal(r.highest, high, sizeof(high));
    assert_memory_equal(r.lowest, low, sizeof(low));
    status_rank(NULL, 4, &r);
    assert_int_equal(r.numbers + r.nans + r.n, 0);
}

static void ranks_many_scores(void **state)
{
    enum { N = 100000 };
    CLEANUP(cleanup_free) double *values = calloc(N, sizeof(double));
    CLEANUP(cleanup_batch_unref) struct batch *b = NULL;
    struct ranking r;

    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = (double)(i * 7919 % N); /* each value once */
    b = make_batch(NULL, values, N);
    status_rank(b, RANKED_MAX, &r);
    assert_int_equal(r.n, RANKED_MAX);
    for (size_t i = 0; i < RANKED_MAX; i++) {
        assert_true(b->values[r.highest[i]] == (double)(N - 1 - i));
        assert_true(b->values[r.lowest[i]] == (double)i);
    }
}

/* ---- The page ---- */

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

/* ---- The JSON ---- */

static void json_of_a_good_scorer(void **state)
{
    WORLD(w);
    json_auto_t *j = NULL;

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    j = rendered_json(w);
    assert_json(json_object_get(j, "cluster"), "\"c1\"");
    assert_json(json_object_get(j, "startedAt"), "\"2026-11-21T03:18:01.123Z\"");
    assert_json(json_object_get(j, "totals"), "{\"scorers\":1,\"series\":2,\"states\":{\"waiting\":0,\"ok\":"
                                              "1,\"empty\":0,\"failing\":0,\"stale\":0}}");
    assert_json(
        json_object_get(j, "limits"),
        "{\"responseBytes\":268435456,\"seriesPerScorer\":100000,\"series\":1000000,\"labelValueBytes\":256,"
        "\"roundTimeSeconds\":300,\"staleAfterIntervals\":3}");
    assert_json(json_object_get(j, "config"),
                "{\"loadedAt\":\"2026-11-21T05:23:01.123Z\",\"ok\":true,"
                "\"lastTriedAt\":\"2026-11-21T05:23:01.123Z\",\"problems\":[]}");
    assert_json(
        first_scorer(j),
        "{\"name\":\"sample\",\"scoreName\":\"my_score\",\"state\":\"ok\",\"running\":false,\"runningSince\":"
        "null,"
        "\"rounds\":15,\"failures\":0,\"lastRound\":{\"startedAt\":\"2026-11-21T06:22:48.623Z\","
        "\"endedAt\":\"2026-11-21T06:22:49.123Z\",\"fetchSeconds\":0.0031,\"performSeconds\":1.25,"
        "\"sourceSeries\":12,"
        "\"results\":2,\"invalidResults\":0,\"firstInvalid\":null,\"duplicates\":0,\"cutLabels\":0,"
        "\"receivedBytes\":{\"source\":1536,\"scoring\":100},\"sentBytes\":{\"source\":0,\"scoring\":2048}},"
        "\"lastSuccessAt\":\"2026-11-21T06:22:49.123Z\",\"scoresAt\":\"2026-11-21T06:22:49.123Z\","
        "\"nextRoundAt\":\"2026-11-21T06:23:49.123Z\",\"intervalSeconds\":60,\"series\":2,\"error\":null,"
        "\"warnings\":null,\"source\":{\"type\":\"Prometheus\",\"endpoint\":\"http://prom:9090/api/v1/"
        "query_range\","
        "\"secret\":{\"name\":\"prom-token\",\"key\":\"token\"},\"query\":\"sum by (node) (up); "
        "rate(x[5m])\","
        "\"rangeSeconds\":3600,\"stepSeconds\":60},\"scoringEndpoint\":\"http://scorer/"
        "scoring\",\"scoringSecret\":null,"
        "\"highest\":[{\"labels\":{\"node\":\"n1\",\"pod\":\"web-1\"},\"score\":0.25},"
        "{\"labels\":{\"node\":\"n2\",\"meta\":\"gpu\"},\"score\":-17}],"
        "\"lowest\":[{\"labels\":{\"node\":\"n2\",\"meta\":\"gpu\"},\"score\":-17},"
        "{\"labels\":{\"node\":\"n1\",\"pod\":\"web-1\"},\"score\":0.25}]}");
}

static void json_of_trouble(void **state)
{
    const double values[] = {INFINITY, -INFINITY, NAN};
    struct scorer s = bad_scorer(SCORER_FAILING, STAGE_SCORING, ROUND_TIMEOUT, "no answer in 10 s");
    WORLD(w);
    json_auto_t *j = NULL;

    (void)state;
    (void)batch_unref(s.batch);
    s.batch = make_batch(NULL, values, ARRAY_SIZE(values));
    s.status.source_warnings = 1;
    (void)strcpy(s.status.source_warning, "slow \"disk\"");
    s.status.running = true;
    s.status.next_ms = 0;
    add(w, s);
    w->agent.reload =
        (struct reload_status){.at_ms = NOW, .problems = (char *)"a:1:1: error: x\na:2:1: error: y\n"};
    j = rendered_json(w);
    assert_json(json_object_get(json_object_get(j, "config"), "problems"),
                "[\"a:1:1: error: x\",\"a:2:1: error: y\"]");
    assert_json(json_object_get(first_scorer(j), "error"),
                "{\"stage\":\"scoring\",\"class\":\"timeout\",\"text\":\"no answer in 10 s\"}");
    assert_json(json_object_get(first_scorer(j), "warnings"),
                "{\"count\":1,\"first\":\"slow \\\"disk\\\"\"}");
    assert_json(json_object_get(first_scorer(j), "nextRoundAt"), "null");
    assert_json(json_object_get(first_scorer(j), "runningSince"), "\"2026-11-21T06:22:48.623Z\"");
    assert_json(json_object_get(json_object_get(first_scorer(j), "lastRound"), "startedAt"), "null");
    assert_json(json_object_get(first_scorer(j), "highest"),
                "[{\"labels\":{\"node\":\"n000000\"},\"score\":\"+Inf\"},"
                "{\"labels\":{\"node\":\"n000001\"},\"score\":\"-Inf\"}]");
}

static void json_of_nothing(void **state)
{
    WORLD(w);
    struct scorer s = good_scorer((char *)"new");
    json_auto_t *empty = rendered_json(w), *none = NULL, *starting = NULL;

    (void)state;
    assert_json(json_object_get(empty, "scorers"), "[]");
    w->agent.config = NULL;
    none = rendered_json(w);
    assert_json(json_object_get(none, "cluster"), "null");
    assert_json(json_object_get(none, "limits"), "null");
    s.batch = batch_unref(s.batch);
    s.status = (struct scorer_status){0};
    s.state = SCORER_WAITING;
    s.summary.source_type = SOURCE_NONE;
    s.summary.source_endpoint = s.summary.source_query = NULL;
    add(w, s);
    starting = rendered_json(w);
    assert_json(json_object_get(first_scorer(starting), "lastRound"), "null");
    assert_json(json_object_get(first_scorer(starting), "scoresAt"), "null");
    assert_json(json_object_get(first_scorer(starting), "lastSuccessAt"), "null");
    assert_json(json_object_get(first_scorer(starting), "source"), "{\"type\":\"None\"}");
    assert_json(json_object_get(first_scorer(starting), "highest"), "[]");
}

/* ---- The table ---- */

static void assert_table(const struct world *w, unsigned width, const char *want)
{
    BUF_AUTO(b, OUTPUT_MAX);

    render(w, TABLE, width, &b);
    assert_string_equal(b.p, want);
}

static void table_of_a_good_scorer(void **state)
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
                 "    1 warning of the source: slow disk\n"
                 "    2 results left out, the first: results[3].score: missing\n"
                 "\n"
                 "    NODE  POD    META  SCORE\n"
                 "    n1    web-1          0.25\n"
                 "    n2           gpu   -17\n"
                 "\n"
                 "1 scorer: 1 ok, 0 empty, 0 failed, 0 waiting; 2 scores\n");
}

static void table_of_failures(void **state)
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
    assert_table(w, 0,
                 "✗ failed  bad_score, of sample\n"
                 "    asking the source: bad_data: parse error: unexpected end of input (query)\n"
                 "    asked: http://prom:9090/api/v1/query_range\n"
                 "    query: sum by (node) (up); rate(x[5m])\n"
                 "    look at: the query: try it in the query engine's own page\n"
                 "\n"
                 "✗ failed  bad_score, of sample\n"
                 "    asking the scorer: no \"results\" (shape)\n"
                 "    asked: http://scorer/scoring\n"
                 "    look at: the scorer's answer: {\"results\":[{\"metric\":{...},\"score\":1.5}]}\n"
                 "\n"
                 "○ empty  sample\n"
                 "    0 series from the source in 3.1 ms → 0 results in 1.25 s → 0 scores\n"
                 "    the source has no series for this query: sum by (node) (up); rate(x[5m])\n"
                 "\n"
                 "3 scorers: 0 ok, 1 empty, 2 failed, 0 waiting; 0 scores\n");
}

static void table_of_no_scorers(void **state)
{
    WORLD(w);

    (void)state;
    assert_table(w, 80, "no scorers configured: add some under `summaries`\n");
}

static void table_is_coloured_for_a_terminal(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    BUF_AUTO(plain, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    render(w, TABLE, 80, &b);
    assert_has(&b, "\033[32m✓ ok\033[0m");
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    render(w, TABLE, 80, &plain);
    assert_lacks(&plain, "\033");
}

/* No line is longer than the terminal is wide, whatever the scores and errors are. */
static void table_keeps_to_the_width(void **state)
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
        render(w, TABLE, widths[i], &b);
        assert_lacks(&b, "\x1b");
        assert_lacks(&b, "\xc2\x9b");
        assert_lacks(&b, "\xe2\x80\xae");
        assert_has(&b, "…");
        for (char *save, *line = strtok_r(b.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            if (grid_chars(str_of(line)) > widths[i])
                fail_msg("longer than %u: %s", widths[i], line);
    }
}

static void table_of_many_scores(void **state)
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
    render(w, TABLE, 0, &b);
    assert_has(&b, "    n001499  1499\n    n001498  1498\n");
    assert_has(&b, "    n001480  1480\n    … and 1,479 more\n    1 score is NaN\n");
}

/* ---- Memory ---- */

static void survives_any_failed_allocation(void **state)
{
    int (*const forms[])(const struct agent *, struct buf *) = {status_html, status_json};
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    add(w, bad_scorer(SCORER_STALE, STAGE_SOURCE, ROUND_DNS, "no such host"));
    for (size_t i = 0; i <= ARRAY_SIZE(forms); i++) {
        FOR_EACH_ALLOCATION_FAILURE(n)
        {
            BUF_AUTO(b, OUTPUT_MAX);
            int r = i < ARRAY_SIZE(forms) ? forms[i](&w->agent, &b) : status_table(&w->agent, 60, &b);

            assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
            assert_true(r == 0 || b.n == 0);
        }
    }
}

static void leaves_a_buffer_too_small_as_it_was(void **state)
{
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    for (size_t max = 2; max < 150; max += 7) {
        BUF_AUTO(b, max);
        assert_int_equal(buf_puts(&b, "x"), 0);
        assert_int_equal(status_html(&w->agent, &b), -EFBIG);
        assert_int_equal(status_json(&w->agent, &b), -EFBIG);
        assert_int_equal(status_table(&w->agent, 0, &b), -EFBIG);
        assert_true(str_eq(buf_str(&b), STR("x")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_for_times),
        cmocka_unit_test(words_for_amounts),
        cmocka_unit_test(each_error_has_a_hint),
        cmocka_unit_test(ranks_scores),
        cmocka_unit_test(ranks_many_scores),
        cmocka_unit_test(page_shows_everything),
        cmocka_unit_test(page_shows_what_is_wrong),
        cmocka_unit_test(page_of_no_scorers),
        cmocka_unit_test(page_of_scorers_at_the_start),
        cmocka_unit_test(page_of_many_scorers),
        cmocka_unit_test(page_ranks_many_scores),
        cmocka_unit_test(nothing_hostile_gets_out),
        cmocka_unit_test(json_of_a_good_scorer),
        cmocka_unit_test(json_of_trouble),
        cmocka_unit_test(json_of_nothing),
        cmocka_unit_test(table_of_a_good_scorer),
        cmocka_unit_test(table_of_failures),
        cmocka_unit_test(table_of_no_scorers),
        cmocka_unit_test(table_is_coloured_for_a_terminal),
        cmocka_unit_test(table_keeps_to_the_width),
        cmocka_unit_test(table_of_many_scores),
        cmocka_unit_test(survives_any_failed_allocation),
        cmocka_unit_test(leaves_a_buffer_too_small_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
