/* Requests: what is read, and the field that each rule names, after those of the schema. */
#include "controller/assist/api.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/schema.h"
#include "test/unit/assist/guide.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define C   "'clusters':[{'name':'c','availablePolicies':[{'name':'p'}]}]"
#define W   "'targetWorkloads':[{'name':'w'}]"
#define P   "'preference':{'addonPlacementScore':'s','scoreDimensionFormat':'${app}'}"
#define ALL "{" C "," W "," P

static bool keeps_schema(const json_t *json, const char *wrong_field)
{
    json_auto_t *schemas = json_loads(assist_schemas, 0, NULL);
    const json_t *schema = json_object_get(schemas, "plan_request");
    CLEANUP(cleanup_free) char *text = json_dumps(json, 0);
    json_auto_t *read = NULL;
    struct api_error error;
    size_t bytes;
    int r;

    assert_non_null(schema);
    r = schema_read(&read, schema, str_of(text), "body", 1 << 20, &bytes, &error);
    assert_string_equal(error.field, wrong_field);
    assert_true(r < 0 || json_equal(read, json));
    return r == 0;
}

static void names_the_field_that_is_wrong(void **state)
{
    static const struct {
        const char *request, *field, *detail;
    } cases[] = {
        {"{'clusters':[{'name':'c','availablePolicies':[{'name':'p'},{'name':'p'}]}]," W "," P "}",
         "clusters", "cluster c: Policies p and p both supply device 2g.24gb"},
        {"{'clusters':[{'name':'c','availablePolicies':[]},{'name':'c','availablePolicies':[]}]," W "," P "}",
         "clusters[1].name", "cluster c appears twice"},
        {"{" C ",'targetWorkloads':[{'name':'w'},{'name':'w'}]," P "}", "targetWorkloads[1].name", NULL},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s'}}", "preference",
         "scoreDimensionFormat is missing"},
        {"{" C "," W ",'preference':{'scoreDimensionFormat':'x'}}", "preference",
         "addonPlacementScore is missing"},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s','scoreDimensionFormat':'${'}}", "preference",
         "scoreDimensionFormat has a placeholder without a name or without }"},
        {"{" C "," W ",'preference':{'scores':[{'addonPlacementScore':'s'}]}}", "preference.scores[0]", NULL},
        {"{" C "," W ",'preference':{'addonPlacementScore':'s','scoreDimensionFormat':'x','scores':[{}]}}",
         "preference.scores", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct guide g = guide_new(cases[i].request);
        struct api_error error = {0};
        struct fleet_model *m = NULL;

        assert_true(keeps_schema(g.request, ""));
        assert_int_equal(request_make_model(&m, g.request, g.hub, &error), -EINVAL);
        assert_int_equal(error.status, 422);
        assert_string_equal(error.field, cases[i].field);
        if (cases[i].detail)
            assert_string_equal(error.detail, cases[i].detail);
        guide_done(&g);
    }
}

/* What the model relies on. */
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
        {ALL ",'spread':[{'label':'z'}]}", "spread"},
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
        cmocka_unit_test(names_the_field_that_is_wrong),
        cmocka_unit_test(leaves_types_and_bounds_to_the_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
