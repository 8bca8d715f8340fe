/* Scrapers on threads of their own while the loop's thread publishes: each sees a whole page, of one
 * moment. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/metric/series.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

enum { PUBLICATIONS = 10000, READERS = 2, SERIES = 20, BODY_MAX = 1 << 20 };

static atomic_bool ended;

struct reader {
    struct page *page;
    pthread_t thread;
    size_t scrapes;
    char *bad; /* the first page that is not as it should be */
};

/* All lines of a scorer's block must come from one batch: they have the same value. */
static bool is_whole(const char *text)
{
    static const char *const scorers[] = {"ds_score_name=\"cpu\"} ", "ds_score_name=\"mem\"} "};

    for (size_t i = 0; i < ARRAY_SIZE(scorers); i++) {
        size_t lines = 0;
        double value = 0;
        for (const char *at = text; (at = strstr(at, scorers[i])); at++, lines++) {
            double v = strtod(at + strlen(scorers[i]), NULL);
            if (lines && v != value)
                return false;
            value = v;
        }
        if (lines != 0 && lines != SERIES)
            return false;
    }
    return strstr(text, "# TYPE dynamic_score gauge\n") == text && strstr(text, "\n# EOF\n");
}

static bool unpack(const struct httpd_reply *reply, bool gzip, char *to)
{
    z_stream s = {.next_out = (Bytef *)to, .avail_out = BODY_MAX - 1};
    int r = Z_OK;
    size_t n = 0;

    if (gzip && inflateInit2(&s, 15 + 16) != Z_OK)
        return false;
    for (unsigned i = 0; i < reply->n_parts; i++) {
        s.next_in = reply->parts[i].iov_base;
        s.avail_in = (uInt)reply->parts[i].iov_len;
        if (gzip)
            r = inflate(&s, Z_NO_FLUSH);
        else
            memcpy(to + n, s.next_in, s.avail_in);
        n += reply->parts[i].iov_len;
    }
    to[gzip ? s.total_out : n] = '\0';
    if (gzip)
        (void)inflateEnd(&s);
    return !gzip || r == Z_STREAM_END;
}

static void *read_pages(void *arg)
{
    struct reader *r = arg;
    CLEANUP(cleanup_free) char *text = malloc(BODY_MAX);

    while (text && !r->bad && (!atomic_load(&ended) || r->scrapes == 0)) {
        bool gzip = r->scrapes % 2;
        struct httpd_reply reply = {0};
        page_serve(r->page,
                   &(struct httpd_request){.accept = "application/openmetrics-text",
                                           .accept_encoding = gzip ? "gzip" : ""},
                   &reply);
        if (reply.status || !unpack(&reply, gzip, text) || !is_whole(text))
            r->bad = strdup(reply.status ? "status" : text);
        if (reply.release)
            reply.release(reply.arg);
        page_count_request(r->page, "/metrics", 200, 1);
        r->scrapes++;
    }
    return NULL;
}

static void publish(struct page *p, struct batch_builder *b, double value)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;

    batch_begin(b, 0, 0);
    for (size_t i = 0; i < SERIES; i++) {
        struct batch_labels l = {.value[DS_POD] = {"abcdefghijklmnopqrstuvwxyz" + i, 1}};
        assert_int_equal(batch_add(b, &l, value), 0);
    }
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    page_publish(p, batch);
}

static void readers_see_whole_pages(void **state)
{
    CLEANUP(cleanup_page_free) struct page *p = NULL;
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *cpu = NULL, *mem = NULL;
    CLEANUP(cleanup_metrics_free) struct metrics *own = NULL;
    struct reader readers[READERS] = {0};

    (void)state;
    p = page_new(true);
    own = metrics_new(METRIC_OWNER_LOOP);
    cpu = batch_builder_new("c1", "cpu", SERIES);
    mem = batch_builder_new("c1", "mem", SERIES);
    for (size_t i = 0; i < READERS; i++) {
        readers[i].page = p;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_pages, &readers[i]), 0);
    }
    for (int i = 0; i < PUBLICATIONS; i++) {
        publish(p, i % 3 ? cpu : mem, i);
        if (i % 50 == 0)
            page_withdraw(p, i % 100 ? "cpu" : "mem");
        if (i % 20 == 0) {
            metric_add(own, METRIC_ROUNDS, LV("success", "cpu"), 1);
            assert_int_equal(page_set_own(p, own), 0);
        }
    }
    atomic_store(&ended, true);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        if (readers[i].bad)
            fail_msg("after %zu scrapes: %s", readers[i].scrapes, readers[i].bad);
        assert_true(readers[i].scrapes > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_see_whole_pages)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
