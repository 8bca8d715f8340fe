/* What a plan was made from: which changes count, and how they are named. */
#include "controller/assist/api_error.h"
#include "controller/assist/basis.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/score.h"

#include "test/unit/assist/guide.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static json_t *basis_of(const struct guide *g)
{
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    json_t *basis;

    assert_int_equal(request_make_model(&m, g->request, g->hub, &error), 0);
    basis = json_incref(m->basis);
    (void)model_free(m);
    return basis;
}

/* As JSON; ends the guide. */
static void changes(struct guide *g, const json_t *before, const char *expected)
{
    struct api_error error = {0};
    struct fleet_model *now = NULL;
    json_t *list;
    char *text;

    assert_int_equal(request_make_model(&now, g->request, g->hub, &error), 0);
    list = basis_changes(before, now, "h");
    text = json_dumps(list, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(list);
    (void)model_free(now);
    guide_done(g);
}

static void sees_what_a_plan_reads(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *before = basis_of(&g);

    (void)state;
    changes(&g, before, "[]");
    g = guide_new(GUIDE);
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-3g-worker01", "resource-supply-amount", "4");
    changes(&g, before,
            "[{\"kind\":\"Policy\",\"name\":\"policy-enable-mig-3g-worker01\",\"what\":\"labels\"}]");
    g = guide_new(GUIDE);
    guide_label(&g, KIND_WORKLOADS, "mwrs-app02", "resource-request-amount", "1");
    changes(&g, before,
            "[{\"kind\":\"ManifestWorkReplicaSet\",\"name\":\"mwrs-app02\",\"what\":\"labels\"}]");
    g = guide_new(GUIDE);
    ((struct score *)guide_get(&g, KIND_SCORES, "worker01", "example-performance-score"))->is_expired = true;
    changes(&g, before,
            "[{\"kind\":\"AddOnPlacementScore\",\"name\":\"worker01/example-performance-score\","
            "\"what\":\"values, validity\"}]");
    g = guide_new(GUIDE);
    ((struct score *)guide_get(&g, KIND_SCORES, "worker02", "example-performance-score"))->n_items--;
    changes(&g, before,
            "[{\"kind\":\"AddOnPlacementScore\",\"name\":\"worker02/"
            "example-performance-score\",\"what\":\"values\"}]");
    g = guide_new(GUIDE);
    guide_runs(&g, "app01-placement", "worker02");
    changes(&g, before,
            "[{\"kind\":\"PlacementDecision\",\"name\":\"app01-placement\",\"what\":\"is new\"}]");
}

static void ignores_other_labels(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *before = basis_of(&g);

    (void)state;
    guide_label(&g, KIND_CLUSTERS, "worker01", "feature.open-cluster-management.io/addon-x", "available");
    guide_label(&g, KIND_POLICIES, "policy-enable-mig-2g-worker01", "team", "a");
    changes(&g, before, "[]");
}

/* Where its own Placements run workloads. */
static void ignores_what_the_plan_itself_made(void **state)
{
    static const char *const plans[] = {"h", "i"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(plans); i++) {
        struct guide g = guide_new(GUIDE);
        json_auto_t *before = basis_of(&g);

        guide_runs(&g, "app01-placement", "worker02");
        guide_add(&g, KIND_PLACEMENTS,
                  json_pack("{s:{s:s, s:s, s:{s:s}}}", "metadata", "namespace", "default", "name",
                            "app01-placement", "annotations", PLAN_ANNOTATION, plans[i]));
        changes(&g, before,
                i ? "[{\"kind\":\"PlacementDecision\",\"name\":\"app01-placement\",\"what\":\"is new\"}]"
                  : "[]");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_what_a_plan_reads),
        cmocka_unit_test(ignores_other_labels),
        cmocka_unit_test(ignores_what_the_plan_itself_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
