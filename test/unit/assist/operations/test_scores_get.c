#include "controller/assist/operations/operations.h"
#include "exporter/base/buf.h"
#include "test/unit/assist/operations/asking.h"

#define SCORER                                                                   \
    "{'metadata':{'namespace':'d','name':'perf','resourceVersion':'1'},'spec':{" \
    "'description':'Speed',"                                                     \
    "'scoreDimensionFormat':'${app};${device}'},'status':{'scoreName':'perf_score'}}"

static void lists_scores_with_what_their_scorer_says(void **state)
{
    struct known *k = *state;

    k->items[KIND_SCORERS] = SCORER;
    k->items[KIND_SCORES] =
        "{'metadata':{'namespace':'c1','name':'perf-score','resourceVersion':'1','uid':'u','labels':{'l':'m'}"
        "},'status':{'scores':[{'name':'b','value':60},{'name':'a','value':-5}],'validUntil':'2026-11-21T06:"
        "24:00Z'}},{'metadata':{'namespace':'c2','name':'perf-score','resourceVersion':'1'},'status':{'"
        "scores':[{'name':'a','value':1}],'validUntil':'2026-11-21T06:23:00Z'}},{'metadata':{'namespace':'c2'"
        ",'name':'other','resourceVersion':'1'}}";
    expect_answer(k, &scores_get, "{'name':'perf-score'}",
                  "{'untrusted':true,'summary':[{'name':'perf-score','clusters':2,'expired':1,'items':2,'min'"
                  ":-5,'median':-5,'max':60,'scoreDimensionFormat':'${app};${device}','description':'Speed'}]"
                  ",'items':[{'apiVersion':'cluster.open-cluster-management.io/"
                  "v1alpha1','kind':'AddOnPlacementScore','metadata':{'name':'perf-score','namespace':'c1','"
                  "labels':{'l':'m'},'annotations':{'dynamic-scoring.open-cluster-management.io/"
                  "description':'Speed','dynamic-scoring.open-cluster-management.io/"
                  "score-dimension-format':'${app};${device}'}},'status':{'scores':[{'name':'a','value':-5},{"
                  "'name':'b','value':60}],'validUntil':'2026-11-21T06:24:00Z'},'expired':false},{'"
                  "apiVersion':'cluster.open-cluster-management.io/"
                  "v1alpha1','kind':'AddOnPlacementScore','metadata':{'name':'perf-score','namespace':'c2','"
                  "annotations':{'dynamic-scoring.open-cluster-management.io/"
                  "description':'Speed','dynamic-scoring.open-cluster-management.io/"
                  "score-dimension-format':'${app};${device}'}},'status':{'scores':[{'name':'a','value':1}],'"
                  "validUntil':'2026-11-21T06:23:00Z'},'expired':true}],'total':2,'shown':2}");
    expect_answer(k, &scores_get, "{'namespace':'c2','limit':0}",
                  "{'untrusted':true,'summary':[{'name':'other','clusters':1,'expired':0,'items':0},{'name':'"
                  "perf-score','clusters':1,'expired':1,'items':0,'scoreDimensionFormat':'${app};${device}','"
                  "description':'Speed'}],'items':[],'total':2,'shown':0,'next':0,'note':'0 of 2 shown: ask "
                  "again with offset 0 for more'}");
}

static void summarizes_a_fleet_in_few_bytes(void **state)
{
    struct known *k = *state;
    const char *scores = "", *scorers = "";
    json_t *answer, *summary;

    for (unsigned i = 0; i < 20; i++) {
        scorers = known_text(
            k,
            "%s%s{'metadata':{'namespace':'d','name':'s%u','resourceVersion':'1'},'spec':{'description':'"
            "Predicts how much of the processors of a cluster is going to be free within the next hour, by a "
            "model of the last week. The more, the better. One value for each node, namespace and "
            "pod.'},'status':{'scoreName':'example_powerconsumption_%u'}}",
            scorers, i ? "," : "", i, i);
        for (unsigned c = 0; c < 20; c++)
            scores = known_text(k,
                                "%s%s{'metadata':{'namespace':'c%u','name':'example-powerconsumption-%u','"
                                "resourceVersion':'1'},'status':{'scores':[{'name':'i','value':%u}]}}",
                                scores, i + c ? "," : "", c, i, c);
    }
    k->items[KIND_SCORERS] = scorers;
    k->items[KIND_SCORES] = scores;
    answer = ask_briefly(k, &scores_get, "{}", 4096);
    summary = json_object_get(answer, "summary");
    assert_int_equal(json_array_size(summary), 20);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(summary, 0), "max")), 19);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(summary, 0), "median")), 9);
    assert_int_equal(json_integer_value(json_object_get(answer, "total")), 400);
    json_decref(answer);
    answer = ask_briefly(k, &scores_get, "{'namespace':'c7','name':'example-powerconsumption-3'}", 4096);
    assert_int_equal(json_integer_value(json_object_get(answer, "shown")), 1);
    json_decref(answer);
}

static void answers_with_all_values(void **state)
{
    struct known *k = *state;
    BUF_AUTO(items, 16u << 20);
    json_t *answer, *list;

    for (unsigned c = 0; c < 3; c++) {
        assert_int_equal(
            buf_printf(
                &items,
                "%s{'metadata':{'namespace':'c%u','name':'s','resourceVersion':'1'},'status':{'scores':[",
                c ? "," : "", c),
            0);
        for (unsigned i = 0; i < 80000; i++)
            assert_int_equal(buf_printf(&items, "%s{'name':'%u','value':1}", i ? "," : "", i), 0);
        assert_int_equal(buf_puts(&items, "]}}"), 0);
    }
    assert_int_equal(buf_putc(&items, '\0'), 0);
    k->items[KIND_SCORES] = items.p;
    answer = ask(k, &scores_get, "{}", SIZE_MAX, 200);
    list = json_object_get(json_object_get(json_array_get(json_object_get(answer, "items"), 2), "status"),
                           "scores");
    assert_int_equal(json_array_size(list), 80000);
    json_decref(answer);
    answer = ask(k, &scores_get, "{'offset':1,'limit':1}", SIZE_MAX, 200);
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 1);
    json_decref(answer);
    json_decref(ask_briefly(k, &scores_get, "{}", 4096));
}

static void lists_scorers(void **state)
{
    struct known *k = *state;

    k->items[KIND_SCORERS] =
        SCORER ",{'metadata':{'namespace':'d','name':'new','resourceVersion':'1'},'spec':{},'status':{'"
               "healthStatus':'Inactive','clusters':{'scoring':0},'conditions':[{'type':'Ready','status':'"
               "False','reason':'R','message':'m'}]}}";
    expect_answer(
        k, &scorers_list, "{}",
        "{'items':[{'namespace':'d','name':'new','description':'','scoreDimensionFormat':'${scoreName}','"
        "health':'Inactive','conditions':[{'type':'Ready','status':'False','reason':'R','message':'m'}],'"
        "clusters':{'scoring':0},'untrusted':true},{'namespace':'d','name':'perf','scoreName':'perf_score','"
        "addonPlacementScore':'perf-score','description':'Speed','scoreDimensionFormat':'${app};${device}','"
        "health':'Unknown','conditions':[],'untrusted':true}],'total':2,'shown':2}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lists_scores_with_what_their_scorer_says),
        CASE(summarizes_a_fleet_in_few_bytes),
        CASE(answers_with_all_values),
        CASE(lists_scorers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
