/* Formats of score items: which names they match. */
#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_request.h"
#include "exporter/base/clock.h"
#include "test/unit/assist/guide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static json_t *request_of(const char *format)
{
    json_t *o = guide_json("{'clusters':[{'name':'c','availablePolicies':[{'name':'p2g'},{'name':'p3g'}]}],"
                           "'targetWorkloads':[{'name':'a'},{'name':'app01'},{'name':'app01;x'}]}");

    (void)json_object_set_new(
        o, "preference", json_pack("{s:s, s:s}", "addonPlacementScore", "s", "scoreDimensionFormat", format));
    return o;
}

/* "[app device]" for each combination that an item of this name gives a score. Devices: "2g", and "x;2g". */
static void matches(const char *format, const char *name, const char *expected)
{
    struct guide g = {.request = request_of(format), .hub = snapshot_new((unix_ms){1})};
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    char found[1100] = "";

    guide_add_cluster(&g, "c");
    guide_add_policy(&g, "p2g");
    guide_add_policy(&g, "p3g");
    guide_label(&g, KIND_POLICIES, "p2g", "resource-supply-device", "2g");
    guide_label(&g, KIND_POLICIES, "p3g", "resource-supply-device", "x;2g");
    guide_add_workload(&g, "a");
    guide_add_workload(&g, "app01");
    guide_add_workload(&g, "app01;x");
    guide_add(&g, KIND_SCORES,
              json_pack("{s:{s:s, s:s}, s:{s:[{s:s, s:i}]}}", "metadata", "namespace", "c", "name", "s",
                        "status", "scores", "name", name, "value", 7));
    if (request_make_model(&m, g.request, g.hub, &error) < 0)
        (void)snprintf(found, sizeof(found), "%s", error.detail);
    for (size_t s = 0; m && s < m->problem.n_settings; s++)
        for (size_t w = 0; w < m->problem.n_workloads; w++)
            if (problem_score(&m->problem, s, w) == 7)
                (void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "[%s %s]",
                               m->workloads[w].app, m->settings[s].device);
    assert_string_equal(found, expected);
    (void)model_free(m);
    guide_done(&g);
}

#define UNKNOWN(placeholder)                                                                  \
    "scoreDimensionFormat has an unknown placeholder " placeholder "; known are ${cluster}, " \
    "${node}, ${device}, ${namespace}, ${app}, ${pod}, ${container}, ${scoreName}, ${meta}"

static void matches_names(void **state)
{
    static const char *const cases[][3] = {
        {"${app};${device}", "app01;2g", "[app01 2g]"},
        {"${device}/${app}", "2g/app01", "[app01 2g]"},
        {"score-${app}-on-${device}-x", "score-app01-on-2g-x", "[app01 2g]"},
        {"${app};${device}", "app02;2g", ""},
        {"${app};${device}", "app01;3g", ""},
        {"${app};${device}", "app01,2g", ""},
        {"${app};${device}", ";2g", ""},
        {"${app};${device}", "", ""},
        /* Other text is literal. */
        {"${app}.*${device}", "app01.*2g", "[app01 2g]"},
        {"${app}.*${device}", "app01xx2g", ""},
        {"$app;${device}", "$app;2g", "[a 2g][app01 2g][app01;x 2g]"},
        {"${app};${device}$", "app01;2g$", "[app01 2g]"},
        /* Other placeholders match anything. */
        {"${node};${app};${device}", "n1;app01;2g", "[app01 2g]"},
        {"${app};${device};${pod}", "app01;2g;", ""},
        {"${app}", "app01", "[app01 2g][app01 x;2g]"},
        /* Every way to read a name counts. */
        {"${app};${device}", "app01;x;2g", "[app01;x 2g][app01 x;2g]"},
        {"${node}a${pod}a${container}a${namespace}a${cluster}a${app}",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", ""},
        {"${app", "x", "scoreDimensionFormat has a placeholder without a name or without }"},
        {"${}", "x", "scoreDimensionFormat has a placeholder without a name or without }"},
        {"${app}${app}", "x", "scoreDimensionFormat has a placeholder twice"},
        {"${ap};${device}", "app01;2g", UNKNOWN("${ap}")},
        {"${app};${Device}", "app01;2g", UNKNOWN("${Device}")},
        {"${app};${device};${zone}", "app01;2g;z", UNKNOWN("${zone}")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        matches(cases[i][0], cases[i][1], cases[i][2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matches_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
