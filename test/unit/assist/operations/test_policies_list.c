#include "controller/assist/operations/operations.h"
#include "test/unit/assist/operations/asking.h"

#define CLUSTER(name) "{'metadata':{'name':'" name "','resourceVersion':'1'}}"
#define POLICY(name, labels, more)                                                                           \
    "{'metadata':{'namespace':'default','name':'" name "','resourceVersion':'1','labels':{" labels "}}" more \
    "}"
#define GPU(amount, device) \
    "'resource-supply-kind':'gpu','resource-supply-amount':'" amount "','resource-supply-device':'" device "'"
#define COMPLIANCE ",'status':{'status':[{'clustername':'worker01','compliant':'NonCompliant'}]}"

#define ITEM(name, amount, device, cluster, by, more)                                                       \
    "{'namespace':'default','name':'" name "','kind':'gpu','device':'" device "','amounts':{'gpu':'" amount \
    "'" more "},'clusters':[" cluster "],'clustersBy':'" by "','disabled':false,'compliance':[]}"
#define CHOICE(cluster, policies) "{'name':'" cluster "','availablePolicies':[" policies "]}"
#define NAMED(name)               "{'name':'" name "'}"
#define UNLISTED                  "'notes':['1 Policies are not listed: they lack the label resource-supply-kind.']"

static const char some_policies[] =
    POLICY("labelled-worker01", GPU("1", "y") ",'cluster-name':'worker02'",
           "") "," POLICY("disable-eu-worker01", GPU("1", "all") ",'resource-supply-amount.memory':'8'",
                          "") "," POLICY("any", GPU("1", "x"), "") "," POLICY("unrelated", "'a':'b'", "");

static void offers_the_policies_of_each_cluster(void **state)
{
    struct known *k = *state;

    k->items[KIND_CLUSTERS] = CLUSTER("worker02") "," CLUSTER("worker01") "," CLUSTER("eu-worker01");
    k->items[KIND_POLICIES] = some_policies;
    expect_answer(
        k, &policies_list, "{}",
        "{'clusters':[" CHOICE("eu-worker01", NAMED("disable-eu-worker01") "," NAMED("any")) "," CHOICE(
            "worker01",
            NAMED(
                "any")) "," CHOICE("worker02",
                                   NAMED("labelled-worker01") "," NAMED(
                                       "any")) "],'items':[" ITEM("any", "1", "x", "", "any",
                                                                  "") "," ITEM("disable-eu-worker01", "1",
                                                                               "all", "'eu-worker01'", "name",
                                                                               ",'memory':'8'") "," ITEM("lab"
                                                                                                         "ell"
                                                                                                         "ed-"
                                                                                                         "wor"
                                                                                                         "ker"
                                                                                                         "01",
                                                                                                         "1",
                                                                                                         "y",
                                                                                                         "'wo"
                                                                                                         "rke"
                                                                                                         "r02"
                                                                                                         "'",
                                                                                                         "lab"
                                                                                                         "el",
                                                                                                         "") "]," UNLISTED
                                                                                                             ",'shown':3,'total':3}");
    expect_answer(k, &policies_list, "{'cluster':'worker02','device':'y'}",
                  "{'clusters':[" CHOICE("worker02", NAMED("labelled-worker01")) "],'items':[" ITEM(
                      "labelled-worker01", "1", "y", "'worker02'", "label", "") "]," UNLISTED
                                                                                ",'shown':1,'total':1}");
}

static void leaves_out_disabled_policies(void **state)
{
    struct known *k = *state;
    json_auto_t *expected = quoted_json("[" CHOICE("worker01", NAMED("3g-worker01")) "]");
    json_t *answer, *disabled;

    k->items[KIND_CLUSTERS] = CLUSTER("worker01");
    k->items[KIND_POLICIES] = POLICY("2g-worker01", GPU("3", "2g"), ",'spec':{'disabled':true}") "," POLICY(
        "3g-worker01", GPU("2", "3g"), COMPLIANCE);
    answer = ask(k, &policies_list, "{}", SIZE_MAX, 200);
    assert_true(json_equal(json_object_get(answer, "clusters"), expected));
    disabled = json_array_get(json_object_get(answer, "items"), 0);
    assert_true(json_is_true(json_object_get(disabled, "disabled")));
    json_decref(answer);
}

/* A binding of a plan says what is in force, not what may be chosen. */
static void follows_bindings_that_no_plan_made(void **state)
{
    struct known *k = *state;
    json_t *answer;

    k->items[KIND_CLUSTERS] = CLUSTER("c1") "," CLUSTER("c2") "," CLUSTER("c3");
    k->items[KIND_POLICIES] = POLICY("p", GPU("1", "x"), "") "," POLICY("q", GPU("1", "y"), "");
    k->items[KIND_BINDINGS] =
        "{'metadata':{'namespace':'default','name':'b','resourceVersion':'1'},'placementRef':{'name':'pl'},'"
        "subjects':[{'kind':'Policy','name':'p'}]},{'metadata':{'namespace':'default','name':'g','"
        "resourceVersion':'1','labels':{'dynamic-scoring-framework-mcp/"
        "generated':'true'}},'placementRef':{'name':'pl'},'subjects':[{'kind':'Policy','name':'q'}]}";
    k->items[KIND_DECISIONS] =
        "{'metadata':{'namespace':'default','name':'pl-1','resourceVersion':'1','labels':{'cluster.open-"
        "cluster-management.io/"
        "placement':'pl'}},'status':{'decisions':[{'clusterName':'c2'}]}},{'metadata':{'namespace':'default',"
        "'name':'pl-2','resourceVersion':'1','labels':{'cluster.open-cluster-management.io/"
        "placement':'pl'}},'status':{'decisions':[{'clusterName':'c3'}]}}";
    answer = ask(k, &policies_list, "{'cluster':'c3'}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 2);
    json_decref(answer);
    answer = ask(k, &policies_list, "{'cluster':'c1'}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 1);
    json_decref(answer);
}

static void says_that_policies_are_not_installed(void **state)
{
    struct known *k = *state;

    k->items[KIND_POLICIES] = NOT_INSTALLED;
    k->items[KIND_BINDINGS] = NOT_INSTALLED;
    expect_answer(k, &policies_list, "{}",
                  "{'clusters':[],'items':[],'shown':0,'total':0,'notes':['Policies are not installed on the "
                  "hub.','PlacementBindings are not installed on the hub.']}");
}

static void is_brief_for_assistants(void **state)
{
    struct known *k = *state;
    const char *policies = "", *clusters = "";
    json_t *answer;

    for (unsigned i = 0; i < 100; i++) {
        clusters =
            known_text(k, "%s%s{'metadata':{'name':'c%u','resourceVersion':'1'}}", clusters, i ? "," : "", i);
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
        CASE(leaves_out_disabled_policies),
        CASE(follows_bindings_that_no_plan_made),
        CASE(says_that_policies_are_not_installed),
        CASE(is_brief_for_assistants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
