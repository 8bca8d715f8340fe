/* Placement problems of requests: indices follow names, and each option has its place. */
#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/score.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "test/unit/assist/guide.h"
#include "test/unit/optimize/problem_check.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct fleet_model *model_of(struct guide *g)
{
    struct fleet_model *m = NULL;
    struct api_error error = {0};

    if (request_make_model(&m, g->request, g->hub, &error) < 0)
        fail_msg("%s: %s", error.field, error.detail);
    assert_null(problem_check(&m->problem));
    return m;
}

static void objects_to(struct guide *g, unsigned status, const char *field, const char *detail)
{
    struct fleet_model *m = NULL;
    struct api_error error = {0};

    assert_int_equal(request_make_model(&m, g->request, g->hub, &error), -EINVAL);
    assert_string_equal(error.detail, detail);
    assert_string_equal(error.field, field);
    assert_int_equal(error.status, status);
    guide_done(g);
}

static void builds_the_guides_problem(void **state)
{
    /* [setting] of either cluster: 2g, 3g, all */
    static const int16_t expected[][2] = {{10, 15}, {60, 55}, {80, 80}};
    struct guide g = guide_new(GUIDE);
    struct fleet_model *m = model_of(&g);
    const struct opt_problem *p = &m->problem;

    (void)state;
    assert_true(p->n_workloads == 2 && p->n_sites == 2 && p->n_settings == 6 && p->n_resources == 1);
    assert_string_equal(m->sites[1].cluster_name, "worker02");
    assert_string_equal(m->settings[4].device, "3g.48gb");
    assert_string_equal(m->settings[4].policy, "policy-enable-mig-3g-worker02");
    assert_true(p->supplies[0] == 3000 && p->supplies[1] == 2000 && p->supplies[2] == 1000);
    assert_true(p->requests[0] == 2000 && m->per_point == 1 && p->n_running == 0);
    for (size_t s = 0; s < 6; s++)
        for (size_t w = 0; w < 2; w++)
            assert_int_equal(problem_score(p, s, w), expected[s % 3][w]);
    assert_int_equal(m->n_missing, 0);
    (void)model_free(m);
    guide_done(&g);
}

static void puts_names_in_ascending_order(void **state)
{
    struct guide g = guide_new("{'clusters':[" GUIDE_CLUSTER("2") "," GUIDE_CLUSTER(
        "1") "],"
             "'targetWorkloads':[{'name':'mwrs-app02'},{'name':'mwrs-app01'}],'preference':"
             "{'addonPlacementScore':'example-performance-score',"
             "'scoreDimensionFormat':'${app};${device}'}}");
    struct fleet_model *m = model_of(&g);

    (void)state;
    assert_string_equal(m->workloads[0].name, "mwrs-app01");
    assert_string_equal(m->sites[0].cluster_name, "worker01");
    assert_int_equal(problem_score(&m->problem, 1, 0), 60);
    (void)model_free(m);
    guide_done(&g);
}

static void counts_missing_and_expired_scores(void **state)
{
    struct guide g = guide_new(GUIDE);
    struct fleet_model *m;

    (void)state;
    ((struct score *)guide_get(&g, KIND_SCORES, "worker01", "example-performance-score"))->is_expired = true;
    ((struct score *)guide_get(&g, KIND_SCORES, "worker02", "example-performance-score"))->n_items = 5;
    m = model_of(&g);
    assert_int_equal(m->n_expired, 1);
    assert_int_equal(m->n_missing, 7);
    assert_int_equal(problem_score(&m->problem, 0, 0), SCORE_IMPOSSIBLE);
    assert_int_equal(problem_score(&m->problem, 5, 1), SCORE_IMPOSSIBLE);
    assert_int_equal(problem_score(&m->problem, 4, 0), 60);
    assert_string_equal(kube_str(json_array_get(m->missing, 6), "device", NULL), "all");
    (void)model_free(m);
    guide_done(&g);
}

static void adds_weighted_scores_exactly(void **state)
{
    struct guide g = guide_new("{'clusters':[" GUIDE_CLUSTER(
        "1") "],'targetWorkloads':[{'name':'mwrs-app01'}],'moves':{'cost':2.5},"
             "'preference':{'scoreDimensionFormat':'${app};${device}','scores':["
             "{'addonPlacementScore':'example-performance-score','weight':0.25},"
             "{'addonPlacementScore':'example-powerconsumption-score','weight':-1}]}}");
    struct fleet_model *m = model_of(&g);

    (void)state;
    assert_true(m->per_point == 100 && !m->is_rounded && m->problem.move_cost == 250);
    assert_int_equal(problem_score(&m->problem, 0, 0), 250 - 8000);
    assert_true(model_points(m, 1500) == 15);
    (void)model_free(m);
    guide_done(&g);
}

static void rounds_scores_that_16_bits_cannot_hold(void **state)
{
    struct guide g = guide_new("{'clusters':[" GUIDE_CLUSTER(
        "1") "],'targetWorkloads':[{'name':'mwrs-app01'}],"
             "'preference':{'scoreDimensionFormat':'${app};${device}','scores':["
             "{'addonPlacementScore':'example-performance-score','weight':999.9}]}}");
    struct fleet_model *m = model_of(&g);

    (void)state;
    assert_true(m->is_rounded);
    assert_int_equal(problem_score(&m->problem, 2, 0), 32000);
    assert_int_equal(problem_score(&m->problem, 1, 0), 24000);
    (void)model_free(m);
    guide_done(&g);
}

static void keeps_kinds_apart(void **state)
{
    struct guide g = guide_new(GUIDE);
    struct fleet_model *m;

    (void)state;
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker01", "resource-supply-kind", "fpga");
    guide_label(&g, KIND_WORKLOADS, "mwrs-app02", "resource-request-kind", "fpga");
    m = model_of(&g);
    assert_int_equal(m->problem.n_sites, 3); /* worker01 fpga, worker01 gpu, worker02 gpu */
    assert_int_equal(problem_score(&m->problem, 0, 1), 15);
    assert_int_equal(problem_score(&m->problem, 0, 0), SCORE_IMPOSSIBLE);
    assert_int_equal(problem_score(&m->problem, 1, 1), SCORE_IMPOSSIBLE);
    (void)model_free(m);
    guide_done(&g);
}

static void fits_more_resources_than_one(void **state)
{
    struct guide g = guide_new(GUIDE);
    struct fleet_model *m;

    (void)state;
    guide_label(&g, KIND_WORKLOADS, "mwrs-app01", "resource-request-amount.memory", "16Gi");
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker01", "resource-supply-amount.memory", "48Gi");
    m = model_of(&g);
    assert_int_equal(m->problem.n_resources, 2);
    assert_true(problem_request(&m->problem, 0)[1] == INT64_C(17179869184000));
    assert_true(problem_request(&m->problem, 1)[1] == 0);
    assert_true(problem_supply(&m->problem, 0)[1] == INT64_C(51539607552000));
    assert_true(problem_supply(&m->problem, 1)[1] == 0);
    (void)model_free(m);
    guide_done(&g);
}

static void knows_what_runs_also_elsewhere(void **state)
{
    struct guide g = guide_new(GUIDE);
    struct fleet_model *m;

    (void)state;
    guide_runs(&g, "app02-placement", "worker02");
    guide_runs(&g, "app02-placement", "elsewhere");
    guide_runs(&g, "app01-placement", "elsewhere");
    guide_runs(&g, "other-placement", "worker01");
    m = model_of(&g);
    assert_true(m->problem.n_running == 3 && m->problem.n_sites == 3);
    assert_string_equal(m->sites[2].cluster_name, "elsewhere");
    assert_true(m->problem.running[0].workload == 0 && m->problem.running[0].site == 2);
    assert_true(m->problem.running[1].workload == 1 && m->problem.running[1].site == 1);
    assert_int_equal(m->problem.first_setting[3], 6);
    (void)model_free(m);
    guide_done(&g);
}

static void applies_pins_and_forbidden_places(void **state)
{
    struct guide g = guide_new(GUIDE_WITH("example-performance-score",
                                          ",'pin':[{'workload':'mwrs-app01','clusters':['worker02']}],"
                                          "'forbid':[{'workload':'mwrs-app02','clusters':['worker02']}]"));
    struct fleet_model *m = model_of(&g);

    (void)state;
    assert_int_equal(problem_score(&m->problem, 1, 0), SCORE_IMPOSSIBLE);
    assert_int_equal(problem_score(&m->problem, 4, 0), 60);
    assert_int_equal(problem_score(&m->problem, 1, 1), 55);
    assert_int_equal(problem_score(&m->problem, 4, 1), SCORE_IMPOSSIBLE);
    assert_true(m->workloads[0].lost_to_rules && m->workloads[1].lost_to_rules);
    (void)model_free(m);
    guide_done(&g);
}

static void objects_to_what_is_not_there(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    guide_remove(&g, KIND_POLICIES, "policy-enable-mig-3g-worker02");
    objects_to(&g, 404, "clusters[1].availablePolicies[1].name",
               "there is no Policy policy-enable-mig-3g-worker02 in namespace default");
    g = guide_new(GUIDE);
    guide_remove(&g, KIND_WORKLOADS, "mwrs-app02");
    objects_to(&g, 404, "targetWorkloads[1].name",
               "there is no ManifestWorkReplicaSet mwrs-app02 in namespace default");
    g = guide_new(GUIDE);
    guide_remove(&g, KIND_CLUSTERS, "worker01");
    objects_to(&g, 404, "clusters[0].name", "there is no ManagedCluster worker01");
    g = guide_new(GUIDE_WITH("nothing", ""));
    objects_to(&g, 404, "preference.addonPlacementScore",
               "no cluster of the request has an AddOnPlacementScore nothing");
}

static void objects_to_labels(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker01", "resource-supply-device", NULL);
    objects_to(&g, 422, "clusters[0].availablePolicies[0].name",
               "Policy policy-enable-mig-2g-worker01 has no label resource-supply-device");
    g = guide_new(GUIDE);
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker01", "resource-supply-amount", "three");
    objects_to(&g, 422, "clusters[0].availablePolicies[0].name",
               "Policy policy-enable-mig-2g-worker01: label resource-supply-amount is \"three\", expected an "
               "amount such "
               "as 2, 500m or 2Gi");
    g = guide_new(GUIDE);
    guide_label(&g, KIND_WORKLOADS, "mwrs-app01", "app", NULL);
    objects_to(&g, 422, "targetWorkloads[0].name", "ManifestWorkReplicaSet mwrs-app01 has no label app");
    g = guide_new(GUIDE);
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker01", "resource-supply-device", "3g.48gb");
    objects_to(&g, 422, "clusters",
               "cluster worker01: Policies policy-enable-mig-2g-worker01 and policy-enable-mig-3g-worker01 "
               "both supply "
               "device 3g.48gb");
}

static void objects_to_names_outside_of_the_request(void **state)
{
    struct guide g = guide_new(
        GUIDE_WITH("example-performance-score", ",'pin':[{'workload':'x','clusters':['worker02']}]"));

    (void)state;
    objects_to(&g, 422, "pin[0].workload", "pin[0].workload: x is not among targetWorkloads");
    g = guide_new(
        GUIDE_WITH("example-performance-score", ",'forbid':[{'workload':'mwrs-app01','clusters':['x']}]"));
    objects_to(&g, 422, "forbid[0].clusters[0]", "forbid[0].clusters[0]: x is not among clusters");
}

static void objects_to_two_workloads_with_one_placement(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_t *ref = json_array_get(
        kube_list(guide_get(&g, KIND_WORKLOADS, NULL, "mwrs-app02"), "spec", "placementRefs", NULL), 0);

    (void)state;
    (void)json_object_set_new(ref, "name", json_string("app01-placement"));
    objects_to(
        &g, 422, "targetWorkloads[1].name",
        "ManifestWorkReplicaSets mwrs-app01 and mwrs-app02 refer to the same Placement app01-placement");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_the_guides_problem),
        cmocka_unit_test(puts_names_in_ascending_order),
        cmocka_unit_test(counts_missing_and_expired_scores),
        cmocka_unit_test(adds_weighted_scores_exactly),
        cmocka_unit_test(rounds_scores_that_16_bits_cannot_hold),
        cmocka_unit_test(keeps_kinds_apart),
        cmocka_unit_test(fits_more_resources_than_one),
        cmocka_unit_test(knows_what_runs_also_elsewhere),
        cmocka_unit_test(applies_pins_and_forbidden_places),
        cmocka_unit_test(objects_to_what_is_not_there),
        cmocka_unit_test(objects_to_labels),
        cmocka_unit_test(objects_to_names_outside_of_the_request),
        cmocka_unit_test(objects_to_two_workloads_with_one_placement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
