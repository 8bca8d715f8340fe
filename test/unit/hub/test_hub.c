/* The controller with an API server that refuses, hangs and answers wrongly; the scenarios use a real one. */
#include "controller/hub/follows/counts.h"
#include "controller/hub/hub.h"
#include "controller/hub/observed/change.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/rules/work.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/hub_world.h"

static void retries_a_write_whose_answer_has_no_version(void **state)
{
    struct world *w = *state;
    const struct fake_request *rq;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer(w);
    rq = wait_written(w, "POST", "c1");
    wait_answered(w, "c1");
    assert_non_null(strstr(rq->body, "scoreName\\\":\\\"score"));
    assert_non_null(strstr(cstr(cluster(w, "c1")->write.object.last_error), "has no resourceVersion"));
    assert_true(cluster(w, "c1")->write.is_late);
    show_work(w, rq->body, "c1");
    assert_false(cluster(w, "c1")->write.is_late);
    assert_null(cluster(w, "c1")->write.object.last_error);
}

static size_t count_writes(struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++)
        n += strncmp(fake_request(w->f->server, i)->target, WORKS, strlen(WORKS)) == 0;
    return n;
}

/* Without a back-off both would write as fast as the network allows. */
static void backs_off_when_a_webhook_changes_writes(void **state)
{
    static const char answer[] = "{\"metadata\":{\"resourceVersion\":\"%u\"}}";
    static const char work[] =
        "{\"metadata\":{\"resourceVersion\":\"%u\"},\"spec\":{\"workload\":{\"manifests\":[]}}}";
    struct world *w = *state;
    size_t n = 0;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_work(w, fake_kube_text(w->f, work, 10), "c1");
    for (unsigned i = 11; i < 16; i++) {
        fake_push(w->f->server,
                  (struct fake_answer){.body = fake_kube_text(w->f, answer, i), .only_path = WORKS "c1/"});
        for (unsigned k = 0; k < 2000 && count_writes(w) == n; k++)
            pass_time(w, 100);
        wait_answered(w, "c1");
        pass_time(w, 300);
        assert_int_equal(count_writes(w), ++n);
        assert_false(cluster(w, "c1")->write.is_late);     /* what was sent is believed ... */
        show_work(w, fake_kube_text(w->f, work, i), "c1"); /* ... until the watch shows it */
        assert_int_equal(cluster(w, "c1")->write.object.undone, i - 11);
        assert_non_null(strstr(cstr(cluster(w, "c1")->write.object.last_error), "mutating webhook"));
    }
    pass_time(w, 1500); /* the back-off is at least two seconds by now */
    assert_int_equal(count_writes(w), n);
}

/* Events from before a write may arrive after its answer. */
static void ignores_events_from_before_a_write(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"10\"}}", "c1");
    fake_push(w->f->server, (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"20\"}}",
                                                 .only_path = WORKS "c1/"});
    (void)wait_written(w, "PATCH", "c1");
    wait_answered(w, "c1");
    assert_true(cluster(w, "c1")->work.frame);
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"15\"}}", "c1");
    assert_true(cluster(w, "c1")->work.frame);
    show_work(w, "{\"metadata\":{\"resourceVersion\":\"21\"}}", "c1");
    assert_false(cluster(w, "c1")->work.frame);
}

static void writes_nothing_twice(void **state)
{
    struct world *w = *state;
    size_t n;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer(w);
    show_work(w, wait_written(w, "POST", "c1")->body, "c1");
    pass_time(w, 3000);
    n = count_writes(w);
    show_config(w, HELD);
    show_scorer(w);
    hub_note(w->hub, CHANGE_PLAN);
    pass_time(w, 3000);
    assert_int_equal(count_writes(w), n);
}

/* By a patch, and nothing else. */
static void reverts_a_change_of_another_writer(void **state)
{
    struct world *w = *state;
    const struct fake_request *rq;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_work(w, "{\"metadata\":{},\"spec\":{\"workload\":{\"manifests\":[]}}}", "c1");
    rq = wait_written(w, "PATCH", "c1");
    assert_null(strstr(rq->body, "finalizers"));
    assert_null(written(w, "POST", "c1"));
}

static const struct hub_totals *totals(struct world *w)
{
    return &hub_count(w->hub).counts->totals;
}

static void delays_no_cluster_for_a_refused_one(void **state)
{
    struct world *w = *state;

    fake_push(w->f->server, (struct fake_answer){.status = 403, .body = "no", .only_path = WORKS "c1/"});
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = WORKS "c2/"});
    show_config(w, HELD);
    show_cluster(w, "c1");
    (void)wait_written(w, "POST", "c1");
    wait_answered(w, "c1");
    assert_non_null(strstr(cstr(cluster(w, "c1")->write.object.last_error), "403"));
    assert_int_equal(totals(w)->failing, 1);
    for (unsigned i = 2; i <= 6; i++)
        show_cluster(w, fake_kube_text(w->f, "c%u", i));
    for (unsigned i = 2; i <= 6; i++)
        (void)wait_written(w, "POST", fake_kube_text(w->f, "c%u", i));
    assert_non_null(cluster(w, "c2")->write.object.call);
    assert_int_equal(totals(w)->managed, 6);
}

/* Counting changes nothing, and what it names stays until the next count: pages read both. */
static void keeps_clusters_that_counts_name(void **state)
{
    struct world *w = *state;
    const struct hub_cluster *named;
    struct counts *again;
    struct fleet f;

    fake_push(w->f->server, (struct fake_answer){.status = 403, .body = "no", .only_path = WORKS "c1/"});
    show_config(w, HELD);
    show_cluster(w, "c1");
    (void)wait_written(w, "POST", "c1");
    wait_answered(w, "c1");
    assert_int_equal(totals(w)->named.n, 1);
    hub_see(w->hub, HUB_CLUSTERS, "c1", NULL);
    assert_null(clusters_find(&seen(w)->clusters, "c1"));
    f = hub_fleet(w->hub);
    again = counts_new(&f);
    assert_int_equal(again->totals.named.n, 0);
    assert_ptr_equal(counts_free(again), NULL);
    named = f.counts->totals.named.list[0];
    assert_string_equal(named->name, "c1");
    assert_int_equal(totals(w)->named.n, 0);
}

static bool stopped;

static void on_stopped(void *arg)
{
    (void)arg;
    stopped = true;
}

static void cancels_writes_when_stopped(void **state)
{
    struct world *w = *state;
    size_t n;

    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = WORKS "c1/"});
    show_config(w, HELD);
    show_cluster(w, "c1");
    (void)wait_written(w, "POST", "c1");
    fake_kube_settle(w->f);
    stopped = false;
    hub_stop(w->hub, on_stopped, NULL);
    assert_true(stopped);
    assert_null(cluster(w, "c1")->write.object.call);
    fake_kube_settle(w->f); /* what was sent before may only arrive now */
    n = fake_requests(w->f->server);
    show_cluster(w, "c2");
    show_scorer(w);
    pass_time(w, 2000);
    assert_int_equal(fake_requests(w->f->server), n);
}

static const struct fake_request *finalizer_patch(struct world *w)
{
    for (size_t i = fake_requests(w->f->server); i-- > 0;) {
        const struct fake_request *rq = fake_request(w->f->server, i);
        if (strcmp(rq->method, "PATCH") == 0 && strstr(rq->body, "finalizers"))
            return rq;
    }
    return NULL;
}

static void keeps_the_finalizer_until_the_last_work_is_gone(void **state)
{
    struct world *w = *state;
    const char *body;

    show_config(w, "");
    show_cluster(w, "c1");
    pass_time(w, 1500);
    assert_non_null(strstr(finalizer_patch(w)->body, HUB_FINALIZER));
    assert_null(written(w, "POST", "c1"));
    show_config(w, HELD);
    body = wait_written(w, "POST", "c1")->body;
    show_work(w, body, "c1");
    show_config(w, ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"a/b\",\"" HUB_FINALIZER
                   "\"]");
    (void)wait_written(w, "DELETE", "c1");
    pass_time(w, 1500);
    assert_non_null(strstr(finalizer_patch(w)->body, HUB_FINALIZER));
    hub_see(w->hub, HUB_WORKS, "c1", NULL);
    pass_time(w, 1500);
    assert_null(strstr(finalizer_patch(w)->body, HUB_FINALIZER));
    assert_non_null(strstr(finalizer_patch(w)->body, "a/b"));
}

static void replaces_the_finalizer_of_the_reference(void **state)
{
    struct world *w = *state;

    show_config(w, ",\"resourceVersion\":\"7\",\"finalizers\":[\"a/b\",\"" REFERENCE_FINALIZER "\",\"c/d\"]");
    pass_time(w, 1500);
    assert_non_null(strstr(finalizer_patch(w)->body, "\"resourceVersion\":\"7\""));
    assert_non_null(
        strstr(finalizer_patch(w)->body, "\"finalizers\":[\"a/b\",\"c/d\",\"" HUB_FINALIZER "\"]"));
}

/* Its work without our label goes too: its finalizer has promised that. */
static void ends_what_the_reference_began_to_delete(void **state)
{
    struct world *w = *state;

    show_cluster(w, "c1");
    show_work(w, "{\"metadata\":{}}", "c1");
    show_config(w, ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"" REFERENCE_FINALIZER
                   "\",\"a/b\"]");
    (void)wait_written(w, "DELETE", "c1");
    pass_time(w, 1500);
    assert_null(finalizer_patch(w));
    hub_see(w->hub, HUB_WORKS, "c1", NULL);
    pass_time(w, 1500);
    assert_non_null(strstr(finalizer_patch(w)->body, "\"finalizers\":[\"a/b\"]"));
}

static void removes_the_finalizer_of_the_reference_from_an_unused_config(void **state)
{
    struct world *w = *state;

    show(w, HUB_CONFIGS,
         "{\"metadata\":{\"name\":\"other\",\"uid\":\"o\",\"finalizers\":[\"" REFERENCE_FINALIZER
         "\"]},\"spec\":{}}");
    pass_time(w, 1500);
    assert_non_null(strstr(finalizer_patch(w)->body, "\"finalizers\":[]"));
}

/* Of a cluster that left while no controller ran; not those created by others. */
static void deletes_works_left_behind(void **state)
{
    static const char label[] =
        "{\"metadata\":{\"uid\":\"g\",\"labels\":{\"" WORK_LABEL "\":\"" WORK_LABEL_VALUE "\"}}}";
    struct world *w = *state;

    show_work(w, label, "gone");
    show_work(w, "{\"metadata\":{}}", "other");
    /* Nor one that others have made anew meanwhile. */
    assert_non_null(strstr(wait_written(w, "DELETE", "gone")->body, "\"preconditions\":{\"uid\":\"g\"}"));
    pass_time(w, 1000);
    assert_null(written(w, "DELETE", "other"));
    hub_see(w->hub, HUB_WORKS, "gone", NULL);
    pass_time(w, 100);
    assert_null(clusters_find(&seen(w)->clusters, "gone"));
}

/* With another --namespace, or after the config was removed by force, the fleet keeps its scorers. */
static void deletes_no_work_without_a_config(void **state)
{
    static const char label[] = "{\"metadata\":{\"labels\":{\"" WORK_LABEL "\":\"" WORK_LABEL_VALUE "\"}}}";
    struct world *w = *state;

    show_cluster(w, "c1");
    show_work(w, label, "c1");
    hub_note(w->hub, CHANGE_PLAN);
    pass_time(w, 3000);
    assert_null(written(w, "DELETE", "c1"));
    show_config(w, HELD);
    hub_see(w->hub, HUB_CONFIGS, HUB_CONFIG, NULL);
    (void)wait_written(w, "DELETE", "c1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(retries_a_write_whose_answer_has_no_version, setup, teardown),
        cmocka_unit_test_setup_teardown(backs_off_when_a_webhook_changes_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(ignores_events_from_before_a_write, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_nothing_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(reverts_a_change_of_another_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(delays_no_cluster_for_a_refused_one, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_clusters_that_counts_name, setup, teardown),
        cmocka_unit_test_setup_teardown(cancels_writes_when_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_the_finalizer_until_the_last_work_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(replaces_the_finalizer_of_the_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_what_the_reference_began_to_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(removes_the_finalizer_of_the_reference_from_an_unused_config, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(deletes_works_left_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(deletes_no_work_without_a_config, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
