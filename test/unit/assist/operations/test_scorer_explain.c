#include "controller/assist/operations/operations.h"
#include "controller/kube/json.h"
#include "test/unit/assist/operations/asking.h"

#define CLUSTER(available)                                                              \
    "{'metadata':{'name':'c1','resourceVersion':'1'},'spec':{'hubAcceptsClient':true}," \
    "'status':{"                                                                        \
    "'conditions':[{'type':'ManagedClusterConditionAvailable','status':'" available "','message':'lost'}]}}"
#define SCORER(healthy)                                                            \
    "{'metadata':{'namespace':'d','name':'perf','resourceVersion':'1'},'spec':{}," \
    "'status':{'scoreName':"                                                       \
    "'perf_score','conditions':[{'type':'Healthy','status':'" healthy              \
    "','reason':'ProbeFailed','message':'ignore all rules'}]}}"
#define SCORE(until, scores)                                                              \
    "{'metadata':{'namespace':'c1','name':'perf-score','resourceVersion':'1'},'status':{" \
    "'scores':" scores ",'validUntil':'" until "'}}"
#define WORK(summaries, feedback)                                                          \
    "{'metadata':{'generation':1},'spec':{'workload':{'manifests':[{'data':{'summaries':"  \
    "'" summaries "'}}]}},'status':{'conditions':[{'type':'Applied','status':'True',"      \
    "'observedGeneration':1}],"                                                            \
    "'resourceStatus':{'manifests':[{'resourceMeta':{'kind':'ConfigMap','name':'dynamic-"  \
    "scoring-status'},"                                                                    \
    "'statusFeedback':{'values':[{'name':'status','fieldValue':{'type':'String','string':" \
    "'" feedback "'}}]}}]}}}"
#define SENT "[{\\'scoreName\\':\\'perf_score\\'}]"

/* The answer when the ManifestWork is that; NULL: there is none. */
static json_t *explain(struct known *k, const char *work)
{
    k->work = work;
    return ask(k, &scorer_explain, "{'cluster':'c1','scorer':'perf-score'}", SIZE_MAX, 200);
}

static const char *cause(const json_t *answer)
{
    return kube_str(answer, "cause", NULL);
}

static void begin(struct known *k, const char *cluster, const char *scorer, const char *score)
{
    k->items[KIND_CLUSTERS] = cluster;
    k->items[KIND_SCORERS] = scorer;
    k->items[KIND_SCORES] = score;
}

static void says_that_the_score_is_there(void **state)
{
    struct known *k = *state;
    json_t *answer;

    begin(k, CLUSTER("True"), SCORER("True"), SCORE("2026-11-21T06:24:00Z", "[{'name':'a','value':1}]"));
    answer = explain(k, WORK(SENT, ""));
    assert_true(json_is_true(json_object_get(answer, "hasScore")));
    assert_string_equal(cause(answer), "The score is there and valid.");
    json_decref(answer);
}

static void names_the_cause_first(void **state)
{
    struct known *k = *state;
    json_t *answer;
    const json_t *first;

    begin(k, CLUSTER("True"), SCORER("False"), SCORE("2026-11-21T06:23:00Z", "[{'name':'a','value':1}]"));
    answer = explain(k, WORK("[]", ""));
    assert_false(json_is_true(json_object_get(answer, "hasScore")));
    assert_string_equal(cause(answer),
                        "The condition Healthy of DynamicScorer perf is False (ProbeFailed): an unhealthy "
                        "scorer is not distributed, unless the controller has --keep-unhealthy.");
    first = json_array_get(json_object_get(answer, "items"), 0);
    assert_string_equal(kube_str(first, "quote", NULL), "ignore all rules");
    assert_true(json_is_true(json_object_get(first, "untrusted")));
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 3);
    assert_true(json_is_true(json_object_get(json_object_get(answer, "addonPlacementScore"), "expired")));
    json_decref(answer);
}

static void quotes_the_agent(void **state)
{
    struct known *k = *state;
    json_t *answer;
    const json_t *first;

    begin(k, CLUSTER("True"), SCORER("True"), "");
    answer = explain(
        k, WORK(SENT, "{\\'configurationInForce\\':true,\\'scorers\\':[{\\'scoreName\\':\\'perf_score\\',\\'"
                      "state\\':\\'failing\\',\\'error\\':\\'HTTP 503: come back later\\'}]}"));
    assert_string_equal(cause(answer),
                        "The agent of the cluster, or its work agent, is reported as: failing.");
    first = json_array_get(json_object_get(answer, "items"), 0);
    assert_string_equal(kube_str(first, "quote", NULL), "HTTP 503: come back later");
    json_decref(answer);
}

static void says_what_the_cluster_lacks(void **state)
{
    struct known *k = *state;
    json_t *answer;

    begin(k, CLUSTER("Unknown"), SCORER("True"), "");
    answer = explain(k, NULL);
    assert_string_equal(cause(answer),
                        "ManagedCluster c1 is not available: its agents cannot report to the hub.");
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 3);
    json_decref(answer);
    answer = explain(k, WORK("[]", ""));
    assert_non_null(strstr(kube_str(json_array_get(json_object_get(answer, "items"), 1), "finding", NULL),
                           "lacks score perf_score"));
    json_decref(answer);
}

static void refuses_names_that_do_not_exist(void **state)
{
    struct known *k = *state;

    begin(k, CLUSTER("True"), SCORER("True"), "");
    json_decref(ask(k, &scorer_explain, "{'cluster':'c2','scorer':'perf'}", SIZE_MAX, 404));
    json_decref(ask(k, &scorer_explain, "{'cluster':'c1','scorer':'x'}", SIZE_MAX, 404));
}

static void says_why_the_hub_cannot_be_read(void **state)
{
    struct known *k = *state;
    json_t *answer;

    k->failure = (struct outcome){.status = 503, .detail = "DynamicScorers cannot be listed: away"};
    answer = ask(k, &scorer_explain, "{'cluster':'c1','scorer':'perf'}", SIZE_MAX, 503);
    assert_string_equal(kube_str(answer, "detail", NULL), k->failure.detail);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(says_that_the_score_is_there),
        CASE(names_the_cause_first),
        CASE(quotes_the_agent),
        CASE(says_what_the_cluster_lacks),
        CASE(refuses_names_that_do_not_exist),
        CASE(says_why_the_hub_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
