#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/metric/metrics.h"
#include "remotewrite/format.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "remotewrite/spool.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <math.h>

static const int64_t START = 1760000000000;

/* Everything that an endpoint keeps over a run, on disk. */
struct run {
    struct rw_endpoint_config *config;
    struct spool *spool;
    struct queue *queue;
    struct intake *intake;
};

static void begin(struct run *r, const char *dir, const char *config)
{
    struct queue_options o = {.max_bytes = 1 << 26, .memory_bytes = 1 << 20};
    char yaml[512];

    (void)snprintf(yaml, sizeof(yaml), "[{url: 'http://h/', name: hub%s}]", config);
    r->config = rw_endpoint(yaml);
    assert_int_equal(spool_new(&r->spool, dir, 1 << 20), 0);
    r->queue = queue_new(&o);
    assert_int_equal(queue_attach(r->queue, r->spool), 0);
    r->intake = intake_new(r->config, r->queue);
    intake_attach(r->intake, r->spool);
}

static void end(struct run *r)
{
    (void)intake_free(r->intake);
    (void)queue_free(r->queue);
    (void)spool_free(r->spool);
    (void)rw_endpoint_config_unref(r->config);
}

static void publish(struct run *r, const char *score_name, size_t n, int64_t at)
{
    struct batch *b = rw_batch(score_name, n, at);

    intake_publish(r->intake, b);
    (void)batch_unref(b);
}

/* Takes all that waits; how many values and how many markers. */
static void drain(struct run *r, size_t *ret_values, size_t *ret_markers)
{
    struct record *rec;

    *ret_values = *ret_markers = 0;
    intake_commit(r->intake);
    while ((rec = queue_pick(r->queue, START))) {
        *(rec->head.kind == RECORD_MARKERS ? ret_markers : ret_values) += rec->head.samples;
        queue_finish(r->queue, rec, DROP_REJECTED, 0);
    }
    queue_save_position(r->queue, false);
}

static void assert_drained(struct run *r, size_t values, size_t markers)
{
    size_t v, m;

    drain(r, &v, &m);
    assert_int_equal(v, values);
    assert_int_equal(m, markers);
}

static void ends_series_that_do_not_come_back_after_a_crash(void **state)
{
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, "");
    publish(&r, "a", 10, START);
    publish(&r, "gone", 5, START);
    assert_drained(&r, 15, 0);
    end(&r); /* a crash */
    begin(&r, dir, "");
    assert_int_equal(intake_series(r.intake), 15);
    intake_grace(r.intake, (mono_ms){1000}, START);
    publish(&r, "a", 7, START + 2000);
    assert_drained(&r, 7, 3);
    intake_grace(r.intake, (mono_ms){INTAKE_GRACE_MS}, START);
    assert_drained(&r, 0, 0);
    intake_grace(r.intake, (mono_ms){1000 + INTAKE_GRACE_MS}, START);
    assert_drained(&r, 0, 5);
    intake_grace(r.intake, (mono_ms){10000 + INTAKE_GRACE_MS}, START);
    assert_drained(&r, 0, 0);
    assert_int_equal(intake_series(r.intake), 7);
    end(&r);
    rw_folder_done(dir);
}

static void ends_series_whose_labels_changed_over_a_crash(void **state)
{
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, "");
    publish(&r, "a", 10, START);
    assert_drained(&r, 10, 0);
    end(&r);
    begin(&r, dir, ", external_labels: {zone: new}");
    publish(&r, "a", 10, START + 1000);
    assert_drained(&r, 10, 10);
    end(&r);
    rw_folder_done(dir);
}

static void ends_every_series_at_a_clean_stop(void **state)
{
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, ", queue_config: {max_samples_per_send: 3}");
    publish(&r, "a", 10, START);
    publish(&r, "b", 1, START);
    intake_stop(r.intake, START + 5);
    assert_drained(&r, 11, 11);
    end(&r);
    begin(&r, dir, "");
    assert_int_equal(intake_series(r.intake), 0);
    end(&r);
    rw_folder_done(dir);
}

static void writes_no_markers_for_an_unchanged_set(void **state)
{
    char *dir = rw_folder();
    struct batch_builder *builder = rw_builder("a");
    struct run r;

    (void)state;
    begin(&r, dir, "");
    for (int i = 0; i < 5; i++) {
        struct batch *b = rw_batch_from(builder, "n", 20, i, START + i * 1000);

        intake_publish(r.intake, b);
        (void)batch_unref(b);
    }
    assert_drained(&r, 100, 0);
    end(&r);
    (void)batch_builder_free(builder);
    rw_folder_done(dir);
}

static void sends_own_metrics_and_ends_those_that_disappear(void **state)
{
    CLEANUP(cleanup_metrics_free) struct metrics *own = NULL;
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, "");
    own = metrics_new(METRIC_OWNER_LOOP);
    metric_set(own, METRIC_SCORERS, LV_NONE, 1);
    metric_set(own, METRIC_UP, LV("with \"quotes\" and space"), NAN);
    intake_metrics(r.intake, own, START);
    assert_drained(&r, 2, 0);
    metric_observe(own, METRIC_FETCH_DURATION, LV("a"), 0.3);
    intake_metrics(r.intake, own, START + 1);
    assert_drained(&r, 2 + 19, 0); /* 16 buckets and +Inf, sum, count */
    metrics_forget(own, "score_name", "a");
    metric_set(own, METRIC_SCORERS, LV_NONE, 2);
    intake_metrics(r.intake, own, START + 2);
    assert_drained(&r, 2, 19);
    end(&r);
    rw_folder_done(dir);
}

/* The samples that a receiver gets, as `name{label="value",...} value timestamp`. */
static void sends_own_metrics_with_names_labels_and_values(void **state)
{
    CLEANUP(cleanup_metrics_free) struct metrics *own = NULL;
    BUF_AUTO(text, 1 << 16);
    char *dir = rw_folder();
    struct record *record;
    struct str payload;
    struct run r;

    (void)state;
    begin(&r, dir, "");
    own = metrics_new(METRIC_OWNER_LOOP);
    metric_add(own, METRIC_REQUESTS, LV("a\\b", "success"), 3);
    metric_observe(own, METRIC_FETCH_DURATION, LV("a"), 0.3);
    intake_metrics(r.intake, own, 7);
    intake_commit(r.intake);
    record = queue_pick(r.queue, START);
    assert_non_null(record);
    assert_int_equal(queue_payload(r.queue, record, &payload), 0);
    assert_int_equal(body_print(payload, &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_non_null(
        strstr(text.p, "dynamic_scoring_requests_total{score_name=\"a\\\\b\",status=\"success\"} 3 7\n"));
    assert_non_null(strstr(text.p, "fetch_duration_seconds_bucket{le=\"0.25\",score_name=\"a\"} 0 7\n"));
    assert_non_null(strstr(text.p, "fetch_duration_seconds_bucket{le=\"0.5\",score_name=\"a\"} 1 7\n"));
    assert_non_null(strstr(text.p, "fetch_duration_seconds_bucket{le=\"+Inf\",score_name=\"a\"} 1 7\n"));
    assert_non_null(strstr(text.p, "fetch_duration_seconds_count{score_name=\"a\"} 1 7\n"));
    assert_non_null(strstr(text.p, "fetch_duration_seconds_sum{score_name=\"a\"} 0.2"));
    queue_put_back(r.queue);
    end(&r);
    rw_folder_done(dir);
}

/* At least so many of the series of "lane" are read, in their order, and no others. */
static void assert_active(struct str file, const struct label_bytes *l, size_t least)
{
    struct active_reader r = {.records.bytes = file};
    struct label_bytes *back;
    struct str lane;
    size_t found = 0;

    while (active_next(&r, &lane, &back)) {
        if (str_eq(lane, STR("lane")))
            found = back->n;
        for (size_t i = 0, at = 0; i < back->n; i++, at++)
            while (!str_eq(label_bytes_at(back, i), label_bytes_at(l, at)))
                assert_true(++at < l->n);
        (void)label_bytes_free(back);
    }
    assert_in_range(found, least, l->n);
}

static void reads_what_is_intact_in_a_damaged_active_file(void **state)
{
    struct batch *b = rw_batch("a", 3, START);
    struct rw_endpoint_config *c = rw_endpoint("[{url: 'http://h/'}]");
    struct label_bytes *l = label_bytes_new(b->set, NULL, 0, series_count(b->set), c, NULL);
    BUF_AUTO(bytes, 1 << 20);
    size_t ends[2];

    (void)state;
    for (size_t set = 0; set < 2; set++) {
        for (size_t i = 0; i < 3; i++) {
            CLEANUP(cleanup_frame_free) struct frame *f = frame_new(l, NULL, i, 1, START);

            assert_int_equal(active_put(&bytes, set ? STR("other") : STR("lane"), set, f, i, 3), 0);
        }
        ends[set] = bytes.n;
    }
    for (size_t n = 0; n < bytes.n; n++)
        assert_active((struct str){bytes.p, n}, l, n < ends[0] ? 0 : 3);
    for (size_t i = 0; i < bytes.n * 8; i++) {
        bytes.p[i / 8] = (char)(bytes.p[i / 8] ^ 1 << i % 8);
        assert_active(buf_str(&bytes), l, i / 8 < ends[0] ? 2 : 3);
        bytes.p[i / 8] = (char)(bytes.p[i / 8] ^ 1 << i % 8);
    }
    (void)label_bytes_free(l);
    (void)rw_endpoint_config_unref(c);
    (void)batch_unref(b);
}

/* A set that is cut off leaves the one before; one without series takes it away. */
static void reads_the_last_whole_active_set(void **state)
{
    struct batch *b = rw_batch("a", 3, START);
    struct rw_endpoint_config *c = rw_endpoint("[{url: 'http://h/'}]");
    struct label_bytes *l = label_bytes_new(b->set, NULL, 0, 3, c, NULL), *back;
    CLEANUP(cleanup_frame_free) struct frame *three = frame_new(l, NULL, 0, 3, START);
    CLEANUP(cleanup_frame_free) struct frame *one = frame_new(l, NULL, 0, 1, START);
    struct active_reader r;
    BUF_AUTO(bytes, 1 << 20);
    struct str lane;

    (void)state;
    assert_int_equal(active_put(&bytes, STR("lane"), 0, three, 0, 1), 0);
    assert_int_equal(active_put(&bytes, STR("lane"), 1, one, 0, 2), 0);
    r = (struct active_reader){.records.bytes = buf_str(&bytes)};
    assert_true(active_next(&r, &lane, &back));
    assert_int_equal(back->n, 3);
    (void)label_bytes_free(back);
    assert_false(active_next(&r, &lane, &back));
    assert_int_equal(active_put(&bytes, STR("lane"), 1, one, 1, 2), 0);
    assert_int_equal(active_put(&bytes, STR("lane"), 2, NULL, 0, 0), 0);
    r = (struct active_reader){.records.bytes = buf_str(&bytes)};
    for (size_t n = 3; n > 0; n--) {
        assert_true(active_next(&r, &lane, &back));
        assert_int_equal(back ? back->n : 0, n == 1 ? 0 : n);
        (void)label_bytes_free(back);
    }
    assert_false(active_next(&r, &lane, &back));
    (void)label_bytes_free(l);
    (void)rw_endpoint_config_unref(c);
    (void)batch_unref(b);
}

/* Rules may give a new series the labels of one that is gone: it goes on. */
static void ends_what_is_gone_after_rules(void **state)
{
    static const char rules[] = ", write_relabel_configs: [{action: labeldrop, regex: ds_pod}]";
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = rw_builder("a");
    char *dir = rw_folder();
    struct run r;

    (void)state;
    for (int with_rules = 0; with_rules < 2; with_rules++) {
        begin(&r, dir, with_rules ? rules : "");
        for (int round = 0; round < 2; round++) {
            struct batch_labels labels = {.value = {[DS_POD] = round ? STR("p1") : STR("p0")}};
            struct batch *b;

            for (int k = 0; k < DS_LABELS; k++)
                if (!labels.value[k].p)
                    labels.value[k] = STR("");
            batch_begin(builder, 0, 0);
            assert_int_equal(batch_add(builder, &labels, 1), 0);
            assert_int_equal(batch_seal(builder, (unix_ms){START + round}, &b, NULL), 0);
            intake_publish(r.intake, b);
            (void)batch_unref(b);
        }
        assert_drained(&r, 2, with_rules ? 0 : 1);
        intake_stop(r.intake, START + 9);
        assert_drained(&r, 0, 1);
        end(&r);
    }
    rw_folder_done(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_series_that_do_not_come_back_after_a_crash),
        cmocka_unit_test(ends_series_whose_labels_changed_over_a_crash),
        cmocka_unit_test(ends_every_series_at_a_clean_stop),
        cmocka_unit_test(writes_no_markers_for_an_unchanged_set),
        cmocka_unit_test(sends_own_metrics_and_ends_those_that_disappear),
        cmocka_unit_test(sends_own_metrics_with_names_labels_and_values),
        cmocka_unit_test(reads_what_is_intact_in_a_damaged_active_file),
        cmocka_unit_test(reads_the_last_whole_active_set),
        cmocka_unit_test(ends_what_is_gone_after_rules),
    };

    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
