/* What a plan was made from: which changes count, and how they are named. */
#include "controller/assist/rules/fingerprint.h"

#include "test/unit/assist/rules/guide.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static json_t *fingerprint_of(struct guide *g)
{
    struct objection ob = {0};
    struct model *m = NULL;
    json_t *all = NULL;

    assert_int_equal(model_new(&m, &g->in, &ob), 0);
    all = fingerprint_make(m);
    (void)model_free(m);
    return all;
}

/* As JSON; ends the guide. */
static void changes(struct guide *g, const json_t *before, const char *expected)
{
    json_auto_t *now = fingerprint_of(g), *list = fingerprint_changes(before, now, "h");
    char *text = json_dumps(list, JSON_COMPACT);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
    guide_done(g);
}

static void sees_what_a_plan_reads(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *before = fingerprint_of(&g);

    (void)state;
    changes(&g, before, "[]");
    g = guide_new(GUIDE);
    guide_label(g.in.policies[1], "resource-supply-amount", "4");
    changes(&g, before,
            "[{\"kind\":\"Policy\",\"name\":\"policy-enable-mig-3g-worker01\",\"what\":\"labels\"}]");
    g = guide_new(GUIDE);
    guide_label(g.in.workloads[1], "resource-request-amount", "1");
    changes(&g, before,
            "[{\"kind\":\"ManifestWorkReplicaSet\",\"name\":\"mwrs-app02\",\"what\":\"labels\"}]");
    g = guide_new(GUIDE);
    g.in.scores[0].is_expired = true;
    changes(&g, before,
            "[{\"kind\":\"AddOnPlacementScore\",\"name\":\"worker01/example-performance-score\","
            "\"what\":\"values, validity\"}]");
    g = guide_new(GUIDE);
    g.in.scores[1].n_items--;
    changes(&g, before,
            "[{\"kind\":\"AddOnPlacementScore\",\"name\":\"worker02/"
            "example-performance-score\",\"what\":\"values\"}]");
    g = guide_new(GUIDE);
    guide_runs(&g, "app01-placement", "worker02");
    changes(&g, before,
            "[{\"kind\":\"PlacementDecision\",\"name\":\"app01-placement\",\"what\":\"is new\"}]");
    g = guide_new(GUIDE);
    g.in.placements[0] = json_pack("{s:{s:s}}", "metadata", "name", "app01-placement");
    changes(&g, before, "[{\"kind\":\"Placement\",\"name\":\"app01-placement\",\"what\":\"owner\"}]");
}

static void ignores_other_labels(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *before = fingerprint_of(&g);

    (void)state;
    guide_label(g.in.clusters[0], "feature.open-cluster-management.io/addon-x", "available");
    guide_label(g.in.policies[0], "team", "a");
    changes(&g, before, "[]");
}

static void hashes_the_same_for_the_same(void **state)
{
    struct guide g = guide_new(GUIDE);
    json_auto_t *print = fingerprint_of(&g), *placements = json_array(), *other = json_pack("[s]", "x");
    char a[PLAN_HASH_BYTES], b[PLAN_HASH_BYTES], c[PLAN_HASH_BYTES];

    (void)state;
    assert_int_equal(fingerprint_hash(a, g.request->json, print, placements), 0);
    assert_int_equal(fingerprint_hash(b, g.request->json, print, placements), 0);
    assert_int_equal(fingerprint_hash(c, g.request->json, print, other), 0);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(strspn(a, "0123456789abcdef"), 16);
    guide_done(&g);
}

/* Its own objects, those that it deleted, and where its Placements run workloads. */
static void ignores_what_the_plan_itself_made(void **state)
{
    json_auto_t *before = json_pack("{s:{s:s}, s:{s:s, s:s}}", "generated/old", "plan", "g", "Placement/a",
                                    "owner", "none", "plan", "");
    json_auto_t *now =
        json_pack("{s:{s:s}, s:{s:s, s:s}, s:{s:[s]}}", "generated/new", "plan", "h", "Placement/a", "owner",
                  "generated", "plan", "h", "PlacementDecision/a", "clusters", "c");
    json_auto_t *own = fingerprint_changes(before, now, "h"), *other = fingerprint_changes(before, now, "i");

    (void)state;
    assert_int_equal(json_array_size(own), 0);
    assert_int_equal(json_array_size(other), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_what_a_plan_reads),
        cmocka_unit_test(ignores_other_labels),
        cmocka_unit_test(hashes_the_same_for_the_same),
        cmocka_unit_test(ignores_what_the_plan_itself_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
