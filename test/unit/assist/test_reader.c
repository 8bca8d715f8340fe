/* Lists on request: pages, ceilings, failures, and what is known between requests. */
#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/reader.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POLICIES "/apis/policy.open-cluster-management.io/v1/"
#define CLUSTERS "/apis/cluster.open-cluster-management.io/v1/managedclusters?"
#define SCORES   "/apis/cluster.open-cluster-management.io/v1alpha1/"

struct test {
    struct fake_kube *f;
    struct snapshot_reader *reader;
    struct snapshot *snapshot;
    struct api_error failure;
    unsigned ended;
};

static int setup(void **state)
{
    struct test *t = calloc(1, sizeof(*t));

    t->f = fake_kube_new();
    fake_default(t->f->server, (struct fake_answer){.body = "{}"});
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;

    (void)reader_free(t->reader);
    (void)snapshot_free(t->snapshot);
    (void)fake_kube_free(t->f);
    free(t);
    return 0;
}

static void begin(struct test *t)
{
    t->reader = reader_new(t->f->loop, t->f->kube);
    fake_kube_requests(t->f, KINDS); /* the probe */
    for (int i = 0; i < 400 && fake_kube_calls(t->f); i++)
        assert_int_equal(loop_turn(t->f->loop, 5), 0);
}

static void on_read(void *arg, struct snapshot *s, const struct api_error *failure)
{
    struct test *t = arg;

    t->ended++;
    t->snapshot = snapshot_free(t->snapshot);
    t->snapshot = s;
    t->failure = failure ? *failure : (struct api_error){.status = 200};
}

static void reads(struct test *t, const struct reader_query *q, unsigned status)
{
    t->ended = 0;
    reader_read(t->reader, q, on_read, t);
    fake_kube_turn(t->f, &t->ended, 1);
    assert_int_equal(t->failure.status, status);
    assert_true((t->snapshot != NULL) == (status == 200));
}

static void push(struct test *t, const char *path, const char *next, const char *items)
{
    fake_push(
        t->f->server,
        (struct fake_answer){.only_path = path,
                             .body = fake_kube_text(
                                 t->f, "{\"metadata\":{\"continue\":\"%s\"},\"items\":[%s]}", next, items)});
}

/* The last request was so. */
static void asked(struct test *t, const char *expected)
{
    const char *got = fake_kube_asked(t->f, fake_requests(t->f->server) - 1);

    if (strcmp(got, expected) != 0)
        fail_msg("%s, expected %s", got, expected);
}

static const struct reader_query policies = {.kinds = KIND_BIT(KIND_POLICIES), .namespace = "ns"};

static void reads_all_pages(void **state)
{
    struct test *t = *state;

    begin(t);
    push(t, POLICIES, "a b", fake_kube_object(t->f, "ns", "q", "1"));
    push(t, POLICIES, "", fake_kube_object(t->f, "ns", "p", "1"));
    reads(t, &policies, 200);
    asked(t, "GET " POLICIES "namespaces/ns/policies?labelSelector="
             "%21policy.open-cluster-management.io%2Froot-policy&limit=100&continue=a%20b");
    assert_int_equal(t->snapshot->lists[KIND_POLICIES].n, 2);
    assert_non_null(snapshot_get(t->snapshot, KIND_POLICIES, "ns", "p"));
    assert_int_equal(fake_requests(t->f->server), KINDS + 2);
}

static void asks_for_smaller_pages(void **state)
{
    struct test *t = *state;
    BUF_AUTO(large, 20 << 20);

    begin(t);
    buf_printf(&large, "{\"items\":[\"%0*d\"]}", 17 << 20, 1);
    buf_putc(&large, '\0');
    assert_int_equal(buf_failed(&large), 0);
    fake_push(t->f->server, (struct fake_answer){.only_path = POLICIES, .body = large.p});
    reads(t, &policies, 200);
    asked(t, "GET " POLICIES "namespaces/ns/policies?labelSelector="
             "%21policy.open-cluster-management.io%2Froot-policy&limit=50");
}

static void selects_on_the_server(void **state)
{
    struct test *t = *state;
    struct reader_query q = {.kinds = KIND_BIT(KIND_SCORES), .score = "s"};

    begin(t);
    reads(t, &q, 200);
    asked(t, "GET " SCORES "addonplacementscores?fieldSelector=metadata.name%3Ds&limit=100");
    q.cluster = "c1";
    reads(t, &q, 200);
    asked(t, "GET " SCORES "namespaces/c1/addonplacementscores?fieldSelector=metadata.name%3Ds&limit=100");
    q.score = "s,metadata.namespace=x";
    reads(t, &q, 422);
}

static void says_what_cannot_be_listed(void **state)
{
    struct test *t = *state;

    begin(t);
    assert_true(reader_is_synced(t->reader));
    fake_kube_status(t->f, 403, "Forbidden", "not you");
    reads(t, &policies, 403);
    assert_non_null(strstr(t->failure.detail, "Policies cannot be listed: "));
    assert_non_null(strstr(t->failure.detail, "not you"));
    assert_non_null(strstr(reader_error(t->reader, KIND_POLICIES), "not you"));
    reads(t, &policies, 200);
    assert_null(reader_error(t->reader, KIND_POLICIES));
}

static bool shows(struct test *t, const char *sample)
{
    struct metrics *m;
    BUF_AUTO(page, 1 << 20);
    bool found;

    m = metrics_new(METRIC_OWNER_LOOP);
    reader_set_metrics(t->reader, m);
    metrics_render(m, &page);
    buf_putc(&page, '\0');
    assert_int_equal(buf_failed(&page), 0);
    found = strstr(page.p, sample) != NULL;
    (void)metrics_free(m);
    return found;
}

static void knows_which_kinds_are_not_installed(void **state)
{
    struct test *t = *state;
    json_auto_t *notes = json_array();

    fake_aside(t->f->server,
               (struct fake_answer){.only_path = POLICIES, .status = 404, .body = "404 page not found\n"});
    fake_aside(t->f->server,
               (struct fake_answer){.only_path = CLUSTERS, .status = 404, .body = "404 page not found\n"});
    t->reader = reader_new(t->f->loop, t->f->kube);
    for (int i = 0; i < 4000 && !reader_is_synced(t->reader); i++)
        assert_int_equal(loop_turn(t->f->loop, 5), 0);
    assert_non_null(reader_error(t->reader, KIND_POLICIES));
    assert_false(shows(t, "kubernetes_up{resource=\"policies\""));
    assert_true(shows(t, "kubernetes_up{resource=\"managedclusters\",server=\"hub\"} 0\n"));
    assert_true(shows(t, "kubernetes_up{resource=\"placements\",server=\"hub\"} 1\n"));
    reads(t, &policies, 200);
    snapshot_note_missing_kinds(t->snapshot, notes);
    assert_string_equal(json_string_value(json_array_get(notes, 0)),
                        "Policies are not installed on the hub.");
}

static void reads_the_manifestwork(void **state)
{
    struct test *t = *state;
    const struct reader_query q = {.cluster = "c1", .kinds = KIND_BIT(KIND_WORK)};

    begin(t);
    fake_push(t->f->server, (struct fake_answer){.body = "{\"kind\":\"ManifestWork\"}"});
    reads(t, &q, 200);
    assert_string_equal(kube_str(t->snapshot->work, "kind", NULL), "ManifestWork");
    fake_kube_status(t->f, 403, "Forbidden", "not you");
    reads(t, &q, 200);
    assert_null(t->snapshot->work);
    assert_non_null(strstr(t->snapshot->work_error, "not you"));
}

static void limits_reads_and_ends_them(void **state)
{
    struct test *t = *state;

    begin(t);
    fake_aside(t->f->server, (struct fake_answer){.only_path = POLICIES, .mode = FAKE_HANG});
    for (unsigned i = 0; i < READER_MAX_READS; i++)
        reader_read(t->reader, &policies, on_read, t);
    assert_int_equal(t->ended, 0);
    reader_read(t->reader, &policies, on_read, t);
    assert_true(t->ended == 1 && t->failure.status == 503);
    t->reader = reader_free(t->reader);
    assert_true(t->ended == READER_MAX_READS + 1 && t->failure.status == 503);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reads_all_pages),
        CASE(asks_for_smaller_pages),
        CASE(selects_on_the_server),
        CASE(says_what_cannot_be_listed),
        CASE(knows_which_kinds_are_not_installed),
        CASE(reads_the_manifestwork),
        CASE(limits_reads_and_ends_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
