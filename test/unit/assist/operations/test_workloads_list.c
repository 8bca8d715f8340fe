#include "controller/assist/operations/operations.h"
#include "controller/assist/state/world.h"
#include "exporter/base/loop.h"
#include "test/unit/assist/operations/asking.h"

#define WORKLOAD(namespace, name, labels)                                                           \
    "{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" name                               \
                                                "\",\"resourceVersion\":\"1\",\"labels\":{" labels  \
                                                "}},\"spec\":{\"placementRefs\":[{\"name\":\"" name \
                                                "-placement\"}]}}"
#define GPU(app) "\"app\":\"" app "\",\"resource-request-kind\":\"gpu\",\"resource-request-amount\":\"2\""

static void says_what_workloads_ask_for_and_where_they_run(void **state)
{
    struct known *k = *state;

    k->items[WORLD_WORKLOADS] = WORKLOAD("default", "mwrs-app02", GPU("app02")) "," WORKLOAD(
        "default", "mwrs-app01",
        GPU("app01") ",\"resource-request-amount.memory\":\"16\"") "," WORKLOAD("default", "other", "");
    k->items[WORLD_DECISIONS] =
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"d\",\"resourceVersion\":\"1\",\"labels\":{"
        "\"cluster.open-cluster-management.io/"
        "placement\":\"mwrs-app01-placement\"}},\"status\":{\"decisions\":["
        "{\"clusterName\":\"worker01\"}]}}";
    known_begin(k);
    expect_answer(k, &workloads_list, "{\"namespace\":\"default\"}",
                  "{\"targetWorkloads\":[{\"name\":\"mwrs-app01\"},{\"name\":\"mwrs-app02\"}],\"items\":["
                  "{\"namespace\":\"default\",\"name\":\"mwrs-app01\",\"app\":\"app01\",\"kind\":\"gpu\","
                  "\"amounts\":{\"gpu\":"
                  "\"2\",\"memory\":\"16\"},\"placement\":\"mwrs-app01-placement\",\"runsOn\":[\"worker01\"],"
                  "\"runsOnTotal\":1},"
                  "{\"namespace\":\"default\",\"name\":\"mwrs-app02\",\"app\":\"app02\",\"kind\":\"gpu\","
                  "\"amounts\":{\"gpu\":"
                  "\"2\"},\"placement\":\"mwrs-app02-placement\",\"runsOn\":[],\"runsOnTotal\":0}],\"shown\":"
                  "2,\"total\":2,"
                  "\"notes\":[\"1 ManifestWorkReplicaSets are not listed: they lack the label app, the label "
                  "resource-request-kind, or a placementRef.\"]}");
}

static void offers_no_targets_of_several_namespaces(void **state)
{
    struct known *k = *state;
    json_t *answer;

    k->items[WORLD_WORKLOADS] = WORKLOAD("a", "x", GPU("app01")) "," WORKLOAD("b", "x", GPU("app01"));
    known_begin(k);
    answer = ask(k, &workloads_list, "{\"app\":\"app01\"}", SIZE_MAX, 200);
    assert_null(json_object_get(answer, "targetWorkloads"));
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 2);
    json_decref(answer);
    answer = ask(k, &workloads_list, "{\"app\":\"app01\",\"namespace\":\"b\"}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "targetWorkloads")), 1);
    json_decref(answer);
    answer = ask(k, &workloads_list, "{\"kind\":\"cpu\"}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 0);
    json_decref(answer);
}

/* Why a kind may be out of date is the API server's text, and may be long. */
static void counts_notes_among_the_bytes(void **state)
{
    struct known *k = *state;
    BUF_AUTO(all, 1 << 20);

    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_printf(&all, "%s" WORKLOAD("default", "w%d", GPU("app01")), i ? "," : "", i, i),
                         0);
    assert_int_equal(buf_putc(&all, '\0'), 0);
    k->items[WORLD_WORKLOADS] = all.p;
    k->lines[WORLD_WORKLOADS] = fake_kube_text(
        k->f,
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\","
        "\"message\":\"%0600d\"}}\n",
        7);
    known_begin(k);
    for (int i = 0; i < 4000 && !world_trouble(k->w, WORLD_WORKLOADS); i++)
        assert_int_equal(loop_turn(k->f->loop, 5), 0);
    assert_non_null(world_trouble(k->w, WORLD_WORKLOADS));
    json_decref(ask_briefly(k, &workloads_list, "{}", 2048));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counts_notes_among_the_bytes),
        CASE(says_what_workloads_ask_for_and_where_they_run),
        CASE(offers_no_targets_of_several_namespaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
