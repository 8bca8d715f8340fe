/* What a plan says, and what it says in few bytes. */
#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_answer.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/score.h"
#include "controller/optimize/solution.h"

#include "controller/kube/json.h"
#include "test/unit/assist/guide.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const uint32_t sites[] = {0, 1}, settings[] = {1, 4};

static json_t *answer_of(struct guide *g, const uint32_t *at, const uint32_t *with, int64_t above)
{
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    struct solution s;
    json_t *answer = NULL;

    assert_int_equal(request_make_model(&m, g->request, g->hub, &error), 0);
    s = guide_solution(m, at, with);
    s.bound += above;
    answer = answer_make(m, &s);
    solution_done(&s);
    (void)model_free(m);
    return answer;
}

static void holds(const json_t *answer, const char *key, const char *expected)
{
    char *text = json_dumps(json_object_get(answer, key), JSON_COMPACT | JSON_ENCODE_ANY);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void tells_of_the_guides_example(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *a = answer_of(&g, sites, settings, 0);

    (void)state;
    holds(a, "status", "\"Optimal\"");
    holds(a, "objective_value", "115.0");
    holds(a, "bound", "115.0");
    holds(a, "gap", "0.0");
    holds(a, "placements",
          "[{\"workload\":\"mwrs-app01\",\"cluster\":\"worker01\",\"device\":\"3g.48gb\","
          "\"policy\":\"policy-enable-mig-3g-worker01\",\"score\":60.0},"
          "{\"workload\":\"mwrs-app02\",\"cluster\":\"worker02\",\"device\":\"3g.48gb\","
          "\"policy\":\"policy-enable-mig-3g-worker02\",\"score\":55.0}]");
    assert_string_equal(kube_str(json_array_get(kube_list(a, "clusters", NULL), 1), "device", NULL),
                        "3g.48gb");
    holds(a, "leftOut", "[]");
    holds(a, "moves", "[]");
    holds(a, "missingScores", "{\"count\":0,\"first\":[]}");
    holds(a, "notes", "[]");
    holds(a, "totals", "{\"placements\":2,\"clusters\":2,\"moves\":0,\"leftOut\":0}");
    guide_done(&g);
}

static void tells_moves(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_t *a;

    (void)state;
    guide_runs(&g, "app01-placement", "worker02");
    guide_runs(&g, "app02-placement", "worker02");
    guide_runs(&g, "app02-placement", "elsewhere");
    a = answer_of(&g, sites, settings, 0);
    holds(a, "moves",
          "[{\"workload\":\"mwrs-app01\",\"from\":\"worker02\",\"to\":\"worker01\"},"
          "{\"workload\":\"mwrs-app02\",\"from\":\"elsewhere\",\"to\":null}]");
    json_decref(a);
    guide_done(&g);
}

static void notes_what_holds_a_plan_back(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_t *a;

    (void)state;
    guide_remove(&g, KIND_SET_BINDINGS, "");
    (void)json_object_del(guide_get(&g, KIND_CLUSTERS, NULL, "worker02"), "status");
    ((struct score *)guide_get(&g, KIND_SCORES, "worker01", "example-performance-score"))->is_expired = true;
    a = answer_of(&g, (uint32_t[]){UINT32_MAX, 1}, settings, 0);
    holds(a, "notes",
          "[\"1 AddOnPlacementScores have expired and count as missing.\","
          "\"1 clusters (first: worker02) report no ClusterClaim policy-watcher-claim: workloads wait there "
          "until a "
          "policy watcher runs.\",\"Namespace default has no ManagedClusterSetBinding: Placements there "
          "select no "
          "cluster.\"]");
    json_decref(a);
    guide_done(&g);
}

static void cuts_to_fit(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *a = answer_of(&g, sites, settings, 0), *whole, *cut;

    (void)state;
    (void)json_object_set_new(a, "output_yaml", json_string("x: y"));
    whole = answer_cut(a, SIZE_MAX);
    assert_ptr_equal(whole, a);
    cut = answer_cut(a, 600);
    assert_true(json_dumpb(cut, NULL, 0, JSON_COMPACT) <= 600);
    assert_null(json_object_get(cut, "output_yaml"));
    assert_int_equal(json_array_size(json_object_get(cut, "notes")), 1);
    assert_int_equal(json_array_size(json_object_get(a, "placements")), 2);
    holds(cut, "totals", "{\"placements\":2,\"clusters\":2,\"moves\":0,\"leftOut\":0}");
    guide_done(&g);
}

/* Whether a note has these words. */
static bool has_note(const json_t *answer, const char *words)
{
    const json_t *notes = json_object_get(answer, "notes"), *note;
    size_t i;

    json_array_foreach(notes, i, note)
    {
        if (strstr(json_string_value(note), words))
            return true;
    }
    return false;
}

#define OFFERED_TO_WORKER01                                                                        \
    "{'clusters':[{'name':'worker01','availablePolicies':[{'name':'policy-enable-mig-3g-worker02'" \
    "},{'name':'policy-enable-mig-2g-worker02'}]},{'name':'worker02','availablePolicies':["        \
    "{'name':'policy-enable-mig-3g-worker02'}]}],'targetWorkloads':[{'name':'mwrs-app01'},"        \
    "{'name':'mwrs-app02'}],'preference':{'addonPlacementScore':'example-performance-score',"      \
    "'scoreDimensionFormat':'${app};${device}'}}"

static void notes_policies_of_other_clusters(void **state)
{
    static const char foreign[] = "for worker02";
    struct guide g = guide_new(OFFERED_TO_WORKER01), own = guide_new(GUIDE);
    json_t *a;

    (void)state;
    a = answer_of(&own, sites, settings, 0);
    assert_false(has_note(a, "offered to"));
    json_decref(a);
    a = answer_of(&g, sites, (uint32_t[]){1, 2}, 0);
    assert_true(
        has_note(a, "2 Policies are offered to clusters that they are not for. The first, "
                    "policy-enable-mig-2g-worker02, is offered to worker01, but its name says that it is for "
                    "worker02."));
    json_decref(a);
    /* Its label wins over its name. */
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker02", "cluster-name", "worker01");
    a = answer_of(&g, sites, (uint32_t[]){1, 2}, 0);
    assert_true(has_note(
        a, "Policy policy-enable-mig-3g-worker02 is offered to cluster worker01, but its name says that "
           "it is for worker02."));
    json_decref(a);
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-3g-worker02", "cluster-name", "worker03");
    a = answer_of(&g, sites, (uint32_t[]){1, 2}, 0);
    assert_true(has_note(a, "but its label says that it is for worker03."));
    assert_false(has_note(a, foreign));
    json_decref(a);
    guide_done(&g);
    guide_done(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_of_the_guides_example),      cmocka_unit_test(tells_moves),
        cmocka_unit_test(notes_what_holds_a_plan_back),     cmocka_unit_test(cuts_to_fit),
        cmocka_unit_test(notes_policies_of_other_clusters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
