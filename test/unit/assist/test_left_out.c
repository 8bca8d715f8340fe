/* The true reason of each workload that has no place. */
#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_answer.h"
#include "controller/assist/plan_request.h"
#include "controller/optimize/solution.h"

#include "test/unit/assist/guide.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOWHERE UINT32_MAX

/* The reason of the only workload without a place when w goes to sites[w] with settings[w]; NULL: none. */
static void is_left_out(struct guide *g, const uint32_t *sites, const uint32_t *settings,
                        const char *expected)
{
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    struct solution s;
    json_t *answer = NULL, *list;

    assert_int_equal(request_make_model(&m, g->request, g->hub, &error), 0);
    s = guide_solution(m, sites, settings);
    answer = answer_make(m, &s);
    list = json_object_get(answer, "leftOut");
    assert_int_equal(json_array_size(list), expected ? 1 : 0);
    if (expected)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "reason")), expected);
    json_decref(answer);
    solution_done(&s);
    (void)model_free(m);
    guide_done(g);
}

#define WITH(more) GUIDE_WITH("example-performance-score", more)
#define ONE_CLUSTER(workload, preference)                                                   \
    "{'clusters':[" GUIDE_CLUSTER("1") "],'targetWorkloads':[{'name':'mwrs-app01'" workload \
                                       "}],'preference':{" preference                       \
                                       "'scoreDimensionFormat':'${app};${device}'}}"

/* The first workload has no place, unless it says where. */
static void says_why(void **state)
{
    static const struct {
        const char *request, *label, *value, *expected;
        uint32_t site; /* of the first workload */
    } cases[] = {
        {GUIDE, NULL, NULL, NULL, 0},
        {GUIDE, "resource-request-kind", "fpga", "KindDiffers", NOWHERE},
        {GUIDE, "app", "unknown", "NoScore", NOWHERE},
        {GUIDE, "resource-request-amount", "4", "NoCapacity", NOWHERE},
        {GUIDE, NULL, NULL, "NoCapacity", NOWHERE},
        {WITH(",'forbid':[{'workload':'mwrs-app01','clusters':['worker01','worker02']}]"), NULL, NULL,
         "Pinned", NOWHERE},
        {WITH(",'moves':{'max':0}"), NULL, NULL, "MoveBudget", NOWHERE},
        {ONE_CLUSTER("", "'scores':[{'addonPlacementScore':'example-performance-score','weight':-1}],"), NULL,
         NULL, "NegativeScore", NOWHERE},
        {ONE_CLUSTER("", "'scores':[{'addonPlacementScore':'example-performance-score','weight':-1}],"),
         "resource-request-amount", "4", "NegativeScore", NOWHERE},
        {ONE_CLUSTER(",'replicas':2", "'addonPlacementScore':'example-performance-score',"), NULL, NULL,
         "NoCapacity", 0},
    };
    static const uint32_t settings[] = {1, 4};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct guide g = guide_new(cases[i].request);

        if (cases[i].label)
            guide_label(&g, KIND_WORKLOADS, "mwrs-app01", cases[i].label, cases[i].value);
        is_left_out(&g, (uint32_t[]){cases[i].site, 1}, settings, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_why)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
