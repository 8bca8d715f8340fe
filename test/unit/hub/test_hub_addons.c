/* Clusters with and without the agent's ManagedClusterAddOn, and what is left of an agent that has gone. */
#include "controller/hub/follows/target.h"
#include "controller/hub/hub.h"
#include "controller/hub/observed/addons.h"
#include "controller/hub/observed/change.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/rules/work.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/hub_world.h"

enum {
    MINUTE_MS = 60 * 1000,
    SETTLE_MS = 2000,
    FIRST_STREAM_MIN =
        3, /* until the one of the set-up, which is silent, has been given up: no news until then */
};

#define ADDONS "/apis/addon.open-cluster-management.io/v1alpha1/managedclusteraddons"
#define SCORES "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/"

static void show_addon(struct world *w, const char *cluster)
{
    json_t *o = json_loads("{\"metadata\":{\"name\":\"addon\",\"uid\":\"a\"},\"spec\":{}}", 0, NULL);

    assert_non_null(o);
    hub_see(w->hub, HUB_ADDONS, cluster, o);
    json_decref(o);
}

/* The watch of the add-ons goes on and has news: each answer is an empty list, and an event of a stream that
 * ends then. */
static void keep_watch(struct world *w)
{
    static const char both[] =
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[],"
        "\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n";

    fake_aside(w->f->server, (struct fake_answer){.body = both, .only_path = ADDONS});
}

static void pass_minutes(struct world *w, unsigned minutes)
{
    for (unsigned i = 0; i < minutes * 12; i++) {
        fake_kube_settle(w->f);
        fake_kube_advance(w->f, MINUTE_MS / 12);
        assert_int_equal(loop_turn(w->f->loop, 2), 0);
    }
    pass_time(w, SETTLE_MS);
}

static bool has_work(struct world *w, const char *name)
{
    const struct fleet f = hub_fleet(w->hub);

    return cluster_target(f.seen, f.plan, cluster(w, name)) == TARGET_WORK;
}

static void note_gap(struct world *w)
{
    addons_note_gap(&seen(w)->addons, loop_now(w->f->loop));
    hub_note(w->hub, CHANGE_PLAN);
}

/* Two clusters; the first has the add-on, and c2 its ManifestWork. */
static void settle_two(struct world *w)
{
    keep_watch(w);
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_cluster(w, "c2");
    show_work(w,
              "{\"metadata\":{\"resourceVersion\":\"5\",\"labels\":{\"" WORK_LABEL "\":\"" WORK_LABEL_VALUE
              "\"}},\"spec\":{}}",
              "c2");
    show_addon(w, "c1");
    pass_time(w, SETTLE_MS);
}

static void gives_nothing_to_a_cluster_that_never_had_it(void **state)
{
    struct world *w = *state;

    settle_two(w);
    show_cluster(w, "c3");
    pass_time(w, SETTLE_MS);
    assert_true(has_work(w, "c1") && has_work(w, "c2"));
    assert_false(has_work(w, "c3"));
    assert_null(written(w, "POST", "c3"));
    show_addon(w, "c3");
    (void)wait_written(w, "POST", "c3");
}

static void serves_all_where_no_cluster_has_it(void **state)
{
    struct world *w = *state;

    keep_watch(w);
    show_config(w, HELD);
    show_cluster(w, "c1");
    (void)wait_written(w, "POST", "c1");
    pass_minutes(w, 12);
    assert_true(has_work(w, "c1"));
    show_addon(w, "c1");
    hub_see(w->hub, HUB_ADDONS, "c1", NULL); /* the last one goes */
    pass_minutes(w, 12);
    assert_true(has_work(w, "c1"));
}

static void withdraws_after_ten_minutes_of_absence(void **state)
{
    struct world *w = *state;

    settle_two(w);
    pass_minutes(w, 9);
    assert_true(has_work(w, "c2"));
    show_addon(w, "c2"); /* deleted and recreated: the time begins anew */
    pass_time(w, SETTLE_MS);
    hub_see(w->hub, HUB_ADDONS, "c2", NULL);
    pass_minutes(w, 9);
    assert_true(has_work(w, "c2"));
    assert_null(written(w, "DELETE", "c2"));
    note_gap(w); /* the watch was blind */
    pass_minutes(w, 9);
    assert_true(has_work(w, "c2"));
    pass_minutes(w, 2);
    assert_false(has_work(w, "c2"));
    assert_true(has_work(w, "c1"));
    assert_non_null(written(w, "DELETE", "c2"));
    note_gap(w); /* which brings nothing back */
    pass_time(w, SETTLE_MS);
    assert_false(has_work(w, "c2"));
    show_addon(w, "c2");
    pass_time(w, SETTLE_MS);
    assert_true(has_work(w, "c2"));
}

#define SCORE(name, label, owner)                                                            \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"c2\",\"uid\":\"u-" name            \
    "\",\"resourceVersion\":\"7\",\"labels\":{\"dynamic-scoring.open-cluster-management.io/" \
    "managed-by\":\"" label                                                                  \
    "\"},\"annotations\":{\"dynamic-scoring.open-cluster-management.io/owner\":\"" owner "\"}}}"

/* Which scores have been deleted: "b a ". */
static const char *deleted_scores(struct world *w)
{
    const char *all = "", *path = SCORES "c2/addonplacementscores/";

    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        const struct fake_request *rq = fake_request(w->f->server, i);

        if (strcmp(rq->method, "DELETE") != 0 || strncmp(rq->target, path, strlen(path)) != 0)
            continue;
        all = fake_kube_text(w->f, "%s%s ", all, rq->target + strlen(path));
        assert_non_null(
            strstr(rq->body, fake_kube_text(w->f, "\"uid\":\"u-%s\"", rq->target + strlen(path))));
        assert_non_null(strstr(rq->body, "\"resourceVersion\":\"7\""));
    }
    return all;
}

static void push_scores(struct world *w)
{
    /* clang-format off */
    static const char list[] = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":["
        SCORE("mine", "agent", "agents/addon") ","
        SCORE("others", "agent", "agents/other-addon") ","
        SCORE("moved", "agent", "elsewhere/addon") ","
        SCORE("foreign", "somebody", "agents/addon") "]}";
    /* clang-format on */

    fake_push(w->f->server,
              (struct fake_answer){.body = list, .only_path = SCORES "c2/addonplacementscores"});
}

static void deletes_scores_once_the_work_is_gone(void **state)
{
    struct world *w = *state;

    settle_two(w);
    push_scores(w);
    pass_minutes(w, FIRST_STREAM_MIN + 11);
    assert_false(has_work(w, "c2"));
    assert_string_equal(deleted_scores(w), "");
    hub_see(w->hub, HUB_WORKS, "c2", NULL);
    pass_time(w, SETTLE_MS);
    assert_string_equal(deleted_scores(w), "moved mine ");
}

/* An earlier process has withdrawn the work, and ended. */
static void deletes_scores_found_at_the_start(void **state)
{
    struct world *w = *state;

    keep_watch(w);
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_cluster(w, "c2");
    show_addon(w, "c1");
    push_scores(w);
    pass_minutes(w, 9);
    assert_string_equal(deleted_scores(w), "");
    pass_minutes(w, FIRST_STREAM_MIN + 2);
    assert_string_equal(deleted_scores(w), "moved mine ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_nothing_to_a_cluster_that_never_had_it, setup, teardown),
        cmocka_unit_test_setup_teardown(serves_all_where_no_cluster_has_it, setup, teardown),
        cmocka_unit_test_setup_teardown(withdraws_after_ten_minutes_of_absence, setup, teardown),
        cmocka_unit_test_setup_teardown(deletes_scores_once_the_work_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(deletes_scores_found_at_the_start, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
