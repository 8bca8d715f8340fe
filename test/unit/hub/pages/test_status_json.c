#include "test/oom.h"
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

static json_t *read_back(struct world *w, size_t *ret_bytes)
{
    BUF_AUTO(b, OUTPUT_MAX);

    render(w, hub_json, &b);
    *ret_bytes = b.n;
    return parse(&b);
}

static json_t *read_one(struct world *w, int (*fn)(struct hub *, const char *, struct buf *),
                        const char *name)
{
    BUF_AUTO(b, OUTPUT_MAX);

    render_one(w, fn, name, &b);
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

static void json_says_everything_of_scorers(void **state)
{
    WORLD(w);
    struct hub_scorer *b = add_scorer(w, "b", "score \"b\"\xff"), *a = add_scorer(w, "a", "a");
    struct hub_cluster *c = add_cluster(w, "c1", 2), *c2 = add_cluster(w, "c2", 2);
    struct hub_cluster *c3 = add_cluster(w, "c3", 2);
    const json_t *list, *s;
    json_t *o;
    size_t n;

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
    o = read_back(w, &n);
    list = kube_list(o, "scorers", NULL);
    assert_int_equal(json_array_size(list), 2);
    s = json_array_get(list, 0);
    is_str(s, "name", "a");
    is_str(s, "ready", "True");
    is_str(s, "health", "Active");
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
    is_pair(list, 0, "name", "c1", "stale", "HTTP 502");
    is_pair(list, 1, "name", "c2", "notWritten", "HTTP 403");
    is_pair(list, 2, "name", "c3", "notApplied", "denied");
    assert_int_equal(json_array_size(kube_list(s, "conditions", NULL)), 2);
    json_decref(o);
}

static void json_says_everything_of_the_rest(void **state)
{
    WORLD(w);
    struct hub_cluster *c;
    const json_t *list;
    json_t *o;
    size_t n;

    (void)state;
    (void)add_scorer(w, "a", "a");
    put_behind(add_cluster(w, "b", 1), 1500, 2, "HTTP 403");
    c = add_cluster(w, "a", 1);
    c->report.there = true;
    c->report.trouble = strdup("hub: TLS");
    c->unavailable = strdup("no heartbeat");
    w->hub.leading = false;
    w->lease.holder = "other";
    w->watches[3].trouble = "refused";
    w->hub.totals.lag_s = 1.5;
    o = read_back(w, &n);
    is_str(o, "namespace", "open-cluster-management");
    is_bool(o, "leading", false);
    is_bool(o, "synced", true);
    is_str(o, "holder", "other");
    is_str(o, "startedAt", "2026-11-21T03:18:01.123Z");
    is_str(kube_map(o, "troubles", NULL), "ManifestWorks", "refused");
    is_null(kube_map(o, "troubles", NULL), "Lease");
    is_bool(kube_map(o, "config", NULL), "present", true);
    is_int(kube_map(o, "totals", NULL), "clusters", 2);
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

static void one_scorer_has_all_its_clusters(void **state)
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
    is_pair(list, 2, "cluster", "c", "notWritten", "\"no\"\n<b>");
    is_pair(list, 3, "cluster", "d", "ok", NULL);
    json_decref(o);
    w->hub.leading = false;
    w->by_age[1]->object = json_pack("{s:{}}", "status");
    o = read_one(w, hub_json_scorer, "b");
    is_bool(o, "leading", false);
    assert_int_equal(json_array_size(kube_list(o, "pairs", NULL)), 0);
    json_decref(o);
}

static void one_cluster_has_all_its_scorers(void **state)
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
    is_pair(list, 1, "scorer", "b", "notPlaced", "AddOnPlacementScore: HTTP 403");
    is_bool(json_array_get(list, 1), "scores", false);
    is_pair(list, 2, "scorer", "masked", "masked", NULL);
    is_pair(list, 3, "scorer", "out", "notSent", NULL);
    json_decref(o);
    c->managed = false;
    o = read_one(w, hub_json_cluster, "c");
    assert_int_equal(json_array_size(kube_list(o, "pairs", NULL)), 0);
    json_decref(o);
}

static void the_members_keep_their_order(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    (void)add_scorer(w, "a", "a");
    (void)add_cluster(w, "c", 1);
    render_one(w, hub_json_scorer, "a", &b);
    assert_has(&b, "{\"leading\":true,\"name\":\"a\",\"scoreName\":\"a\",\"ready\":");
    assert_has(&b, "\"pairs\":[{\"cluster\":\"c\",\"state\":\"silent\",\"scores\":false,\"error\":null}]}\n");
    render_one(w, hub_json_cluster, "c", &b);
    assert_has(&b, "{\"leading\":true,\"name\":\"c\",\"managed\":true,\"behind\":false,");
    assert_has(&b, "\"pairs\":[{\"scorer\":\"a\",\"state\":\"silent\",\"scores\":false,\"error\":null}]}\n");
}

static void none_of_that_name(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    (void)add_scorer(w, "a", "a");
    (void)add_cluster(w, "c", 1);
    assert_int_equal(hub_json_scorer(&w->hub, "c", &b), -ENOENT);
    assert_int_equal(hub_json_cluster(&w->hub, "a", &b), -ENOENT);
    assert_int_equal(hub_json_cluster(&w->hub, "", &b), -ENOENT);
    assert_int_equal(b.n, 0);
}

static void json_of_nothing(void **state)
{
    WORLD(w);
    json_t *o;
    size_t n;

    (void)state;
    json_decref(w->hub.config.object);
    w->hub.config.object = NULL;
    w->hub.lease = NULL;
    w->hub.plan = NULL;
    o = read_back(w, &n);
    assert_int_equal(json_array_size(kube_list(o, "scorers", NULL)), 0);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 0);
    is_bool(kube_map(o, "config", NULL), "wanted", false);
    json_decref(o);
}

static void all_clusters_of_a_large_fleet(void **state)
{
    WORLD(w);
    char name[32];
    json_t *o;
    size_t n;

    (void)state;
    (void)add_scorer(w, "a", "a");
    for (size_t i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), "cluster-%05zu", i);
        (void)add_cluster(w, name, 1);
    }
    o = read_back(w, &n);
    assert_int_equal(json_array_size(kube_list(o, "clusters", NULL)), 10000);
    is_str(json_array_get(kube_list(o, "clusters", NULL), 9999), "name", "cluster-09999");
    assert_true(n < 4 << 20);
    json_decref(o);
    o = read_one(w, hub_json_scorer, "a");
    assert_int_equal(json_array_size(kube_list(o, "pairs", NULL)), 10000);
    json_decref(o);
}

static void json_is_whole_or_not_at_all(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "cpu", "cpu");

    (void)state;
    add_report(add_cluster(w, "c1", 1), s, SCORER_FAILING, "no");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(b, OUTPUT_MAX);
        int r = hub_json(&w->hub, &b);

        assert_true(r == 0 || (r == -ENOMEM && b.n == 0));
        assert_true(r == 0 || oom_happened());
    }
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(b, OUTPUT_MAX);
        int r = hub_json_scorer(&w->hub, "cpu", &b) ?: hub_json_cluster(&w->hub, "c1", &b);

        assert_true(r == 0 || (r == -ENOMEM && oom_happened()));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_says_everything_of_scorers),
        cmocka_unit_test(json_says_everything_of_the_rest),
        cmocka_unit_test(one_scorer_has_all_its_clusters),
        cmocka_unit_test(one_cluster_has_all_its_scorers),
        cmocka_unit_test(the_members_keep_their_order),
        cmocka_unit_test(none_of_that_name),
        cmocka_unit_test(json_of_nothing),
        cmocka_unit_test(all_clusters_of_a_large_fleet),
        cmocka_unit_test(json_is_whole_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
