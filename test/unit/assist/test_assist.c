/* Plans from the request to what is written: several at once, the queue, and what is said of the last one. */
#include "controller/assist/assist.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"
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
    struct metrics *metrics;
    struct asked last;
};

struct test_call {
    struct call call;
    struct asked *asked;
};

static void on_end(struct call *c)
{
    struct test_call *own = CONTAINER_OF(c, struct test_call, call);
    struct asked *asked = own->asked;

    asked->ended++;
    asked->status = c->status;
    json_decref(asked->body);
    asked->body = c->answer;
    (void)snprintf(asked->detail, sizeof(asked->detail), "%s", cstr(kube_str(c->answer, "detail", NULL)));
    json_decref(c->input);
    free(own);
}

/* Takes the input. */
static void begins(struct test *t, void (*run)(void *a, struct call *c), json_t *input, struct asked *asked)
{
    struct test_call *own = calloc(1, sizeof(*own));

    own->asked = asked;
    own->call = (struct call){.input = input, .max_bytes = SIZE_MAX, .ended = on_end};
    run(t->a, &own->call);
}

static void ends(struct test *t, void (*run)(void *a, struct call *c), json_t *input)
{
    t->last.ended = 0;
    begins(t, run, input, &t->last);
    fake_kube_turn(t->f, &t->last.ended, 1);
}

#define OBJECT(namespace, name, labels, more)                                                         \
    "{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" name "\",\"resourceVersion\":\"1\"," \
                                                "\"labels\":{" labels "}}" more "}"

static void answers_with(struct test *t, const char *path, const char *items)
{
    fake_aside(t->f->server, (struct fake_answer){.only_path = path,
                                                  .body = fake_kube_text(t->f, "{\"items\":[%s]}", items)});
}

static int setup(void **state)
{
    static const char *const namespaces[] = {"default", "other"};
    struct test *t = calloc(1, sizeof(*t));
    struct assist_options o = {.write_namespaces = namespaces, .n_write_namespaces = 2, .deadline_ms = 5000};

    t->f = fake_kube_new();
    fake_default(t->f->server, (struct fake_answer){.body = "{}"});
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
    o.metrics = t->metrics = metrics_new(METRIC_OWNER_LOOP);
    assert_int_equal(assist_new(&t->a, &o), 0);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;

    t->a = assist_free(t->a);
    json_decref(t->last.body);
    (void)fake_kube_free(t->f);
    (void)metrics_free(t->metrics);
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
    const char *hash;

    ends(t, assist_plan, request(weight));
    assert_string_equal(t->last.detail, "");
    hash = kube_str(t->last.body, "planHash", NULL);
    assert_non_null(hash);
    assert_true(t->n_hashes < 4);
    (void)snprintf(t->hashes[t->n_hashes], sizeof(t->hashes[0]), "%s", hash);
    return t->hashes[t->n_hashes++];
}

static bool shows(struct test *t, const char *sample)
{
    BUF_AUTO(page, 1 << 20);

    metrics_render(t->metrics, &page);
    buf_putc(&page, '\0');
    assert_int_equal(buf_failed(&page), 0);
    return strstr(page.p, sample) != NULL;
}

/* A series that began with 1 would show no increase. */
static void counts_plans_and_what_they_leave_out_from_zero(void **state)
{
    struct test *t = *state;

    assert_true(
        shows(t, "dynamic_scoring_optimizer_plans_total{engine=\"relaxation\",status=\"Optimal\"} 0\n"));
    assert_true(shows(t, "dynamic_scoring_optimizer_left_out_total{reason=\"NegativeScore\"} 0\n"));
    (void)plan(t, -1);
    assert_true(
        shows(t, "dynamic_scoring_optimizer_plans_total{engine=\"relaxation\",status=\"Optimal\"} 1\n"));
    assert_true(shows(t, "dynamic_scoring_optimizer_left_out_total{reason=\"NegativeScore\"} 1\n"));
}

static void applies(struct test *t, const char *hash)
{
    ends(t, assist_apply, json_pack("{s:s}", "planHash", hash));
    assert_string_equal(t->last.detail, "");
    assert_int_equal(t->last.status, 200);
    assert_true(json_is_true(json_object_get(t->last.body, "applied")));
    assert_int_equal(json_array_size(kube_list(t->last.body, "written", "created", NULL)), 3);
}

static void writes_one_plan_at_a_time(void **state)
{
    struct test *t = *state;
    struct asked one = {0}, two = {0};

    begins(t, assist_reset, json_object(), &one);
    begins(t, assist_reset, json_object(), &two);
    assert_int_equal(two.status, 503);
    assert_string_equal(two.detail, "another plan is being written; try again");
    fake_kube_turn(t->f, &one.ended, 1);
    assert_int_equal(one.status, 200);
    json_decref(one.body);
    json_decref(two.body);
}

/* Those that wait may take minutes each. */
static void applies_a_plan_while_others_wait(void **state)
{
    struct test *t = *state;
    const char *hash = plan(t, 1);
    struct asked waiting = {0}, refused = {0};

    for (int i = 0; i < PLAN_MAX_QUEUED; i++)
        begins(t, assist_plan, request(3), &waiting);
    begins(t, assist_plan, request(3), &refused);
    assert_int_equal(refused.status, 503);
    assert_string_equal(refused.detail, "8 plans are being made or wait; try again");
    assert_int_equal(waiting.ended, 0);
    applies(t, hash);
    fake_kube_turn(t->f, &waiting.ended, PLAN_MAX_QUEUED);
    assert_int_equal(waiting.status, 200);
    json_decref(waiting.body);
    json_decref(refused.body);
}

static void ends_what_is_under_way(void **state)
{
    struct test *t = *state;
    struct asked planned = {0}, written = {0};

    begins(t, assist_reset, json_object(), &written);
    begins(t, assist_optimize, request(1), &planned);
    t->a = assist_free(t->a);
    assert_true(planned.ended == 1 && planned.status == 503);
    assert_true(written.ended == 1 && written.status == 503);
    json_decref(planned.body);
    json_decref(written.body);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counts_plans_and_what_they_leave_out_from_zero),
        CASE(writes_one_plan_at_a_time),
        CASE(applies_a_plan_while_others_wait),
        CASE(ends_what_is_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
