#include "test/oom.h"
#include "test/unit/hub/view_world.h"

#include <errno.h>

static json_t *read_back(struct world *w, size_t *ret_bytes)
{
    BUF_AUTO(b, OUTPUT_MAX);
    json_t *o = NULL;
    char why[256];

    render(w, hub_json, &b);
    *ret_bytes = b.n;
    if (kube_json_parse(&o, buf_str(&b), why) < 0)
        fail_msg("%s in:\n%s", why, b.p);
    assert_lacks(&b, "hunter2");
    return o;
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

static void json_says_everything_of_scorers(void **state)
{
    WORLD(w);
    struct hub_scorer *b = add_scorer(w, "b", "score \"b\"\xff"), *a = add_scorer(w, "a", "a");
    struct hub_cluster *c = add_cluster(w, "c1", 2);
    const json_t *list, *s;
    json_t *o;
    size_t n;

    (void)state;
    fail_probe(b, HEALTH_INACTIVE, "Timeout", "no answer");
    b->older = a;
    a->younger = b;
    a->spec.mode = SYNC_NONE;
    a->probe->status.config.asked = false;
    add_report(c, b, REPORT_STALE, "HTTP 502");
    b->tally = (struct tally){
        .selected = 5, .up_to_date = 4, .applied = 3, .scoring = 2, .failing = 1, .n_named = 1};
    b->tally.named[0].cluster = c;
    b->tally.named[0].cell = c->report.cells;
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
    is_str(json_array_get(kube_list(s, "failingClusters", NULL), 0), "name", "c1");
    is_str(json_array_get(kube_list(s, "failingClusters", NULL), 0), "state", "stale");
    is_str(json_array_get(kube_list(s, "failingClusters", NULL), 0), "error", "HTTP 502");
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
    is_bool(json_array_get(list, 0), "reported", true);
    is_int(json_array_get(list, 0), "summariesBytes", 902);
    is_bool(json_array_get(list, 1), "behind", true);
    is_int(json_array_get(list, 1), "failures", 2);
    is_str(json_array_get(list, 1), "error", "HTTP 403");
    json_decref(o);
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
}

static void json_is_whole_or_not_at_all(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "cpu", "cpu");

    (void)state;
    add_report(add_cluster(w, "c1", 1), s, REPORT_FAILING, "no");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(b, OUTPUT_MAX);
        int r = hub_json(&w->hub, &b);

        assert_true(r == 0 || (r == -ENOMEM && b.n == 0));
        assert_true(r == 0 || oom_happened());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_says_everything_of_scorers),
        cmocka_unit_test(json_says_everything_of_the_rest),
        cmocka_unit_test(json_of_nothing),
        cmocka_unit_test(all_clusters_of_a_large_fleet),
        cmocka_unit_test(json_is_whole_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
