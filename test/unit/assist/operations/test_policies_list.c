#include "controller/assist/operations/operations.h"
#include "test/unit/assist/operations/asking.h"

#define CLUSTER(name) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"1\"}}"
#define POLICY(name, labels, more)                              \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"" name \
    "\",\"resourceVersion\":\"1\",\"labels\":{" labels "}}" more "}"
#define GPU(amount, device)                                                 \
    "\"resource-supply-kind\":\"gpu\",\"resource-supply-amount\":\"" amount \
    "\",\"resource-supply-device\":\"" device "\""
#define PLAIN(name, amount, device) \
    "{\"namespace\":\"default\",\"name\":\"" name "\",\"kind\":\"gpu\",\"device\":\"" device "\","

#define COMPLIANCE ",\"status\":{\"status\":[{\"clustername\":\"worker01\",\"compliant\":\"NonCompliant\"}]}"

static void offers_the_policies_of_each_cluster(void **state)
{
    struct known *k = *state;

    k->items[KIND_CLUSTERS] = CLUSTER("worker02") "," CLUSTER("worker01") "," CLUSTER("eu-worker01");
    k->items[KIND_POLICIES] = POLICY("enable-3g-worker01", GPU("2", "3g"), COMPLIANCE) "," POLICY(
        "enable-2g-worker01", GPU("3", "2g"),
        ",\"spec\":{\"disabled\":true}") "," POLICY("disable-eu-worker01",
                                                    GPU("1",
                                                        "all") ",\"resource-supply-amount.memory\":\"8\"",
                                                    "") "," POLICY("any", GPU("1", "x"),
                                                                   "") "," POLICY("labelled-worker01",
                                                                                  GPU("1",
                                                                                      "y") ",\"cluster-"
                                                                                           "name\":"
                                                                                           "\"worker02\"",
                                                                                  "") "," POLICY("unrelat"
                                                                                                 "ed",
                                                                                                 "\"a\":"
                                                                                                 "\"b\"",
                                                                                                 "");
    expect_answer(
        k, &policies_list, "{}",
        "{\"clusters\":["
        "{\"name\":\"eu-worker01\",\"availablePolicies\":[{\"name\":\"disable-eu-worker01\"},{\"name\":"
        "\"any\"}]},"
        "{\"name\":\"worker01\",\"availablePolicies\":[{\"name\":\"enable-3g-worker01\"},{\"name\":\"any\"}]}"
        ","
        "{\"name\":\"worker02\",\"availablePolicies\":[{\"name\":\"labelled-worker01\"},{\"name\":\"any\"}]}]"
        ","
        "\"items\":[" PLAIN("any", "1",
                            "x") "\"amounts\":{\"gpu\":\"1\"},\"clusters\":[],\"clustersBy\":"
                                 "\"any\",\"disabled\":false,\"compliance\":[]}," PLAIN(
                                     "disable-eu-worker01", "1",
                                     "all") "\"amounts\":{\"gpu\":\"1\",\"memory\":\"8\"},"
                                            "\"clusters\":[\"eu-worker01\"],\"clustersBy\":"
                                            "\"name\",\"disabled\":false,\"compliance\":[]}"
                                            "," PLAIN("enable-2g-worker01", "3",
                                                      "2g") "\"amounts\":{\"gpu\":\"3\"},"
                                                            "\"clusters\":[\"worker01\"],"
                                                            "\"clustersBy\":\"name\","
                                                            "\"disabled\":true,\"compliance\":[]}"
                                                            "," PLAIN("enable-3g-worker01", "2",
                                                                      "3g") "\"amounts\":{"
                                                                            "\"gpu\":\"2\"},"
                                                                            "\"clusters\":["
                                                                            "\"worker01\"],"
                                                                            "\"clustersBy\":"
                                                                            "\"name\","
                                                                            "\"disabled\":false,"
                                                                            "\"compliance\":[{"
                                                                            "\"cluster\":"
                                                                            "\"worker01\","
                                                                            "\"compliant\":"
                                                                            "\"NonCompliant\"}]}"
                                                                            "," PLAIN("labelled-"
                                                                                      "worker01",
                                                                                      "1", "y") "\"amounts\""
                                                                                                ":{\"gpu\":"
                                                                                                "\"1\"},"
                                                                                                "\"clusters"
                                                                                                "\":["
                                                                                                "\"worker02"
                                                                                                "\"],"
                                                                                                "\"clustersB"
                                                                                                "y\":"
                                                                                                "\"label\","
                                                                                                "\"disabled"
                                                                                                "\":false,"
                                                                                                "\"complianc"
                                                                                                "e\":[]}],"
                                                                                                "\"notes\":["
                                                                                                "\"1 "
                                                                                                "Policies "
                                                                                                "are not "
                                                                                                "listed: "
                                                                                                "they lack "
                                                                                                "the label "
                                                                                                "resource-"
                                                                                                "supply-"
                                                                                                "kind.\"],"
                                                                                                "\"shown\":"
                                                                                                "5,"
                                                                                                "\"total\":"
                                                                                                "5}");
    expect_answer(
        k, &policies_list, "{\"cluster\":\"worker02\",\"device\":\"y\"}",
        "{\"clusters\":[{\"name\":\"worker02\",\"availablePolicies\":[{\"name\":\"labelled-worker01\"}]}],"
        "\"items\":[" PLAIN(
            "labelled-worker01", "1",
            "y") "\"amounts\":{\"gpu\":\"1\"},\"clusters\":[\"worker02\"],\"clustersBy\":\"label\","
                 "\"disabled\":false,\"compliance\":[]}],"
                 "\"notes\":[\"1 Policies are not listed: they lack the label resource-supply-kind.\"],"
                 "\"shown\":1,\"total\":1}");
}

/* A binding of a plan says what is in force, not what may be chosen. */
static void follows_bindings_that_no_plan_made(void **state)
{
    struct known *k = *state;
    json_t *answer;

    k->items[KIND_CLUSTERS] = CLUSTER("c1") "," CLUSTER("c2") "," CLUSTER("c3");
    k->items[KIND_POLICIES] = POLICY("p", GPU("1", "x"), "") "," POLICY("q", GPU("1", "y"), "");
    k->items[KIND_BINDINGS] =
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"b\",\"resourceVersion\":\"1\"},\"placementRef\":"
        "{\"name\":\"pl\"},"
        "\"subjects\":[{\"kind\":\"Policy\",\"name\":\"p\"}]},"
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"g\",\"resourceVersion\":\"1\",\"labels\":{"
        "\"dynamic-scoring-framework-mcp/generated\":\"true\"}},\"placementRef\":{\"name\":\"pl\"},"
        "\"subjects\":[{\"kind\":\"Policy\",\"name\":\"q\"}]}";
    k->items[KIND_DECISIONS] =
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"pl-1\",\"resourceVersion\":\"1\",\"labels\":{"
        "\"cluster.open-cluster-management.io/"
        "placement\":\"pl\"}},\"status\":{\"decisions\":[{\"clusterName\":\"c2\"}]}},"
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"pl-2\",\"resourceVersion\":\"1\",\"labels\":{"
        "\"cluster.open-cluster-management.io/"
        "placement\":\"pl\"}},\"status\":{\"decisions\":[{\"clusterName\":\"c3\"}]}}";
    answer = ask(k, &policies_list, "{\"cluster\":\"c3\"}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 2);
    json_decref(answer);
    answer = ask(k, &policies_list, "{\"cluster\":\"c1\"}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 1);
    json_decref(answer);
}

static void says_that_policies_are_not_installed(void **state)
{
    struct known *k = *state;

    k->items[KIND_POLICIES] = NOT_INSTALLED;
    k->items[KIND_BINDINGS] = NOT_INSTALLED;
    expect_answer(
        k, &policies_list, "{}",
        "{\"clusters\":[],\"items\":[],\"shown\":0,\"total\":0,\"notes\":[\"Policies are not installed on "
        "the hub.\",\"PlacementBindings are not installed on the hub.\"]}");
}

static void is_brief_for_assistants(void **state)
{
    struct known *k = *state;
    const char *policies = "", *clusters = "";
    json_t *answer;

    for (unsigned i = 0; i < 100; i++) {
        clusters = known_text(k, "%s%s{\"metadata\":{\"name\":\"c%u\",\"resourceVersion\":\"1\"}}", clusters,
                              i ? "," : "", i);
        policies = known_text(k, "%s%s" POLICY("policy-c%u", GPU("1", "x"), ""), policies, i ? "," : "", i);
    }
    k->items[KIND_CLUSTERS] = clusters;
    k->items[KIND_POLICIES] = policies;
    answer = ask_briefly(k, &policies_list, "{}", 4096);
    assert_int_equal(json_integer_value(json_object_get(answer, "total")), 100);
    assert_true(json_integer_value(json_object_get(answer, "shown")) >= 10);
    assert_null(json_object_get(answer, "clusters"));
    assert_non_null(
        strstr(json_string_value(json_array_get(json_object_get(answer, "notes"), 0)), "maxBytes"));
    json_decref(answer);
    answer = ask_briefly(k, &policies_list, "{}", 65536);
    assert_int_equal(json_array_size(json_object_get(answer, "clusters")), 100);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(offers_the_policies_of_each_cluster),
        CASE(follows_bindings_that_no_plan_made),
        CASE(says_that_policies_are_not_installed),
        CASE(is_brief_for_assistants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
