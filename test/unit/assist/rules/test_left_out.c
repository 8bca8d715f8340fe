/* The true reason of each workload that has no place. */
#include "controller/assist/rules/answer.h"
#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"

#include "test/unit/assist/rules/guide.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOWHERE UINT32_MAX

/* The reason of the only workload without a place when w goes to sites[w] with settings[w]; NULL: none. */
static void is_left_out(struct guide *g, const uint32_t *sites, const uint32_t *settings,
                        const char *expected)
{
    struct objection ob = {0};
    struct model *m = NULL;
    struct solution s;
    json_t *answer = NULL, *list;

    assert_int_equal(model_new(&m, &g->in, &ob), 0);
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

#define REQUEST(more) GUIDE_WITH("example-performance-score", more)

static const uint32_t second_only[] = {NOWHERE, 1}, settings[] = {1, 4};

static void none_if_all_have_a_place(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    is_left_out(&g, (uint32_t[]){0, 1}, settings, NULL);
}

static void kind_differs(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    guide_label(g.in.workloads[0], "resource-request-kind", "fpga");
    is_left_out(&g, second_only, settings, "KindDiffers");
}

static void no_score(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    guide_label(g.in.workloads[0], "app", "unknown");
    is_left_out(&g, second_only, settings, "NoScore");
}

static void pinned(void **state)
{
    struct guide g =
        guide_new(REQUEST(",'forbid':[{'workload':'mwrs-app01','clusters':['worker01','worker02']}]"));

    (void)state;
    is_left_out(&g, second_only, settings, "Pinned");
}

static void too_large_for_any(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    guide_label(g.in.workloads[0], "resource-request-amount", "4");
    is_left_out(&g, second_only, settings, "NoCapacity");
}

static void taken_by_others(void **state)
{
    struct guide g = guide_new(GUIDE);

    (void)state;
    is_left_out(&g, second_only, settings, "NoCapacity");
}

static void negative_score(void **state)
{
    struct guide g = guide_new("{'clusters':[" GUIDE_CLUSTER(
        "1") "],'targetWorkloads':[{'name':'mwrs-app01'}],'preference':{"
             "'scores':[{'addonPlacementScore':'example-performance-score','weight':-1,"
             "'scoreDimensionFormat':'${app};${device}'}]}}");

    (void)state;
    is_left_out(&g, (uint32_t[]){NOWHERE}, settings, "NegativeScore");
}

static void spread_over_a_label(void **state)
{
    struct guide g =
        guide_new(REQUEST(",'spread':[{'label':'zone','workloads':['mwrs-app01','mwrs-app02']}]"));

    (void)state;
    is_left_out(&g, second_only, settings, "Spread");
}

static void more_replicas_than_clusters(void **state)
{
    struct guide g = guide_new("{'clusters':[" GUIDE_CLUSTER(
        "1") "],'targetWorkloads':[{'name':'mwrs-app01',"
             "'replicas':2}],'preference':{'addonPlacementScore':'example-performance-score',"
             "'scoreDimensionFormat':'${app};${device}'}}");

    (void)state;
    is_left_out(&g, (uint32_t[]){0}, settings, "NoCapacity");
}

static void move_budget(void **state)
{
    struct guide g = guide_new(REQUEST(",'moves':{'max':0}"));

    (void)state;
    is_left_out(&g, second_only, settings, "MoveBudget");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_if_all_have_a_place),
        cmocka_unit_test(kind_differs),
        cmocka_unit_test(no_score),
        cmocka_unit_test(pinned),
        cmocka_unit_test(too_large_for_any),
        cmocka_unit_test(taken_by_others),
        cmocka_unit_test(negative_score),
        cmocka_unit_test(spread_over_a_label),
        cmocka_unit_test(more_replicas_than_clusters),
        cmocka_unit_test(move_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
