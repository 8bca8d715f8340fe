/* Objects that exist already: of others, and of nobody, which are adopted on request. */
#include "test/unit/placement/writes_world.h"

#define EXISTS "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}"
#define UNOWNED                                                                                    \
    "{\"metadata\":{\"name\":\"my-score\",\"resourceVersion\":\"7\",\"labels\":{\"team\":\"x\"}}," \
    "\"status\":"                                                                                  \
    "{\"scores\":[{\"name\":\"x\",\"value\":7}]}}"

static void leaves_a_foreign_object_alone(void **state)
{
    struct world *w = *state;

    begin(w, "");
    push_scores(w, 1);
    push(w, SCORES, 409, EXISTS);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "ns/other", "{}"));
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_non_null(
        strstr(placement_trouble(w->placement, w->scorer), "created by ns/other and is left alone"));
    push_scores(w, 2);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    placement_sync(w->placement, NULL, 0); /* nor is it deleted */
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
}

/* Requests 2 to 4: a round, the create that finds the object, and the object. */
static void meet(struct world *w, int round, const char *object)
{
    begin(w, "");
    push(w, "/s", round, "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":1}]}");
    push(w, SCORES, 409, EXISTS);
    push(w, SCORES, 200, object);
    add_scorer(w, "");
}

static void adopts_an_object_without_an_owner(void **state)
{
    struct world *w = *state;
    json_t *o;

    w->adopt = true;
    meet(w, 200, UNOWNED);
    push(w, SCORES, 200, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 2000);
    assert_asked(w, 5, "PATCH " SCORES "/my-score");
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 5);
    assert_string_equal(kube_version(o), "7"); /* of two agents one adopts it */
    assert_string_equal(kube_label(o, "dynamic-scoring.open-cluster-management.io/managed-by"), "agent");
    assert_string_equal(kube_annotation(o, "dynamic-scoring.open-cluster-management.io/owner"), "ns/addon");
    assert_int_equal(json_object_size(kube_map(o, "metadata", "labels", NULL)), 1);
    json_decref(o);
    assert_status(w, 6, 1, until(w, 180000), "True");
    fake_kube_idle(w->f);
    assert_string_equal(placement_trouble(w->placement, w->scorer), "");
    push(w, SCORES, 200, "{}");
    placement_sync(w->placement, NULL, 0);
    assert_asked(w, 7, "DELETE " SCORES "/my-score");
}

/* Like an agent that restarts, although the object says no end of its scores. */
static void keeps_adopted_scores_while_the_first_round_fails(void **state)
{
    struct world *w = *state;
    json_t *o;

    w->adopt = true;
    meet(w, 500, UNOWNED);
    push(w, SCORES, 200, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 2000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 6);
    assert_null(kube_get(o, "status", "scores", NULL));
    json_decref(o);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 180000);
    fake_kube_requests(w->f, 9);
    o = body_of(w, strncmp(fake_kube_asked(w->f, 7), "PATCH", 5) == 0 ? 7 : 8);
    assert_int_equal(json_array_size(kube_list(o, "status", "scores", NULL)), 0);
    assert_non_null(kube_list(o, "status", "scores", NULL));
    json_decref(o);
}

static void adopts_only_when_told_to(void **state)
{
    struct world *w = *state;

    meet(w, 200, UNOWNED);
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_trouble(w->placement, w->scorer),
                           "created by another program and is left alone; delete it, adopt it with "
                           "--adopt-unowned-scores, or choose"));
    assert_int_equal(fake_requests(w->f->server), 5);
}

static void adopts_no_object_with_an_owner(void **state)
{
    struct world *w = *state;

    w->adopt = true;
    meet(w, 200, fake_kube_text(w->f, OWNED, "my-score", "ns/other", "{}"));
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_trouble(w->placement, w->scorer),
                           "created by ns/other and is left alone; delete it, or choose"));
    assert_int_equal(fake_requests(w->f->server), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(leaves_a_foreign_object_alone),
        TEST(adopts_an_object_without_an_owner),
        TEST(keeps_adopted_scores_while_the_first_round_fails),
        TEST(adopts_only_when_told_to),
        TEST(adopts_no_object_with_an_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
