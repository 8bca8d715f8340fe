/* The objects of a plan, as text. */
#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_objects.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/yaml.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/buf.h"
#include "test/unit/assist/guide.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { RUN = 0x37552597 };

#define HASH "0123456789abcdef"

/* app01 → worker01, app02 → worker02, both with 3g.48gb. */
static const uint32_t own_sites[] = {0, 1}, own_settings[] = {1, 4};

static json_t *objects_of(struct guide *g)
{
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    struct solution s;
    json_t *list = NULL;

    assert_int_equal(request_make_model(&m, g->request, g->hub, &error), 0);
    s = guide_solution(m, own_sites, own_settings);
    if (objects_make(&list, m, &s, RUN, HASH, &error) < 0)
        assert_int_equal(error.status, 422);
    solution_done(&s);
    (void)model_free(m);
    return list;
}

static json_t *predicate_of(const json_t *objects, size_t i)
{
    return json_object_get(
        json_array_get(json_object_get(json_object_get(json_array_get(objects, i), "spec"), "predicates"), 0),
        "requiredClusterSelector");
}

static void prints_the_guides_objects(void **state)
{
    static const char first[] = "apiVersion: cluster.open-cluster-management.io/v1beta1\n"
                                "kind: Placement\n"
                                "metadata:\n"
                                "  name: placement-worker01-37552597\n"
                                "  namespace: default\n"
                                "  labels:\n"
                                "    dynamic-scoring-framework-mcp/generated: \"true\"\n"
                                "  annotations:\n"
                                "    dynamic-scoring.open-cluster-management.io/plan: \"0123456789abcdef\"\n"
                                "spec:\n"
                                "  numberOfClusters: 1\n"
                                "  predicates:\n"
                                "  - requiredClusterSelector:\n"
                                "      labelSelector:\n"
                                "        matchLabels:\n"
                                "          cluster-name: worker01\n"
                                "---\n";
    static const char binding[] =
        "kind: PlacementBinding\n"
        "metadata:\n"
        "  name: binding-worker02-37552597\n"
        "  namespace: default\n"
        "  labels:\n"
        "    dynamic-scoring-framework-mcp/generated: \"true\"\n"
        "  annotations:\n"
        "    dynamic-scoring.open-cluster-management.io/plan: \"0123456789abcdef\"\n"
        "placementRef:\n"
        "  apiGroup: cluster.open-cluster-management.io\n"
        "  kind: Placement\n"
        "  name: placement-worker02-37552597\n"
        "subjects:\n"
        "- apiGroup: policy.open-cluster-management.io\n"
        "  kind: Policy\n"
        "  name: policy-enable-mig-3g-worker02\n"
        "---\n";
    static const char last[] = "  name: app02-placement\n"
                               "  namespace: default\n"
                               "  labels:\n"
                               "    dynamic-scoring-framework-mcp/generated: \"true\"\n"
                               "  annotations:\n"
                               "    dynamic-scoring.open-cluster-management.io/plan: \"0123456789abcdef\"\n"
                               "spec:\n"
                               "  numberOfClusters: 1\n"
                               "  predicates:\n"
                               "  - requiredClusterSelector:\n"
                               "      labelSelector:\n"
                               "        matchLabels:\n"
                               "          cluster-name: worker02\n"
                               "      claimSelector:\n"
                               "        matchExpressions:\n"
                               "        - key: policy-watcher-claim\n"
                               "          operator: \"In\"\n"
                               "          values:\n"
                               "          - compliant\n";
    struct guide g = guide_new(GUIDE);
    json_t *list = objects_of(&g);
    BUF_AUTO(text, 1 << 20);

    (void)state;
    assert_int_equal(json_array_size(list), 6);
    assert_int_equal(yaml_print(list, &text), 0);
    buf_putc(&text, '\0');
    assert_int_equal(buf_failed(&text), 0);
    assert_true(strncmp(text.p, first, strlen(first)) == 0);
    assert_non_null(strstr(text.p, binding));
    assert_string_equal(text.p + text.n - 1 - strlen(last), last);
    json_decref(list);
    guide_done(&g);
}

static void selects_by_what_a_cluster_carries(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_t *list;

    (void)state;
    guide_label(&g, KIND_CLUSTERS, "worker01", "cluster-name", "another");
    guide_label(&g, KIND_CLUSTERS, "worker01", "name", "worker01");
    list = objects_of(&g);
    assert_string_equal(kube_str(predicate_of(list, 0), "labelSelector", "matchLabels", "name", NULL),
                        "worker01");
    assert_string_equal(kube_str(predicate_of(list, 1), "labelSelector", "matchLabels", "cluster-name", NULL),
                        "worker02");
    assert_non_null(kube_get(predicate_of(list, 4), "claimSelector", NULL));
    json_decref(list);
    guide_done(&g);
}

static void refuses_a_cluster_that_nothing_selects(void **state)
{
    struct guide g = guide_new(GUIDE);
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    struct solution s;
    json_t *list = NULL;

    (void)state;
    guide_label(&g, KIND_CLUSTERS, "worker02", "cluster-name", NULL);
    assert_int_equal(request_make_model(&m, g.request, g.hub, &error), 0);
    s = guide_solution(m, own_sites, own_settings);
    assert_int_equal(objects_make(&list, m, &s, RUN, HASH, &error), -EINVAL);
    assert_string_equal(error.field, "clusters[1].name");
    assert_non_null(strstr(error.detail, "run: kubectl label managedcluster worker02 cluster-name=worker02"));
    solution_done(&s);
    (void)model_free(m);
    guide_done(&g);
}

static void lists_the_clusters_of_several_replicas(void **state)
{
    struct guide g = guide_new("{'clusters':[" GUIDE_CLUSTER("1") "," GUIDE_CLUSTER(
        "2") "],"
             "'targetWorkloads':[{'name':'mwrs-app01','replicas':2}],"
             "'preference':{'addonPlacementScore':'example-performance-score',"
             "'scoreDimensionFormat':'${app};${device}'}}");
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    struct problem_pair placed[] = {{0, 0}, {0, 1}};
    uint32_t setting[] = {1, 4};
    const struct solution s = {.setting = setting, .placed = placed, .n_placed = 2};
    json_t *list = NULL, *expression;
    int64_t n = 0;

    (void)state;
    assert_int_equal(request_make_model(&m, g.request, g.hub, &error), 0);
    assert_int_equal(objects_make(&list, m, &s, RUN, HASH, &error), 0);
    assert_int_equal(json_array_size(list), 5);
    assert_true(kube_int(json_array_get(list, 4), &n, "spec", "numberOfClusters", NULL) && n == 2);
    expression =
        json_array_get(kube_list(predicate_of(list, 4), "labelSelector", "matchExpressions", NULL), 0);
    assert_string_equal(kube_str(expression, "operator", NULL), "In");
    assert_int_equal(json_array_size(kube_list(expression, "values", NULL)), 2);
    json_decref(list);
    (void)model_free(m);
    guide_done(&g);
}

/* PlacementDecisions have the Placement's name in a label. */
static void keeps_names_within_63_bytes(void **state)
{
    static const char request[] =
        "{'clusters':[{'name':'a-cluster-with-a-name-of-more-than-44-characters-1',"
        "'availablePolicies':[{'name':'policy-3g'}]}],'targetWorkloads':[{'name':'mwrs-app01'}],"
        "'preference':{'addonPlacementScore':'example-performance-score','scoreDimensionFormat':'${app};${"
        "device}'}}";
    static const uint32_t first[] = {0};
    struct guide g = guide_new(request);
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    struct solution s;
    json_t *list = NULL;
    const char *name;

    (void)state;
    assert_int_equal(request_make_model(&m, g.request, g.hub, &error), 0);
    s = guide_solution(m, first, first);
    assert_int_equal(objects_make(&list, m, &s, RUN, HASH, &error), 0);
    name = kube_name(json_array_get(list, 0));
    assert_true(strlen(name) <= 63);
    assert_true(strncmp(name, "placement-a-cluster-with-a-name-of-", 35) == 0);
    assert_string_equal(name + strlen(name) - 9, "-37552597");
    assert_string_equal(kube_str(json_array_get(list, 1), "placementRef", "name", NULL), name);
    json_decref(list);
    solution_done(&s);
    (void)model_free(m);
    guide_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_the_guides_objects),
        cmocka_unit_test(selects_by_what_a_cluster_carries),
        cmocka_unit_test(refuses_a_cluster_that_nothing_selects),
        cmocka_unit_test(lists_the_clusters_of_several_replicas),
        cmocka_unit_test(keeps_names_within_63_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
