/* The hub's counters and gauges. */
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/hub.h"
#include "controller/hub/state/hub_counters.h"
#include "controller/hub/state/hub_tally.h"
#include "controller/hub/state/state.h"
#include "controller/kube/lease.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/metric/metrics.h"
#include "test/unit/hub/state/status_world.h"

static unsigned tallies;

void hub_tally(struct hub *h)
{
    tallies += !h->tallied;
    h->tallied = true;
}

struct kube_watch {
    bool synced;
    const char *trouble;
    unix_ms heard;
    bool lacks_kind;
};

bool kube_watch_synced(const struct kube_watch *w)
{
    return w->synced;
}

bool kube_watch_lacks_kind(const struct kube_watch *w)
{
    return w->lacks_kind;
}

const char *kube_watch_trouble(const struct kube_watch *w)
{
    return w->trouble;
}

unix_ms kube_watch_heard(const struct kube_watch *w)
{
    return w->heard;
}

struct kube_lease {
    const char *trouble;
};

const char *kube_lease_trouble(const struct kube_lease *l)
{
    return l->trouble;
}

struct kube_queue {
    size_t length;
};

size_t kube_queue_length(const struct kube_queue *q)
{
    return q->length;
}

struct kube_events {
    uint64_t dropped;
};

uint64_t kube_events_dropped(const struct kube_events *e, const char **ret_why)
{
    assert_null(ret_why);
    return e->dropped;
}

static struct kube_queue works = {4}, status = {6};
static struct kube_events events = {2};
static struct kube_watch watches[HUB_KINDS];

static int setup(void **state)
{
    struct world *w = world_new();

    assert_int_equal(metrics_new(&w->hub.o.metrics, METRIC_OWNER_LOOP), 0);
    w->hub.works = &works;
    w->hub.status = &status;
    w->hub.events = &events;
    for (size_t i = 0; i < HUB_KINDS; i++) {
        watches[i] = (struct kube_watch){true, NULL, noon, false};
        w->hub.watches[i].watch = &watches[i];
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    (void)metrics_free(w->hub.o.metrics);
    world_free(w);
    return 0;
}

static bool has_text(struct world *w, const char *text)
{
    BUF_AUTO(page, 1u << 20);

    assert_int_equal(metrics_render(w->hub.o.metrics, false, &page), 0);
    assert_int_equal(buf_putc(&page, '\0'), 0);
    return strstr(page.p, text);
}

static void assert_line(struct world *w, const char *line)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "\n%s\n", line);
    if (!has_text(w, text))
        fail_msg("no line %s", line);
}

static void sets_the_gauges_of_a_leader(void **state)
{
    static const char *const lines[] = {
        "dynamic_scoring_hub_leader 1",
        "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"} 1",
        "dynamic_scoring_hub_scorer_ready{scorer=\"energy\"} 0",
        "dynamic_scoring_hub_scorer_ready{scorer=\"other\"} 0",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"selected\"} 3",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"up_to_date\"} 2",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"applied\"} 1",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"no_room\"} 8",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"scoring\"} 0",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"failing\"} 5",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"waiting\"} 6",
        "dynamic_scoring_hub_scorer_clusters{scorer=\"energy\",state=\"silent\"} 7",
        "dynamic_scoring_hub_clusters{state=\"up_to_date\"} 3",
        "dynamic_scoring_hub_clusters{state=\"behind\"} 11",
        "dynamic_scoring_hub_clusters{state=\"failing\"} 12",
        "dynamic_scoring_hub_clusters{state=\"leaving\"} 13",
        "dynamic_scoring_hub_distribution_lag_seconds 1.5",
        "dynamic_scoring_hub_queue_length{queue=\"works\"} 4",
        "dynamic_scoring_hub_queue_length{queue=\"status\"} 6",
        "dynamic_scoring_hub_summaries_bytes 812",
        "dynamic_scoring_hub_scorers_left_out 14",
        "dynamic_scoring_hub_events_dropped_total 2",
    };
    struct world *w = *state;

    hub_set_metrics(&w->hub);
    assert_line(w, "dynamic_scoring_hub_scorer_ready{scorer=\"energy\"} 1");
    assert_true(has_text(w, "\ndynamic_scoring_build_info{revision="));
    w->scorer.tally = (struct tally){.selected = 3,
                                     .up_to_date = 2,
                                     .applied = 1,
                                     .scoring = 0,
                                     .failing = 5,
                                     .waiting = 6,
                                     .silent = 7,
                                     .no_room = 8};
    w->hub.totals.behind = 11;
    w->hub.totals.failing = 12;
    w->hub.totals.leaving = 13;
    w->hub.totals.left_out = 14;
    w->hub.totals.lag_s = 1.5;
    hub_set_metrics(&w->hub);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_line(w, lines[i]);
}

static void omits_health_while_unknown(void **state)
{
    struct world *w = *state;

    w->probe.status.health = HEALTH_INACTIVE;
    hub_set_metrics(&w->hub);
    assert_line(w, "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"} 0");
    w->probe.status.health = HEALTH_UNKNOWN;
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, "dynamic_scoring_hub_scorer_healthy{"));
}

/* Alerts on a scorer that is unhealthy on some clusters are those on its failures there. */
static void sets_the_health_that_agents_report(void **state)
{
    static const struct {
        size_t healthy, unhealthy;
        const char *line;
    } cases[] = {
        {3, 0, "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"} 1"},
        {2, 1, "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"} 1"},
        {0, 1, "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"} 0"},
    };
    struct world *w = *state;

    w->probe.status.health = HEALTH_INACTIVE; /* does not count */
    w->scorer.spec.health_check = HEALTH_CHECK_AGENTS;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w->scorer.tally.api_healthy = cases[i].healthy;
        w->scorer.tally.api_unhealthy.n = cases[i].unhealthy;
        hub_set_metrics(&w->hub);
        assert_line(w, cases[i].line);
    }
    w->scorer.tally.api_unhealthy.n = 0;
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"}"));
    w->scorer.spec.health_check = HEALTH_CHECK_NONE;
    w->scorer.tally.api_unhealthy.n = 3;
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, "dynamic_scoring_hub_scorer_healthy{scorer=\"energy\"}"));
}

#define SYNCED "dynamic_scoring_hub_scorer_config_synced{scorer=\"energy\"}"

static void omits_config_synced_where_no_config_is_read(void **state)
{
    struct world *w = *state;
    struct probe_part *config = &w->probe.status.config;

    hub_set_metrics(&w->hub);
    assert_line(w, SYNCED " 1");
    assert_false(has_text(w, "config_synced{scorer=\"other\"}")); /* it has no spec */
    config->ok = false;
    hub_set_metrics(&w->hub);
    assert_line(w, SYNCED " 0");
    config->asked = false;
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, SYNCED));
    config->asked = true;
    w->scorer.spec.mode = SYNC_NONE;
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, SYNCED));
}

/* Also on a standby: one that cannot take over should be noticed before it has to. */
static void shows_whether_each_watch_is_up(void **state)
{
    static const char *const lines[] = {
        "dynamic_scoring_kubernetes_up{resource=\"dynamicscorers\",server=\"hub\"} 1",
        "dynamic_scoring_kubernetes_up{resource=\"dynamicscoringconfigs\",server=\"hub\"} 0",
        "dynamic_scoring_kubernetes_up{resource=\"managedclusters\",server=\"hub\"} 0",
        "dynamic_scoring_kubernetes_up{resource=\"manifestworks\",server=\"hub\"} 1",
        "dynamic_scoring_kubernetes_up{resource=\"leases\",server=\"hub\"} 0",
        "dynamic_scoring_kubernetes_last_answer_timestamp_seconds{resource=\"dynamicscorers\",server=\"hub\"}"
        " "
        "1795262400.123",
    };
    struct world *w = *state;
    struct kube_lease lease = {"forbidden"};

    w->hub.leading = w->hub.active = false;
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, "\"leases\""));
    watches[HUB_CONFIGS] = (struct kube_watch){0};
    watches[HUB_CLUSTERS].trouble = "forbidden";
    w->hub.lease = &lease;
    (void)metrics_free(w->hub.o.metrics);
    assert_int_equal(metrics_new(&w->hub.o.metrics, METRIC_OWNER_LOOP), 0);
    hub_set_metrics(&w->hub);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_line(w, lines[i]);
    assert_false(has_text(w, "last_answer_timestamp_seconds{resource=\"dynamicscoringconfigs\"")); /* never */
    assert_line(w, "dynamic_scoring_kubernetes_up{resource=\"managedclusteraddons\",server=\"hub\"} 1");
    watches[HUB_ADDONS] = (struct kube_watch){false, "no such kind", noon, true};
    hub_set_metrics(&w->hub);
    assert_false(has_text(w, "managedclusteraddons")); /* a hub may be without */
    watches[HUB_ADDONS].lacks_kind = false;
    hub_set_metrics(&w->hub);
    assert_line(w, "dynamic_scoring_kubernetes_up{resource=\"managedclusteraddons\",server=\"hub\"} 0");
    lease.trouble = NULL;
    hub_set_metrics(&w->hub);
    assert_line(w, "dynamic_scoring_kubernetes_up{resource=\"leases\",server=\"hub\"} 1");
}

/* The lag grows with time alone; without a lag nothing is counted again. */
static void computes_the_lag_at_each_scrape(void **state)
{
    struct world *w = *state;

    hub_set_metrics(&w->hub);
    tallies = 0;
    hub_set_metrics(&w->hub);
    assert_int_equal(tallies, 0);
    w->hub.totals.behind = 1;
    hub_set_metrics(&w->hub);
    assert_int_equal(tallies, 1);
}

/* Two replicas would report everything twice, and a former leader old values. */
static void has_no_gauges_of_the_fleet_on_a_standby(void **state)
{
    struct world *w = *state;
    const struct probe_part part = {.ok = true, .seconds = 0.2};

    hub_set_metrics(&w->hub);
    hub_count_probe(&w->hub, &w->scorer, PROBE_HEALTH, &part);
    w->hub.leading = w->hub.active = false;
    hub_set_metrics(&w->hub);
    assert_line(w, "dynamic_scoring_hub_leader 0");
    assert_line(w, "dynamic_scoring_hub_queue_length{queue=\"works\"} 4");
    assert_line(w, "dynamic_scoring_hub_probes_total{probe=\"health\",result=\"ok\",scorer=\"energy\"} 1");
    assert_false(has_text(w, "dynamic_scoring_hub_scorer_"));
    assert_false(has_text(w, "dynamic_scoring_hub_clusters{"));
    assert_false(has_text(w, "dynamic_scoring_hub_distribution_lag_seconds "));
    assert_false(has_text(w, "dynamic_scoring_hub_summaries_bytes "));
    assert_false(has_text(w, "dynamic_scoring_hub_scorers_left_out "));
}

static void counts_probes_writes_and_reconciles(void **state)
{
    static const char *const lines[] = {
        "dynamic_scoring_hub_probes_total{probe=\"health\",result=\"ok\",scorer=\"energy\"} 2",
        "dynamic_scoring_hub_probes_total{probe=\"config\",result=\"HTTPStatus\",scorer=\"energy\"} 1",
        "dynamic_scoring_hub_probe_duration_seconds_count{probe=\"health\",scorer=\"energy\"} 2",
        "dynamic_scoring_hub_probe_duration_seconds_sum{probe=\"config\",scorer=\"energy\"} 2.5",
        "dynamic_scoring_hub_writes_total{operation=\"patch\",result=\"ok\"} 1",
        "dynamic_scoring_hub_writes_total{operation=\"create\",result=\"not_found\"} 1",
        "dynamic_scoring_hub_distribution_duration_seconds_sum 0.25",
        "dynamic_scoring_hub_reconciles_total{controller=\"works\",result=\"success\"} 1",
        "dynamic_scoring_hub_reconciles_total{controller=\"status\",result=\"failure\"} 1",
    };
    struct world *w = *state;
    struct hub *h = &w->hub;
    const struct probe_part good = {.ok = true, .reason = "Healthy", .seconds = 0.5},
                            bad = {.reason = "HTTPStatus", .seconds = 2.5};

    hub_count_probe(h, &w->scorer, PROBE_HEALTH, &good);
    hub_count_probe(h, &w->scorer, PROBE_HEALTH, &good);
    hub_count_probe(h, &w->scorer, PROBE_CONFIG, &bad);
    hub_count_write(h, "patch", &(const struct kube_answer){.verdict = KUBE_OK});
    hub_count_write(h, "create", &(const struct kube_answer){.verdict = KUBE_NOT_FOUND});
    hub_count_distributed(h, 0.25);
    hub_count_reconcile(h, "works", true);
    hub_count_reconcile(h, "status", false);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_line(w, lines[i]);
}

static void leaves_no_series_of_a_removed_scorer(void **state)
{
    struct world *w = *state;
    const struct probe_part part = {.ok = true, .seconds = 0.2};

    hub_count_probe(&w->hub, &w->scorer, PROBE_HEALTH, &part);
    hub_set_metrics(&w->hub);
    assert_true(has_text(w, "scorer=\"energy\""));
    hub_forget_scorer_metrics(&w->hub, "energy");
    assert_false(has_text(w, "scorer=\"energy\""));
    assert_true(has_text(w, "scorer=\"other\""));
    assert_line(w, "dynamic_scoring_hub_leader 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_the_gauges_of_a_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(omits_health_while_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(sets_the_health_that_agents_report, setup, teardown),
        cmocka_unit_test_setup_teardown(omits_config_synced_where_no_config_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(shows_whether_each_watch_is_up, setup, teardown),
        cmocka_unit_test_setup_teardown(computes_the_lag_at_each_scrape, setup, teardown),
        cmocka_unit_test_setup_teardown(has_no_gauges_of_the_fleet_on_a_standby, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_probes_writes_and_reconciles, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_no_series_of_a_removed_scorer, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
