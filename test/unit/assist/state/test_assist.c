/* Plans from the request to what is written: several at once, the queue, and what is said of the last one. */
#include "controller/assist/state/assist.h"
#include "controller/assist/state/reader.h"

#include "controller/kube/json.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct asked {
    unsigned ended, status;
    json_t *body;
    char detail[1024];
};

struct test {
    struct fake_kube *f;
    char hashes[4][32];
    unsigned n_hashes;
    struct assist *a;
    struct asked last;
};

static void on_end(void *arg, const struct outcome *o)
{
    struct asked *asked = arg;

    asked->ended++;
    asked->status = o->status;
    json_decref(asked->body);
    asked->body = json_incref(o->body);
    (void)snprintf(asked->detail, sizeof(asked->detail), "%s", o->detail);
}

#define OBJECT(namespace, name, labels, more)                                                         \
    "{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" name "\",\"resourceVersion\":\"1\"," \
                                                "\"labels\":{" labels "}}" more "}"

static void answers_with(struct test *t, const char *path, const char *items)
{
    fake_aside(t->f->server, (struct fake_answer){.only_path = path,
                                                  .body = fake_kube_text(t->f, "{\"items\":[%s]}", items)});
}

static int begin(void **state, int schema_status)
{
    static const char *const namespaces[] = {"default", "other"};
    struct test *t = calloc(1, sizeof(*t));
    struct assist_options o = {.write_namespaces = namespaces, .n_write_namespaces = 2, .deadline_ms = 5000};

    t->f = fake_kube_new();
    fake_default(t->f->server, (struct fake_answer){.body = "{}"});
    fake_aside(t->f->server,
               (struct fake_answer){.status = schema_status, .body = "{}", .only_path = "/openapi/"});
    answers_with(t, "/apis/cluster.open-cluster-management.io/v1/managedclusters",
                 OBJECT("", "c", "\"cluster-name\":\"c\"", ""));
    answers_with(t, "/apis/policy.open-cluster-management.io/v1/namespaces/default/policies",
                 OBJECT("default", "p",
                        "\"resource-supply-kind\":\"gpu\",\"resource-supply-amount\":\"2\","
                        "\"resource-supply-device\":\"d\"",
                        ""));
    answers_with(t,
                 "/apis/work.open-cluster-management.io/v1alpha1/namespaces/default/manifestworkreplicasets",
                 OBJECT("default", "w",
                        "\"app\":\"a\",\"resource-request-kind\":\"gpu\",\"resource-request-amount\":\"1\"",
                        ",\"spec\":{\"placementRefs\":[{\"name\":\"w-placement\"}]}"));
    answers_with(t, "/apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores",
                 OBJECT("c", "s", "", ",\"status\":{\"scores\":[{\"name\":\"a\",\"value\":7}]}"));
    o.loop = t->f->loop;
    o.kube = t->f->kube;
    assert_int_equal(assist_new(&t->a, &o), 0);
    *state = t;
    return 0;
}

static int setup(void **state)
{
    return begin(state, 200);
}

static int setup_without_schema(void **state)
{
    return begin(state, 404);
}

static int teardown(void **state)
{
    struct test *t = *state;

    t->a = assist_free(t->a);
    json_decref(t->last.body);
    (void)fake_kube_free(t->f);
    free(t);
    return 0;
}

static json_t *request(double weight)
{
    return json_pack("{s:[{s:s, s:[{s:s}]}], s:[{s:s}], s:{s:[{s:s, s:s, s:f}]}}", "clusters", "name", "c",
                     "availablePolicies", "name", "p", "targetWorkloads", "name", "w", "preference", "scores",
                     "addonPlacementScore", "s", "scoreDimensionFormat", "${app}", "weight", weight);
}

/* The plan's hash, which lives as long as the test. */
static const char *plan(struct test *t, double weight)
{
    json_auto_t *json = request(weight);
    const char *hash;

    t->last.ended = 0;
    assist_plan(t->a, json, true, on_end, &t->last);
    fake_kube_turn(t->f, &t->last.ended, 1);
    assert_string_equal(t->last.detail, "");
    hash = kube_str(t->last.body, "planHash", NULL);
    assert_non_null(hash);
    assert_true(t->n_hashes < 4);
    (void)snprintf(t->hashes[t->n_hashes], sizeof(t->hashes[0]), "%s", hash);
    return t->hashes[t->n_hashes++];
}

static void applies(struct test *t, const char *hash)
{
    t->last.ended = 0;
    assist_apply(t->a, hash, on_end, &t->last);
    fake_kube_turn(t->f, &t->last.ended, 1);
    assert_string_equal(t->last.detail, "");
    assert_int_equal(t->last.status, 200);
    assert_true(json_is_true(json_object_get(t->last.body, "applied")));
    assert_int_equal(json_array_size(kube_list(t->last.body, "written", "created", NULL)), 3);
}

static void resets(struct test *t, const char *namespace, unsigned status)
{
    t->last.ended = 0;
    assist_reset(t->a, namespace, on_end, &t->last);
    fake_kube_turn(t->f, &t->last.ended, 1);
    assert_int_equal(t->last.status, status);
}

static bool last_is_applied(const struct test *t)
{
    return assist_last_plan(t->a)->applied_at.ms != 0;
}

static void knows_whether_the_last_plan_is_in_force(void **state)
{
    struct test *t = *state;
    const char *first = plan(t, 1), *second = plan(t, 2);

    applies(t, first);
    assert_false(last_is_applied(t));
    applies(t, second);
    assert_true(last_is_applied(t));
    resets(t, "third", 403);
    resets(t, "other", 200);
    assert_true(last_is_applied(t));
    applies(t, first);
    assert_false(last_is_applied(t));
    applies(t, second);
    resets(t, "default", 200);
    assert_false(last_is_applied(t));
}

static void writes_one_plan_at_a_time(void **state)
{
    struct test *t = *state;
    const char *hash = plan(t, 1);
    struct asked one = {0}, two = {0};

    assist_apply(t->a, hash, on_end, &one);
    assist_apply(t->a, hash, on_end, &two);
    fake_kube_turn(t->f, &one.ended, 1);
    fake_kube_turn(t->f, &two.ended, 1);
    assert_int_equal(one.status + two.status, 200 + 503);
    assert_string_equal(one.status == 503 ? one.detail : two.detail,
                        "another plan is being written; try again");
    json_decref(one.body);
    json_decref(two.body);
}

/* Those that wait may take minutes each. */
static void applies_a_plan_while_others_wait(void **state)
{
    struct test *t = *state;
    const char *hash = plan(t, 1);
    json_auto_t *json = request(3);
    struct asked waiting = {0}, refused = {0};

    for (int i = 0; i < PLAN_MAX_QUEUED; i++) { /* each has a document of its own, as requests have */
        json_auto_t *own = json_deep_copy(json);

        assist_plan(t->a, own, true, on_end, &waiting);
    }
    assist_plan(t->a, json, true, on_end, &refused);
    assert_int_equal(refused.status, 503);
    assert_string_equal(refused.detail, "8 plans are being made or wait; try again");
    assert_int_equal(waiting.ended, 0);
    applies(t, hash);
    fake_kube_turn(t->f, &waiting.ended, PLAN_MAX_QUEUED);
    assert_int_equal(waiting.status, 200);
    json_decref(waiting.body);
}

/* A hub that answers requests for its schemas with an error. */
static void plans_without_the_schema(void **state)
{
    struct test *t = *state;

    applies(t, plan(t, 1));
    applies(t, plan(t, 2));
}

static void ends_what_is_under_way(void **state)
{
    struct test *t = *state;
    json_auto_t *json = request(1);
    struct asked planned = {0}, written = {0};

    assist_reset(t->a, "default", on_end, &written);
    assist_plan(t->a, json, false, on_end, &planned);
    t->a = assist_free(t->a);
    assert_true(planned.ended == 1 && planned.status == 503);
    assert_true(written.ended == 1 && written.status == 503);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(knows_whether_the_last_plan_is_in_force),
        CASE(writes_one_plan_at_a_time),
        CASE(applies_a_plan_while_others_wait),
        cmocka_unit_test_setup_teardown(plans_without_the_schema, setup_without_schema, teardown),
        CASE(ends_what_is_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
