#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/series.h"
#include "exporter/ui/member.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Times are seconds after this one, which the clock shows plus 1000. */
enum { BEGIN = 1700000000 };

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){0};
}

static unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){(BEGIN + INT64_C(1000)) * 1000};
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

struct world {
    struct store *store;
    struct ingest *ingest;
    struct ingest_outcome outcome;
};

static void world_init(struct world *w, uint32_t max_series)
{
    const struct otlp_promotion promotion = {.k8s = true, .names = STR("")};

    w->store = store_new(&fake_clock);
    store_set_limits(w->store, 64 << 20, max_series);
    store_set_age(w->store, 3600 * 1000);
    w->ingest = ingest_new(w->store, &fake_clock, &promotion);
}

static void world_done(struct world *w)
{
    w->ingest = ingest_free(w->ingest);
    w->store = store_free(w->store);
}

/* Sends a metric: its name and what it holds, in JSON. */
static void send_at_cost(struct world *w, const char *resource, const char *metric, uint64_t max_cost)
{
    char why[DECODE_WHY_BYTES] = "";
    BUF_AUTO(json, 1 << 20);
    BUF_AUTO(request, 1 << 20);
    size_t fields;

    buf_printf(&json,
               "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{%s}]}],\"resource\":"
               "{\"attributes\":[%s]}}]}",
               metric, resource);
    assert_int_equal(buf_failed(&json), 0);
    if (decode_json(buf_str(&json), &otlp__request__descriptor, &request, why) < 0)
        fail_msg("%.*s: %s", STR_ARG(buf_str(&json)), why);
    assert_int_equal(decode_check(buf_str(&request), &fields, why), 0);
    ingest_request(w->ingest, buf_str(&request), max_cost, &w->outcome);
}

static void send(struct world *w, const char *resource, const char *metric)
{
    send_at_cost(w, resource, metric, UINT64_MAX);
}

/* A number's point at a time, of an interval that began at `start` (0: not given). */
static void send_sum(struct world *w, const char *temporality, unsigned start, unsigned at, int v)
{
    BUF_AUTO(metric, 4096);
    BUF_AUTO(begun, 100);

    if (start)
        buf_printf(&begun, "\"startTimeUnixNano\":\"%u000000000\",", BEGIN + start);
    assert_int_equal(buf_failed(&begun), 0);
    buf_printf(&metric,
               "\"name\":\"c\",\"sum\":{\"isMonotonic\":true,\"aggregationTemporality\":%s,"
               "\"dataPoints\":[{%.*s\"timeUnixNano\":\"%u000000000\",\"asInt\":%d}]}%c",
               temporality, STR_ARG(buf_str(&begun)), BEGIN + at, v, 0);
    assert_int_equal(buf_failed(&metric), 0);
    send(w, "", metric.p);
}

/* All series as text: name{labels} value@seconds ..., sorted. */
static void show(struct world *w, char *text, size_t size)
{
    CLEANUP(series_reader_done) struct series_reader in = {.store = w->store, .to_ms = INT64_MAX};
    size_t n = 0;

    text[0] = '\0';
    while (series_next(&in) > 0) {
        struct str rest = in.labels;
        struct series_label l;

        while (labels_next(&rest, &l))
            n += (size_t)snprintf(text + n, size - n, "%.*s=%.*s%s", STR_ARG(l.name), STR_ARG(l.value),
                                  rest.n ? "," : "");
        for (size_t k = 0; k < in.n; k++)
            n += (size_t)snprintf(text + n, size - n, " %g@%lld", in.samples[k].v,
                                  (long long)in.samples[k].t / 1000 - BEGIN);
        n += (size_t)snprintf(text + n, size - n, "\n");
    }
}

static void expect(struct world *w, const char *expected)
{
    char text[8192];

    show(w, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void expect_result(const struct world *w, unsigned result)
{
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        if (w->outcome.results[i] != (i == result))
            fail_msg("%llu points are %s", (unsigned long long)w->outcome.results[i], otlp_result_word(i));
}

static void accumulates_deltas(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "1", 0, 10, 5);
    send_sum(&w, "1", 10, 20, 3);
    send_sum(&w, "1", 25, 30, 4); /* after a gap */
    expect(&w, "__name__=c_total 5@10 8@20 12@30\n");
    world_done(&w);
}

/* A client sends again what it got no answer for, and two writers of one series overlap. */
static void counts_no_delta_twice(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "1", 5, 10, 5);
    expect_result(&w, STORE_OK);
    send_sum(&w, "1", 5, 10, 5);
    expect_result(&w, OTLP_OVERLAP);
    send_sum(&w, "1", 8, 12, 100);
    expect_result(&w, OTLP_OVERLAP);
    send_sum(&w, "1", 0, 9, 100);
    expect_result(&w, STORE_OUT_OF_ORDER);
    send_sum(&w, "1", 10, 15, 1);
    expect_result(&w, STORE_OK);
    expect(&w, "__name__=c_total 5@10 6@15\n");
    world_done(&w);
}

static void hears_the_writer_that_started_last(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "2", 1, 10, 500);
    send_sum(&w, "2", 5, 11, 3);
    send_sum(&w, "2", 1, 12, 510);
    expect_result(&w, OTLP_OVERLAP);
    send_sum(&w, "2", 5, 13, 4);
    expect(&w, "__name__=c_total 500@10 3@11 4@13\n");
    send_sum(&w, "2", 1, 500, 600); /* the other one is gone */
    expect_result(&w, STORE_OK);
    world_done(&w);
}

/* A point from the future would make all later ones come too late. */
static void remembers_no_time_of_the_future(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "1", 0, 10, 5);
    send_sum(&w, "1", 0, 100000, 1);
    expect_result(&w, STORE_TOO_NEW);
    send_sum(&w, "1", 0, 20, 2);
    expect_result(&w, STORE_OK);
    send_sum(&w, "0", 0, 20, 2);
    expect_result(&w, OTLP_TEMPORALITY);
    expect(&w, "__name__=c_total 5@10 7@20\n");
    world_done(&w);
}

#define AT(t)         "\"timeUnixNano\":\"" t "\""
#define T10           AT("1700000010000000000")
#define T20           AT("1700000020000000000")
#define GAUGE(points) "\"name\":\"g\",\"gauge\":{\"dataPoints\":[" points "]}"
#define HISTOGRAM(temporality, points) \
    "\"name\":\"h\",\"histogram\":{\"aggregationTemporality\":" temporality ",\"dataPoints\":[" points "]}"
#define EXPONENTIAL(temporality, points)                                               \
    "\"name\":\"h\",\"exponentialHistogram\":{\"aggregationTemporality\":" temporality \
    ",\"dataPoints\":[" points "]}"

/* A gauge has no temporality: the field is an unknown one. */
static void accumulates_no_gauges(void **state)
{
    /* Twice g with the value 1, after the field 2 of the gauge. */
    static const char request[] = "\x0a\x37\x12\x35\x12\x33\x0a\x01g\x2a\x2e\x10\x01\x0a\x14\x19\000\344\065"
                                  "\212\000\235\227\027\x31\1\0\0\0\0\0\0\0\x3a\0"
                                  "\x0a\x14\x19\000\310\101\336\002\235\227\027\x31\1\0\0\0\0\0\0\0\x3a\0";
    char why[DECODE_WHY_BYTES] = "";
    struct world w;
    size_t fields;

    (void)state;
    world_init(&w, 10);
    if (decode_check((struct str){request, sizeof(request) - 1}, &fields, why) < 0)
        fail_msg("%s", why);
    ingest_request(w.ingest, (struct str){request, sizeof(request) - 1}, UINT64_MAX, &w.outcome);
    assert_int_equal(w.outcome.results[STORE_OK], 2);
    expect(&w, "__name__=g 1@10 1@20\n");
    world_done(&w);
}

static void accumulates_each_bucket_of_delta_histograms(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w, "",
         HISTOGRAM("1", "{" T10 ",\"count\":3,\"sum\":6,\"bucketCounts\":[1,2],\"explicitBounds\":[5]},"
                        "{" T20 ",\"count\":2,\"sum\":20,\"bucketCounts\":[0,2],\"explicitBounds\":[5]}"));
    expect(&w, "__name__=h_count 3@10 5@20\n__name__=h_sum 6@10 26@20\n__name__=h_bucket,le=5 1@10 1@20\n"
               "__name__=h_bucket,le=+Inf 3@10 5@20\n");
    world_done(&w);
}

#define SUMMARY(name, point) "\"name\":\"" name "\",\"summary\":{\"dataPoints\":[{" point "}]}"

static void reads_each_point_from_its_own_fields(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w, "",
         HISTOGRAM(
             "2",
             "{" T10 ",\"count\":4},"
             "{" T20
             ",\"count\":3,\"sum\":6,\"bucketCounts\":[1,2],\"explicitBounds\":[5]}") "},{" SUMMARY("s", T10
                                                                                                    ",\"count"
                                                                                                    "\":2,"
                                                                                                    "\"sum\":"
                                                                                                    "1"));
    send(&w, "", SUMMARY("of_another_sender", T10 ",\"count\":7,\"sum\":8"));
    expect(&w,
           "__name__=h_count 4@10 3@20\n__name__=h_bucket,le=+Inf 4@10 3@20\n"
           "__name__=h_sum 6@20\n__name__=h_bucket,le=5 1@20\n__name__=s_count 2@10\n__name__=s_sum 1@10\n"
           "__name__=of_another_sender_count 7@10\n__name__=of_another_sender_sum 8@10\n");
    world_done(&w);
}

static void refuses_inconsistent_histograms(void **state)
{
    static const char *const metrics[] = {
        HISTOGRAM("2", "{" T10 ",\"count\":3,\"bucketCounts\":[1,1],\"explicitBounds\":[5]}"),
        HISTOGRAM("2", "{" T10 ",\"count\":3,\"bucketCounts\":[1,1,1],\"explicitBounds\":[5]}"),
        HISTOGRAM("2", "{" T10 ",\"count\":3,\"bucketCounts\":[1,1,1],\"explicitBounds\":[5,5]}"),
        HISTOGRAM("2", "{" T10 ",\"count\":3,\"bucketCounts\":[1,1,1],\"explicitBounds\":[5,\"NaN\"]}"),
        HISTOGRAM("2", "{" T10
                       ",\"count\":1,\"bucketCounts\":[\"18446744073709551615\",2],\"explicitBounds\":[5]}"),
        "\"name\":\"g\",\"gauge\":{\"dataPoints\":[{" T10 "}]}",
        "\"name\":\"s\",\"summary\":{\"dataPoints\":[{" T10 ",\"quantileValues\":[{\"quantile\":\"NaN\"}]}]}",
    };
    struct world w;

    (void)state;
    world_init(&w, 100);
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        send(&w, "", metrics[i]);
        if (w.outcome.results[OTLP_INVALID] != 1)
            fail_msg("taken: %s", metrics[i]);
    }
    expect(&w, "");
    world_done(&w);
}

static void counts_exponential_histograms_as_unsupported(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w, "", EXPONENTIAL("2", "{" T10 ",\"count\":10,\"scale\":1,\"positive\":{\"bucketCounts\":[10]}}"));
    expect_result(&w, OTLP_UNSUPPORTED);
    expect(&w, "");
    world_done(&w);
}

#define S(k, v) "{\"key\":\"" k "\",\"value\":{\"stringValue\":\"" v "\"}}"

static void promotes_what_kubernetes_says(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w,
         S("k8s.node.name", "n1") "," S("k8s.pod.name", "p1") "," S("service.name", "shop") "," S("x", "y"),
         "\"name\":\"g\",\"gauge\":{\"dataPoints\":[{" T10
         ",\"asInt\":1,\"attributes\":[" S("pod", "own") "]}]}");
    expect(&w, "__name__=g,job=shop,node=n1,pod=own 1@10\n"
               "__name__=target_info,job=shop,k8s_node_name=n1,k8s_pod_name=p1,x=y 1@10\n");
    world_done(&w);
}

static void describes_a_resource_at_the_time_of_what_is_stored(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w, S("service.name", "shop") "," S("x", "y"),
         GAUGE("{" T10 ",\"asInt\":1},{" AT("1700100000000000000") ",\"asInt\":2}"));
    assert_int_equal(w.outcome.results[STORE_TOO_NEW], 1);
    expect(&w, "__name__=g,job=shop 1@10\n__name__=target_info,job=shop,x=y 1@10\n");
    world_done(&w);
}

static void finds_a_series_whatever_the_order_of_its_attributes(void **state)
{
#define POINT(t, a) "{" t ",\"asInt\":1,\"attributes\":[" a "]}"
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w, "",
         "\"name\":\"g\",\"gauge\":{\"dataPoints\":[" POINT(T10, S("a", "1") "," S("b", "2")) "," POINT(
             T20, S("b", "2") "," S("a", "1")) "]}");
    expect(&w, "__name__=g,a=1,b=2 1@10 1@20\n");
    world_done(&w);
}

static void counts_series_over_the_limit(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 1);
    send(&w, "",
         "\"name\":\"g\",\"gauge\":{\"dataPoints\":[" POINT(T10, S("a", "1")) "," POINT(T10,
                                                                                        S("a", "2")) "]}");
    assert_int_equal(w.outcome.results[STORE_OK], 1);
    assert_int_equal(w.outcome.results[STORE_SERIES_LIMIT], 1);
    assert_string_equal(w.outcome.first, "g");
    world_done(&w);
}

static void refuses_labels_that_are_not_utf8(void **state)
{
    static const char request[] =
        "\x0a\x27\x12\x25\x12\x23\x0a\x01g\x2a\x1e\x0a\x1c\x19\000\344\065\212\000\235\227\027"
        "\x31\1\0\0\0\0\0\0\0\x3a\x08\x0a\x01k\x12\x03\x0a\x01\xff";
    char why[DECODE_WHY_BYTES] = "";
    struct world w;
    size_t fields;

    (void)state;
    world_init(&w, 10);
    if (decode_check((struct str){request, sizeof(request) - 1}, &fields, why) < 0)
        fail_msg("%s", why);
    ingest_request(w.ingest, (struct str){request, sizeof(request) - 1}, UINT64_MAX, &w.outcome);
    expect_result(&w, STORE_BAD_LABELS);
    world_done(&w);
}

static void rejects_more_labels_than_a_series_may_have(void **state)
{
    BUF_AUTO(metric, 1 << 20);
    struct world w;

    (void)state;
    world_init(&w, 10);
    buf_puts(&metric, "\"name\":\"g\\u00e9\",\"gauge\":{\"dataPoints\":[{" T10
                      ",\"asInt\":1,\"attributes\":[" S("a", "b"));
    for (unsigned i = 0; i < 5000; i++)
        buf_printf(&metric, "," S("a%u", "b"), i);
    buf_put(&metric, "]}]}", 5);
    assert_int_equal(buf_failed(&metric), 0);
    send(&w, "", metric.p);
    expect_result(&w, STORE_BAD_LABELS);
    assert_string_equal(w.outcome.first, "g\xc3\xa9");
    world_done(&w);
}

/* The second one is in the same millisecond as the first. */
static void adds_up_no_delta_that_was_rejected(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "1", 0, 10, 5);
    send(&w, "",
         "\"name\":\"c\",\"sum\":{\"isMonotonic\":true,\"aggregationTemporality\":1,\"dataPoints\":[{" AT(
             "1700000010000000500") ",\"asInt\":100}]}");
    expect_result(&w, STORE_DUPLICATE);
    send_sum(&w, "1", 10, 20, 2);
    expect_result(&w, STORE_OK);
    expect(&w, "__name__=c_total 5@10 7@20\n");
    world_done(&w);
}

#define T30 AT("1700000030000000000")

/* The total, and each one after it, would be none either. */
static void adds_up_no_delta_that_is_not_a_number(void **state)
{
    static const char *const values[] = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "1", 0, 10, 5);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        BUF_AUTO(metric, 4096);

        buf_printf(
            &metric,
            "\"name\":\"c\",\"sum\":{\"isMonotonic\":true,\"aggregationTemporality\":1,\"dataPoints\":[{" T20
            ",\"asDouble\":%s}]}%c",
            values[i], 0);
        assert_int_equal(buf_failed(&metric), 0);
        send(&w, "", metric.p);
        expect_result(&w, OTLP_INVALID);
    }
    send_sum(&w, "1", 10, 30, 2);
    expect_result(&w, STORE_OK);
    send(&w, "",
         HISTOGRAM("1", "{" T10 ",\"count\":1,\"sum\":\"NaN\",\"bucketCounts\":[1],\"explicitBounds\":[]}"));
    expect_result(&w, OTLP_INVALID);
    expect(&w, "__name__=c_total 5@10 7@30\n");
    send(&w, "", /* as it is, where nothing is added up */
         "\"name\":\"c\",\"sum\":{\"isMonotonic\":true,\"aggregationTemporality\":2,\"dataPoints\":[{" AT(
             "1700000040000000000") ",\"asDouble\":\"NaN\"}]}");
    expect_result(&w, STORE_OK);
    world_done(&w);
}

/* Buckets always add up to their count. */
static void begins_again_at_zero_when_bounds_change(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send(&w, "",
         HISTOGRAM("1", "{" T10 ",\"count\":3,\"bucketCounts\":[1,2],\"explicitBounds\":[5]},"
                        "{" T20 ",\"count\":2,\"bucketCounts\":[1,1],\"explicitBounds\":[7]},"
                        "{" T30 ",\"count\":4,\"bucketCounts\":[3,1],\"explicitBounds\":[7]}"));
    expect(&w, "__name__=h_count 3@10 2@20 6@30\n__name__=h_bucket,le=5 1@10\n"
               "__name__=h_bucket,le=+Inf 3@10 2@20 6@30\n__name__=h_bucket,le=7 1@20 4@30\n");
    world_done(&w);
}

/* By the sender's clock it is an hour later; then that is corrected, and the process restarted. */
static void forgets_a_start_in_the_future(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_sum(&w, "2", 4600, 10, 500);
    expect_result(&w, STORE_OK);
    send_sum(&w, "2", 15, 20, 3);
    expect_result(&w, STORE_OK);
    send_sum(&w, "2", 1200, 1300, 4); /* after the time of the clock, and before the point */
    expect_result(&w, STORE_OK);
    send_sum(&w, "2", 900, 1310, 5);
    expect_result(&w, STORE_OK);
    world_done(&w);
}

static void rejects_integers_out_of_range(void **state)
{
    static const struct {
        const char *member;
        bool valid;
    } cases[] = {
        {"\"asInt\":\"9223372036854775807\"", true},
        {"\"asInt\":\"9223372036854775808\"", false},
        {"\"asInt\":-9223372036854775808", true},
        {"\"asInt\":-9223372036854775809", false},
        {"\"asInt\":9.3e18", false},
        {"\"asInt\":1e3", true},
        {"\"timeUnixNano\":18446744073709551615", true},
        {"\"timeUnixNano\":18446744073709551616", false},
        {"\"timeUnixNano\":-1", false},
        {"\"timeUnixNano\":1.9e19", false},
        {"\"flags\":9223372036854775808", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_free)
        char *json =
            xasprintf("{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{" GAUGE("{%s}") "}]}]}]}",
                      cases[i].member);
        char why[DECODE_WHY_BYTES] = "";
        BUF_AUTO(request, 1 << 20);
        int r = decode_json(str_of(json), &otlp__request__descriptor, &request, why);

        if ((r == 0) != cases[i].valid)
            fail_msg("%s: %s", cases[i].member, why);
    }
}

static void names_the_first_member_that_otlp_does_not_have(void **state)
{
    static const struct {
        const char *json, *skipped;
    } cases[] = {
        {"{}", ""},
        {"{\"resourceMetrics\":[{\"schemaUrl\":\"u\",\"scopeMetrics\":[{\"scope\":{\"name\":\"n\"}}]}]}", ""},
        {"{\"resource_metrics\":[],\"x\":1}",
         "unknown member \"resource_metrics\", expected resourceMetrics"},
        {"{\"resourceMetrics\":[{\"instrumentationLibraryMetrics\":[]}]}",
         "unknown member \"instrumentationLibraryMetrics\", expected resource, scopeMetrics"},
        {"{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{\"data_points\":[{}]}}]}]}]}",
         "unknown member \"data_points\", expected dataPoints"},
        {"{\"resourceMetricsAndMuchMoreThanAnyMemberOfOTLP\":1}",
         "unknown member \"resourceMetricsAndMuchMoreThanAnyMemberO\", expected resourceMetrics"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char skipped[DECODE_WHY_BYTES], why[DECODE_WHY_BYTES] = "";
        BUF_AUTO(request, 1 << 20);

        assert_int_equal(decode_json_request(str_of(cases[i].json), &request, skipped, why), 0);
        assert_string_equal(skipped, cases[i].skipped);
    }
}

static void stores_a_histogram_as_a_whole_or_not_at_all(void **state)
{
    struct store_stats stats;
    struct world w;

    (void)state;
    world_init(&w, 3);
    send(&w, "",
         HISTOGRAM("2", "{" T10 ",\"count\":3,\"sum\":6,\"bucketCounts\":[1,2],\"explicitBounds\":[5]}"));
    expect_result(&w, STORE_SERIES_LIMIT);
    expect(&w, "");
    store_stats(w.store, &stats);
    assert_int_equal(stats.series, 0); /* they leave their places to others */
    send(&w, "", GAUGE(POINT(T10, S("a", "1"))));
    expect_result(&w, STORE_OK);
    world_done(&w);
}

/* ---- Costs: of samples, and of the bytes of labels that are made ---- */

/* A value of `n` bytes. */
static void put_value(struct buf *to, size_t n)
{
    while (to->n < n)
        buf_putc(to, 'v');
    buf_putc(to, '\0');
    assert_int_equal(buf_failed(to), 0);
}

/* A gauge with so many points, each of a series of its own. */
static void put_points(struct buf *to, unsigned n)
{
    buf_puts(to, "\"name\":\"g\",\"gauge\":{\"dataPoints\":[");
    for (unsigned i = 0; i < n; i++)
        buf_printf(to, "%s" POINT(T10, S("a", "%u")), i ? "," : "", i);
    buf_put(to, "]}", 3);
    assert_int_equal(buf_failed(to), 0);
}

static void makes_the_labels_of_a_resource_once(void **state)
{
    enum { VALUE_BYTES = 60000, POINTS = 50 };
    CLEANUP(cleanup_free) char *resource = NULL;
    BUF_AUTO(points, 1 << 20);
    BUF_AUTO(value, 1 << 20);
    struct world w;

    (void)state;
    world_init(&w, 1000);
    put_points(&points, POINTS);
    for (size_t i = 0; i < VALUE_BYTES; i++)
        buf_puts(&value, "\\\""); /* a quote: two bytes in JSON */
    buf_putc(&value, '\0');
    assert_int_equal(buf_failed(&value), 0);
    resource = xasprintf("{\"key\":\"service.name\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":"
                         "\"%s\"}]}}}",
                         value.p);
    send(&w, resource, points.p);
    assert_int_equal(w.outcome.results[STORE_BAD_LABELS], POINTS);
    assert_in_range(w.outcome.cost, 0, 2 * 2 * VALUE_BYTES / 32);
    world_done(&w);
}

static void makes_no_labels_again_of_a_series_that_was_refused(void **state)
{
    enum { VALUE_BYTES = 40000 };
    CLEANUP(cleanup_free) char *refused = NULL;
    BUF_AUTO(value, 1 << 20);
    struct world w;

    (void)state;
    world_init(&w, 1);
    send(&w, "", GAUGE(POINT(T10, S("a", "1"))));
    put_value(&value, VALUE_BYTES);
    refused = xasprintf(GAUGE(POINT(T20, S("a", "%s"))), value.p);
    send(&w, "", refused);
    expect_result(&w, STORE_SERIES_LIMIT);
    assert_in_range(w.outcome.cost, VALUE_BYTES / 32, UINT64_MAX);
    send(&w, "", refused);
    expect_result(&w, STORE_SERIES_LIMIT);
    assert_in_range(w.outcome.cost, 0, 100);
    store_set_limits(w.store, 64 << 20, 2);
    send(&w, "", refused);
    expect_result(&w, STORE_OK);
    world_done(&w);
}

static void ends_a_request_that_costs_too_much(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 100);
    send_at_cost(&w, "",
                 GAUGE(POINT(T10, S("a", "1")) "," POINT(T10, S("a", "2")) "," POINT(T10, S("a", "3"))), 20);
    assert_true(w.outcome.is_cut);
    expect(&w, "__name__=g,a=1 1@10\n__name__=g,a=2 1@10\n");
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accumulates_deltas),
        cmocka_unit_test(counts_no_delta_twice),
        cmocka_unit_test(hears_the_writer_that_started_last),
        cmocka_unit_test(remembers_no_time_of_the_future),
        cmocka_unit_test(accumulates_no_gauges),
        cmocka_unit_test(accumulates_each_bucket_of_delta_histograms),
        cmocka_unit_test(reads_each_point_from_its_own_fields),
        cmocka_unit_test(refuses_inconsistent_histograms),
        cmocka_unit_test(counts_exponential_histograms_as_unsupported),
        cmocka_unit_test(promotes_what_kubernetes_says),
        cmocka_unit_test(describes_a_resource_at_the_time_of_what_is_stored),
        cmocka_unit_test(finds_a_series_whatever_the_order_of_its_attributes),
        cmocka_unit_test(counts_series_over_the_limit),
        cmocka_unit_test(refuses_labels_that_are_not_utf8),
        cmocka_unit_test(rejects_more_labels_than_a_series_may_have),
        cmocka_unit_test(adds_up_no_delta_that_was_rejected),
        cmocka_unit_test(adds_up_no_delta_that_is_not_a_number),
        cmocka_unit_test(begins_again_at_zero_when_bounds_change),
        cmocka_unit_test(forgets_a_start_in_the_future),
        cmocka_unit_test(rejects_integers_out_of_range),
        cmocka_unit_test(names_the_first_member_that_otlp_does_not_have),
        cmocka_unit_test(stores_a_histogram_as_a_whole_or_not_at_all),
        cmocka_unit_test(makes_the_labels_of_a_resource_once),
        cmocka_unit_test(makes_no_labels_again_of_a_series_that_was_refused),
        cmocka_unit_test(ends_a_request_that_costs_too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
