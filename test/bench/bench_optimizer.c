/* What the optimizer needs for a fleet, from a scripted API server in this process: to read the scores of
 * 1,000 clusters x 20 scores x 100 items, and to plan 10,000 workloads on 1,000 clusters. CPU time and
 * resident memory beside the server's answers. */
#include "controller/assist/assist.h"
#include "controller/assist/kind.h"
#include "controller/assist/reader.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "test/bench/measure.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CLUSTERS = 1000, SCORES = 20, ITEMS = 100, WORKLOADS = 10000, PAGE = 100, TEXT_BYTES = 64 << 20 };

#define SCORE_PATH  "/apis/cluster.open-cluster-management.io/v1alpha1/"
#define POLICY_PATH "/apis/policy.open-cluster-management.io/v1/namespaces/default/policies"
#define WORK_PATH   "/apis/work.open-cluster-management.io/"

struct bench {
    struct fake_kube *f;
    double start;
    size_t before;
    unsigned ended;
    struct snapshot *snapshot;
    struct call call;
};

static size_t resident_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t total, resident = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &total, &resident), 2);
    (void)fclose(f);
    return resident * 4;
}

static void PRINTF_LIKE(2, 3) put(struct buf *b, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    buf_vprintf(b, fmt, args);
    assert_int_equal(buf_failed(b), 0);
    va_end(args);
}

static void score_put(struct buf *b, size_t n, size_t cluster, size_t score)
{
    put(b,
        "{\"metadata\":{\"namespace\":\"cluster-%04zu\",\"name\":\"score-%02zu\",\"uid\":"
        "\"6f1b2a52-7c1c-4d4e-9d0b-%012zu\",\"resourceVersion\":\"%zu\",\"generation\":1,"
        "\"labels\":{\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},\"annotations\":{"
        "\"dynamic-scoring.open-cluster-management.io/score-name\":\"score_%02zu\"}},\"status\":{"
        "\"validUntil\":\"2100-01-01T00:00:00Z\",\"conditions\":[{\"type\":\"Scored\",\"status\":\"True\","
        "\"reason\":\"Scored\",\"message\":\"100 scores\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}],"
        "\"scores\":[",
        cluster, score, n, n + 1, score);
    for (size_t i = 0; i < ITEMS; i++)
        put(b, "%s{\"name\":\"app%zu;all\",\"value\":%zu}", i ? "," : "", i, (n * 7 + i * 13) % 101);
    put(b, "]}}");
}

static void cluster_put(struct buf *b, size_t n)
{
    put(b,
        "{\"metadata\":{\"name\":\"cluster-%04zu\",\"labels\":{\"cluster-name\":\"cluster-%04zu\"}},\"spec\":"
        "{}}",
        n, n);
}

static void policy_put(struct buf *b, size_t n)
{
    put(b,
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"policy-cluster-%04zu\",\"labels\":{"
        "\"resource-supply-kind\":\"gpu\",\"resource-supply-amount\":\"20\",\"resource-supply-device\":"
        "\"all\"}}}",
        n);
}

static void workload_put(struct buf *b, size_t n)
{
    put(b,
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"work-%05zu\",\"labels\":{\"app\":\"app%zu\","
        "\"resource-request-kind\":\"gpu\",\"resource-request-amount\":\"2\"}},\"spec\":{\"placementRefs\":[{"
        "\"name\":\"work-%05zu-placement\"}],\"manifestWorkTemplate\":{\"workload\":{\"manifests\":["
        "{\"data\":\"%0500d\"}]}}}}",
        n, n % ITEMS, n, 1);
}

/* Pages in the order in which they are asked for. */
static void push_pages(struct bench *b, const char *path, size_t n, void (*one)(struct buf *b, size_t n))
{
    for (size_t first = 0; first < n; first += PAGE) {
        BUF_AUTO(items, TEXT_BYTES);

        for (size_t i = first; i < n && i < first + PAGE; i++) {
            put(&items, "%s", i == first ? "" : ",");
            one(&items, i);
        }
        fake_push(b->f->server,
                  (struct fake_answer){.only_path = path,
                                       .body = fake_kube_text(
                                           b->f, "{\"metadata\":{\"continue\":\"%s%zu\"},\"items\":[%.*s]}",
                                           first + PAGE < n ? "after-" : "", first, (int)items.n, items.p)});
    }
}

static void all_scores_put(struct buf *b, size_t n)
{
    score_put(b, n, n / SCORES, n % SCORES);
}

static void first_score_put(struct buf *b, size_t n)
{
    score_put(b, n, n, 0);
}

static void begin(struct bench *b)
{
    (void)malloc_trim(0);
    b->ended = 0;
    b->before = resident_kb();
    b->start = measure_cpu_ms();
}

static void report(const struct bench *b, const char *what)
{
    (void)printf("%-60s %8.0f ms of CPU %6zu MB resident\n", what, measure_cpu_ms() - b->start,
                 (resident_kb() - b->before) / 1024);
}

/* The probe takes no page of a list. */
/* Until each kind has been listed once. */
static void wait_synced(struct bench *b)
{
    fake_kube_requests(b->f, fake_requests(b->f->server) + KINDS);
    while (fake_kube_calls(b->f))
        assert_int_equal(loop_turn(b->f->loop, 5), 0);
}

static void on_read(void *arg, struct snapshot *s, const struct api_error *failure)
{
    struct bench *b = arg;

    assert_null(failure);
    b->snapshot = s;
    b->ended++;
}

static void bench_read(struct bench *b)
{
    const struct reader_query q = {.kinds = KIND_BIT(KIND_SCORES)};
    struct snapshot_reader *reader;

    reader = reader_new(b->f->loop, b->f->kube);
    wait_synced(b);
    push_pages(b, SCORE_PATH, (size_t)CLUSTERS * SCORES, all_scores_put);
    begin(b);
    reader_read(reader, &q, on_read, b);
    fake_kube_turn(b->f, &b->ended, 1);
    report(b, "read all scores: 1,000 clusters x 20 scores x 100 items");
    b->snapshot = snapshot_free(b->snapshot);
    (void)reader_free(reader);
}

static json_t *request(void)
{
    BUF_AUTO(text, TEXT_BYTES);
    json_t *o;

    put(&text, "{\"preference\":{\"addonPlacementScore\":\"score-00\",\"scoreDimensionFormat\":\"${app};${"
               "device}\"},"
               "\"clusters\":[");
    for (size_t i = 0; i < CLUSTERS; i++)
        put(&text,
            "%s{\"name\":\"cluster-%04zu\",\"availablePolicies\":[{\"name\":\"policy-cluster-%04zu\"}]}",
            i ? "," : "", i, i);
    put(&text, "],\"targetWorkloads\":[");
    for (size_t i = 0; i < WORKLOADS; i++)
        put(&text, "%s{\"name\":\"work-%05zu\"}", i ? "," : "", i);
    put(&text, "]}");
    o = json_loadb(text.p, text.n, 0, NULL);
    assert_non_null(o);
    return o;
}

static void on_planned(struct call *c)
{
    struct bench *b = CONTAINER_OF(c, struct bench, call);

    (void)printf("status %u %s, %zu placed\n", c->status, cstr(kube_str(c->answer, "detail", NULL)),
                 json_array_size(json_object_get(c->answer, "placements")));
    json_decref(c->answer);
    b->ended++;
}

static void bench_plan(struct bench *b)
{
    struct metrics *metrics = metrics_new(METRIC_OWNER_LOOP);
    const struct assist_options o = {
        .loop = b->f->loop, .kube = b->f->kube, .metrics = metrics, .deadline_ms = 10000};
    struct assist *a;

    b->call = (struct call){.input = request(), .max_bytes = SIZE_MAX, .ended = on_planned};
    assert_int_equal(assist_new(&a, &o), 0);
    wait_synced(b);
    push_pages(b, "/apis/cluster.open-cluster-management.io/v1/managedclusters", CLUSTERS, cluster_put);
    push_pages(b, POLICY_PATH, CLUSTERS, policy_put);
    push_pages(b, WORK_PATH, WORKLOADS, workload_put);
    push_pages(b, SCORE_PATH, CLUSTERS, first_score_put);
    begin(b);
    assist_plan(a, &b->call);
    fake_kube_turn(b->f, &b->ended, 1);
    report(b, "plan 10,000 workloads on 1,000 clusters");
    (void)assist_free(a);
    (void)metrics_free(metrics);
    json_decref(b->call.input);
}

int main(void)
{
    struct bench b = {.f = fake_kube_new()};

    measure_init();
    fake_default(b.f->server, (struct fake_answer){.body = "{}"});
    bench_read(&b);
    bench_plan(&b);
    (void)fake_kube_free(b.f);
    return 0;
}
