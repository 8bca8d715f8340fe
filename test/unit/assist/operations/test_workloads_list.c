#include "controller/assist/operations/operations.h"
#include "test/unit/assist/operations/asking.h"

#define WORKLOAD(namespace, name, labels)                                                                \
    "{'metadata':{'namespace':'" namespace "','name':'" name "','resourceVersion':'1','labels':{" labels \
                                           "}},'spec':{'placementRefs':[{'name':'" name "-placement'}]}}"
#define GPU(app) "'app':'" app "','resource-request-kind':'gpu','resource-request-amount':'2'"

static void says_what_workloads_ask_for_and_where_they_run(void **state)
{
    struct known *k = *state;

    k->items[KIND_WORKLOADS] = WORKLOAD("default", "mwrs-app02", GPU("app02")) "," WORKLOAD(
        "default", "mwrs-app01",
        GPU("app01") ",'resource-request-amount.memory':'16'") "," WORKLOAD("default", "other", "");
    k->items[KIND_DECISIONS] =
        "{'metadata':{'namespace':'default','name':'d','resourceVersion':'1','labels':{'cluster.open-cluster-"
        "management.io/"
        "placement':'mwrs-app01-placement'}},'status':{'decisions':[{'clusterName':'worker01'}]}}";
    expect_answer(
        k, &workloads_list, "{'namespace':'default'}",
        "{'targetWorkloads':[{'name':'mwrs-app01'},{'name':'mwrs-app02'}],'items':[{'namespace':'default','"
        "name':'mwrs-app01','app':'app01','kind':'gpu','amounts':{'gpu':'2','memory':'16'},'placement':'mwrs-"
        "app01-placement','runsOn':['worker01'],'runsOnTotal':1},{'namespace':'default','name':'mwrs-app02','"
        "app':'app02','kind':'gpu','amounts':{'gpu':'2'},'placement':'mwrs-app02-placement','runsOn':[],'"
        "runsOnTotal':0}],'shown':2,'total':2,'notes':['1 ManifestWorkReplicaSets are not listed: they lack "
        "the label app, the label resource-request-kind, or a placementRef.']}");
}

static void offers_no_targets_of_several_namespaces(void **state)
{
    struct known *k = *state;
    json_t *answer;

    k->items[KIND_WORKLOADS] = WORKLOAD("a", "x", GPU("app01")) "," WORKLOAD("b", "x", GPU("app01"));
    answer = ask(k, &workloads_list, "{'app':'app01'}", SIZE_MAX, 200);
    assert_null(json_object_get(answer, "targetWorkloads"));
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 2);
    json_decref(answer);
    answer = ask(k, &workloads_list, "{'app':'app01','namespace':'b'}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "targetWorkloads")), 1);
    json_decref(answer);
    answer = ask(k, &workloads_list, "{'kind':'cpu'}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 0);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(says_what_workloads_ask_for_and_where_they_run),
        CASE(offers_no_targets_of_several_namespaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
