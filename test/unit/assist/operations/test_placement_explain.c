#include "controller/assist/operations/operations.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"
#include "test/unit/assist/operations/asking.h"

#define SETS                                                                                        \
    "{\"metadata\":{\"name\":\"global\",\"resourceVersion\":\"1\"},\"spec\":{\"clusterSelector\":{" \
    "\"selectorType\":"                                                                             \
    "\"LabelSelector\",\"labelSelector\":{}}}}"
#define BINDING "{\"metadata\":{\"namespace\":\"default\",\"name\":\"global\",\"resourceVersion\":\"1\"}}"
#define CLUSTER(name, labels, more) \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"1\",\"labels\":{" labels "}}" more "}"
#define PLACEMENT(spec)                                                                             \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p\",\"resourceVersion\":\"1\"},\"spec\":{" \
    "\"numberOfClusters\":1" spec "}}"
#define PREDICATE(selector) ",\"predicates\":[{\"requiredClusterSelector\":{" selector "}}]"
#define EXACT                                                                                            \
    ",\"prioritizerPolicy\":{\"mode\":\"Exact\",\"configurations\":[{\"weight\":2,\"scoreCoordinate\":{" \
    "\"type\":\"AddOn\","                                                                                \
    "\"addOn\":{\"resourceName\":\"perf\",\"scoreName\":\"i\"}}}]}"
#define SCORE(cluster, value, until)                                              \
    "{\"metadata\":{\"namespace\":\"" cluster                                     \
    "\",\"name\":\"perf\",\"resourceVersion\":\"1\"},\"status\":{\"validUntil\":" \
    "\"" until "\",\"scores\":[{\"name\":\"h\",\"value\":1},{\"name\":\"i\",\"value\":" value "}]}}"
#define DECISION(namespace, placement, clusters)                                              \
    "{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" placement                    \
                                                "-1\",\"resourceVersion\":\"1\",\"labels\":{" \
                                                "\"cluster.open-cluster-management.io/"       \
                                                "placement\":\"" placement                    \
                                                "\"}},\"status\":{\"decisions\":[" clusters "]}}"
#define DECIDED(cluster) "{\"clusterName\":\"" cluster "\"}"
#define ASK              "{\"namespace\":\"default\",\"name\":\"p\"}"
#define LATER            "2026-11-21T06:24:00Z"
#define EARLIER          "2026-11-21T06:23:00Z"

static void begin(struct known *k, const char *clusters, const char *placement)
{
    k->items[WORLD_SETS] = SETS;
    k->items[WORLD_SET_BINDINGS] = BINDING;
    k->items[WORLD_CLUSTERS] = clusters;
    k->items[WORLD_PLACEMENTS] = placement;
    known_begin(k);
}

static void ranks_by_scores_then_names(void **state)
{
    struct known *k = *state;

    k->items[WORLD_SCORES] =
        SCORE("c1", "-3", LATER) "," SCORE("c2", "50", EARLIER) "," SCORE("c3", "9", LATER);
    k->items[WORLD_DECISIONS] = DECISION("default", "p", DECIDED("c3"));
    begin(k,
          CLUSTER("c4", "", "") "," CLUSTER("c1", "", "") "," CLUSTER("c2", "", "") "," CLUSTER("c3", "", ""),
          PLACEMENT(EXACT));
    expect_answer(
        k, &placement_explain, ASK,
        "{\"namespace\":\"default\",\"name\":\"p\",\"numberOfClusters\":1,\"agrees\":true,\"prioritizers\":[{"
        "\"name\":"
        "\"AddOn/perf/i\",\"weight\":2}],\"decisions\":[\"c3\"],\"leftOut\":[],\"leftOutTotal\":0,\"items\":["
        "{\"cluster\":\"c3\",\"selected\":true,\"total\":18,\"values\":[{\"value\":9,\"validUntil\":\"" LATER
        "\"}]},"
        "{\"cluster\":\"c2\",\"selected\":false,\"total\":0,\"values\":[{\"value\":0,\"countsAsZero\":"
        "\"expired\","
        "\"validUntil\":\"" EARLIER "\"}]},"
        "{\"cluster\":\"c4\",\"selected\":false,\"total\":0,\"values\":[{\"value\":0,\"countsAsZero\":"
        "\"missing\"}]},"
        "{\"cluster\":\"c1\",\"selected\":false,\"total\":-6,\"values\":[{\"value\":-3,\"validUntil\":"
        "\"" LATER "\"}]}],"
        "\"total\":4,\"shown\":4}");
}

static void shows_the_preferred_ones_of_a_long_order(void **state)
{
    struct known *k = *state;
    json_t *answer;

    begin(k, CLUSTER("c1", "", "") "," CLUSTER("c2", "", ""), PLACEMENT(""));
    answer =
        ask(k, &placement_explain, "{\"namespace\":\"default\",\"name\":\"p\",\"limit\":1}", SIZE_MAX, 200);
    assert_int_equal(json_integer_value(json_object_get(answer, "next")), 1);
    json_decref(answer);
}

#define CPU(name, allocatable, capacity)                                                                   \
    CLUSTER(name, "",                                                                                      \
            ",\"status\":{\"allocatable\":{\"cpu\":\"" allocatable "\"},\"capacity\":{\"cpu\":\"" capacity \
            "\"}}")

/* Two other Placements selected c1, one selected c2. */
static void knows_the_built_in_prioritizers(void **state)
{
    struct known *k = *state;
    json_t *answer;
    const json_t *items;

    k->items[WORLD_DECISIONS] = DECISION("default", "p", DECIDED("c2")) "," DECISION(
        "default", "q", DECIDED("c1")) "," DECISION("other", "p", DECIDED("c1") "," DECIDED("c2"));
    begin(k, CPU("c1", "4", "4") "," CPU("c2", "2500m", "8") "," CPU("c3", "2", "8"),
          PLACEMENT(",\"prioritizerPolicy\":{\"configurations\":[{\"weight\":1,\"scoreCoordinate\":{\"type\":"
                    "\"BuiltIn\","
                    "\"builtIn\":\"ResourceAllocatableCPU\"}},{\"weight\":3,\"scoreCoordinate\":{\"builtIn\":"
                    "\"Steady\"}}]}"));
    answer = ask(k, &placement_explain, ASK, SIZE_MAX, 200);
    items = json_object_get(answer, "items");
    /* c2: Balance 0, Steady 3 * 100, CPU (0.25 - 0.5) * 200; c3: 100 - 100; c1: -100 + 100. */
    assert_string_equal(kube_str(json_array_get(items, 0), "cluster", NULL), "c2");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(items, 0), "total")), 250);
    assert_string_equal(kube_str(json_array_get(items, 1), "cluster", NULL), "c1");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(items, 1), "total")), 0);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(items, 2), "total")), 0);
    assert_true(json_is_true(json_object_get(answer, "agrees")));
    json_decref(answer);
}

static void says_why_clusters_are_left_out(void **state)
{
    static const struct {
        const char *spec, *why; /* why of c1; NULL: it matches */
    } cases[] = {
        {PREDICATE("\"labelSelector\":{\"matchLabels\":{\"cluster-name\":\"c1\"}}"), NULL},
        {PREDICATE("\"labelSelector\":{\"matchLabels\":{\"cluster-name\":\"c2\"}}"),
         "label cluster-name is \"c1\", not \"c2\""},
        {PREDICATE("\"labelSelector\":{\"matchLabels\":{\"zone\":\"x\"}}"),
         "label zone is absent, not \"x\""},
        {PREDICATE("\"labelSelector\":{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"NotIn\","
                   "\"values\":[\"x\"]}]}"),
         NULL},
        {PREDICATE("\"labelSelector\":{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"Exists\"}]}"),
         "label zone is absent, which fails Exists "},
        {PREDICATE("\"labelSelector\":{\"matchExpressions\":[{\"key\":\"cluster-name\",\"operator\":"
                   "\"DoesNotExist\"}]}"),
         "label cluster-name is \"c1\", which fails DoesNotExist "},
        {PREDICATE("\"claimSelector\":{\"matchExpressions\":[{\"key\":\"policy-watcher-claim\",\"operator\":"
                   "\"In\",\"values\":[\"compliant\"]}]}"),
         "claim policy-watcher-claim is \"empty\", which fails In compliant"},
        {PREDICATE("\"celSelector\":{\"celExpressions\":[\"managedCluster.metadata.name == \\\"c1\\\"\"]}"),
         NULL},
        {PREDICATE("\"celSelector\":{\"celExpressions\":[\"managedCluster.metadata.name == 'c2'\"]}"),
         "it fails the CEL expression managedCluster.metadata.name == 'c2'"},
        {",\"clusterSets\":[\"other\"]",
         "no cluster set is bound to namespace default: a ManagedClusterSetBinding is missing"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct known k;
        json_t *answer;

        (void)state;
        known_init(&k);
        begin(
            &k,
            CLUSTER(
                "c1", "\"cluster-name\":\"c1\"",
                ",\"status\":{\"clusterClaims\":[{\"name\":\"policy-watcher-claim\",\"value\":\"empty\"}]}"),
            fake_kube_text(k.f, PLACEMENT("%s"), cases[i].spec));
        answer = ask(&k, &placement_explain, ASK, SIZE_MAX, 200);
        assert_int_equal(json_array_size(json_object_get(answer, "items")), !cases[i].why);
        if (cases[i].why)
            assert_string_equal(kube_str(json_array_get(json_object_get(answer, "leftOut"), 0), "why", NULL),
                                cases[i].why);
        json_decref(answer);
        known_end(&k);
    }
}

static void judges_taints_as_placement_does(void **state)
{
    static const struct {
        const char *taint, *tolerations;
        bool matches;
    } cases[] = {
        {"\"key\":\"k\",\"effect\":\"NoSelect\"", "", false},
        {"\"key\":\"k\",\"effect\":\"PreferNoSelect\"", "", true},
        {"\"key\":\"k\",\"effect\":\"NoSelectIfNew\"", "", false},
        {"\"key\":\"k\",\"effect\":\"NoSelect\"", "{\"key\":\"k\",\"operator\":\"Exists\"}", true},
        {"\"key\":\"k\",\"effect\":\"NoSelect\"", "{\"key\":\"l\",\"operator\":\"Exists\"}", false},
        {"\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSelect\"", "{\"key\":\"k\",\"value\":\"v\"}", true},
        {"\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSelect\"", "{\"key\":\"k\",\"value\":\"w\"}", false},
        {"\"key\":\"k\",\"effect\":\"NoSelect\"", "{\"operator\":\"Exists\",\"effect\":\"NoSelectIfNew\"}",
         false},
        {"\"key\":\"k\",\"effect\":\"NoSelect\",\"timeAdded\":\"2026-11-21T06:23:00Z\"",
         "{\"operator\":\"Exists\",\"tolerationSeconds\":60}", true},
        {"\"key\":\"k\",\"effect\":\"NoSelect\",\"timeAdded\":\"2026-11-21T06:22:00Z\"",
         "{\"operator\":\"Exists\",\"tolerationSeconds\":60}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct known k;
        json_t *answer;

        known_init(&k);
        begin(&k, fake_kube_text(k.f, CLUSTER("c1", "", ",\"spec\":{\"taints\":[{%s}]}"), cases[i].taint),
              fake_kube_text(k.f, PLACEMENT(",\"tolerations\":[%s]"), cases[i].tolerations));
        answer = ask(&k, &placement_explain, ASK, SIZE_MAX, 200);
        assert_int_equal(json_array_size(json_object_get(answer, "items")), cases[i].matches);
        json_decref(answer);
        known_end(&k);
    }
}

static void says_what_it_cannot_know(void **state)
{
    struct known *k = *state;
    json_t *answer;

    begin(k, CLUSTER("c1", "", ""),
          PLACEMENT(PREDICATE(
              "\"celSelector\":{\"celExpressions\":[\"managedCluster.metadata.labels.size() > 1\"]}")));
    answer = ask(k, &placement_explain, ASK, SIZE_MAX, 200);
    assert_true(json_is_false(json_object_get(answer, "agrees")));
    assert_int_equal(json_array_size(json_object_get(answer, "notes")), 2);
    json_decref(answer);
    json_decref(ask(k, &placement_explain, "{\"namespace\":\"default\",\"name\":\"q\"}", SIZE_MAX, 404));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ranks_by_scores_then_names),
        CASE(shows_the_preferred_ones_of_a_long_order),
        CASE(knows_the_built_in_prioritizers),
        cmocka_unit_test(says_why_clusters_are_left_out),
        cmocka_unit_test(judges_taints_as_placement_does),
        CASE(says_what_it_cannot_know),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
