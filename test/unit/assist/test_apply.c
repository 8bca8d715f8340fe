/* Writing a plan: checked first, in order, and what is written when the API server refuses in the middle. */
#include "controller/assist/apply.h"
#include "controller/assist/kind.h"
#include "controller/assist/reader.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_server.h"

#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"
#include "test/fakes/fake_kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char placement[] = "{\"kind\":\"Placement\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"a\":1}}";
static const char binding[] = "{\"kind\":\"PlacementBinding\",\"metadata\":{\"name\":\"b\"}}";
static const char listed[] =
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"u-%s\",\"labels\":{\"x\":\"y\"}}}";

struct run {
    struct fake_kube *f;
    struct apply *apply;
    struct snapshot_reader *reader;
    json_t *objects;
    struct metrics *metrics;
    unsigned ended, status;
    char detail[1024], body[2048];
};

static int setup(void **state)
{
    struct run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    run->f = fake_kube_new();
    fake_default(run->f->server, (struct fake_answer){.body = "{}"});
    run->objects = json_array();
    run->reader = reader_new(run->f->loop, run->f->kube);
    fake_kube_requests(run->f, KINDS); /* its probe */
    for (int i = 0; i < 400 && fake_kube_calls(run->f); i++)
        assert_int_equal(loop_turn(run->f->loop, 5), 0);
    run->metrics = metrics_new(METRIC_OWNER_LOOP);
    *state = run;
    return 0;
}

static int teardown(void **state)
{
    struct run *run = *state;

    (void)apply_free(run->apply);
    (void)reader_free(run->reader);
    json_decref(run->objects);
    (void)fake_kube_free(run->f);
    (void)metrics_free(run->metrics);
    free(run);
    return 0;
}

static void wants(struct run *run, const char *object)
{
    assert_int_equal(json_array_append_new(run->objects, json_loads(object, 0, NULL)), 0);
}

static void on_end(void *arg, const struct api_error *failure, json_t *written)
{
    struct run *run = arg;
    char *text = written ? json_dumps(written, JSON_COMPACT) : NULL;

    run->ended++;
    run->status = failure ? failure->status : 200;
    (void)snprintf(run->detail, sizeof(run->detail), "%s", failure ? failure->detail : "");
    (void)snprintf(run->body, sizeof(run->body), "%s", text ? text : "");
    free(text);
}

static void begin(struct run *run, bool is_reset)
{
    const struct apply_options o = {.loop = run->f->loop,
                                    .kube = run->f->kube,
                                    .metrics = run->metrics,
                                    .namespace = "ns",
                                    .objects = is_reset ? NULL : run->objects,
                                    .done = on_end,
                                    .arg = run};

    apply_start(&run->apply, &o, run->reader);
}

static void ends(struct run *run, bool is_reset, unsigned status, const char *body)
{
    begin(run, is_reset);
    fake_kube_turn(run->f, &run->ended, 1);
    assert_string_equal(run->body, body);
    assert_int_equal(run->status, status);
}

static void asked(struct run *run, size_t i, const char *expected)
{
    const char *got = fake_kube_asked(run->f, KINDS + i);

    if (strncmp(got, expected, strlen(expected)) != 0)
        fail_msg("%zu: %s, expected %s", i, got, expected);
}

static void only_for(struct run *run, const char *path, int status, const char *body)
{
    fake_push(run->f->server, (struct fake_answer){.status = status,
                                                   .headers = "Content-Type: application/json\r\n",
                                                   .body = body,
                                                   .only_path = path});
}

#define PLACEMENTS "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/ns/placements"
#define BINDINGS   "/apis/policy.open-cluster-management.io/v1/namespaces/ns/placementbindings"

static const char *list_of(struct run *run, const char *name)
{
    return fake_kube_text(run->f, "{\"items\":[%s]}", fake_kube_text(run->f, listed, name, name));
}

static void checks_all_and_then_writes_in_order(void **state)
{
    struct run *run = *state;

    wants(run, placement);
    wants(run, binding);
    ends(run, false, 200,
         "{\"created\":[\"Placement/p\",\"PlacementBinding/b\"],\"updated\":[],\"deleted\":[]}");
    assert_int_equal(fake_requests(run->f->server), KINDS + 6);
    asked(run, 4, "POST " PLACEMENTS "?fieldManager");
    asked(run, 5, "POST " BINDINGS "?fieldManager");
    assert_non_null(strstr(fake_kube_asked(run->f, KINDS + 2), "dryRun=All"));
    assert_null(strstr(fake_kube_asked(run->f, KINDS + 4), "dryRun=All"));
}

static void updates_in_place_and_deletes_what_is_old(void **state)
{
    struct run *run = *state;

    wants(run, placement);
    only_for(run, PLACEMENTS "?", 200, list_of(run, "p"));
    only_for(run, BINDINGS "?", 200, list_of(run, "old"));
    ends(run, false, 200,
         "{\"created\":[],\"updated\":[\"Placement/p\"],\"deleted\":[\"PlacementBinding/old\"]}");
    asked(run, 4, "PATCH " PLACEMENTS "/p?");
    asked(run, 5, "DELETE " BINDINGS "/old");
    assert_string_equal(
        fake_request(run->f->server, KINDS + 4)->body,
        "{\"metadata\":{\"uid\":\"u-p\",\"labels\":{\"dynamic-scoring-framework-mcp/generated\":\"true\"},"
        "\"annotations\":{\"dynamic-scoring.open-cluster-management.io/plan\":\"\"}},"
        "\"spec\":{\"a\":1}}");
    assert_non_null(strstr(fake_request(run->f->server, KINDS + 5)->body, "{\"uid\":\"u-old\"}"));
}

static void names_objects_that_no_plan_made(void **state)
{
    struct run *run = *state;

    wants(run, placement);
    fake_push(run->f->server, (struct fake_answer){.body = "{}"});
    fake_push(run->f->server, (struct fake_answer){.body = "{}"});
    fake_kube_status(run->f, 409, "AlreadyExists", "it exists");
    ends(run, false, 409, "{\"conflicts\":[\"Placement/p\"]}");
    assert_int_equal(fake_requests(run->f->server), KINDS + 3);
}

static void lists_what_is_written_when_a_write_fails(void **state)
{
    struct run *run = *state;

    wants(run, placement);
    wants(run, binding);
    for (unsigned i = 0; i < 5; i++)
        fake_push(run->f->server, (struct fake_answer){.body = "{}"});
    fake_kube_status(run->f, 503, "ServiceUnavailable", "not today");
    ends(run, false, 503,
         "{\"written\":{\"created\":[\"Placement/p\"],\"updated\":[],\"deleted\":[],\"unknown\":["
         "\"PlacementBinding/b\"]}}");
    assert_non_null(
        strstr(run->detail, "not today; 1 of 2 writes succeeded and 1 more may have: apply again"));
    assert_int_equal(fake_requests(run->f->server), KINDS + 6);
}

static void completes_what_an_earlier_attempt_wrote(void **state)
{
    struct run *run = *state;

    wants(run, placement);
    wants(run, binding);
    only_for(run, PLACEMENTS "?", 200, list_of(run, "p"));
    only_for(run, BINDINGS "?", 200, list_of(run, "b"));
    ends(run, false, 200, "{\"created\":[],\"updated\":[\"Placement/p\"],\"deleted\":[]}");
    assert_int_equal(fake_requests(run->f->server), KINDS + 4);
}

/* Also where the binding between them needs no write. */
static void writes_no_workload_before_the_placements_of_clusters(void **state)
{
    struct run *run = *state;

    wants(run, placement);
    wants(run, binding);
    wants(run, "{\"kind\":\"Placement\",\"metadata\":{\"name\":\"w\"},\"spec\":{}}");
    only_for(run, PLACEMENTS "?", 200, list_of(run, "p"));
    only_for(run, BINDINGS "?", 200, list_of(run, "b"));
    for (unsigned i = 0; i < 2; i++)
        fake_push(run->f->server, (struct fake_answer){.body = "{}"});
    fake_kube_status(run->f, 503, "ServiceUnavailable", "not today");
    ends(run, false, 503,
         "{\"written\":{\"created\":[],\"updated\":[],\"deleted\":[],\"unknown\":[\"Placement/p\"]}}");
    assert_int_equal(fake_requests(run->f->server), KINDS + 5);
}

static bool shows(const struct run *run, const char *sample)
{
    BUF_AUTO(page, 1 << 20);

    metrics_render(run->metrics, &page);
    assert_int_equal(buf_failed(&page), 0);
    return strstr(page.p, sample) != NULL;
}

static void counts_writes_and_checks_that_are_refused(void **state)
{
    struct run *run = *state;

    apply_count_from_zero(run->metrics);
    assert_true(
        shows(run, "dynamic_scoring_optimizer_writes_total{kind=\"Placement\",result=\"forbidden\"} 0\n"));
    wants(run, placement);
    for (unsigned i = 0; i < 2; i++)
        fake_push(run->f->server, (struct fake_answer){.body = "{}"});
    fake_kube_status(run->f, 403, "Forbidden", "no");
    ends(run, false, 403, "");
    assert_true(
        shows(run, "dynamic_scoring_optimizer_writes_total{kind=\"Placement\",result=\"forbidden\"} 1\n"));
    assert_true(shows(run, "dynamic_scoring_optimizer_writes_total{kind=\"Placement\",result=\"ok\"} 0\n"));
}

static void resets_bindings_before_placements(void **state)
{
    struct run *run = *state;

    only_for(run, PLACEMENTS "?", 200, list_of(run, "p"));
    only_for(run, BINDINGS "?", 200, list_of(run, "b"));
    fake_kube_status(run->f, 403, "Forbidden", "no");
    begin(run, true);
    fake_kube_turn(run->f, &run->ended, 1);
    assert_int_equal(run->status, 200);
    assert_true(strncmp(run->body, "{\"deleted\":[\"Placement/p\"],\"failed\":[\"PlacementBinding/b: ", 58) ==
                0);
    asked(run, 2, "DELETE " BINDINGS "/b");
    asked(run, 3, "DELETE " PLACEMENTS "/p");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(checks_all_and_then_writes_in_order),
        CASE(counts_writes_and_checks_that_are_refused),
        CASE(updates_in_place_and_deletes_what_is_old),
        CASE(names_objects_that_no_plan_made),
        CASE(lists_what_is_written_when_a_write_fails),
        CASE(completes_what_an_earlier_attempt_wrote),
        CASE(resets_bindings_before_placements),
        CASE(writes_no_workload_before_the_placements_of_clusters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
