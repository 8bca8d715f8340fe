/* ManifestWorks when answers and watch events arrive in any order, and with other writers. */
#include "controller/hub/hub.h"
#include "controller/hub/observed/change.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/reach.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/hub_world.h"

enum { STUCK_MS = 5000 };

enum { PATIENCE_TURNS = 10000 }; /* of the machine, however busy */

/* Waits until the cluster's call has started, whose answer is held. */
static void wait_begun(struct world *w, const char *name)
{
    for (unsigned i = 0; i < PATIENCE_TURNS && !cluster(w, name)->write.object.call; i++) {
        fake_kube_advance(w->f, 20);
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    }
    assert_non_null(cluster(w, name)->write.object.call);
}

/* Lets the answer go, and waits until it has been processed. */
static void wait_ended(struct world *w, const char *name)
{
    fake_release(w->f->server);
    wait_answered(w, name);
}

static const char *with_version(struct world *w, const char *work, const char *version)
{
    json_t *o = json_loads(work, 0, NULL);
    char *text;
    const char *kept;

    assert_non_null(o);
    assert_int_equal(
        json_object_set_new(json_object_get(o, "metadata"), "resourceVersion", json_string(version)), 0);
    text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    kept = fake_kube_text(w->f, "%s", text);
    free(text);
    return kept;
}

/* One cluster whose work has version 5; returns the body that created it. */
static const char *settle_one(struct world *w)
{
    const char *body;

    show_config(w, HELD);
    show_cluster(w, "c1");
    body = wait_written(w, "POST", "c1")->body;
    wait_answered(w, "c1");
    show_work(w, with_version(w, body, "5"), "c1");
    assert_false(cluster(w, "c1")->write.is_late);
    return body;
}

static size_t count_of(struct world *w, const char *method)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        const struct fake_request *rq = fake_request(w->f->server, i);
        n += strcmp(rq->method, method) == 0 && strncmp(rq->target, WORKS, strlen(WORKS)) == 0;
    }
    return n;
}

static void answer(struct world *w, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.body = body, .only_path = WORKS "c1/"});
}

/* Until wait_ended(). */
static void hold_answer(struct world *w, const char *cluster_path, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.body = body, .held = true, .only_path = cluster_path});
}

/* The watch is often faster than the answer. */
static void recreates_a_work_deleted_before_the_answer(void **state)
{
    struct world *w = *state;
    size_t n;

    (void)settle_one(w);
    n = count_of(w, "POST");
    hold_answer(w, WORKS "c1/", "{}");
    hub_see(w->hub, HUB_CONFIGS, HUB_CONFIG, NULL);
    wait_begun(w, "c1");
    hub_see(w->hub, HUB_WORKS, "c1", NULL);
    wait_ended(w, "c1");
    assert_int_equal(count_of(w, "DELETE"), 1);
    show_config(w, HELD);
    pass_time(w, STUCK_MS);
    assert_true(count_of(w, "POST") > n);
}

/* It was created and deleted before the watch, which listed anew, has shown it. */
static void recreates_a_work_of_whose_end_no_watch_tells(void **state)
{
    struct world *w = *state;

    answer(w, "{\"metadata\":{\"resourceVersion\":\"1\"}}"); /* the list's version */
    show_config(w, HELD);
    show_cluster(w, "c1");
    (void)wait_written(w, "POST", "c1");
    wait_answered(w, "c1");
    answer(w, "{\"metadata\":{\"resourceVersion\":\"3\"}}");
    hub_note(w->hub, CHANGE_PLAN);
    pass_time(w, STUCK_MS);
    assert_int_equal(count_of(w, "POST"), 2);
}

/* On a busy machine the fake server reads a request only after the test has let its answer go: it must not
 * wait for a word that has come already. The call would time out, and be sent again. */
static void answers_a_request_that_comes_after_its_release(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);

    hold_answer(w, WORKS "c1/", with_version(w, body, "6"));
    fake_release(w->f->server);
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{}}", "c1");
    (void)wait_written(w, "PATCH", "c1");
    wait_answered(w, "c1");
    assert_int_equal(count_of(w, "PATCH"), 1);
    assert_false(cluster(w, "c1")->write.is_late);
}

/* Deleted by hand while the patch is under way. */
static void ignores_an_answer_older_than_the_deletion(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);

    hold_answer(w, WORKS "c1/", with_version(w, body, "6"));
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{}}", "c1");
    wait_begun(w, "c1");
    hub_see(w->hub, HUB_WORKS, "c1", NULL);
    wait_ended(w, "c1");
    answer(w, with_version(w, body, "9"));
    pass_time(w, STUCK_MS);
    assert_int_equal(count_of(w, "POST"), 2);
    assert_null(cluster(w, "c1")->write.object.last_error);
    assert_false(cluster(w, "c1")->write.is_late);
}

/* The watch shows what was written before the patch that is under way. */
static void ignores_events_of_the_previous_write(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);

    hold_answer(w, WORKS "c1/", with_version(w, body, "20"));
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"10\"},\"spec\":{}}", "c1");
    wait_begun(w, "c1");
    wait_ended(w, "c1");
    hold_answer(w, WORKS "c1/", with_version(w, body, "21"));
    show_scorer(w);
    wait_begun(w, "c1");
    show_work(w, with_version(w, body, "20"), "c1");
    assert_int_equal(cluster(w, "c1")->write.object.undone, 0);
    assert_null(cluster(w, "c1")->write.object.last_error);
}

/* Changed by another writer right after the patch. */
static void ignores_an_answer_older_than_a_change(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);
    size_t n = count_of(w, "PATCH");

    hold_answer(w, WORKS "c1/", with_version(w, body, "6"));
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{}}", "c1");
    wait_begun(w, "c1");
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{}}", "c1");
    wait_ended(w, "c1");
    pass_time(w, STUCK_MS);
    assert_true(count_of(w, "PATCH") >= n + 2);
}

/* A late event with the work agent's status of the previous version. */
static void ignores_events_older_than_the_answer(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);
    size_t n = count_of(w, "PATCH");

    hold_answer(w, WORKS "c1/", with_version(w, body, "7"));
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{}}", "c1");
    wait_begun(w, "c1");
    wait_ended(w, "c1");
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"6\"},\"spec\":{}}", "c1");
    pass_time(w, STUCK_MS);
    assert_int_equal(count_of(w, "PATCH"), n + 1);
    assert_false(cluster(w, "c1")->write.is_late);
    /* After a restore from a backup all versions are older. */
    fake_kube_advance(w->f, 60000);
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"6\"},\"spec\":{}}", "c1");
    assert_true(cluster(w, "c1")->write.is_late);
}

/* The store is back at a version of before the last write. */
static void believes_the_watch_after_a_restore(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);

    hold_answer(w, WORKS "c1/", with_version(w, body, "50"));
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"6\"},\"spec\":{}}", "c1");
    wait_begun(w, "c1");
    wait_ended(w, "c1");
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"40\"},\"spec\":{}}", "c1");
    assert_false(cluster(w, "c1")->write.is_late);
    kube_note_restore(w->f->kube, NULL);
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"40\"},\"spec\":{}}", "c1");
    assert_true(cluster(w, "c1")->write.is_late);
    hold_answer(w, WORKS "c1/", with_version(w, body, "41"));
    wait_begun(w, "c1");
    wait_ended(w, "c1");
    assert_int_equal(cluster(w, "c1")->write.object.undone, 0); /* nobody has undone it */
    assert_false(cluster(w, "c1")->write.is_late);
}

static void backs_off_when_another_writer_undoes_writes(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);
    unsigned version = 10;

    for (unsigned i = 0; i < 600; i++) {
        fake_push(w->f->server,
                  (struct fake_answer){.body = with_version(w, body, fake_kube_text(w->f, "%u", version)),
                                       .only_path = WORKS "c1/"});
        if (!cluster(w, "c1")->write.is_late) {
            show_work(
                w,
                fake_kube_text(w->f, "{\"metadata\":{\"resourceVersion\":\"%u\"},\"spec\":{}}", version + 1),
                "c1");
            version += 2;
        }
        fake_kube_settle(w->f);
        fake_kube_advance(w->f, 100);
        assert_int_equal(loop_turn(w->f->loop, 2), 0);
    }
    assert_in_range(count_of(w, "PATCH"), 3, 12);
}

static void leaves_no_work_of_a_cluster_that_leaves_during_its_creation(void **state)
{
    struct world *w = *state;
    const char *body = settle_one(w);

    hold_answer(w, WORKS "c2/", with_version(w, body, "6"));
    show_cluster(w, "c2");
    wait_begun(w, "c2");
    hub_see(w->hub, HUB_CLUSTERS, "c2", NULL);
    wait_ended(w, "c2");
    (void)wait_written(w, "DELETE", "c2");
    hub_see(w->hub, HUB_WORKS, "c2", NULL);
    pass_time(w, 200);
    assert_null(clusters_find(&seen(w)->clusters, "c2"));
}

static void lead(struct world *w, bool leads)
{
    hub_lead(w->hub, leads);
}

/* Meanwhile another leader has removed the scorer from the work: the old plan must not be written. */
static void writes_nothing_before_the_first_plan_as_leader(void **state)
{
    struct world *w = *state;
    BUF_AUTO(text, 1 << 20);
    const char *emptied;

    show_scorer(w);
    (void)settle_one(w);
    assert_non_null(strstr(written(w, "POST", "c1")->body, "score"));
    lead(w, false);
    hub_see(w->hub, HUB_SCORERS, "s", NULL);
    buf_put_str(&text, WORK_NEW);
    assert_int_equal(buf_failed(&text), 0);
    assert_int_equal(work_text(&text, "agents", &(struct work_lists){.summaries = STR("[]")}), 0);
    emptied = fake_kube_text(w->f, "%.*s", STR_ARG(buf_str(&text)));
    show_work(w, with_version(w, emptied, "20"), "c1");
    pass_time(w, 70000);
    lead(w, true);
    show_work(w, with_version(w, emptied, "21"), "c1"); /* the work agent's status */
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(loop_turn(w->f->loop, 2), 0);
    pass_time(w, 2000);
    assert_int_equal(count_of(w, "PATCH"), 0);
}

static bool has_failed(struct world *w)
{
    return cluster(w, "c1")->write.object.failures > 0;
}

/* The watch shows the work although the answer was an error. */
static void accepts_a_write_whose_answer_was_lost(void **state)
{
    struct world *w = *state;
    const char *body;

    fake_push(w->f->server, (struct fake_answer){.status = 504,
                                                 .body = "upstream timeout",
                                                 .only_path = WORKS "c1/manifestworks"});
    show_config(w, HELD);
    show_cluster(w, "c1");
    body = wait_written(w, "POST", "c1")->body;
    turn_until(w, has_failed);
    show_work(w, with_version(w, body, "5"), "c1");
    pass_time(w, STUCK_MS);
    assert_false(cluster(w, "c1")->write.is_late);
    assert_null(cluster(w, "c1")->write.object.last_error);
    assert_int_equal(cluster(w, "c1")->write.object.failures, 0);
    assert_int_equal(count_of(w, "POST"), 1);
}

/* Not at the reserved rate alone. */
static void creates_the_works_of_a_new_fleet_at_the_full_rate(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    for (unsigned i = 0; i < 300; i++)
        show_cluster(w, fake_kube_text(w->f, "c%u", i));
    for (unsigned i = 0; i < 400 && count_of(w, "POST") < 200; i++) {
        fake_kube_advance(w->f, 10);
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    }
    assert_in_range(count_of(w, "POST"), 200, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(recreates_a_work_deleted_before_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(recreates_a_work_of_whose_end_no_watch_tells, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_a_request_that_comes_after_its_release, setup, teardown),
        cmocka_unit_test_setup_teardown(ignores_an_answer_older_than_the_deletion, setup, teardown),
        cmocka_unit_test_setup_teardown(ignores_an_answer_older_than_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(ignores_events_of_the_previous_write, setup, teardown),
        cmocka_unit_test_setup_teardown(ignores_events_older_than_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(believes_the_watch_after_a_restore, setup, teardown),
        cmocka_unit_test_setup_teardown(backs_off_when_another_writer_undoes_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_no_work_of_a_cluster_that_leaves_during_its_creation, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(writes_nothing_before_the_first_plan_as_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(accepts_a_write_whose_answer_was_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(creates_the_works_of_a_new_fleet_at_the_full_rate, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
