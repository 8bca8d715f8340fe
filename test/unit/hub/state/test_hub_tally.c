/* Counts of clusters and agents' reports, which time alone may change. */
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/hub.h"
#include "controller/hub/state/state.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/state/hub_world.h"

enum { MINUTE_S = 60 };

/* A cluster's work as it was written, with the agent's report. */
static void show_report(struct world *w, const char *name, const char *report)
{
    json_t *o = json_loads(wait_written(w, "POST", name)->body, 0, NULL);
    json_t *status =
        json_pack("{s:[{s:s,s:s}],s:{s:[{s:{s:s,s:s},s:{s:[{s:s,s:{s:s,s:s}}]}}]}}", "conditions", "type",
                  "Applied", "status", "True", "resourceStatus", "manifests", "resourceMeta", "kind",
                  "ConfigMap", "name", WORK_STATUS, "statusFeedback", "values", "name", "status",
                  "fieldValue", "type", "String", "string", report);
    char *text;

    assert_non_null(o);
    assert_int_equal(json_object_set_new(o, "status", status), 0);
    text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    show_work(w, text, name);
    free(text);
}

static const char *report_of(struct world *w, const char *state, const char *last_success)
{
    return fake_kube_text(w->f,
                          "{\"configurationInForce\":true,\"scorers\":[{\"scoreName\":\"score\","
                          "\"state\":\"%s\",\"lastSuccess\":\"%s\",\"error\":\"no answer\"}]}",
                          state, last_success);
}

static void show_availability(struct world *w, const char *name, const char *status, const char *message)
{
    show(w, hub_managed_set,
         fake_kube_text(
             w->f,
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"hubAcceptsClient\":true},\"status\":{"
             "\"conditions\":[{\"type\":\"HubAcceptedManagedCluster\",\"status\":\"True\"},{"
             "\"type\":\"ManagedClusterConditionAvailable\",\"status\":\"%s\",\"message\":\"%s\"}]}}",
             name, status, message));
}

static void pass_seconds(struct world *w, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        fake_kube_advance(w->f, 1000);
        assert_int_equal(loop_turn(w->f->loop, 2), 0);
    }
}

static const struct tally *tally(struct world *w)
{
    hub_tally(w->hub);
    return &hub_scorer_find(w->hub, "s")->tally;
}

/* One scorer on c1 and c2, whose agents report a recent success. */
static void start(struct world *w)
{
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_cluster(w, "c2");
    show_scorer(w);
    show_report(w, "c1", report_of(w, "ok", "2026-11-21T06:23:00.000Z"));
    show_report(w, "c2", report_of(w, "ok", "2026-11-21T06:23:00Z"));
    assert_int_equal(tally(w)->selected, 2);
    assert_int_equal(tally(w)->scoring, 2);
    assert_int_equal(tally(w)->n_named, 0);
}

static void counts_an_unavailable_cluster_as_silent(void **state)
{
    static const char *const statuses[] = {"Unknown", "False"};
    struct world *w = *state;

    start(w);
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        show_availability(w, "c2", statuses[i], "Registration agent\\nstopped");
        assert_int_equal(tally(w)->scoring, 1);
        assert_int_equal(tally(w)->silent, 1);
        assert_int_equal(tally(w)->named[0].pair, PAIR_UNAVAILABLE);
        assert_string_equal(tally(w)->named[0].cluster->unavailable, "Registration agent stopped");
        assert_int_equal(w->hub->totals.scoring_all, 1);
        assert_int_equal(w->hub->totals.up_to_date, 2);
        show_availability(w, "c2", "True", "Managed cluster is available");
        assert_int_equal(tally(w)->scoring, 2);
        assert_int_equal(tally(w)->n_named, 0);
    }
    show_availability(w, "c2", "Unknown", "");
    assert_int_equal(tally(w)->silent, 1);
    show_cluster(w, "c2"); /* without the condition */
    assert_int_equal(tally(w)->silent, 0);
}

static void show_addon(struct world *w, const char *cluster_name, const char *conditions)
{
    show(w, hub_addon_set,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"addon\"},\"status\":{"
                        "\"conditions\":[%s]}}",
                        cluster_name, conditions));
}

/* At once: its last success is recent. */
static void counts_a_cluster_without_its_addon_as_silent(void **state)
{
    static const char no[] = "{\"type\":\"Available\",\"status\":\"False\",\"message\":\"no pod\"}";
    struct world *w = *state;

    start(w);
    show_addon(w, "c2", "{\"type\":\"Available\",\"status\":\"True\"}");
    assert_int_equal(tally(w)->scoring, 2);
    show_addon(w, "c2", no);
    assert_int_equal(tally(w)->scoring, 1);
    assert_int_equal(tally(w)->named[0].pair, PAIR_UNAVAILABLE);
    assert_string_equal(tally(w)->named[0].cluster->addon_unavailable, "no pod");
    assert_int_equal(w->hub->totals.scoring_all, 1);
    show_addon(w, "c2", "{\"type\":\"Progressing\",\"status\":\"True\"}"); /* nothing is known yet */
    assert_int_equal(tally(w)->scoring, 2);
    show_addon(w, "c2", no);
    hub_addon_delete(w->hub, "c2", "addon");
    assert_int_equal(tally(w)->scoring, 2);
}

/* The watches report in any order. */
static void remembers_the_addon_of_a_cluster_that_comes_later(void **state)
{
    struct world *w = *state;

    show_addon(w, "c9", "{\"type\":\"Available\",\"status\":\"True\"}");
    assert_null(map_get(&w->hub->clusters, "c9"));
    show_addon(w, "c9", "{\"type\":\"Available\",\"status\":\"False\",\"reason\":\"NoPod\"}");
    show_cluster(w, "c9");
    assert_string_equal(cluster(w, "c9")->addon_unavailable, "NoPod");
    hub_managed_delete(w->hub, "", "c9");
    hub_addon_delete(w->hub, "c9", "addon");
    assert_null(map_get(&w->hub->clusters, "c9"));
}

/* The work agent keeps feeding back the last report. */
static void counts_a_dead_agent_as_silent(void **state)
{
    struct world *w = *state;

    start(w);
    pass_seconds(w, 17 * MINUTE_S);
    assert_int_equal(tally(w)->scoring, 2);
    show_report(w, "c2", report_of(w, "ok", "2026-11-21T06:40:00Z"));
    pass_seconds(w, 7 * MINUTE_S);
    /* No report for seven minutes. */
    assert_int_equal(tally(w)->scoring, 1);
    assert_int_equal(tally(w)->silent, 1);
    assert_int_equal(tally(w)->n_named, 1);
    assert_int_equal(tally(w)->named[0].pair, PAIR_EXPIRED);
    assert_string_equal(tally(w)->named[0].cluster->name, "c1");
}

/* What the source failed, or an unavailable cluster last reported, says nothing about the scoring API. */
static void counts_where_the_scoring_api_is_healthy(void **state)
{
    static const struct {
        const char *members;
        size_t healthy, unhealthy;
    } cases[] = {
        {"\"state\":\"ok\"", 2, 0},
        {"\"state\":\"empty\"", 2, 0},
        {"\"state\":\"ok\",\"placementError\":\"forbidden\"", 2, 0},
        {"\"state\":\"failing\",\"failedStage\":\"scoring\",\"error\":\"refused\"", 1, 1},
        {"\"state\":\"stale\",\"failedStage\":\"scoring\"", 1, 1},
        {"\"state\":\"failing\",\"failedStage\":\"source\"", 1, 0},
        {"\"state\":\"failing\"", 1, 0},
        {"\"state\":\"waiting\"", 1, 0},
    };
    static const char report[] = "{\"configurationInForce\":true,\"scorers\":[{\"scoreName\":\"score\","
                                 "\"lastSuccess\":\"2026-11-21T06:23:00Z\",%s}]}";
    struct world *w = *state;

    start(w);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        show_report(w, "c2", fake_kube_text(w->f, report, cases[i].members));
        assert_int_equal(tally(w)->api_healthy, cases[i].healthy);
        assert_int_equal(tally(w)->api_unhealthy.n, cases[i].unhealthy);
        if (cases[i].unhealthy)
            assert_string_equal(tally(w)->api_unhealthy.first->name, "c2");
    }
    show_report(w, "c2", fake_kube_text(w->f, report, cases[3].members));
    show_availability(w, "c2", "Unknown", "gone");
    assert_int_equal(tally(w)->api_healthy, 1);
    assert_int_equal(tally(w)->api_unhealthy.n, 0);
}

static void counts_unwritten_and_unapplied_works_as_failing(void **state)
{
    struct world *w = *state;

    start(w);
    (void)snprintf(cluster(w, "c1")->write.trouble, sizeof(cluster(w, "c1")->write.trouble), "forbidden");
    cluster(w, "c2")->work.applied = false;
    (void)snprintf(cluster(w, "c2")->work.why, sizeof(cluster(w, "c2")->work.why), "no namespace");
    hub_schedule_tally(w->hub);
    assert_int_equal(tally(w)->failing, 2);
    assert_int_equal(tally(w)->unwritten, 1);
    assert_int_equal(tally(w)->unapplied, 1);
    assert_int_equal(tally(w)->write_errors.n, 1);
    assert_string_equal(tally(w)->write_errors.first->name, "c1");
    assert_int_equal(tally(w)->apply_errors.n, 1);
    assert_string_equal(tally(w)->apply_errors.first->name, "c2");
    assert_int_equal(tally(w)->scoring, 0);
    assert_int_equal(tally(w)->named[0].pair, PAIR_NOT_WRITTEN);
    assert_int_equal(tally(w)->named[1].pair, PAIR_NOT_APPLIED);
    assert_int_equal(w->hub->totals.failing, 1);
    assert_int_equal(w->hub->totals.unapplied, 1);
    assert_int_equal(w->hub->totals.applied, 1);
    assert_int_equal(w->hub->totals.n_named, 2);
    assert_string_equal(w->hub->totals.named[1]->name, "c2");
}

static void forgets_a_freed_cluster(void **state)
{
    struct world *w = *state;

    start(w);
    (void)snprintf(cluster(w, "c1")->write.trouble, sizeof(cluster(w, "c1")->write.trouble), "forbidden");
    (void)snprintf(cluster(w, "c2")->write.trouble, sizeof(cluster(w, "c2")->write.trouble), "forbidden");
    hub_schedule_tally(w->hub);
    assert_int_equal(tally(w)->write_errors.n, 2);
    hub_scorer_find(w->hub, "s")->tally.api_unhealthy = (struct cluster_errors){1, cluster(w, "c1")};
    hub_tally_forget(w->hub, cluster(w, "c1"));
    assert_null(tally(w)->write_errors.first);
    assert_null(tally(w)->api_unhealthy.first);
    assert_int_equal(tally(w)->n_named, 1);
    assert_string_equal(tally(w)->named[0].cluster->name, "c2");
}

/* Those of which nothing is known yet come last; together the classes are all selected clusters. */
static void names_each_cluster_that_does_not_score(void **state)
{
    struct world *w = *state;
    const struct tally *t;
    size_t n;

    start(w);
    show_cluster(w, "b1");
    show_cluster(w, "b2");
    show_report(w, "b1", "");
    show_report(w, "b2", report_of(w, "waiting", "2026-11-21T06:23:00Z"));
    show_availability(w, "c2", "Unknown", "no lease");
    t = tally(w);
    assert_int_equal(t->selected, 4);
    n = t->scoring + t->failing + t->waiting + t->silent;
    assert_int_equal(n, t->selected);
    assert_int_equal(t->n_named, 3);
    assert_string_equal(t->named[0].cluster->name, "c2");
    assert_int_equal(t->named[0].pair, PAIR_UNAVAILABLE);
    assert_string_equal(t->named[1].cluster->name, "b1");
    assert_int_equal(t->named[1].pair, PAIR_NO_REPORT);
    assert_string_equal(t->named[2].cluster->name, "b2");
    assert_int_equal(t->named[2].pair, PAIR_WAITING);
}

static void names_a_cluster_whose_work_agent_is_silent(void **state)
{
    struct world *w = *state;

    start(w);
    cluster(w, "c2")->work.applied = false;
    hub_schedule_tally(w->hub);
    assert_int_equal(tally(w)->unconfirmed.n, 1);
    assert_string_equal(tally(w)->unconfirmed.first->name, "c2");
    assert_int_equal(tally(w)->stuck, 0);
    assert_int_equal(w->hub->totals.n_named, 1);
    assert_string_equal(w->hub->totals.named[0]->name, "c2");
    (void)snprintf(cluster(w, "c1")->write.trouble, sizeof(cluster(w, "c1")->write.trouble), "forbidden");
    hub_schedule_tally(w->hub);
    assert_int_equal(tally(w)->selected, 2);
    assert_string_equal(w->hub->totals.named[0]->name, "c1");
    hub_tally_forget(w->hub, cluster(w, "c2"));
    assert_null(tally(w)->unconfirmed.first);
}

/* Twelve unavailable clusters do not hide the failing one. */
static void names_failing_clusters_first(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    show_scorer(w);
    for (unsigned i = 10; i < 23; i++) {
        const char *name = fake_kube_text(w->f, "c%u", i);

        show_cluster(w, name);
        show_report(w, name, report_of(w, i == 20 ? "failing" : "ok", "2026-11-21T06:23:00Z"));
        if (i != 20)
            show_availability(w, name, "Unknown", "no lease");
    }
    assert_int_equal(tally(w)->failing, 1);
    assert_int_equal(tally(w)->silent, 12);
    assert_int_equal(tally(w)->n_named, HUB_NAMED_CLUSTERS);
    assert_string_equal(tally(w)->named[0].cluster->name, "c20");
    for (unsigned i = 1; i < HUB_NAMED_CLUSTERS; i++)
        assert_string_equal(tally(w)->named[i].cluster->name, fake_kube_text(w->f, "c%u", 9 + i));
}

/* A report with new times replaces the one that was counted. */
static void holds_no_pointers_into_a_replaced_report(void **state)
{
    struct world *w = *state;
    json_t *status;

    start(w);
    show_report(w, "c2", report_of(w, "failing", "2026-11-21T06:00:00Z"));
    assert_int_equal(tally(w)->failing, 1);
    show_report(w, "c2", report_of(w, "failing", "2026-11-21T06:05:00Z"));
    hub_set_metrics(w->hub);
    status = status_of_scorer(hub_scorer_find(w->hub, "s"), (unix_ms){0});
    assert_non_null(status);
    json_decref(status);
}

/* Pages do not count: they show the tally as it is when the report is replaced. */
static void names_what_a_new_report_says_before_it_is_counted(void **state)
{
    struct world *w = *state;
    const struct hub_scorer *s;
    json_t *status;

    start(w);
    show_report(w, "c2", report_of(w, "failing", "2026-11-21T06:00:00Z"));
    assert_int_equal(tally(w)->n_named, 1);
    show_report(w, "c2", report_of(w, "stale", "2026-11-21T06:05:00Z"));
    s = hub_scorer_find(w->hub, "s");
    status = status_of_scorer(s, (unix_ms){0});
    assert_non_null(status);
    json_decref(status);
    assert_int_equal(s->tally.n_named, 1);
    assert_int_equal(s->tally.named[0].pair, PAIR_STALE);
    show_report(w, "c2", report_of(w, "ok", "2026-11-21T06:06:00Z"));
    assert_int_equal(s->tally.n_named, 0);
}

static void assert_ready(struct world *w, const char *is, const char *reason)
{
    const json_t *condition;
    json_t *status;
    size_t i;

    hub_tally(w->hub);
    status = status_of_scorer(hub_scorer_find(w->hub, "s"), (unix_ms){0});
    json_array_foreach(json_object_get(status, "conditions"), i, condition)
    {
        if (strcmp(json_string_value(json_object_get(condition, "type")), "Ready") != 0)
            continue;
        assert_string_equal(json_string_value(json_object_get(condition, "status")), is);
        assert_string_equal(json_string_value(json_object_get(condition, "reason")), reason);
    }
    json_decref(status);
}

/* A failing scorer does not become ready because its clusters are silent. */
static void is_not_ready_when_all_clusters_go_down(void **state)
{
    static const char *const names[] = {"c1", "c2"};
    struct world *w = *state;

    start(w);
    assert_ready(w, "True", "Ready");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        cluster(w, names[i])->work.applied = false;
        (void)strcpy(cluster(w, names[i])->work.why, "no namespace");
        show_availability(w, names[i], "Unknown", "no lease");
    }
    assert_ready(w, "False", "ClustersFailing");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        cluster(w, names[i])->work.applied = true;
    hub_schedule_tally(w->hub);
    assert_ready(w, "Unknown", "Silent");
    show_availability(w, "c1", "True", "");
    assert_ready(w, "True", "Ready");
}

/* An agent with an older configuration is not held to the newest interval. */
static void does_not_judge_a_score_by_a_new_interval(void **state)
{
    struct world *w = *state;

    start(w);
    show_report(w, "c2",
                "{\"configurationInForce\":false,\"configurationProblems\":\"bad query\",\"scorers\":[{"
                "\"scoreName\":\"score\",\"state\":\"ok\",\"lastSuccess\":\"2026-11-21T05:23:00Z\"}]}");
    assert_int_equal(tally(w)->scoring, 2);
    assert_int_equal(tally(w)->named[0].pair, PAIR_OLD_CONFIG);
}

static size_t count_events(struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++)
        n += strcmp(fake_request(w->f->server, i)->method, "POST") == 0 &&
             strstr(fake_request(w->f->server, i)->target, "/events");
    return n;
}

/* Where a CRD has no conditions, each status would look like a transition. */
static void sends_each_event_once_where_conditions_are_pruned(void **state)
{
    struct world *w = *state;
    size_t before;

    start(w);
    show_cluster(w, "c3");
    show_report(w, "c2", report_of(w, "failing", "2026-11-21T06:00:00Z"));
    pass_seconds(w, 2 * MINUTE_S);
    before = count_events(w);
    assert_true(before > 0);
    for (unsigned i = 0; i < 5; i++) {
        show_availability(w, "c3", i % 2 ? "True" : "Unknown", "no lease");
        pass_seconds(w, 12);
    }
    assert_int_equal(count_events(w), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(holds_no_pointers_into_a_replaced_report, setup, teardown),
        cmocka_unit_test_setup_teardown(names_what_a_new_report_says_before_it_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(is_not_ready_when_all_clusters_go_down, setup, teardown),
        cmocka_unit_test_setup_teardown(does_not_judge_a_score_by_a_new_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(sends_each_event_once_where_conditions_are_pruned, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_an_unavailable_cluster_as_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_a_cluster_without_its_addon_as_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(remembers_the_addon_of_a_cluster_that_comes_later, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_a_dead_agent_as_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_where_the_scoring_api_is_healthy, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_unwritten_and_unapplied_works_as_failing, setup, teardown),
        cmocka_unit_test_setup_teardown(forgets_a_freed_cluster, setup, teardown),
        cmocka_unit_test_setup_teardown(names_each_cluster_that_does_not_score, setup, teardown),
        cmocka_unit_test_setup_teardown(names_a_cluster_whose_work_agent_is_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(names_failing_clusters_first, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
