#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/base/log.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/metrics.h"
#include "remotewrite/format.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "test/disk_faults.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

static const int64_t START = 1760000000000;

/* Everything that an endpoint keeps over a run, on disk. */
struct run {
    struct rw_endpoint_config *config;
    struct queue *queue;
    struct intake *intake;
};

/* Whose folder cannot be opened yet. */
static void begin_closed(struct run *r, const char *dir, const char *config)
{
    struct queue_options o = {
        .dir = dir, .segment_bytes = 1 << 20, .max_bytes = 1 << 26, .memory_bytes = 1 << 20};
    char yaml[512];

    (void)snprintf(yaml, sizeof(yaml), "[{url: 'http://h/', name: hub%s}]", config);
    r->config = rw_endpoint(yaml);
    r->queue = queue_new(&o);
    r->intake = intake_new(r->config, r->queue);
}

static void open_folder(struct run *r, int64_t at_ms)
{
    assert_true(queue_open(r->queue, (mono_ms){1}));
    intake_attach(r->intake, at_ms);
}

static void begin(struct run *r, const char *dir, const char *config)
{
    begin_closed(r, dir, config);
    open_folder(r, START);
}

static void end(struct run *r)
{
    (void)intake_free(r->intake);
    (void)queue_free(r->queue);
    (void)rw_endpoint_config_unref(r->config);
}

static void publish(struct run *r, const char *score_name, size_t n, int64_t at)
{
    struct batch *b = rw_batch(score_name, n, at);

    intake_publish(r->intake, b, b->at.ms);
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
        queue_finish(r->queue, rec);
    }
    queue_save_position(r->queue);
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

/* A replica that led, stood by while the scorer was removed, and leads again. */
static void ends_series_that_do_not_come_back_after_a_standby(void **state)
{
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, "");
    publish(&r, "a", 10, START);
    publish(&r, "gone", 5, START);
    assert_drained(&r, 15, 0);
    intake_resume(r.intake);
    intake_grace(r.intake, (mono_ms){1000}, START);
    publish(&r, "a", 10, START + 2000);
    assert_drained(&r, 10, 0);
    intake_grace(r.intake, (mono_ms){1000 + INTAKE_GRACE_MS}, START + 3000);
    assert_drained(&r, 0, 5);
    end(&r);
    rw_folder_done(dir);
}

/* A folder that opens only after the first batch, as another process holds it: what is gone since the crash
 * has an end, and what was never back as well. */
static void ends_series_that_are_gone_when_the_spool_opens_late(void **state)
{
    char *dir = rw_folder();
    struct record *rec;
    struct run r;

    (void)state;
    begin(&r, dir, "");
    publish(&r, "a", 10, START);
    publish(&r, "gone", 5, START);
    assert_drained(&r, 15, 0);
    end(&r); /* a crash */
    begin_closed(&r, dir, "");
    publish(&r, "a", 7, START + 2000);
    assert_drained(&r, 7, 0);
    open_folder(&r, START + 1000); /* by a clock that was set back */
    rec = queue_pick(r.queue, START);
    assert_non_null(rec);
    assert_int_equal(rec->head.kind, RECORD_MARKERS);
    assert_int_equal(rec->head.samples, 3);
    assert_true(rec->head.first_ms > START + 2000);
    queue_finish(r.queue, rec);
    assert_drained(&r, 0, 0);
    intake_grace(r.intake, (mono_ms){1000}, START + 3000);
    intake_grace(r.intake, (mono_ms){1000 + INTAKE_GRACE_MS}, START + 3000);
    assert_drained(&r, 0, 5);
    end(&r);
    begin(&r, dir, "");
    assert_int_equal(intake_series(r.intake), 7);
    end(&r);
    rw_folder_done(dir);
}

/* Another agent may have them by now. */
static void ends_nothing_on_a_standby_whose_spool_opens_late(void **state)
{
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, "");
    publish(&r, "a", 10, START);
    assert_drained(&r, 10, 0);
    end(&r); /* a crash */
    begin_closed(&r, dir, "");
    publish(&r, "a", 7, START + 2000);
    assert_true(queue_open(r.queue, (mono_ms){1}));
    intake_attach_standby(r.intake);
    assert_drained(&r, 7, 0);
    end(&r);
    rw_folder_done(dir);
}

/* Two handovers in a row, the first of them to an agent that never had the folder as a leader: who leads at
 * last finds what both before it had. */
static void leaves_the_series_of_others_on_a_standby_whose_spool_opens_late(void **state)
{
    char *dir = rw_folder();
    struct run r;

    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        begin(&r, dir, "");
        publish(&r, "a", 10, START);
        publish(&r, "b", 4, START);
        assert_drained(&r, 14, 0);
        end(&r);
        begin_closed(&r, dir, "");
        publish(&r, "a", 7, START + 1000);
        publish(&r, "b", 6, START + 1000);
        assert_drained(&r, 13, 0);
        assert_true(queue_open(r.queue, (mono_ms){1}));
        intake_attach_standby(r.intake);
        assert_drained(&r, 0, 0);
        end(&r);
        begin_closed(&r, dir, "");
        if (!late)
            open_folder(&r, START + 2000);
        publish(&r, "a", 5, START + 2000);
        publish(&r, "b", 5, START + 2000);
        intake_commit(r.intake);
        if (late)
            open_folder(&r, START + 2000);
        assert_drained(&r, 10, 6);
        intake_stop(r.intake, START + 3000);
        assert_drained(&r, 0, 10);
        end(&r);
    }
    rw_folder_done(dir);
}

/* An agent that leads again, and whose folder was another's meanwhile. It never had it itself, or has lost
 * it; and it opens before its scorers' next batches. */
static void ends_series_of_who_led_meanwhile(void **state)
{
    (void)state;
    for (unsigned had = 0; had < 2; had++) {
        char *dir = rw_folder(), command[300];
        struct run r, other;

        begin_closed(&r, dir, "");
        if (had)
            open_folder(&r, START);
        publish(&r, "a", 10, START);
        publish(&r, "ended", 3, START);
        assert_drained(&r, 13, 0);
        intake_withdraw(r.intake, STR("ended"), START + 1);
        assert_drained(&r, 0, 3);
        (void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
        assert_int_equal(system(command), 0);
        assert_int_equal(queue_watch(r.queue, (mono_ms){1}), !had);
        begin(&other, dir, "");
        publish(&other, "a", 12, START + 1000);
        publish(&other, "ended", 3, START + 1000);
        assert_drained(&other, 15, 0);
        end(&other);
        intake_resume(r.intake);
        open_folder(&r, START + 2000);
        assert_drained(&r, 0, 0);
        publish(&r, "a", 10, START + 2000);
        publish(&r, "ended", 3, START + 2000);
        assert_drained(&r, 13, 2);
        intake_stop(r.intake, START + 3000);
        assert_drained(&r, 0, 13);
        end(&r);
        rw_folder_done(dir);
    }
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

        intake_publish(r.intake, b, b->at.ms);
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

/* They are not sent any more: since a reload, or since the start after a crash. */
static void ends_own_metrics_that_are_switched_off(void **state)
{
    CLEANUP(cleanup_metrics_free) struct metrics *own = metrics_new(METRIC_OWNER_LOOP);
    static const char on[] = ", send_health_metrics: true";
    char *dir = rw_folder();
    struct rw_endpoint_config *off = rw_endpoint("[{url: 'http://h/', name: hub}]");
    struct run r;

    (void)state;
    metric_set(own, METRIC_SCORERS, LV_NONE, 1);
    begin(&r, dir, on);
    publish(&r, "a", 10, START);
    intake_metrics(r.intake, own, START);
    assert_drained(&r, 11, 0);
    intake_grace(r.intake, (mono_ms){1000}, START + 1);
    assert_drained(&r, 0, 0);
    intake_configure(r.intake, off);
    intake_grace(r.intake, (mono_ms){2000}, START + 2);
    assert_drained(&r, 0, 1);
    intake_grace(r.intake, (mono_ms){3000}, START + 3);
    assert_drained(&r, 0, 0);
    intake_configure(r.intake, r.config);
    intake_metrics(r.intake, own, START + 4);
    assert_drained(&r, 1, 0);
    end(&r); /* a crash */
    begin(&r, dir, "");
    publish(&r, "a", 10, START + 5);
    intake_grace(r.intake, (mono_ms){1000}, START + 5);
    assert_drained(&r, 10, 1);
    assert_int_equal(intake_series(r.intake), 10);
    end(&r);
    (void)rw_endpoint_config_unref(off);
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
    buf_putc(&text, '\0');
    assert_int_equal(buf_failed(&text), 0);
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

static void read_active(const char *dir, struct buf *into)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/active", dir);
    assert_int_equal(file_read(path, into), 0);
}

/* How many series of "lane" and of "other" a start finds active that has these bytes of whole sets. */
static void find_active(const char *dir, struct str bytes, size_t ret[2])
{
    struct run r;
    struct record *rec;
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/active", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes.p, 1, bytes.n, f), bytes.n);
    assert_int_equal(fclose(f), 0);
    begin(&r, dir, "");
    intake_stop(r.intake, START);
    ret[0] = ret[1] = 0;
    while ((rec = queue_pick(r.queue, START))) {
        ret[str_eq(rec->head.lane, STR("other"))] += rec->head.samples;
        queue_finish(r.queue, rec);
    }
    queue_save_position(r.queue);
    end(&r);
}

static void reads_what_is_intact_in_a_damaged_active_file(void **state)
{
    char *dir = rw_folder();
    BUF_AUTO(bytes, 1 << 20);
    struct run r;
    size_t found[2], border;

    (void)state;
    begin(&r, dir, ", queue_config: {max_samples_per_send: 1}");
    publish(&r, "lane", 3, START);
    intake_commit(r.intake);
    read_active(dir, &bytes);
    border = bytes.n;
    buf_truncate(&bytes, 0);
    publish(&r, "other", 3, START);
    assert_drained(&r, 6, 0);
    end(&r);
    read_active(dir, &bytes);
    for (size_t i = 0; i < bytes.n * 8; i += 11) {
        bool first = i / 8 < border, last = i / 8 >= border + (bytes.n - border) * 2 / 3;

        bytes.p[i / 8] = (char)(bytes.p[i / 8] ^ 1 << i % 8);
        find_active(dir, buf_str(&bytes), found);
        bytes.p[i / 8] = (char)(bytes.p[i / 8] ^ 1 << i % 8);
        assert_in_range(found[0], first ? 2 : 3, i / 8 < SEGMENT_HEAD || !first ? 3 : 2);
        /* Nothing says that a set is whole whose last frame is damaged, unless another set follows. */
        assert_in_range(found[1], last ? 0 : first ? 3 : 2, first ? 3 : 2);
    }
    rw_folder_done(dir);
}

/* A set that is cut off leaves the one before; one without series takes it away. */
static void reads_the_last_whole_active_set(void **state)
{
    char *dir = rw_folder();
    BUF_AUTO(bytes, 1 << 20);
    struct run r;
    size_t ends[3], found[2];

    (void)state;
    begin(&r, dir, ", queue_config: {max_samples_per_send: 2}");
    for (size_t i = 0; i < 3; i++) {
        if (i < 2)
            publish(&r, "lane", 3 + 4 * i, START + (int64_t)i);
        else
            intake_withdraw(r.intake, STR("lane"), START + 2);
        intake_commit(r.intake);
        buf_truncate(&bytes, 0);
        read_active(dir, &bytes);
        ends[i] = bytes.n;
    }
    assert_drained(&r, 10, 7);
    end(&r);
    for (size_t n = 0; n <= bytes.n; n += n + 3 < bytes.n ? 3 : 1) {
        find_active(dir, (struct str){bytes.p, n}, found);
        assert_int_equal(found[0], n < ends[0] ? 0 : n < ends[1] ? 3 : n < ends[2] ? 7 : 0);
    }
    rw_folder_done(dir);
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
            batch_seal(builder, (unix_ms){START + round}, &b, NULL);
            intake_publish(r.intake, b, b->at.ms);
            (void)batch_unref(b);
        }
        assert_drained(&r, 2, with_rules ? 0 : 1);
        intake_stop(r.intake, START + 9);
        assert_drained(&r, 0, 1);
        end(&r);
    }
    rw_folder_done(dir);
}

enum { PODS = 120, FRAME_SERIES = 16 };

/* Publishes the pods that are there, pod i with the value i + round. */
static void publish_pods(struct run *r, struct batch_builder *b, const bool there[PODS], int round)
{
    struct batch *batch;

    batch_begin(b, 0, 0);
    for (int i = 0; i < PODS; i++) {
        struct batch_labels labels = {.escapes = 0};
        char pod[16];

        (void)snprintf(pod, sizeof(pod), "%03d", i);
        labels.value[DS_POD] = str_of(pod);
        if (there[i])
            assert_int_equal(batch_add(b, &labels, i + round), 0);
    }
    batch_seal(b, (unix_ms){START + round}, &batch, NULL);
    intake_publish(r->intake, batch, batch->at.ms);
    (void)batch_unref(batch);
}

/* Takes all that waits: the value of each pod, or NaN for a marker; 0 for what is not there. */
static size_t drain_pods(struct run *r, double values[PODS])
{
    struct record *rec;
    size_t records = 0;

    memset(values, 0, PODS * sizeof(values[0]));
    intake_commit(r->intake);
    for (; (rec = queue_pick(r->queue, START)); records++) {
        Rw__V1__WriteRequest *m;
        struct str payload;

        assert_int_equal(queue_payload(r->queue, rec, &payload), 0);
        m = rw_decode(payload);
        for (size_t i = 0; i < m->n_timeseries; i++)
            for (size_t k = 0; k < m->timeseries[i]->n_labels; k++)
                if (strcmp(m->timeseries[i]->labels[k]->name, "ds_pod") == 0) {
                    int pod = atoi(m->timeseries[i]->labels[k]->value);
                    assert_true(values[pod] == 0);
                    values[pod] = m->timeseries[i]->samples[0]->value;
                }
        rw__v1__write_request__free_unpacked(m, NULL);
        queue_finish(r->queue, rec);
    }
    return records;
}

/* Frames of series that stay are kept while others come and go: each value arrives with its own labels. */
static void sends_each_value_with_its_labels_while_series_change(void **state)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = rw_builder("a");
    bool there[PODS] = {false}, before[PODS] = {false};
    char *dir = rw_folder();
    double values[PODS];
    unsigned rnd = 1;
    struct run r;

    (void)state;
    begin(&r, dir, ", queue_config: {max_samples_per_send: 16}");
    for (int round = 1; round < 300; round++) {
        size_t records, n = 0;

        memcpy(before, there, sizeof(there));
        for (int changes = round % 7 == 0 ? PODS : round % 4; changes > 0; changes--) {
            rnd = rnd * 1103515245u + 12345u;
            there[rnd >> 16 & 1 ? rnd >> 17 & 15 : (rnd >> 17) % PODS] = rnd >> 30 & 1;
        }
        publish_pods(&r, builder, there, round);
        records = drain_pods(&r, values);
        for (int i = 0; i < PODS; i++) {
            n += there[i];
            if (there[i])
                assert_true(values[i] == i + round);
            else
                assert_true(before[i] ? isnan(values[i]) : values[i] == 0);
        }
        assert_true(records <= 4 * (n / FRAME_SERIES) + PODS / FRAME_SERIES + 3);
    }
    end(&r);
    rw_folder_done(dir);
}

static size_t lanes(const struct run *r)
{
    struct queue_stats st = queue_stats(r->queue);

    return st.lanes;
}

/* After an hour, also by a later run; one that has series is not, however old its last round is. */
/* An hour passes, at whose end the wall clock shows this. */
static void forget_idle(struct intake *in, int64_t wall_ms)
{
    static mono_ms now = {1};

    intake_forget(in, now, wall_ms);
    now = mono_add(now, 60 * 60 * 1000 + 1);
    intake_forget(in, now, wall_ms);
}

static void forgets_scorers_that_have_ended(void **state)
{
    enum { HOUR = 3600 * 1000 };
    char *dir = rw_folder();
    struct run r;

    (void)state;
    begin(&r, dir, "");
    publish(&r, "ends", 3, START);
    publish(&r, "lives", 2, START);
    assert_drained(&r, 5, 0);
    intake_withdraw(r.intake, STR("ends"), START + 1000);
    assert_drained(&r, 0, 3);
    forget_idle(r.intake, START + HOUR / 2);
    assert_int_equal(lanes(&r), 2);
    forget_idle(r.intake, START + 2 * HOUR);
    assert_int_equal(lanes(&r), 1);
    assert_int_equal(intake_series(r.intake), 2);
    /* It may come back. */
    publish(&r, "ends", 3, START + 2 * HOUR);
    assert_drained(&r, 3, 0);
    assert_int_equal(intake_series(r.intake), 5);
    intake_withdraw(r.intake, STR("ends"), START + 2 * HOUR + 1000);
    assert_drained(&r, 0, 3);
    end(&r);
    begin(&r, dir, "");
    assert_drained(&r, 0, 0);
    assert_int_equal(lanes(&r), 2);
    forget_idle(r.intake, START + 4 * HOUR);
    assert_int_equal(lanes(&r), 1);
    assert_int_equal(intake_series(r.intake), 2);
    end(&r);
    rw_folder_done(dir);
}

/* ---- Active series that change ---- */

static size_t file_size(const char *dir, const char *name)
{
    char path[256];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (stat(path, &st) < 0)
        return 0;
    return (size_t)st.st_size;
}

static void write_file(const char *dir, const char *name, struct str bytes)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes.p, 1, bytes.n, f), bytes.n);
    assert_int_equal(fclose(f), 0);
}

static void read_file(const char *dir, const char *name, struct buf *into)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    buf_clear(into);
    assert_int_equal(file_read(path, into), 0);
}

/* Which pods a start finds active. They end, and nothing is active then. */
static void find_pods(const char *dir, bool found[PODS])
{
    size_t ignored;
    double values[PODS];
    struct run r;

    begin(&r, dir, "");
    drain(&r, &ignored, &ignored); /* what waits from before */
    intake_stop(r.intake, START + 1000000);
    (void)drain_pods(&r, values);
    queue_save_position(r.queue);
    for (int i = 0; i < PODS; i++)
        found[i] = isnan(values[i]);
    end(&r);
}

static void assert_finds_pods(const char *dir, const bool expected[PODS])
{
    bool found[PODS];

    find_pods(dir, found);
    assert_memory_equal(found, expected, sizeof(found));
}

static void toggle_some(bool there[PODS], unsigned *rnd, int most)
{
    *rnd = *rnd * 1103515245u + 12345u;
    for (int changes = (int)(*rnd >> 16) % (most + 1); changes > 0; changes--) {
        *rnd = *rnd * 1103515245u + 12345u;
        there[(*rnd >> 16) % PODS] ^= true;
    }
}

/* A crash at any time: what was active is found, and nothing else. */
static void finds_active_series_after_changes(void **state)
{
    bool there[PODS] = {false};
    char *dir = rw_folder();
    double values[PODS];
    unsigned rnd = 7;

    (void)state;
    for (int life = 0; life < 60; life++) {
        CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = rw_builder("a");
        struct run r;

        begin(&r, dir, ", queue_config: {max_samples_per_send: 50}");
        for (int i = 0; i < PODS; i++)
            there[i] = i % 7 != life % 7;
        for (int round = 0; round <= life % 12; round++) {
            toggle_some(there, &rnd, round % 5 == 4 ? PODS : 6);
            publish_pods(&r, builder, there, 20 * life + round);
            (void)drain_pods(&r, values);
        }
        end(&r); /* a crash */
        assert_finds_pods(dir, there);
    }
    rw_folder_done(dir);
}

/* One series that comes or goes is not a whole set on disk, and the changes do not pile up for ever. */
static void stores_changes_alone(void **state)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = rw_builder("a");
    bool there[PODS] = {false};
    char *dir = rw_folder();
    double values[PODS];
    size_t whole, changes, most = 0;
    struct run r;

    (void)state;
    memset(there, true, sizeof(there));
    there[3] = false;
    begin(&r, dir, "");
    publish_pods(&r, builder, there, 0);
    (void)drain_pods(&r, values);
    whole = file_size(dir, "active");
    assert_int_equal(file_size(dir, "active.changes"), 0);
    there[3] = true;
    there[5] = false;
    publish_pods(&r, builder, there, 1);
    (void)drain_pods(&r, values);
    assert_int_equal(file_size(dir, "active"), whole);
    changes = file_size(dir, "active.changes");
    assert_in_range(changes, SEGMENT_HEAD + 2 * RECORD_HEAD, whole / 4);
    for (int round = 2; round < 2000; round++) {
        there[round % 9] ^= true;
        publish_pods(&r, builder, there, round);
        (void)drain_pods(&r, values);
        most = most > file_size(dir, "active.changes") ? most : file_size(dir, "active.changes");
    }
    assert_in_range(most, 2 * changes, 80 << 10); /* the slack of 64 KiB, and something */
    end(&r);
    assert_finds_pods(dir, there);
    rw_folder_done(dir);
}

enum { STEPS = 12 };

/* A life with a change of one pod in each step, which only comes or only goes; the sizes of the file of
 * changes and the pods after each. */
static void live_in_steps(const char *dir, size_t size[STEPS], bool there[STEPS][PODS])
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = rw_builder("a");
    static const int changed[STEPS] = {0, 3, 4, 3, 5, 60, 3, 4, 90, 3, 0, 3};
    double values[PODS];
    struct run r;

    begin(&r, dir, "");
    memset(there, 0, STEPS * sizeof(there[0]));
    memset(there[0], true, sizeof(there[0]));
    for (int step = 0; step < STEPS; step++) {
        if (step > 0) {
            memcpy(there[step], there[step - 1], sizeof(there[0]));
            there[step][changed[step]] ^= true;
        }
        publish_pods(&r, builder, there[step], step);
        (void)drain_pods(&r, values);
        size[step] = file_size(dir, "active.changes");
        assert_true(step == 0 || size[step] > size[step - 1]);
    }
    end(&r);
}

/* A torn tail costs the change that was not finished, and no other one. */
static void reads_changes_up_to_a_torn_tail(void **state)
{
    static bool there[STEPS][PODS];
    char *dir = rw_folder();
    BUF_AUTO(sets, 1 << 20);
    BUF_AUTO(changes, 1 << 20);
    size_t size[STEPS];

    (void)state;
    live_in_steps(dir, size, there);
    read_file(dir, "active", &sets);
    read_file(dir, "active.changes", &changes);
    assert_int_equal(changes.n, size[STEPS - 1]);
    for (size_t n = 0, step = 0; n <= changes.n; n += n + 5 < changes.n ? 5 : 1) {
        while (step + 1 < STEPS && size[step + 1] <= n)
            step++;
        write_file(dir, "active", buf_str(&sets));
        write_file(dir, "active.changes", (struct str){changes.p, n});
        assert_finds_pods(dir, there[step]);
    }
    rw_folder_done(dir);
}

/* A flipped bit costs the change in which it is, of one pod. */
static void reads_changes_around_a_damaged_one(void **state)
{
    static bool there[STEPS][PODS];
    char *dir = rw_folder();
    BUF_AUTO(sets, 1 << 20);
    BUF_AUTO(changes, 1 << 20);
    size_t size[STEPS];

    (void)state;
    live_in_steps(dir, size, there);
    read_file(dir, "active", &sets);
    read_file(dir, "active.changes", &changes);
    for (size_t i = SEGMENT_HEAD * 8; i < changes.n * 8; i += 37) {
        bool found[PODS];
        size_t wrong = 0;

        changes.p[i / 8] = (char)(changes.p[i / 8] ^ 1 << i % 8);
        write_file(dir, "active", buf_str(&sets));
        write_file(dir, "active.changes", buf_str(&changes));
        changes.p[i / 8] = (char)(changes.p[i / 8] ^ 1 << i % 8);
        find_pods(dir, found);
        for (int k = 0; k < PODS; k++)
            wrong += found[k] != there[STEPS - 1][k];
        assert_in_range(wrong, 0, 1);
    }
    rw_folder_done(dir);
}

/* The version before this one does not know the file of changes. It reads the whole set; what it writes has
 * numbers from 0, and changes that it has left where they were are of no set then. */
static void reads_what_the_version_before_leaves(void **state)
{
    static bool there[STEPS][PODS];
    char *dir = rw_folder();
    BUF_AUTO(sets, 1 << 20);
    BUF_AUTO(changes, 1 << 20);
    BUF_AUTO(theirs, 1 << 20);
    struct segment_reader from = {0};
    struct segment_item item;
    size_t size[STEPS];

    (void)state;
    live_in_steps(dir, size, there);
    read_file(dir, "active", &sets);
    read_file(dir, "active.changes", &changes);
    write_file(dir, "active.changes", STR(""));
    assert_finds_pods(dir, there[0]);

    buf_put(&theirs, segment_magic, SEGMENT_HEAD);
    from.bytes = buf_str(&sets);
    while (segment_next(&from, &item) == SEGMENT_RECORD) {
        char head[RECORD_HEAD];

        assert_true(item.head.seq >= 1ull << 32);
        item.head.seq -= 1ull << 32;
        record_head_put(head, &item.head, item.payload);
        buf_put(&theirs, head, sizeof(head));
        buf_put_str(&theirs, item.head.lane);
        buf_put_str(&theirs, item.payload);
    }
    assert_int_equal(buf_failed(&theirs), 0);
    write_file(dir, "active", buf_str(&theirs));
    write_file(dir, "active.changes", buf_str(&changes));
    assert_finds_pods(dir, there[0]);
    rw_folder_done(dir);
}

/* Whichever call fails, and however often: as soon as the disk takes it, what is active is on it. */
static void stores_changes_after_a_failing_disk(void **state)
{
    static const int errors[] = {ENOSPC, EIO};
    double values[PODS];

    (void)state;
    for (long nth = 1, calls = 1, failed = 1; failed; calls = calls % 7 + 3, nth++) {
        CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = rw_builder("a");
        char *dir = rw_folder();
        bool there[PODS] = {false};
        size_t ignored;
        struct run r;

        begin(&r, dir, "");
        for (int i = 0; i < PODS; i++)
            there[i] = i % 3 != 0;
        publish_pods(&r, builder, there, 0);
        (void)drain_pods(&r, values);
        for (int round = 1; round < 5; round++) {
            if (round == 2)
                disk_fail_at(nth, calls, errors[nth % 2]);
            there[round * 3] = true;
            there[round * 3 + 1] = false;
            publish_pods(&r, builder, there, round);
            intake_commit(r.intake);
        }
        failed = disk_has_failed();
        disk_fail_at(0, 0, 0);
        there[100] ^= true;
        publish_pods(&r, builder, there, 5);
        drain(&r, &ignored, &ignored);
        end(&r);
        assert_finds_pods(dir, there);
        rw_folder_done(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_series_that_do_not_come_back_after_a_crash),
        cmocka_unit_test(ends_series_that_do_not_come_back_after_a_standby),
        cmocka_unit_test(ends_series_that_are_gone_when_the_spool_opens_late),
        cmocka_unit_test(ends_nothing_on_a_standby_whose_spool_opens_late),
        cmocka_unit_test(leaves_the_series_of_others_on_a_standby_whose_spool_opens_late),
        cmocka_unit_test(ends_series_of_who_led_meanwhile),
        cmocka_unit_test(ends_series_whose_labels_changed_over_a_crash),
        cmocka_unit_test(ends_every_series_at_a_clean_stop),
        cmocka_unit_test(writes_no_markers_for_an_unchanged_set),
        cmocka_unit_test(sends_own_metrics_and_ends_those_that_disappear),
        cmocka_unit_test(ends_own_metrics_that_are_switched_off),
        cmocka_unit_test(sends_own_metrics_with_names_labels_and_values),
        cmocka_unit_test(reads_what_is_intact_in_a_damaged_active_file),
        cmocka_unit_test(reads_the_last_whole_active_set),
        cmocka_unit_test(ends_what_is_gone_after_rules),
        cmocka_unit_test(sends_each_value_with_its_labels_while_series_change),
        cmocka_unit_test(forgets_scorers_that_have_ended),
        cmocka_unit_test(finds_active_series_after_changes),
        cmocka_unit_test(stores_changes_alone),
        cmocka_unit_test(reads_changes_up_to_a_torn_tail),
        cmocka_unit_test(reads_changes_around_a_damaged_one),
        cmocka_unit_test(reads_what_the_version_before_leaves),
        cmocka_unit_test(stores_changes_after_a_failing_disk),
    };

    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
