#include "exporter/agent/scorer_history.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "exporter/ui/history.h"
#include "exporter/ui/out.h"
#include "test/unit/agent/status_world.h"

#include <math.h>

static void assert_history(const struct history *h, const char *want)
{
    BUF_AUTO(b, 1 << 20);
    struct out o = out_begin(&b);

    out_puts(&o, "{");
    member_history(&o, h, scorer_history_names);
    assert_int_equal(out_end(&o), 0);
    terminate(&b);
    assert_string_equal(b.p + 1, want);
}

static void records_latencies_and_scores(void **state)
{
    const double values[] = {3, NAN, -1, INFINITY};
    CLEANUP(cleanup_batch_unref) struct batch *b = make_batch(NULL, values, ARRAY_SIZE(values));
    CLEANUP(cleanup_history_free) struct history *h = NULL;
    const struct summary s = {.source.type = SOURCE_PROMETHEUS};
    const struct round_result r = {
        .batch = b, .fetched = true, .performed = true, .fetch_s = 0.5, .perform_s = 2};

    (void)state;
    scorer_history_add(&h, &s, &r, (unix_ms){5000});
    assert_history(
        h, "\"history\":{\"unixSeconds\":[5],\"fetchSeconds\":[0.5],\"performSeconds\":[2],\"lowest\":[-1],"
           "\"mean\":[1],\"highest\":[3]}");
}

static void leaves_out_what_a_failed_round_did_not_measure(void **state)
{
    CLEANUP(cleanup_history_free) struct history *h = NULL;
    const struct summary s = {.source.type = SOURCE_PROMETHEUS}, none = {.source.type = SOURCE_NONE};
    const struct round_result early = {.error = ROUND_DNS, .fetch_s = 9};
    const struct round_result late = {
        .error = ROUND_HTTP_5XX, .fetched = true, .performed = true, .perform_s = 1};

    (void)state;
    scorer_history_add(&h, &s, &early, (unix_ms){1000});
    scorer_history_add(&h, &none, &late, (unix_ms){2000});
    assert_history(
        h, "\"history\":{\"unixSeconds\":[1,2],\"fetchSeconds\":[null,null],\"performSeconds\":[null,1],"
           "\"lowest\":[null,null],\"mean\":[null,null],\"highest\":[null,null]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_latencies_and_scores),
        cmocka_unit_test(leaves_out_what_a_failed_round_did_not_measure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
