#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "test/oom.h"
#include "test/unit/models/model_world.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { POWER, PERFORMANCE };

#define CONFIG                                                                                          \
    "{\"applications\":[{\"name\":\"chat\",\"device_candidates\":[\"all\",\"2g.24gb\"],"                \
    "\"pod_alias\":[\"chat-?\",\"shared-*\"]},{\"name\":\"ocr\",\"device_candidates\":[\"all\"],"       \
    "\"pod_alias\":[\"shared-*\",\"ocr-*\"]}],\"static_score\":{\"performance\":[{\"metric\":{\"app\":" \
    "\"chat\",\"device\":\"all\"},\"score\":80}]}}"

/* A model that is open; `config` may be NULL. */
struct world {
    struct instance *instance;
    struct doc *doc;
    struct buf out;
    struct scoring s;
};

static void open_model(struct world *w, const char *config)
{
    CLEANUP(problems_done) struct problems p = {0};
    char *why = NULL;

    *w = (struct world){.out.max = 1u << 20};
    assert_int_equal(instance_new(&w->instance, &model_power), 0);
    if (config) {
        assert_int_equal(problems_init(&p, "config.json"), 0);
        assert_int_equal(doc_parse(&w->doc, str_of(config), &p), 0);
        model_power.read_file(w->instance->state, doc_root(w->doc), &p);
        assert_int_equal(p.n, 0);
    }
    assert_int_equal(instance_open(w->instance, NULL, &why), 0);
}

static void close_model(struct world *w)
{
    instance_free(w->instance);
    doc_free(w->doc);
    buf_done(&w->out);
}

static void score(struct world *w, size_t endpoint, const char *request)
{
    assert_int_equal(
        model_call_endpoint(&model_power, w->instance->state, endpoint, str_of(request), &w->out, &w->s), 0);
    assert_int_equal(buf_putc(&w->out, '\0'), 0);
}

/* The number after `name` in the result of a pair; NAN without it. */
static double number_of(const struct world *w, const char *app, const char *device, const char *name)
{
    char text[100];
    const char *p, *end;

    (void)snprintf(text, sizeof(text), "{\"metric\":{\"app\":\"%s\",\"device\":\"%s\"}", app, device);
    p = strstr(w->out.p, text);
    assert_non_null(p);
    end = strchr(p + strlen(text), '}');
    p = strstr(p, name);
    return p && p < end ? strtod(p + strlen(name), NULL) : NAN;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) < 1e-6))
        fail_msg("%.9g is not %.9g", got, want);
}

/* Computed by hand. Sums of node a: 120 130 120 130, of node b, filled forward: 40 40 40 50. Their means
 * are 125 and 42.5, together 167.5. chat on `all`: (10 + 40) / 2, 20, 30, (20 + 50) / 2; on 2g.24gb at
 * most 20. */
static void scores_what_was_computed_by_hand(void **state)
{
    struct world w;

    (void)state;
    open_model(&w, CONFIG);
    score(&w, POWER,
          "{\"data\":["
          "{\"metric\":{\"Hostname\":\"a\",\"exported_pod\":\"chat-1\"},"
          "\"values\":[[60,\"10\"],[120,\"20\"],[180,\"30\"],[240,\"20\"]]},"
          "{\"metric\":{\"Hostname\":\"a\",\"exported_pod\":\"shared-1\",\"GPU_I_PROFILE\":\"2g.24gb.me\"},"
          "\"values\":[[60,\"20\"],[120,\"20\"],[180,\"NaN\"],[240,\"20\"]]},"
          "{\"metric\":{\"Hostname\":\"a\",\"exported_pod\":\"other\",\"GPU_I_PROFILE\":\"1g.12gb\"},"
          "\"values\":[[60,\"90\"],[120,\"90\"],[180,\"90\"],[240,\"90\"]]},"
          "{\"metric\":{\"Hostname\":\"b\",\"exported_pod\":\"ch\\u0061t-2\"},\"values\":[[60,\"40\"],[241,"
          "\"50\"]]},"
          "{\"metric\":{\"Hostname\":\"b\"},\"values\":[[60,\"1000\"],[240,\"1000\"]]},"
          "{\"metric\":{\"exported_pod\":\"chat-3\"},\"values\":[[60,\"NaN\"]]},"
          "{\"metric\":{\"exported_pod\":\"chat-3\"},\"values\":[[60,\"1\"],[60,\"1\"]]}]}");
    assert_int_equal(w.s.results.n, 3);
    assert_near(number_of(&w, "chat", "all", "\"estimate\":"), 167.5 + 35);
    assert_near(number_of(&w, "chat", "all", "\"score\":"), 10 + 90 / (1 + exp(2.5)));
    assert_near(number_of(&w, "chat", "2g.24gb", "\"estimate\":"), 167.5 + 20);
    assert_near(number_of(&w, "chat", "2g.24gb", "\"score\":"), 10 + 90 / (1 + exp(-12.5)));
    assert_near(number_of(&w, "ocr", "all", "\"score\":"), 10);
    assert_true(isnan(number_of(&w, "ocr", "all", "\"estimate\":")));
    assert_int_equal(w.s.left_out[LEFT_OUT_LABEL], 1);
    assert_int_equal(w.s.left_out[LEFT_OUT_NOT_FINITE], 1);
    assert_int_equal(w.s.left_out[LEFT_OUT_DISORDERED], 1);
    close_model(&w);
}

/* A ramp from 100 by 1 a minute: the next 10 minutes of 30 have a mean of 134.5, and the highest was 129.
 * A node whose last value is 11 minutes old counts no more. */
static void forecasts_the_nodes(void **state)
{
    BUF_AUTO(in, 1u << 16);
    struct world w;

    (void)state;
    open_model(&w, CONFIG);
    assert_int_equal(
        buf_puts(&in, "{\"data\":[{\"metric\":{\"Hostname\":\"gone\",\"exported_pod\":\"x\"},\"values\":"
                      "[[0,\"5000\"],[1080,\"5000\"]]},"
                      "{\"metric\":{\"Hostname\":\"a\",\"exported_pod\":\"chat-1\"},\"values\":["),
        0);
    for (int i = 0; i < 30; i++)
        assert_int_equal(buf_printf(&in, "%s[%d,\"%d\"]", i ? "," : "", 60 * i + 7, 100 + i), 0);
    assert_int_equal(buf_printf(&in, "]}]}%c", 0), 0);
    score(&w, POWER, in.p);
    assert_near(number_of(&w, "chat", "all", "\"estimate\":"), 129 + 134.5);
    assert_int_equal(w.s.n_backtests, 1);
    close_model(&w);
}

static void scores_everything_low_without_series(void **state)
{
    struct world w;

    (void)state;
    open_model(&w, NULL);
    score(&w, POWER, "{\"data\":[]}");
    assert_int_equal(w.s.results.n, 6);
    assert_near(number_of(&w, "app02", "3g.48gb", "\"score\":"), 10);
    close_model(&w);
}

static void answers_the_performance_of_the_file(void **state)
{
    struct world w;

    (void)state;
    open_model(&w, CONFIG);
    score(&w, PERFORMANCE, "{\"data\":[{\"metric\":{\"pod\":\"chat-1\"},\"values\":[[60,\"3.5\"]]}]}");
    assert_string_equal(w.out.p,
                        "{\"results\":[{\"metric\":{\"app\":\"chat\",\"device\":\"all\"},\"score\":80.0}]}");
    close_model(&w);
    open_model(&w, NULL);
    score(&w, PERFORMANCE, "{\"data\":[]}");
    assert_near(number_of(&w, "app02", "2g.24gb", "\"score\":"), 15);
    close_model(&w);
}

static void refuses_samples_that_span_years(void **state)
{
    struct world w;

    (void)state;
    open_model(&w, CONFIG);
    assert_int_equal(model_call_endpoint(&model_power, w.instance->state, POWER,
                                         STR("{\"data\":[{\"metric\":{\"exported_pod\":\"x\"},"
                                             "\"values\":[[0,\"1\"],[1718600000,\"1\"]]}]}"),
                                         &w.out, &w.s),
                     -EINVAL);
    assert_string_equal(w.s.why, "the samples of a node span more than 20000 minutes");
    close_model(&w);
}

/* Pods that ran for a minute each: 1 W in every minute, and 2 W more in three. */
static void adds_up_many_short_series(void **state)
{
    enum { SERIES = 2000 };
    BUF_AUTO(request, 1u << 20);
    struct world w;

    (void)state;
    open_model(&w, CONFIG);
    assert_int_equal(buf_puts(&request, "{\"data\":["), 0);
    for (int i = 0; i < SERIES; i++)
        assert_int_equal(buf_printf(&request,
                                    "{\"metric\":{\"Hostname\":\"%s\",\"exported_pod\":\"chat-1\"},"
                                    "\"values\":[[%d,\"1\"]]},",
                                    i % 2 ? "a" : "b", 60 * (i * 7 % SERIES)),
                         0);
    assert_int_equal(buf_puts(&request, "{\"metric\":{\"Hostname\":\"a\",\"exported_pod\":\"chat-2\"},"
                                        "\"values\":[[60,\"2\"],[600,\"2\"],[660,\"2\"]]}]}"),
                     0);
    assert_int_equal(buf_putc(&request, '\0'), 0);
    score(&w, POWER, request.p);
    /* Minutes 1 and 11 are of node a, so that it has 3 W there; both nodes are expected to draw 1 W. */
    assert_near(number_of(&w, "chat", "all", "\"estimate\":"), 3 + 2);
    close_model(&w);
}

static void survives_each_failed_allocation(void **state)
{
    static const char request[] =
        "{\"data\":[{\"metric\":{\"Hostname\":\"a\",\"exported_pod\":\"chat-1\"},\"values\":[[60,\"10\"]]},"
        "{\"metric\":{\"Hostname\":\"b\",\"exported_pod\":\"chat-1\"},"
        "\"values\":[[60,\"10\"],[120,\"1\"],[180,\"1\"]]},"
        "{\"metric\":{\"Hostname\":\"b\",\"exported_pod\":\"chat-1\"},\"values\":[[60,\"10\"]]}]}";
    struct world w;
    int r;

    (void)state;
    open_model(&w, CONFIG);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        r = model_call_endpoint(&model_power, w.instance->state, POWER, str_of(request), &w.out, &w.s);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        buf_done(&w.out);
    }
    close_model(&w);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        char *why = NULL;

        w = (struct world){0};
        r = instance_new(&w.instance, &model_power) ?: instance_open(w.instance, NULL, &why);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        close_model(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_what_was_computed_by_hand),
        cmocka_unit_test(forecasts_the_nodes),
        cmocka_unit_test(scores_everything_low_without_series),
        cmocka_unit_test(answers_the_performance_of_the_file),
        cmocka_unit_test(refuses_samples_that_span_years),
        cmocka_unit_test(adds_up_many_short_series),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
