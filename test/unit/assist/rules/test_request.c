/* Requests: what is read, and the field that each rule names, after those of the schema. */
#include "controller/assist/api/schema.h"
#include "controller/assist/api/schemas.h"
#include "controller/assist/rules/request.h"
#include "test/unit/assist/rules/guide.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void reads_the_guides_request(void **state)
{
    struct guide g = guide_new(GUIDE);
    const struct plan_request *r = g.request;

    (void)state;
    assert_string_equal(r->namespace, "default");
    assert_int_equal(r->n_clusters, 2);
    assert_string_equal(r->clusters[1].name, "worker02");
    assert_int_equal(r->clusters[1].first_policy, 3);
    assert_string_equal(r->clusters[1].policies.names[2], "policy-disable-mig-worker02");
    assert_int_equal(r->n_workloads, 2);
    assert_int_equal(r->workloads[0].replicas, 1);
    assert_string_equal(r->scores[0].name, "example-performance-score");
    assert_true(r->scores[0].weight == 1 && !r->dry_run && r->max_moves == SIZE_MAX && r->deadline_ms == 0);
    guide_done(&g);
}

static void reads_every_option(void **state)
{
    struct guide g = guide_new(
        "{'clusters':[{'name':'c','availablePolicies':[]}],"
        "'targetWorkloads':[{'name':'mwrs-a','replicas':3}],'dryRun':true,'deadline':'5s',"
        "'preference':{'scoreDimensionFormat':'${app}','scores':[{'addonPlacementScore':'x','weight':0.5},"
        "{'addOnPlacementScore':'y','scoreDimensionFormat':'${device}','weight':-2}]},"
        "'moves':{'cost':1.5,'max':4},'spread':[{'label':'zone','max':2,'workloads':['mwrs-a']},{'label':'"
        "rack'}],"
        "'pin':[{'workload':'mwrs-a','clusters':['c']}],'forbid':[{'workload':'mwrs-a','clusters':['c']}]}");
    const struct plan_request *r = g.request;

    (void)state;
    assert_string_equal(r->namespace, "default");
    assert_int_equal(r->workloads[0].replicas, 3);
    assert_true(r->dry_run && r->deadline_ms == 5000 && r->move_cost == 1.5 && r->max_moves == 4);
    assert_true(r->n_scores == 2 && r->scores[0].weight == 0.5 && r->scores[1].weight == -2);
    assert_int_equal(r->scores[0].format.parts[0].kind, SCORE_APP);
    assert_int_equal(r->scores[1].format.parts[0].kind, SCORE_DEVICE);
    assert_true(r->n_spreads == 2 && r->spreads[0].max == 2 && r->spreads[0].workloads.n == 1);
    assert_true(r->spreads[1].max == 1 && r->spreads[1].workloads.n == 0);
    assert_string_equal(r->pins[0].clusters.names[0], "c");
    assert_string_equal(r->forbids[0].workload, "mwrs-a");
    guide_done(&g);
}

static void takes_both_spellings(void **state)
{
    struct guide g =
        guide_new("{'clusters':[{'name':'c','availablePolicies':[]}],'targetWorkloads':[{'name':'w'}],"
                  "'preference':{'addOnPlacementScore':'s','scoreDimensionFormat':'${app}'}}");

    (void)state;
    assert_string_equal(g.request->scores[0].name, "s");
    guide_done(&g);
}

#define C   "'clusters':[{'name':'c','availablePolicies':[{'name':'p'}]}]"
#define W   "'targetWorkloads':[{'name':'w'}]"
#define P   "'preference':{'addonPlacementScore':'s','scoreDimensionFormat':'${app}'}"
#define ALL "{" C "," W "," P

static bool keeps_schema(const json_t *json, const char *wrong_field)
{
    json_auto_t *schema = json_loads(schema_plan_request, 0, NULL);
    struct schema_problem problem;
    bool keeps = schema_accepts(schema, json, &problem);

    assert_non_null(schema);
    assert_string_equal(problem.field, wrong_field);
    return keeps;
}

static void names_the_field_that_is_wrong(void **state)
{
    static const struct {
        const char *request, *field, *detail;
    } cases[] = {
        {ALL ",'namespace':'a/b'}", "namespace", "namespace: is not a valid name of a Kubernetes object"},
        {ALL ",'namespace':'.'}", "namespace", NULL},
        {ALL ",'deadline':'soon'}", "deadline", NULL},
        {ALL ",'deadline':'1h'}", "deadline", "deadline: expected a duration of 10ms to 10m, such as \"5s\""},
        {ALL ",'pin':[{'workload':'a/b','clusters':['c']}]}", "pin[0].workload", NULL},
        {ALL ",'forbid':[{'workload':'w','clusters':['c','c']}]}", "forbid[0].clusters[1]", NULL},
        {ALL ",'spread':[{'label':'z','workloads':['w','/']}]}", "spread[0].workloads[1]", NULL},
        {"{'clusters':[{'name':'c','availablePolicies':[{'name':'p'},{'name':'p'}]}]," W "," P "}",
         "clusters[0].availablePolicies[1].name", NULL},
        {"{'clusters':[{'name':'c','availablePolicies':[]},{'name':'c','availablePolicies':[]}]," W "," P "}",
         "clusters[1].name", "clusters[1].name: c appears twice"},
        {"{" C ",'targetWorkloads':[{'name':'w'},{'name':'w'}]," P "}", "targetWorkloads[1].name", NULL},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s'}}", "preference.scoreDimensionFormat",
         "preference.scoreDimensionFormat: missing"},
        {"{" C "," W ",'preference':{'scoreDimensionFormat':'x'}}", "preference.addonPlacementScore",
         "preference.addonPlacementScore: missing"},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s','scoreDimensionFormat':'${'}}",
         "preference.scoreDimensionFormat", "preference.scoreDimensionFormat: has a ${ without its }"},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s','addOnPlacementScore':'s',"
         "'scoreDimensionFormat':'x'}}",
         "preference.addOnPlacementScore", NULL},
        {"{" C "," W ",'preference':{'scores':[{'addonPlacementScore':'s'}]}}",
         "preference.scores[0].scoreDimensionFormat", NULL},
        {"{" C "," W ",'preference':{'scoreDimensionFormat':'${','scores':[{'addonPlacementScore':'s'}]}}",
         "preference.scoreDimensionFormat", NULL},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s','scoreDimensionFormat':'x','scores':[{}]}}",
         "preference.scores", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *json = guide_json(cases[i].request);
        struct objection ob = {0};
        struct plan_request *r = NULL;

        assert_true(keeps_schema(json, ""));
        assert_int_equal(request_read(&r, json, &ob), -EINVAL);
        assert_int_equal(ob.status, 422);
        assert_string_equal(ob.field, cases[i].field);
        if (cases[i].detail)
            assert_string_equal(ob.detail, cases[i].detail);
    }
}

/* What request_read() relies on. */
static void leaves_types_and_bounds_to_the_schema(void **state)
{
    static const struct {
        const char *request, *field;
    } cases[] = {
        {"[]", ""},
        {"{" C "," P "}", "targetWorkloads"},
        {"{" C "," W "}", "preference"},
        {ALL ",'dryrun':true}", "dryrun"},
        {ALL ",'namespace':7}", "namespace"},
        {ALL ",'namespace':''}", "namespace"},
        {ALL ",'moves':{'cost':-1}}", "moves.cost"},
        {ALL ",'moves':{'max':1.5}}", "moves.max"},
        {ALL ",'moves':{'maximum':3}}", "moves.maximum"},
        {ALL ",'spread':{}}", "spread"},
        {ALL ",'spread':[{'max':1}]}", "spread[0].label"},
        {ALL ",'spread':[{'label':'z','max':0}]}", "spread[0].max"},
        {ALL ",'pin':[{'workload':'w'}]}", "pin[0].clusters"},
        {ALL ",'pin':[{'workload':'w','clusters':[]}]}", "pin[0].clusters"},
        {"{'clusters':[]," W "," P "}", "clusters"},
        {"{'clusters':[{'name':'c'}]," W "," P "}", "clusters[0].availablePolicies"},
        {"{'clusters':[{'availablePolicies':[]}]," W "," P "}", "clusters[0].name"},
        {"{" C ",'targetWorkloads':[{'name':'w','replicas':0}]," P "}", "targetWorkloads[0].replicas"},
        {"{" C ",'targetWorkloads':['w']," P "}", "targetWorkloads[0]"},
        {"{" C "," W ",'preference':{'scores':[]}}", "preference.scores"},
        {"{" C "," W ",'preference':{'scores':[{'weight':'1'}]}}", "preference.scores[0].weight"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *json = guide_json(cases[i].request);

        assert_false(keeps_schema(json, cases[i].field));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_guides_request),
        cmocka_unit_test(reads_every_option),
        cmocka_unit_test(takes_both_spellings),
        cmocka_unit_test(names_the_field_that_is_wrong),
        cmocka_unit_test(leaves_types_and_bounds_to_the_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
