/* Scorers with Placements, when decisions are short for a moment, and when they have changed for good. */
#include "controller/hub/hub.h"
#include "controller/hub/observed/decisions.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "exporter/base/buf.h"
#include "test/unit/hub/hub_world.h"

enum { GRACE_MS = 10000, SHORT_MS = 9000, SETTLE_MS = 2000 };

static void show_placed_scorer(struct world *w, const char *placements, unsigned generation)
{
    show(w, HUB_SCORERS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":%u,\"creationTimestamp\":"
                        "\"2026-01-01T00:00:00Z\"},\"spec\":{\"configURL\":\"http://scorer.invalid/config\","
                        "\"configSyncMode\":\"None\",\"healthCheck\":\"None\",\"source\":{\"type\":\"None\"},"
                        "\"scoring\":{\"host\":\"http://scorer.invalid\",\"params\":{\"name\":\"score\","
                        "\"interval\":60}},\"placements\":[%s]}}",
                        generation, placements));
}

static void show_placement(struct world *w, const char *name, const char *uid)
{
    show(w, HUB_PLACEMENTS,
         fake_kube_text(w->f, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{}}", name, uid));
}

/* clusters: {"clusterName":"c1"},... */
static void show_decision(struct world *w, const char *placement, const char *clusters)
{
    show(w, HUB_DECISIONS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"%s-decision-1\",\"labels\":{"
                        "\"cluster.open-cluster-management.io/placement\":\"%s\"}},"
                        "\"status\":{\"decisions\":[%s]}}",
                        placement, placement, clusters));
}

#define C1   "{\"clusterName\":\"c1\",\"reason\":\"\"}"
#define BOTH C1 ",{\"clusterName\":\"c2\",\"reason\":\"\"}"

/* The next list of PlacementDecisions that the hub asks for is answered, and with it whether what has left is
 * still away: by its contents, which the watch does not know of, it changes nothing. */
static void answer_list(struct world *w)
{
    push_empty_list(w,
                    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/hub-ns/placementdecisions");
}

/* Whether the cluster's ManifestWork should have the scorer, as of the last plan. */
static bool is_selected(struct world *w, const char *name)
{
    const struct hub_cluster *c = cluster(w, name);
    const struct hub_scorer *s = scorers_find(&seen(w)->scorers, "s");

    return c->group && s && s->share.entry != SIZE_MAX && plan_group_has(c->group, s->share.entry);
}

/* The scorer is on both clusters. */
static void settle_two(struct world *w)
{
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_cluster(w, "c2");
    show_placement(w, "p", "u1");
    show_decision(w, "p", BOTH);
    show_placed_scorer(w, "\"p\"", 1);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c1") && is_selected(w, "c2"));
}

static void keeps_a_cluster_that_is_absent_for_a_moment(void **state)
{
    struct world *w = *state;

    settle_two(w);
    for (unsigned i = 0; i < 3; i++) { /* each absence begins anew */
        show_decision(w, "p", C1);
        pass_time(w, SHORT_MS);
        assert_true(is_selected(w, "c2"));
        show_decision(w, "p", BOTH);
        pass_time(w, SETTLE_MS);
        assert_true(is_selected(w, "c2"));
    }
    hub_see(w->hub, HUB_DECISIONS, "p-decision-1", NULL); /* deleted, and created anew */
    pass_time(w, SHORT_MS);
    assert_true(is_selected(w, "c1") && is_selected(w, "c2"));
}

static void lets_go_of_a_cluster_that_stays_away(void **state)
{
    struct world *w = *state;

    settle_two(w);
    answer_list(w);
    answer_list(w);
    show_decision(w, "p", C1);
    pass_time(w, GRACE_MS + SETTLE_MS);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));
    /* What has just left does not keep what left before. */
    show_decision(w, "p", "");
    pass_time(w, GRACE_MS + SETTLE_MS);
    assert_false(is_selected(w, "c1"));
}

/* The stream showed the first of two writes, and then died without a sign. */
static void keeps_a_cluster_until_a_list_says_that_it_has_left(void **state)
{
    struct world *w = *state;
    size_t asked;

    settle_two(w);
    show_decision(w, "p", C1);
    pass_time(w, SHORT_MS);
    asked = fake_requests(w->f->server);
    pass_time(w, GRACE_MS); /* there is no list */
    assert_true(fake_requests(w->f->server) > asked);
    assert_true(is_selected(w, "c1") && is_selected(w, "c2"));
    answer_list(w);
    pass_time(w, 60 * 1000);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));
}

static void keeps_a_cluster_that_a_list_shows_again(void **state)
{
    struct world *w = *state;

    settle_two(w);
    show_decision(w, "p", C1);
    fake_push(
        w->f->server,
        (struct fake_answer){
            .body = "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{"
                    "\"metadata\":{\"name\":\"p-decision-1\",\"resourceVersion\":\"8\",\"labels\":{"
                    "\"cluster.open-cluster-management.io/placement\":\"p\"}},"
                    "\"status\":{\"decisions\":[" BOTH "]}}]}",
            .only_path =
                "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/hub-ns/placementdecisions"});
    pass_time(w, GRACE_MS + SETTLE_MS);
    assert_true(is_selected(w, "c1") && is_selected(w, "c2"));
    pass_time(w, GRACE_MS + SETTLE_MS);
    assert_true(is_selected(w, "c1") && is_selected(w, "c2"));
}

/* Each of these happens in the middle of an absence. */
static void acts_at_once_on_what_people_change(void **state)
{
    struct world *w = *state;

    settle_two(w);
    show_placement(w, "q", "u2");
    show_decision(w, "q", C1);
    show_decision(w, "p", C1);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c2"));
    show_placed_scorer(w, "\"q\"", 2);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));

    show_placed_scorer(w, "\"p\"", 3);
    show_decision(w, "p", BOTH);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c2"));
    show_decision(w, "p", "");
    hub_see(w->hub, HUB_PLACEMENTS, "p", NULL);
    pass_time(w, SETTLE_MS);
    assert_false(is_selected(w, "c1") || is_selected(w, "c2"));
}

static void acts_at_once_on_a_placement_made_anew(void **state)
{
    struct world *w = *state;

    settle_two(w);
    show_placement(w, "p", "u9"); /* deleted and created between two lists */
    show_decision(w, "p", C1);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));
}

static void acts_at_once_on_a_mask(void **state)
{
    struct world *w = *state;

    settle_two(w);
    show_decision(w, "p", C1);
    show(w, HUB_CONFIGS,
         "{\"metadata\":{\"name\":\"" HUB_CONFIG "\",\"uid\":\"u\",\"generation\":2" HELD "},\"spec\":{"
         "\"masks\":[{\"clusterName\":\"c2\",\"scoreName\":\"score\"}]}}");
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));
}

static void lead(struct world *w, bool leads)
{
    hub_lead(w->hub, leads);
}

static void takes_over_during_an_absence(void **state)
{
    struct world *w = *state;

    settle_two(w);
    answer_list(w);
    lead(w, false);
    show_decision(w, "p", C1);
    pass_time(w, SETTLE_MS);
    lead(w, true);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c2"));
    lead(w, false);
    pass_time(w, GRACE_MS);
    lead(w, true);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));
}

static void pass_time_until_caught_up(struct world *w, int64_t ms)
{
    for (int64_t passed = 0; passed < ms && !observed_has_caught_up(seen(w)); passed += SETTLE_MS)
        pass_time(w, SETTLE_MS);
}

/* A decision that a standby has not seen may be why a cluster has a scorer: only a list tells, however long
 * the API server refuses it. */
static void a_takeover_waits_for_lists_without_a_deadline(void **state)
{
    struct world *w = *state;

    settle_two(w);
    observed_take_over(seen(w), loop_now(w->f->loop));
    pass_time_until_caught_up(w, 300 * 1000);
    assert_false(observed_has_caught_up(seen(w)));
    push_empty_lists(w);
    pass_time_until_caught_up(w, 120 * 1000);
    assert_true(observed_has_caught_up(seen(w)));
}

/* The ManifestWork, as the list of a start shows it: with the score names in one of its two lists. */
static void show_listed_work(struct world *w, const char *name, const char *summaries, const char *suspended)
{
    BUF_AUTO(text, 1 << 20);
    json_t *o = NULL;

    buf_put_str(&text, WORK_NEW);
    assert_int_equal(buf_failed(&text), 0);
    assert_int_equal(
        work_text(&text, "agents",
                  &(struct work_lists){.summaries = str_of(summaries), .suspended = str_of(suspended)}),
        0);
    assert_int_equal(kube_json_parse_cut(&o, buf_str(&text), &seen(w)->decisions.work_cut, NULL), 0);
    hub_see(w->hub, HUB_WORKS, name, o);
    json_decref(o);
}

/* All objects have been listed. */
static void resume(struct world *w)
{
    struct observed *o = seen(w);

    decisions_resume(&o->decisions, &o->scorers, &o->clusters, loop_now(w->f->loop));
}

#define LONG_TEXT                                                                        \
    "\"about\":\"......................................................................" \
    ".............................................................................."     \
    ".............................................................................."     \
    "..............................................................................\""

/* In short texts and long ones, which are cut, and suspended or not. */
static void starts_with_what_manifestworks_hold(void **state)
{
    static const struct {
        const char *summaries, *suspended;
        bool has;
    } cases[] = {
        {"[{\"scoreName\":\"score\"}]", "", true},
        {"[{\"name\":\"x\"},{\"scoreName\":\"\\u0073core\"}]", "", true},
        {"[{" LONG_TEXT ",\"scoreName\":\"other\"},{\"scoreName\":\"score\"}]", "", true},
        {"[]", "[{\"scoreName\":\"score\",\"since\":\"x\"}]", true},
        {"[{" LONG_TEXT ",\"scoreName\":\"other\"}]", "", false},
        {"[]", "", false},
        {"[{\"scoreName\":7}]", "", false},
        {"not JSON", "", false},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        decisions_begin(&seen(w)->decisions);
        show_config(w, HELD);
        show_cluster(w, "c1");
        show_cluster(w, "c2");
        show_placement(w, "p", "u1");
        show_decision(w, "p", C1);
        show_placed_scorer(w, "\"p\"", 1);
        show_listed_work(w, "c2", cases[i].summaries, cases[i].suspended);
        resume(w);
        lead(w, false);
        lead(w, true);
        if (cases[i].has)
            answer_list(w);
        pass_time(w, SHORT_MS - SETTLE_MS);
        assert_true(is_selected(w, "c1"));
        assert_int_equal(is_selected(w, "c2"), cases[i].has);
        pass_time(w, GRACE_MS);
        assert_true(is_selected(w, "c1"));
        assert_false(is_selected(w, "c2"));
    }
}

static void an_edit_ends_what_the_start_found(void **state)
{
    struct world *w = *state;

    decisions_begin(&seen(w)->decisions);
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_cluster(w, "c2");
    show_placement(w, "p", "u1");
    show_placement(w, "q", "u2");
    show_decision(w, "p", C1);
    show_decision(w, "q", C1);
    show_placed_scorer(w, "\"p\"", 1);
    show_listed_work(w, "c2", "[{\"scoreName\":\"score\"}]", "");
    resume(w);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c2"));
    show_placed_scorer(w, "\"q\"", 2);
    pass_time(w, SETTLE_MS);
    assert_true(is_selected(w, "c1"));
    assert_false(is_selected(w, "c2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_a_cluster_that_is_absent_for_a_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(lets_go_of_a_cluster_that_stays_away, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_a_cluster_until_a_list_says_that_it_has_left, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_a_cluster_that_a_list_shows_again, setup, teardown),
        cmocka_unit_test_setup_teardown(acts_at_once_on_what_people_change, setup, teardown),
        cmocka_unit_test_setup_teardown(acts_at_once_on_a_placement_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(acts_at_once_on_a_mask, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_over_during_an_absence, setup, teardown),
        cmocka_unit_test_setup_teardown(a_takeover_waits_for_lists_without_a_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(starts_with_what_manifestworks_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(an_edit_ends_what_the_start_found, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
