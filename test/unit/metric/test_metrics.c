#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = metrics_new(METRIC_OWNER_LOOP);
    return 0;
}

static int teardown(void **state)
{
    *state = metrics_free(*state);
    return 0;
}

static void assert_text(const struct metrics *m, bool openmetrics, const char *want)
{
    BUF_AUTO(b, 1u << 20);

    assert_int_equal(metrics_render(m, openmetrics, &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, want);
}

static void renders_counters_and_gauges(void **state)
{
    struct metrics *m = *state;

    assert_text(m, false, "");
    assert_true(metric_get(m, METRIC_SCORERS, LV_NONE) == 0);
    metric_set(m, METRIC_SCORERS, LV_NONE, 5);
    metric_set(m, METRIC_SCORERS, LV_NONE, 3);
    metric_add(m, METRIC_SCORERS, LV_NONE, -1);
    metric_add(m, METRIC_REQUESTS, LV("cpu", "success"), 1);
    metric_add(m, METRIC_REQUESTS, LV("cpu", "success"), 1.5);
    metric_add(m, METRIC_REQUESTS, LV("cpu", "failure"), 0);
    assert_true(metric_get(m, METRIC_SCORERS, LV_NONE) == 2);
    assert_true(metric_get(m, METRIC_REQUESTS, LV("cpu", "success")) == 2.5);
    assert_true(metric_get(m, METRIC_REQUESTS, LV("gpu", "success")) == 0);
    assert_text(
        m, false,
        "# TYPE dynamic_scoring_requests_total counter\n"
        "# HELP dynamic_scoring_requests_total Finished rounds, by status: success, or failure if any "
        "stage failed (source, scoring or response).\n"
        "dynamic_scoring_requests_total{score_name=\"cpu\",status=\"failure\"} 0\n"
        "dynamic_scoring_requests_total{score_name=\"cpu\",status=\"success\"} 2.5\n"
        "# TYPE dynamic_scoring_scorers gauge\n"
        "# HELP dynamic_scoring_scorers Configured scorers.\n"
        "dynamic_scoring_scorers 2\n");
    /* OpenMetrics names a counter's family without the suffix of its samples. */
    assert_text(m, true,
                "# TYPE dynamic_scoring_requests counter\n"
                "# HELP dynamic_scoring_requests Finished rounds, by status: success, or failure if any "
                "stage failed (source, scoring or response).\n"
                "dynamic_scoring_requests_total{score_name=\"cpu\",status=\"failure\"} 0\n"
                "dynamic_scoring_requests_total{score_name=\"cpu\",status=\"success\"} 2.5\n"
                "# TYPE dynamic_scoring_scorers gauge\n"
                "# HELP dynamic_scoring_scorers Configured scorers.\n"
                "dynamic_scoring_scorers 2\n");
}

static double sample(const struct metrics *m, const char *name)
{
    BUF_AUTO(b, 1u << 20);
    BUF_AUTO(line, 4096);
    const char *at;

    assert_int_equal(metrics_render(m, false, &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_int_equal(buf_printf(&line, "\n%s ", name), 0);
    assert_int_equal(buf_putc(&line, '\0'), 0);
    at = strstr(b.p, line.p);
    if (!at)
        fail_msg("no sample %s", name);
    return strtod(at + line.n - 1, NULL);
}

static void renders_cumulative_histograms(void **state)
{
#define FETCH "dynamic_scoring_fetch_duration_seconds"
    static const double seconds[] = {0.001, 0.0011, 0.003, 0.25, 0.2500001, 59, 300, 301, 0};
    struct metrics *m = *state;
    double sum = 0;

    for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
        metric_observe(m, METRIC_FETCH_DURATION, LV("cpu"), seconds[i]);
        sum += seconds[i];
    }
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"0.001\"}") == 2); /* le: the bound is in */
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"0.0025\"}") == 3);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"0.005\"}") == 4);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"0.1\"}") == 4);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"0.25\"}") == 5);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"1.0\"}") == 6);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"60.0\"}") == 7);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"300.0\"}") == 8);
    assert_true(sample(m, FETCH "_bucket{score_name=\"cpu\",le=\"+Inf\"}") == 9);
    assert_true(sample(m, FETCH "_count{score_name=\"cpu\"}") == 9);
    assert_true(fabs(sample(m, FETCH "_sum{score_name=\"cpu\"}") - sum) < 1e-9);
}

static int count_sample(void *arg, const struct metric_sample *s)
{
    size_t *n = arg;

    assert_true(s->n_labels <= METRIC_MAX_LABELS);
    if (s->info == &metric_infos[METRIC_ROUND_ERRORS]) {
        assert_int_equal(s->n_labels, 3);
        assert_true(str_eq(s->labels[0].name, STR("class")) && str_eq(s->labels[0].value, STR("a\"b")));
        assert_true(str_eq(s->labels[2].name, STR("stage")) && str_eq(s->labels[2].value, STR("")));
        assert_string_equal(s->suffix, "");
        assert_true(s->value == 4);
    } else {
        assert_ptr_equal(s->info, &metric_infos[METRIC_FETCH_DURATION]);
        assert_true(*s->suffix == '_');
    }
    return ++*n == 5 ? 17 : 0;
}

static void iterates_until_the_callback_stops_it(void **state)
{
    struct metrics *m = *state;
    size_t n = 0;

    assert_int_equal(metrics_each(m, count_sample, &n), 0);
    metric_set(m, METRIC_ROUND_ERRORS, LV("a\"b", "s", ""), 4);
    assert_int_equal(metrics_each(m, count_sample, &n), 0);
    assert_int_equal(n, 1);
    metric_observe(m, METRIC_FETCH_DURATION, LV("x"), 1);
    assert_int_equal(metrics_each(m, count_sample, &n), 17);
    assert_int_equal(n, 5);
}

static void escapes_label_values(void **state)
{
    struct metrics *m = *state;

    metric_set(m, METRIC_UP, LV("a\"b\\c\nd"), 1);
    metric_set(m, METRIC_UP, LV(""), 2);
    assert_text(m, true,
                "# TYPE dynamic_scoring_up gauge\n"
                "# HELP dynamic_scoring_up 1 if the last round produced scores, 0 if it failed.\n"
                "dynamic_scoring_up{score_name=\"\"} 2\n"
                "dynamic_scoring_up{score_name=\"a\\\"b\\\\c\\nd\"} 1\n");
    assert_true(metric_get(m, METRIC_UP, LV("a\"b\\c\nd")) == 1);
    metrics_forget(m, "score_name", "a\"b\\c\nd");
    assert_true(metric_get(m, METRIC_UP, LV("a\"b\\c\nd")) == 0);
    assert_true(metric_get(m, METRIC_UP, LV("")) == 2);
}

/* Whatever the order in which series come and go, the text is the same. */
static void renders_in_a_stable_order(void **state)
{
    static const char *const names[] = {"b", "a", "ab", "Z", "\xc3\xa4", "aa", "a b", "a\"", ""};
    struct metrics *m = *state, *other = NULL;
    BUF_AUTO(x, 1u << 20);
    BUF_AUTO(y, 1u << 20);

    other = metrics_new(METRIC_OWNER_LOOP);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        metric_set(m, METRIC_UP, LV(names[i]), (double)i);
        metric_add(m, METRIC_ROUND_ERRORS, LV("dns", names[i], "source"), 1);
    }
    metric_set(other, METRIC_UP, LV("gone"), 1);
    for (size_t i = ARRAY_SIZE(names); i-- > 0;) {
        metric_add(other, METRIC_ROUND_ERRORS, LV("dns", names[i], "source"), 1);
        metric_set(other, METRIC_UP, LV(names[i]), (double)i);
    }
    metric_remove(other, METRIC_UP, LV("gone"));
    metric_remove(other, METRIC_UP, LV("never there"));
    assert_int_equal(metrics_render(m, false, &x), 0);
    assert_int_equal(metrics_render(other, false, &y), 0);
    assert_true(str_eq(buf_str(&x), buf_str(&y)));
    (void)metrics_free(other);
    assert_null(metrics_free(NULL));
}

static void forgets_one_scorer_only(void **state)
{
    static const char *const names[] = {
        "a", "ab", "b", "a\",score_name=\"b", ",score_name=", "x,score_name=\"b\""};
    struct metrics *m = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        metric_add(m, METRIC_REQUESTS, LV(names[i], "success"), 1);
        metric_add(m, METRIC_ROUND_ERRORS, LV("b", names[i], "b"), 1); /* in the middle */
        metric_observe(m, METRIC_FETCH_DURATION, LV(names[i]), 1);
        metric_set(m, METRIC_SCORE_TIMESTAMP, LV("b", names[i]), 1); /* ds_score_name */
    }
    metrics_forget(m, "score_name", "b");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        double want = strcmp(names[i], "b") != 0;
        assert_true(metric_get(m, METRIC_REQUESTS, LV(names[i], "success")) == want);
        assert_true(metric_get(m, METRIC_ROUND_ERRORS, LV("b", names[i], "b")) == want);
        assert_true(metric_get(m, METRIC_FETCH_DURATION, LV(names[i])) == want);
        assert_true(metric_get(m, METRIC_SCORE_TIMESTAMP, LV("b", names[i])) == 1);
    }
    metrics_forget(m, "score_name", "nobody");
    metrics_forget(m, "no_label", "b");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        metrics_forget(m, "score_name", names[i]);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        metrics_forget(m, "ds_score_name", names[i]);
    assert_text(m, false, "");
}

/* Each metric of metrics.def with a series or two. */
static void fill(struct metrics *m, enum metric_owner owner)
{
    for (enum metric id = 0; id < METRICS; id++) {
        if (metric_infos[id].owner != owner)
            continue;
        for (int k = 0; k < 2; k++) {
            const char *v = k ? "second \"one\"" : "first";
            if (metric_infos[id].type == METRIC_TYPE_HISTOGRAM)
                metric_observe(m, id, LV(v, v, v), 0.5);
            else
                metric_set(m, id, LV(v, v, v), 1.5 + k);
        }
    }
}

static void copies_every_value(void **state)
{
    struct metrics *m = *state;
    CLEANUP(cleanup_metrics_free) struct metrics *copy = NULL;
    BUF_AUTO(want, 1u << 20);
    BUF_AUTO(got, 1u << 20);

    fill(m, METRIC_OWNER_LOOP);
    assert_int_equal(metrics_render(m, true, &want), 0);
    assert_int_equal(metrics_copy(&copy, m), 0);
    metric_add(m, METRIC_SCORERS, LV_NONE, 1);
    metrics_forget(m, "score_name", "first");
    assert_int_equal(metrics_render(copy, true, &got), 0);
    assert_true(str_eq(buf_str(&got), buf_str(&want)));
}

/* The rules of naming that promtool and OpenMetrics check, and those of metrics.def itself. */
static void declares_only_well_formed_metrics(void **state)
{
    (void)state;
    for (enum metric id = 0; id < METRICS; id++) {
        const struct metric_info *info = &metric_infos[id];
        size_t n = strlen(info->name);
        bool total = n > 6 && strcmp(info->name + n - 6, "_total") == 0;
        assert_int_equal(total, info->type == METRIC_TYPE_COUNTER);
        assert_true(strspn(info->name, "abcdefghijklmnopqrstuvwxyz_") == n);
        assert_true(*info->help && !strpbrk(info->help, "\\\"\n"));
        assert_true(info->help[strlen(info->help) - 1] == '.');
        for (const char *l = info->labels; *l;) {
            size_t k = strcspn(l, ","), next = l[k] ? strcspn(l + k + 1, ",") : 0;
            assert_true(k > 0 && strspn(l, "abcdefghijklmnopqrstuvwxyz_") == k);
            if (l[k])
                assert_true(str_cmp((struct str){l, k}, (struct str){l + k + 1, next}) < 0);
            l += k + (l[k] == ',');
        }
        for (enum metric other = 0; other < id; other++)
            assert_string_not_equal(info->name, metric_infos[other].name);
    }
}

static void passes_promtool(void **state)
{
    FILE *to;

    (void)state;
    if (access("/usr/bin/promtool", X_OK) < 0)
        skip();
    for (int owner = METRIC_OWNER_LOOP; owner <= METRIC_OWNER_SERVER; owner++) {
        CLEANUP(cleanup_metrics_free) struct metrics *m = NULL;
        BUF_AUTO(b, 1u << 20);
        m = metrics_new((enum metric_owner)owner);
        fill(m, (enum metric_owner)owner);
        assert_int_equal(metrics_render(m, false, &b), 0);
        assert_true(b.n > 1000);
        to = popen("/usr/bin/promtool check metrics", "w");
        assert_non_null(to);
        assert_int_equal(fwrite(b.p, 1, b.n, to), b.n);
        assert_int_equal(pclose(to), 0);
    }
}

static void reads_plausible_process_metrics(void **state)
{
    CLEANUP(cleanup_metrics_free) struct metrics *m = NULL;
    double now = (double)time(NULL), fds;

    (void)state;
    m = metrics_new(METRIC_OWNER_SERVER);
    metrics_set_process(m);
    assert_true(metric_get(m, METRIC_PROCESS_CPU, LV_NONE) >= 0);
    assert_true(metric_get(m, METRIC_PROCESS_MAX_FDS, LV_NONE) >= 3);
    assert_true(metric_get(m, METRIC_PROCESS_RESIDENT, LV_NONE) > 100000);
    assert_true(metric_get(m, METRIC_PROCESS_VIRTUAL, LV_NONE) >
                metric_get(m, METRIC_PROCESS_RESIDENT, LV_NONE));
    assert_true(metric_get(m, METRIC_PROCESS_THREADS, LV_NONE) >= 1);
    assert_true(fabs(now - metric_get(m, METRIC_PROCESS_START, LV_NONE)) < 300);
    fds = metric_get(m, METRIC_PROCESS_OPEN_FDS, LV_NONE);
    CLEANUP(cleanup_close) int one_more = dup(0);
    metrics_set_process(m);
    assert_true(metric_get(m, METRIC_PROCESS_OPEN_FDS, LV_NONE) == fds + (one_more >= 0));
}

static void leaves_a_full_buffer_unchanged(void **state)
{
    struct metrics *m = *state;
    BUF_AUTO(b, 300);

    fill(m, METRIC_OWNER_LOOP);
    assert_int_equal(buf_puts(&b, "kept"), 0);
    assert_int_equal(metrics_render(m, false, &b), -EFBIG);
    assert_int_equal(b.n, 4);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(renders_counters_and_gauges),
        TEST(renders_cumulative_histograms),
        TEST(iterates_until_the_callback_stops_it),
        TEST(copies_every_value),
        TEST(escapes_label_values),
        TEST(renders_in_a_stable_order),
        TEST(forgets_one_scorer_only),
        cmocka_unit_test(declares_only_well_formed_metrics),
        cmocka_unit_test(passes_promtool),
        cmocka_unit_test(reads_plausible_process_metrics),
        TEST(leaves_a_full_buffer_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
