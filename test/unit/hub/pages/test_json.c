#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/masks.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/state.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/map.h"
#include "exporter/score/state.h"
#include "exporter/ui/list.h"
#include "test/unit/hub/pages/view_world.h"

#include <errno.h>

static json_t *parse(const struct buf *b)
{
    json_t *o = NULL;
    char why[256];

    if (kube_json_parse(&o, buf_str(b), why) < 0)
        fail_msg("%s in:\n%s", why, b->p);
    assert_lacks(b, "hunter2");
    return o;
}

static json_t *read_list(struct world *w, int (*fn)(struct hub *, const struct list_query *, struct buf *),
                         const struct list_query *q)
{
    BUF_AUTO(b, OUTPUT_MAX);

    render(w, fn, q, &b);
    return parse(&b);
}

static json_t *read_one(struct world *w,
                        int (*fn)(struct hub *, const char *, const struct list_query *, struct buf *),
                        const char *name)
{
    BUF_AUTO(b, OUTPUT_MAX);

    render_one(w, fn, name, NULL, &b);
    return parse(&b);
}

static void is_str(const json_t *o, const char *key, const char *value)
{
    assert_string_equal(cstr(kube_str(o, key, NULL)), value);
}

static void is_int(const json_t *o, const char *key, int64_t value)
{
    int64_t n = -1;

    assert_true(kube_int(o, &n, key, NULL));
    assert_int_equal(n, value);
}

static void is_bool(const json_t *o, const char *key, bool value)
{
    bool b = !value;

    assert_true(kube_bool(o, &b, key, NULL));
    assert_int_equal(b, value);
}

static void is_null(const json_t *o, const char *key)
{
    assert_true(json_is_null(json_object_get(o, key)));
}

/* error: NULL for none. */
static void is_pair(const json_t *list, size_t i, const char *key, const char *name, const char *word,
                    const char *error)
{
    const json_t *pair = json_array_get(list, i);

    is_str(pair, key, name);
    is_str(pair, "state", word);
    if (error)
        is_str(pair, "error", error);
    else
        is_null(pair, "error");
}

static void has_every_member_of_scorers(void **state)
{
    WORLD(w);
    struct hub_scorer *b = add_scorer(w, "b", "score \"b\"\xff"), *a = add_scorer(w, "a", "a");
    struct hub_cluster *c = add_cluster(w, "c1", 2), *c2 = add_cluster(w, "c2", 2);
    struct hub_cluster *c3 = add_cluster(w, "c3", 2);
    const json_t *list, *s;
    json_t *o;

    (void)state;
    fail_probe(b, HEALTH_INACTIVE, "Timeout", "no answer");
    b->older = a;
    a->younger = b;
    a->spec.mode = SYNC_NONE;
    a->probe->status.config.asked = false;
    add_report(c, b, SCORER_STALE, "HTTP 502");
    b->tally = (struct tally){
        .selected = 5, .up_to_date = 4, .applied = 3, .scoring = 2, .failing = 1, .n_named = 3};
    b->tally.named[0].cluster = c;
    b->tally.named[0].cell = c->report.cells;
    b->tally.named[1].cluster = c2;
    put_behind(c2, 1000, 1, "HTTP 403");
    b->tally.named[2].cluster = c3;
    not_applied(c3, "denied");
    o = read_list(w, hub_json_status, NULL);
    list = kube_list(o, "scorers", NULL);
    assert_int_equal(json_array_size(list), 2);
    s = json_array_get(list, 0);
    is_str(s, "name", "a");
    is_str(s, "ready", "True");
    is_str(s, "health", "Active");
    is_str(s, "healthCheck", "Hub");
    is_str(s, "source", "spec");
    is_str(s, "sameScoreAs", "b");
    is_null(s, "configProbe");
    is_null(s, "specError");
    s = json_array_get(list, 1);
    is_str(s, "scoreName", "score \"b\"\xef\xbf\xbd");
    is_str(s, "ready", "False");
    is_str(s, "health", "Inactive");
    is_str(s, "source", "api");
    is_int(s, "intervalSeconds", 60);
    is_str(s, "nextProbeAt", "2026-11-21T06:23:19.123Z");
    is_bool(kube_map(s, "probe", NULL), "ok", false);
    is_str(kube_map(s, "probe", NULL), "reason", "Timeout");
    is_str(kube_map(s, "probe", NULL), "message", "no answer");
    is_int(kube_map(s, "probe", NULL), "failures", 4);
    is_bool(kube_map(s, "configProbe", NULL), "ok", true);
    is_int(kube_map(s, "clusters", NULL), "selected", 5);
    is_int(kube_map(s, "clusters", NULL), "failing", 1);
    list = kube_list(s, "failingClusters", NULL);
    is_pair(list, 0, "name", "c1", "failing", "HTTP 502");
    is_pair(list, 1, "name", "c2", "notWritten", "ManifestWork not written: HTTP 403");
    is_pair(list, 2, "name", "c3", "notApplied", "ManifestWork not applied: denied");
    assert_int_equal(json_array_size(kube_list(s, "conditions", NULL)), 2);
    json_decref(o);
}

static void has_every_member_of_the_hub_and_its_clusters(void **state)
{
    WORLD(w);
    struct hub_cluster *c;
    const json_t *list;
    json_t *o;

    (void)state;
    (void)add_scorer(w, "a", "a");
    put_behind(add_cluster(w, "b", 1), 1500, 2, "HTTP 403");
    c = add_cluster(w, "a", 1);
    c->report.exists = true;
    c->report.problem = strdup("hub: TLS");
    c->unavailable = strdup("no heartbeat");
    w->hub.leading = false;
    w->lease.holder = "other";
    w->watches[3].trouble = "refused";
    w->hub.totals.lag_s = 1.5;
    o = read_list(w, hub_json_status, NULL);
    is_str(o, "namespace", "open-cluster-management");
    is_bool(o, "leading", false);
    is_bool(o, "synced", true);
    is_str(o, "holder", "other");
    is_str(o, "startedAt", "2026-11-21T03:18:01.123Z");
    is_str(kube_map(o, "troubles", NULL), "ManifestWorks", "refused");
    is_null(kube_map(o, "troubles", NULL), "Lease");
    is_bool(kube_map(o, "config", NULL), "present", true);
    is_int(kube_map(o, "totals", NULL), "clusters", 2);
    is_int(kube_map(o, "totals", NULL), "degraded", 0);
    list = kube_list(o, "clusters", NULL);
    is_str(json_array_get(list, 0), "name", "a");
    is_str(json_array_get(list, 0), "agentTrouble", "hub: TLS");
    is_str(json_array_get(list, 0), "unavailable", "no heartbeat");
    is_null(json_array_get(list, 1), "unavailable");
    is_bool(json_array_get(list, 0), "reported", true);
    is_int(json_array_get(list, 0), "summariesBytes", 902);
    is_bool(json_array_get(list, 1), "behind", true);
    is_int(json_array_get(list, 1), "failures", 2);
    is_str(json_array_get(list, 1), "error", "HTTP 403");
    json_decref(o);
}

static void pairs_one_scorer_with_all_clusters(void **state)
{
    WORLD(w);
    struct hub_scorer *a = add_scorer(w, "a", "a"), *b = add_scorer(w, "b", "b");
    const json_t *list;
    json_t *o;

    (void)state;
    add_report(add_cluster(w, "d", 2), b, SCORER_OK, NULL);
    put_behind(add_cluster(w, "c", 2), 1, 1, "\"no\"\n<b>");
    (void)add_cluster(w, "b", 1);
    add_report(add_cluster(w, "a", 2), b, SCORER_FAILING, "bad \xff");
    add_cluster(w, "leaving", 2)->managed = false;
    add_report(map_get(&w->hub.clusters, "d"), a, SCORER_WAITING, NULL);
    o = read_one(w, hub_json_scorer, "b");
    is_str(o, "name", "b");
    is_bool(o, "leading", true);
    is_int(kube_map(o, "clusters", NULL), "selected", 0);
    list = kube_list(o, "pairs", NULL);
    assert_int_equal(json_array_size(list), 4);
    is_pair(list, 0, "cluster", "a", "failing", "bad \xef\xbf\xbd");
    is_pair(list, 1, "cluster", "b", "masked", NULL);
    is_pair(list, 2, "cluster", "c", "notWritten", "ManifestWork not written: \"no\"\n<b>");
    is_pair(list, 3, "cluster", "d", "ok", NULL);
    json_decref(o);
    w->hub.leading = false;
    w->by_age[1]->object = json_pack("{s:{}}", "status");
    o = read_one(w, hub_json_scorer, "b");
    is_bool(o, "leading", false);
    assert_int_equal(json_array_size(kube_list(o, "pairs", NULL)), 0);
    json_decref(o);
}

static void pairs_one_cluster_with_all_scorers(void **state)
{
    WORLD(w);
    struct hub_scorer *b = add_scorer(w, "b", "b"), *a = add_scorer(w, "a", "a");
    struct hub_cluster *c = add_cluster(w, "c", 2);
    const json_t *list;
    json_t *o;

    (void)state;
    (void)add_scorer(w, "masked", "masked");
    add_scorer(w, "out", "out")->entry = SIZE_MAX;
    add_report(c, a, SCORER_EMPTY, NULL);
    add_report(c, b, SCORER_OK, "AddOnPlacementScore: HTTP 403");
    c->report.cells[1].placement = true;
    o = read_one(w, hub_json_cluster, "c");
    is_str(o, "name", "c");
    is_bool(o, "leading", true);
    is_bool(o, "applied", true);
    list = kube_list(o, "pairs", NULL);
    assert_int_equal(json_array_size(list), 4);
    is_pair(list, 0, "scorer", "a", "ok", NULL);
    is_bool(json_array_get(list, 0), "scores", true);
    is_pair(list, 1, "scorer", "b", "notPlaced",
            "AddOnPlacementScore not written: AddOnPlacementScore: HTTP 403");
    is_bool(json_array_get(list, 1), "scores", false);
    is_pair(list, 2, "scorer", "masked", "masked", NULL);
    is_pair(list, 3, "scorer", "out", "notSent", NULL);
    json_decref(o);
    c->managed = false;
    o = read_one(w, hub_json_cluster, "c");
    assert_int_equal(json_array_size(kube_list(o, "pairs", NULL)), 0);
    json_decref(o);
}

static void knows_no_other_names(void **state)
{
    const struct list_query all = list_query_all();
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    (void)add_scorer(w, "a", "a");
    (void)add_cluster(w, "c", 1);
    assert_int_equal(hub_json_scorer(&w->hub, "c", &all, &b), -ENOENT);
    assert_int_equal(hub_json_cluster(&w->hub, "a", &all, &b), -ENOENT);
    assert_int_equal(hub_json_cluster(&w->hub, "", &all, &b), -ENOENT);
    assert_int_equal(b.n, 0);
}

static void is_complete_without_any_object(void **state)
{
    WORLD(w);
    json_t *o;

    (void)state;
    json_decref(w->hub.config.object);
    w->hub.config.object = NULL;
    w->hub.lease = NULL;
    w->hub.plan = NULL;
    o = read_list(w, hub_json_status, NULL);
    assert_int_equal(json_array_size(kube_list(o, "scorers", NULL)), 0);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 0);
    is_bool(kube_map(o, "config", NULL), "wanted", false);
    json_decref(o);
}

static void says_what_masks_match(void **state)
{
    struct mask list[] = {{"c1", "*"}, {"c9", "*"}};
    struct hub_mask_counts counts[] = {{1, 2}, {0, 2}};
    WORLD(w);
    const json_t *masks;
    json_t *o;

    (void)state;
    w->hub.config.masks = (struct masks){.list = list, .n = ARRAY_SIZE(list)};
    o = read_list(w, hub_json_status, NULL);
    masks = kube_list(kube_map(o, "config", NULL), "firstMasks", NULL);
    assert_null(kube_get(json_array_get(masks, 0), "clusters", NULL)); /* not counted yet */
    json_decref(o);
    w->hub.mask_counts = counts;
    o = read_list(w, hub_json_status, NULL);
    masks = kube_list(kube_map(o, "config", NULL), "firstMasks", NULL);
    is_int(json_array_get(masks, 0), "clusters", 1);
    is_int(json_array_get(masks, 0), "scores", 2);
    is_null(json_array_get(masks, 0), "warning");
    is_str(json_array_get(masks, 1), "warning", "no cluster matches");
    json_decref(o);
    w->hub.config.masks = (struct masks){0};
    w->hub.mask_counts = NULL;
}

static const json_t *item(const json_t *o, const char *list, size_t i)
{
    return json_array_get(kube_list(o, list, NULL), i);
}

static void gives_a_large_fleet_in_parts(void **state)
{
    struct list_query few = {.limit = 500, .filter = "", .state = ""};
    const struct list_query failing = {.limit = 0x100, .filter = "CLUSTER-0", .state = "notWritten"};
    const struct list_query worst = {.limit = 2, .filter = "", .state = "", .worst_first = true};
    WORLD(w);
    char name[32];
    json_t *o;

    (void)state;
    (void)add_scorer(w, "a", "a");
    for (size_t i = 0; i < 10000; i++) {
        struct hub_cluster *c;

        (void)snprintf(name, sizeof(name), "cluster-%05zu", i);
        c = add_cluster(w, name, 1);
        if (i % 1000 == 5)
            put_behind(c, 1000, 1, "no");
    }
    o = read_list(w, hub_json_status, &few);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 500);
    is_int(kube_map(o, "metadata", "clusters", NULL), "remainingItemCount", 9500);
    is_int(kube_map(o, "metadata", "scorers", NULL), "remainingItemCount", 0);
    json_decref(o);
    few.after = (char *)"cluster-09998x";
    o = read_list(w, hub_json_clusters, &few);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 1);
    is_str(item(o, "clusters", 0), "name", "cluster-09999");
    is_null(kube_map(o, "metadata", NULL), "continue");
    json_decref(o);
    o = read_list(w, hub_json_clusters, &failing);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 10);
    is_str(item(o, "clusters", 9), "name", "cluster-09005");
    json_decref(o);
    o = read_list(w, hub_json_clusters, &worst);
    is_str(item(o, "clusters", 0), "name", "cluster-00005");
    is_str(item(o, "clusters", 0), "state", "notWritten");
    json_decref(o);
    o = read_list(w, hub_json_status, NULL);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 10000);
    json_decref(o);
    o = read_one(w, hub_json_scorer, "a");
    assert_int_equal(json_array_size(kube_list(o, "pairs", NULL)), 10000);
    is_int(item(o, "states", 0), "count", 10);
    is_str(item(o, "states", 0), "state", "notWritten");
    is_int(item(o, "states", 1), "count", 9990);
    json_decref(o);
}

static void gives_pairs_as_places_in_a_legend(void **state)
{
    static const char *const states[2][2] = {{"failing", "no room"}, {"behind", "masked"}};
    WORLD(w);
    struct hub_scorer *b = add_scorer(w, "b", "b");
    struct hub_cluster *c;
    const json_t *row;
    json_t *o;

    (void)state;
    (void)add_scorer(w, "d", "d");
    (void)add_scorer(w, "e", "e"); /* entry 2, the one without room */
    c = add_cluster(w, "one", 1);
    ((struct plan_group *)(uintptr_t)c->group)->left_out = 1;
    add_report(c, b, SCORER_FAILING, "HTTP \"502\"");
    put_behind(add_cluster(w, "two", 1), 1, 0, "");
    add_cluster(w, "unmanaged", 1)->managed = false;
    o = read_list(w, hub_json_pairs, NULL);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 2);
    assert_string_equal(json_string_value(item(o, "scorers", 2)), "e");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            row = item(o, "clusters", i);
            is_str(item(o, "legend", (size_t)json_integer_value(item(row, "states", 2 * k))), "label",
                   states[i][k]);
        }
    is_str(kube_map(item(o, "clusters", 0), "errors", NULL), "b", "HTTP \"502\"");
    assert_int_equal(json_object_size(kube_map(item(o, "clusters", 1), "errors", NULL)), 0);
    json_decref(o);
}

static void names_the_first_failing_scorers_of_a_cluster(void **state)
{
    WORLD(w);
    struct hub_scorer *s[5];
    struct hub_cluster *c;
    json_t *o;
    char name[8];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
        (void)snprintf(name, sizeof(name), "s%zu", i);
        s[i] = add_scorer(w, name, name);
    }
    c = add_cluster(w, "c", 5);
    for (size_t i = 1; i < ARRAY_SIZE(s); i++)
        add_report(c, s[i], SCORER_FAILING, "502");
    o = read_list(w, hub_json_clusters, NULL);
    is_int(item(o, "clusters", 0), "failing", 4);
    is_pair(kube_list(item(o, "clusters", 0), "failingScorers", NULL), 0, "scorer", "s1", "failing", "502");
    assert_int_equal(json_array_size(kube_list(item(o, "clusters", 0), "failingScorers", NULL)), 3);
    json_decref(o);
}

static void shows_the_summary_without_credentials(void **state)
{
    WORLD(w);
    const json_t *summary;
    json_t *o;

    (void)state;
    (void)add_scorer(w, "a", "a");
    o = read_one(w, hub_json_scorer, "a");
    summary = kube_map(o, "summary", NULL);
    is_str(summary, "sourceEndpoint", "http://prometheus.monitoring:9090/api/v1/query_range");
    is_str(summary, "sourceQuery", "sum by (node) (rate(node_cpu_seconds_total{mode!=\"idle\"}[5m]))");
    is_int(summary, "scoringInterval", 60);
    json_decref(o);
    buf_truncate(&w->by_age[0]->effective.text, 0);
    o = read_one(w, hub_json_scorer, "a");
    is_null(o, "summary");
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_every_member_of_scorers),
        cmocka_unit_test(has_every_member_of_the_hub_and_its_clusters),
        cmocka_unit_test(pairs_one_scorer_with_all_clusters),
        cmocka_unit_test(pairs_one_cluster_with_all_scorers),
        cmocka_unit_test(knows_no_other_names),
        cmocka_unit_test(is_complete_without_any_object),
        cmocka_unit_test(says_what_masks_match),
        cmocka_unit_test(gives_a_large_fleet_in_parts),
        cmocka_unit_test(gives_pairs_as_places_in_a_legend),
        cmocka_unit_test(names_the_first_failing_scorers_of_a_cluster),
        cmocka_unit_test(shows_the_summary_without_credentials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
