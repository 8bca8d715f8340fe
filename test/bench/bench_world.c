/* What the optimizer needs for the scores of a fleet: 1,000 clusters x 20 scores x 100 items, from a scripted
 * API server in this process. Resident memory beside the server's answers, and how long the loop is busy with
 * a request. */
#include "controller/assist/operations/operations.h"
#include "controller/assist/state/world.h"
#include "exporter/base/buf.h"
#include "test/bench/measure.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/unit/assist/operations/asking.h"

#include <malloc.h>

enum { CLUSTERS = 1000, SCORES = 20, ITEMS = 100, PAGE = 100, LIMIT_MB = 150 };

static size_t resident_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t total, resident = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &total, &resident), 2);
    (void)fclose(f);
    return resident * 4;
}

static const char *page_of_scores(struct known *k, size_t first)
{
    BUF_AUTO(items, 64u << 20);
    int r = 0;

    for (size_t n = first; n < first + PAGE; n++) {
        r |= buf_printf(
            &items,
            "%s{\"metadata\":{\"namespace\":\"cluster-%04zu\",\"name\":\"score-%02zu\",\"uid\":"
            "\"6f1b2a52-7c1c-4d4e-9d0b-%012zu\",\"resourceVersion\":\"%zu\",\"generation\":1,"
            "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{"
            "\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},\"annotations\":{"
            "\"dynamic-scoring.open-cluster-management.io/score-name\":\"score_%02zu\"}},\"status\":{"
            "\"validUntil\":\"2100-01-01T00:00:00Z\",\"conditions\":[{\"type\":\"Scored\",\"status\":"
            "\"True\","
            "\"reason\":\"Scored\",\"message\":\"100 scores\",\"lastTransitionTime\":"
            "\"2026-01-01T00:00:00Z\"}],\"scores\":[",
            n == first ? "" : ",", n / SCORES, n % SCORES, n, n + 1, n % SCORES);
        for (size_t i = 0; i < ITEMS; i++)
            r |= buf_printf(&items, "%s{\"name\":\"node-%zu;namespace-%zu;pod-%zu\",\"value\":%zu}",
                            i ? "," : "", i % 9, i % 7, n * ITEMS + i, i);
        r |= buf_puts(&items, "]}}");
    }
    assert_int_equal(r, 0);
    return fake_kube_text(k->f,
                          "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"%s\"},\"items\":[%.*s]}",
                          first + PAGE < CLUSTERS * SCORES ? "more" : "", (int)items.n, items.p);
}

static void bench_ask(struct known *k, const char *what, const char *input, size_t max_bytes)
{
    double start = measure_cpu_ms();
    json_t *answer = ask(k, &scores_get, input, max_bytes, 200);

    (void)printf("%-44s %8.1f ms %10zu bytes %6zu MB resident\n", what, measure_cpu_ms() - start,
                 json_dumpb(answer, NULL, 0, JSON_COMPACT), resident_kb() / 1024);
    json_decref(answer);
    (void)malloc_trim(0);
}

int main(void)
{
    struct world_options with = {.synced = known_on_synced};
    size_t before, after;
    struct known k;
    double start;

    measure_init();
    known_init(&k);
    for (size_t n = 0; n < CLUSTERS * SCORES; n += PAGE)
        fake_push(k.f->server, (struct fake_answer){.only_path = known_path(&k, WORLD_SCORES),
                                                    .body = page_of_scores(&k, n)});
    known_push_watch(&k, WORLD_SCORES, fake_kube_bookmark(k.f, "10"));
    for (size_t i = 0; i < WORLD_SCORES; i++) {
        known_push_list(&k, (enum world_kind)i, "");
        known_push_watch(&k, (enum world_kind)i, fake_kube_bookmark(k.f, "10"));
    }
    (void)malloc_trim(0);
    before = resident_kb();
    with.loop = k.f->loop;
    with.kube = k.f->kube;
    with.arg = &k;
    start = measure_cpu_ms();
    assert_int_equal(world_new(&k.w, &with), 0);
    fake_kube_turn(k.f, &k.synced, 1);
    after = resident_kb();
    (void)printf("%d clusters x %d scores x %d items: %zu MB resident (limit %d), listed in %.0f ms of CPU\n",
                 CLUSTERS, SCORES, ITEMS, (after - before) / 1024, LIMIT_MB, measure_cpu_ms() - start);
    bench_ask(&k, "summary for an assistant, 4 KB", "{}", 4096);
    bench_ask(&k, "one cluster, REST", "{\"namespace\":\"cluster-0500\"}", SIZE_MAX);
    bench_ask(&k, "one score of all clusters, REST", "{\"name\":\"score-07\"}", SIZE_MAX);
    bench_ask(&k, "100 objects of all, REST", "{\"limit\":100}", SIZE_MAX);
    known_end(&k);
    return 0;
}
