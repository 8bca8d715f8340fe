/* The page is served to hand-made requests; no HTTP server takes part. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/block.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/metric/series.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <zlib.h>

#include <cmocka.h>

#define OPENMETRICS "application/openmetrics-text;version=1.0.0"

static struct metrics *own; /* the program's own metrics */

static int setup(void **state)
{
    own = metrics_new(METRIC_OWNER_LOOP);
    *state = page_new(true);
    return 0;
}

static int teardown(void **state)
{
    *state = page_free(*state);
    own = metrics_free(own);
    return 0;
}

/* A batch of the pods web-0, web-1, ...; NULL without memory. */
static struct batch *make_batch(const char *score_name, size_t n, double value)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = batch_builder_new("c1", score_name, n);
    struct batch *batch = NULL;
    int r = 0;

    batch_begin(b, 0, 0);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct batch_labels l = {.escapes = 0};
        char pod[32];
        l.value[DS_POD] = (struct str){pod, (size_t)snprintf(pod, sizeof(pod), "web-%zu", i)};
        r = batch_add(b, &l, value + (double)i);
    }
    if (r == 0)
        batch_seal(b, (unix_ms){0}, &batch, NULL);
    return batch;
}

static void publish(struct page *p, const char *score_name, size_t n, double value)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = make_batch(score_name, n, value);

    assert_non_null(batch);
    page_publish(p, batch);
    assert_int_equal(page_set_own(p, own), 0);
}

static void withdraw(struct page *p, const char *score_name)
{
    page_withdraw(p, score_name);
    assert_int_equal(page_set_own(p, own), 0);
}

static struct httpd_reply serve(struct page *p, const char *accept, const char *encoding)
{
    struct httpd_reply reply = {0};

    page_serve(p, &(struct httpd_request){.method = "GET", .accept = accept, .accept_encoding = encoding},
               &reply);
    return reply;
}

static void release(struct httpd_reply *reply)
{
    if (reply->release)
        reply->release(reply->arg);
}

/* The body in one piece, with a NUL that does not count. */
static void join(const struct httpd_reply *reply, struct buf *into)
{
    for (unsigned i = 0; i < reply->n_parts; i++) {
        assert_true(reply->parts[i].iov_len > 0);
        buf_put(into, reply->parts[i].iov_base, reply->parts[i].iov_len);
        assert_int_equal(buf_failed(into), 0);
    }
    buf_putc(into, '\0');
    assert_int_equal(buf_failed(into), 0);
    into->n--;
}

static void scrape(struct page *p, const char *accept, struct buf *into)
{
    struct httpd_reply reply = serve(p, accept, "");

    assert_int_equal(reply.status, 0);
    join(&reply, into);
    release(&reply);
}

/* Process metrics differ from scrape to scrape. */
static void cut_process(struct buf *b)
{
    char *at = strstr(b->p, "# TYPE process_");

    assert_non_null(at);
    buf_truncate(b, (size_t)(at - b->p));
    b->p[b->n] = '\0';
}

#define HEAD "# TYPE dynamic_score gauge\n# HELP dynamic_score Score returned by the scoring API.\n"
#define LINE(score, pod, value)                                                                     \
    "dynamic_score{ds_app=\"\",ds_cluster=\"c1\",ds_container=\"\",ds_device=\"\",ds_meta=\"\",ds_" \
    "namespace=\"\","                                                                               \
    "ds_node=\"\",ds_pod=\"" pod "\",ds_score_name=\"" score "\"} " value "\n"

static void assert_blocks(struct page *p, const char *want)
{
    BUF_AUTO(b, 1u << 20);

    scrape(p, "", &b);
    cut_process(&b);
    assert_string_equal(b.p, want);
}

static void counts_what_earlier_versions_hold(void **state)
{
    struct page *p = *state;
    struct httpd_reply plain, gzip;
    uint64_t version, later, bytes, held;

    publish(p, "cpu", 1000, 1);
    assert_int_equal(page_old_bytes(p, &version, &bytes), 0);
    assert_int_equal(bytes, page_memory(p));
    plain = serve(p, "", "");
    gzip = serve(p, "", "gzip");
    assert_int_equal(plain.version, version);
    assert_int_equal(page_old_bytes(p, &version, &bytes), 0); /* what is shown costs nothing */
    publish(p, "cpu", 1000, 2);
    held = page_old_bytes(p, &later, &bytes);
    assert_true(later > version && held >= plain.parts[1].iov_len + gzip.parts[1].iov_len);
    release(&plain);
    assert_int_equal(page_old_bytes(p, &later, &bytes), held);
    release(&gzip);
    assert_int_equal(page_old_bytes(p, &later, &bytes), 0);
    withdraw(p, "cpu");
    assert_int_equal(page_old_bytes(p, &later, &bytes), 0);
}

static void blocks_come_and_go_in_order_of_name(void **state)
{
    struct page *p = *state;

    assert_blocks(p, HEAD);
    publish(p, "mem", 1, 1);
    assert_blocks(p, HEAD LINE("mem", "web-0", "1"));
    publish(p, "cpu", 2, 0.25);
    assert_blocks(p,
                  HEAD LINE("cpu", "web-0", "0.25") LINE("cpu", "web-1", "1.25") LINE("mem", "web-0", "1"));
    publish(p, "zzz", 1, -1);
    publish(p, "mem", 1, 1e300); /* replaced where it stands */
    assert_blocks(p, HEAD LINE("cpu", "web-0", "0.25") LINE("cpu", "web-1", "1.25")
                         LINE("mem", "web-0", "1e+300") LINE("zzz", "web-0", "-1"));
    withdraw(p, "mem");
    withdraw(p, "mem");
    withdraw(p, "never");
    assert_blocks(p,
                  HEAD LINE("cpu", "web-0", "0.25") LINE("cpu", "web-1", "1.25") LINE("zzz", "web-0", "-1"));
    publish(p, "cpu", 0, 0); /* a scorer without series is no gap */
    assert_blocks(p, HEAD LINE("zzz", "web-0", "-1"));
    withdraw(p, "zzz");
    withdraw(p, "cpu");
    assert_blocks(p, HEAD);
}

/* Scores and the metrics that count them are of one moment. */
static void shows_scores_with_the_metrics_of_their_round(void **state)
{
    struct page *p = *state;
    CLEANUP(cleanup_batch_unref) struct batch *batch = make_batch("cpu", 1, 1);

    page_publish(p, batch);
    assert_blocks(p, HEAD);
    metric_set(own, METRIC_SCORERS, LV_NONE, 1);
    assert_int_equal(page_set_own(p, own), 0);
    assert_true(page_own_bytes(p) > 0);
    page_withdraw(p, "cpu");
    metric_set(own, METRIC_SCORERS, LV_NONE, 0);
    for (int i = 0; i < 2; i++) {
        BUF_AUTO(b, 1u << 20);
        scrape(p, "", &b);
        assert_int_equal(strstr(b.p, LINE("cpu", "web-0", "1")) == NULL, i);
        assert_int_equal(strstr(b.p, "dynamic_scoring_scorers 1\n") == NULL, i);
        assert_int_equal(page_set_own(p, own), 0);
    }
}

static void answers_with_the_right_headers(void **state)
{
    static const struct {
        const char *accept, *encoding, *type, *gzip;
    } cases[] = {
        {"", "", "text/plain; version=0.0.4; charset=utf-8", NULL},
        {"", "gzip", "text/plain; version=0.0.4; charset=utf-8", "gzip"},
        {OPENMETRICS, "", "application/openmetrics-text; version=1.0.0; charset=utf-8", NULL},
        {"application/openmetrics-text;version=0.0.1", "gzip",
         "application/openmetrics-text; version=0.0.1; charset=utf-8", "gzip"},
    };

    publish(*state, "cpu", 3, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct httpd_reply reply = serve(*state, cases[i].accept, cases[i].encoding);
        assert_int_equal(reply.status, 0);
        assert_string_equal(reply.content_type, cases[i].type);
        assert_string_equal(cstr(reply.content_encoding), cstr(cases[i].gzip));
        assert_string_equal(reply.vary, "Accept, Accept-Encoding");
        assert_null(reply.cache_control);
        release(&reply);
    }
}

static void fill_own(struct page *p)
{
    metric_set(own, METRIC_ROUNDS, LV("success", "cpu"), 5);
    metric_set(own, METRIC_SCORERS, LV_NONE, 1);
    metric_observe(own, METRIC_FETCH_DURATION, LV("cpu"), 0.5);
    assert_int_equal(page_set_own(p, own), 0);
    page_count_request(p, "/metrics", 200, 12345);
}

static void openmetrics_is_well_formed(void **state)
{
    struct page *p = *state;
    BUF_AUTO(b, 1u << 20);

    for (int filled = 0; filled < 2; filled++) {
        b.n = 0;
        scrape(p, OPENMETRICS, &b);
        assert_true(b.n > 6 && strcmp(b.p + b.n - 7, "\n# EOF\n") == 0);
        assert_ptr_equal(strstr(b.p, "# EOF"), b.p + b.n - 6);
        assert_null(strstr(b.p, "\n\n"));
        assert_null(strchr(b.p, '\r'));
        assert_non_null(strstr(b.p, "# TYPE process_cpu_seconds counter\n"));
        fill_own(p);
        publish(p, "cpu", 100, -3.5);
    }
    assert_non_null(strstr(b.p, "# TYPE dynamic_scoring_rounds counter\n# HELP dynamic_scoring_rounds "));
    assert_non_null(strstr(b.p, "# TYPE dynamic_scoring_scorers gauge\n# HELP dynamic_scoring_scorers "));
    assert_non_null(strstr(b.p, "# TYPE dynamic_scoring_fetch_duration_seconds histogram\n"));
    assert_non_null(strstr(b.p, "\ndynamic_scoring_rounds_total{result=\"success\",score_name=\"cpu\"} 5\n"));
    assert_non_null(
        strstr(b.p, "\ndynamic_scoring_http_requests_total{code=\"200\",handler=\"/metrics\"} 1\n"));
    assert_non_null(strstr(b.p, "\ndynamic_scoring_http_response_bytes_total{handler=\"/metrics\"} 12345\n"));
    b.n = 0;
    scrape(p, "", &b);
    assert_null(strstr(b.p, "# EOF"));
    assert_non_null(strstr(b.p, "# TYPE dynamic_scoring_rounds_total counter\n"));
}

static void openmetrics_leaves_labels_alone(void **state)
{
    struct page *p = *state;
    BUF_AUTO(b, 1u << 20);

    metric_set(own, METRIC_ROUNDS, LV("success", "#1\n# TYPE x_total counter"), 5);
    fill_own(p);
    scrape(p, OPENMETRICS, &b);
    assert_non_null(strstr(b.p, "\ndynamic_scoring_rounds_total{result=\"success\",score_name=\"#1\\n# TYPE "
                                "x_total counter\"} 5\ndynamic_scoring_rounds_total{"));
    assert_non_null(strstr(b.p, "# TYPE dynamic_scoring_scorers gauge\n"));
}

/* Debian's Python client has a strict parser; where it is, it must take the page. */
static void openmetrics_parser_takes_it(void **state)
{
    static const char command[] =
        "/usr/bin/python3 -c 'import sys\n"
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n"
        "families = {f.name: f for f in parse(sys.stdin.read())}\n"
        "sys.exit(len(families[\"dynamic_score\"].samples) != 100)'";
    BUF_AUTO(b, 1u << 20);
    FILE *to;

    if (system("/usr/bin/python3 -c 'import prometheus_client.openmetrics.parser' 2>/dev/null") != 0)
        skip();
    fill_own(*state);
    publish(*state, "say \"cpu\"", 100, 0.5);
    scrape(*state, OPENMETRICS, &b);
    to = popen(command, "w");
    assert_non_null(to);
    assert_int_equal(fwrite(b.p, 1, b.n, to), b.n);
    assert_int_equal(pclose(to), 0);
}

static void promtool_finds_nothing(void **state)
{
    BUF_AUTO(b, 1u << 20);
    FILE *to;

    if (access("/usr/bin/promtool", X_OK) < 0)
        skip();
    fill_own(*state);
    publish(*state, "cpu", 10, 0.5);
    scrape(*state, "", &b);
    to = popen("/usr/bin/promtool check metrics", "w");
    assert_non_null(to);
    assert_int_equal(fwrite(b.p, 1, b.n, to), b.n);
    assert_int_equal(pclose(to), 0);
}

static void inflate_one_member(const struct buf *z, struct buf *into)
{
    z_stream s = {.next_in = (Bytef *)z->p, .avail_in = (uInt)z->n};
    char *to;

    assert_int_equal(inflateInit2(&s, 15 + 16), Z_OK);
    assert_int_equal(buf_reserve(into, 2u << 20, &to), 0);
    s.next_out = (Bytef *)to;
    s.avail_out = 2u << 20;
    assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END); /* also checks sum and length */
    assert_int_equal(s.avail_in, 0);
    to[s.total_out] = '\0';
    into->n += s.total_out;
    assert_int_equal(inflateEnd(&s), Z_OK);
}

static void gzip_holds_the_same_bytes(void **state)
{
    static const char *const formats[] = {"", OPENMETRICS};
    struct page *p = *state;

    for (int step = 0; step < 5; step++) {
        for (size_t f = 0; f < ARRAY_SIZE(formats); f++) {
            BUF_AUTO(plain, 2u << 20);
            BUF_AUTO(z, 2u << 20);
            BUF_AUTO(back, 2u << 20);
            struct httpd_reply reply = serve(p, formats[f], "gzip");
            join(&reply, &z);
            release(&reply);
            inflate_one_member(&z, &back);
            if (f == 1)
                assert_string_equal(back.p + back.n - 7, "\n# EOF\n");
            scrape(p, formats[f], &plain);
            cut_process(&plain);
            cut_process(&back);
            assert_string_equal(plain.p, back.p);
        }
        if (step == 1)
            fill_own(p);
        publish(p, step % 2 ? "cpu" : "mem", (size_t)step * 100, step);
    }
}

static bool same_memory(const struct httpd_reply *a, const struct httpd_reply *b, const char *holds)
{
    for (unsigned i = 0; i < a->n_parts; i++)
        if (memmem(a->parts[i].iov_base, a->parts[i].iov_len, holds, strlen(holds)))
            for (unsigned k = 0; k < b->n_parts; k++)
                if (a->parts[i].iov_base == b->parts[k].iov_base)
                    return a->parts[i].iov_len == b->parts[k].iov_len;
    return false;
}

/* Of a batch without text: the whole is compressed before another asks for it as it is. */
static void compresses_a_part_at_a_time(void **state)
{
    BUF_AUTO(z, 1u << 20);
    BUF_AUTO(back, 2u << 20);
    BUF_AUTO(plain, 2u << 20);
    struct httpd_reply reply;

    publish(*state, "cpu", 0, 1);
    publish(*state, "mem", 9999, 1);
    reply = serve(*state, "", "gzip");
    join(&reply, &z);
    release(&reply);
    inflate_one_member(&z, &back);
    scrape(*state, "", &plain);
    assert_true(plain.n > 1000000);
    cut_process(&plain);
    cut_process(&back);
    assert_true(str_eq(buf_str(&plain), buf_str(&back)));
}

static void unchanged_blocks_are_not_touched(void **state)
{
    struct page *p = *state;
    struct httpd_reply first, second, third;
    BUF_AUTO(before, 1u << 20);
    BUF_AUTO(after, 1u << 20);

    publish(p, "cpu", 50, 1);
    publish(p, "mem", 50, 1);
    first = serve(p, "", "");
    join(&first, &before);
    second = serve(p, OPENMETRICS, "");
    assert_true(same_memory(&first, &second, "ds_score_name=\"cpu\""));
    publish(p, "cpu", 50, 2);
    fill_own(p);
    third = serve(p, "", "");
    assert_false(same_memory(&first, &third, "ds_score_name=\"cpu\""));
    assert_true(same_memory(&first, &third, "ds_score_name=\"mem\""));
    assert_true(same_memory(&first, &third, "# TYPE dynamic_score gauge"));
    withdraw(p, "cpu");
    withdraw(p, "mem");
    join(&first, &after); /* an answer under way keeps what it began with */
    assert_string_equal(before.p, after.p);
    release(&first);
    release(&second);
    release(&third);
}

static void forms_are_made_when_they_are_asked_for(void **state)
{
    struct page *p = *state;
    size_t before = page_memory(p), none, text, both;
    struct httpd_reply reply;

    publish(p, "cpu", 5000, 1);
    none = page_memory(p) - before; /* the batch */
    for (int i = 0; i < 2; i++) {
        reply = serve(p, "", "");
        text = page_memory(p) - before;
        assert_true(text > none + 5000 * 100);
        release(&reply);
    }
    for (int i = 0; i < 2; i++) {
        reply = serve(p, "", "gzip");
        both = page_memory(p) - before;
        assert_true(both > text + 5000 && both < text + 100000);
        release(&reply);
    }
    publish(p, "cpu", 5000, 2);
    assert_in_range(page_memory(p) - before, none, none + 200); /* the head's are still there */
}

/* Of most versions of the program's metrics nobody asks for it. */
static void openmetrics_is_made_when_it_is_asked_for(void **state)
{
    struct page *p = *state;
    BUF_AUTO(b, 1u << 20);
    size_t text, both;

    fill_own(p);
    scrape(p, "", &b);
    text = page_memory(p);
    b.n = 0;
    scrape(p, OPENMETRICS, &b);
    both = page_memory(p);
    assert_true(both > text);
    b.n = 0;
    scrape(p, OPENMETRICS, &b);
    assert_int_equal(page_memory(p), both);
}

static void memory_is_given_back(void **state)
{
    struct page *p = *state;
    size_t empty;

    withdraw(p, "cpu");
    empty = page_memory(p);
    publish(p, "cpu", 1000, 1);
    assert_in_range(page_memory(p), 100000, 250000);
    withdraw(p, "cpu");
    assert_int_equal(page_memory(p), empty);
}

static void prints_what_it_serves(void **state)
{
    BUF_AUTO(served, 1u << 20);
    BUF_AUTO(printed, 1u << 20);
    BUF_AUTO(small, 100);

    publish(*state, "cpu", 10, 1);
    fill_own(*state);
    scrape(*state, "", &served);
    assert_int_equal(page_print(*state, &printed), 0);
    buf_putc(&printed, '\0');
    assert_int_equal(buf_failed(&printed), 0);
    cut_process(&served);
    cut_process(&printed);
    assert_string_equal(served.p, printed.p);
    assert_int_equal(page_print(*state, &small), -EFBIG);
}

static void renders_batches(void **state)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = make_batch("cpu", 2, -0.5);
    BUF_AUTO(b, 10000);
    BUF_AUTO(small, 20);

    (void)state;
    assert_int_equal(batch_render(batch, &b), 0);
    buf_putc(&b, '\0');
    assert_int_equal(buf_failed(&b), 0);
    assert_string_equal(b.p, LINE("cpu", "web-0", "-0.5") LINE("cpu", "web-1", "0.5"));
    assert_int_equal(batch_render(batch, &small), -EFBIG);
    assert_int_equal(small.n, 0);
}

/* A program without scores does not tell of a family that it will never have; zlib reads what is
 * compressed. */
static void without_scores_there_is_no_head(void **state)
{
    CLEANUP(cleanup_page_free) struct page *p = NULL;
    BUF_AUTO(plain, 1u << 20);
    BUF_AUTO(zipped, 1u << 20);
    struct httpd_reply reply;
    char text[16384] = "";
    z_stream z = {.avail_out = sizeof(text) - 1, .next_out = (unsigned char *)text};

    (void)state;
    p = page_new(false);
    scrape(p, "", &plain);
    assert_ptr_equal(strstr(plain.p, "# TYPE process_"), plain.p);
    reply = serve(p, "", "gzip");
    join(&reply, &zipped);
    release(&reply);
    z.next_in = (unsigned char *)zipped.p;
    z.avail_in = (unsigned)zipped.n;
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(inflateEnd(&z), Z_OK);
    assert_ptr_equal(strstr(text, "# TYPE process_"), text);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forms_are_made_when_they_are_asked_for),
        TEST(compresses_a_part_at_a_time),
        TEST(counts_what_earlier_versions_hold),
        TEST(blocks_come_and_go_in_order_of_name),
        TEST(shows_scores_with_the_metrics_of_their_round),
        TEST(answers_with_the_right_headers),
        TEST(openmetrics_is_well_formed),
        TEST(openmetrics_leaves_labels_alone),
        TEST(openmetrics_parser_takes_it),
        TEST(promtool_finds_nothing),
        TEST(gzip_holds_the_same_bytes),
        TEST(unchanged_blocks_are_not_touched),
        TEST(openmetrics_is_made_when_it_is_asked_for),
        TEST(memory_is_given_back),
        TEST(prints_what_it_serves),
        cmocka_unit_test(without_scores_there_is_no_head),
        cmocka_unit_test(renders_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
