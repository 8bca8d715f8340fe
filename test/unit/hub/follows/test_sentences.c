/* Conditions' sentences: facts and words. */
#include "controller/hub/follows/sentences.h"
#include "controller/hub/rules/effective.h"
#include "exporter/base/buf.h"
#include "exporter/score/feature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(struct buf *b, const char *words)
{
    assert_int_equal(buf_failed(b), 0);
    buf_putc(b, '\0');
    assert_int_equal(buf_failed(b), 0);
    assert_string_equal(b->p, words);
}

static void says_what_a_deletion_waits_for(void **state)
{
    static const struct {
        struct deleting_facts facts;
        const char *words;
    } cases[] = {
        {{.n = 0}, "waiting for 0 ManifestWorks to be deleted"},
        {{.n = 1, .first = "c1"}, "waiting for 1 ManifestWork to be deleted: c1"},
        {{.n = 3, .first = "c1"}, "waiting for 3 ManifestWorks to be deleted: c1 and 2 more"},
        {{.n = 3, .first = "c1", .failing = "c2", .error = "forbidden"},
         "waiting for 3 ManifestWorks to be deleted: c1 and 2 more; failed on c2: forbidden"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1024);

        sentence_deleting(&b, &cases[i].facts);
        expect(&b, cases[i].words);
    }
}

static void names_one_of_the_clusters(void **state)
{
    static const struct {
        struct clusters_facts facts;
        const char *words;
    } cases[] = {
        {{.what = "not distributed to", .n = 2, .of = 300}, "not distributed to 2 of 300 clusters"},
        {{.what = "not distributed to", .n = 1, .of = 1, .first = "c1"},
         "not distributed to 1 of 1 cluster: c1"},
        {{.what = "not applied on", .n = 2, .of = 3, .first = "c1", .why = "no such namespace"},
         "not applied on 2 of 3 clusters: c1: no such namespace"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1024);

        sentence_clusters(&b, &cases[i].facts);
        expect(&b, cases[i].words);
    }
}

static void says_where_the_add_on_is_missing(void **state)
{
    BUF_AUTO(one, 1024);
    BUF_AUTO(three, 1024);

    (void)state;
    sentence_put_without_addon(&one, &(struct without_addon_facts){1, "ds", "c1"});
    expect(&one, "; not on 1 cluster without the add-on ds: c1");
    sentence_put_without_addon(&three, &(struct without_addon_facts){3, "ds", "c1"});
    expect(&three, "; not on 3 clusters without the add-on ds: c1 and 2 more");
}

static void says_which_summary_is_in_force(void **state)
{
    static const struct {
        struct summary_facts facts;
        const char *words;
    } cases[] = {
        {{.reason = EFFECTIVE_OK, .warning = ""}, "the summary is valid"},
        {{.reason = EFFECTIVE_OK, .warning = "", .is_kept = true},
         "the summary is valid; the last one stays active until the new /config has been read"},
        {{.reason = EFFECTIVE_OK, .warning = "unknown ${x}", .is_harmless = true},
         "the summary is valid, with a warning: unknown ${x}"},
        {{.reason = EFFECTIVE_OK, .warning = "no token"},
         "the summary is valid, but its rounds will fail: no token"},
        {{.reason = EFFECTIVE_INCOMPLETE, .error = "no query", .warning = ""}, "no query"},
        {{.reason = EFFECTIVE_INCOMPLETE, .error = "no query", .warning = "", .is_kept = true},
         "no query; the last valid summary stays active"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1024);

        sentence_summary(&b, &cases[i].facts);
        expect(&b, cases[i].words);
    }
}

/* Each sentence with its facts below: `fn` is called with each row. */
#define EXPECT_SENTENCES(fn, cases)                  \
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) { \
        BUF_AUTO(b, SENTENCE_BYTES);                 \
                                                     \
        fn(&b, &(cases)[i].facts);                   \
        expect(&b, (cases)[i].words);                \
    }                                                \
    (void)state

static void says_what_is_wrong_with_a_placement(void **state)
{
    static const struct {
        struct placement_facts facts;
        const char *words;
    } cases[] = {
        {{.error = "forbidden", .exists = true, .says = ""}, "cannot be read: forbidden"},
        {{.namespace = "hub", .says = ""}, "does not exist in namespace hub"},
        {{.exists = true, .says = ""}, "selects no cluster"},
        {{.exists = true, .says = "No ManagedClusterSetBindings found"},
         "selects no cluster: No ManagedClusterSetBindings found"},
    };

    EXPECT_SENTENCES(sentence_placement, cases);
}

static void says_how_many_objects_are_contested(void **state)
{
    static const struct {
        size_t others;
        const char *words;
    } cases[] = {
        {0, "x undoes the status"},
        {1, "x undoes the status; likewise for 1 other object"},
        {2, "x undoes the status; likewise for 2 other objects"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, SENTENCE_BYTES);

        sentence_contested(&b, "x undoes the status", cases[i].others);
        expect(&b, cases[i].words);
    }
}

static void says_to_how_many_clusters_it_is_distributed(void **state)
{
    BUF_AUTO(one, SENTENCE_BYTES);
    BUF_AUTO(three, SENTENCE_BYTES);

    (void)state;
    sentence_distributed(&one, 1);
    expect(&one, "distributed to 1 cluster");
    sentence_distributed(&three, 3);
    expect(&three, "distributed to all 3 clusters");
}

static const char *const names[] = {"a", "b"};

static void says_which_masks_match_nothing(void **state)
{
    static const struct str warnings[] = {{"no cluster matches clusterName \"x\"", 34},
                                          {"no score matches scoreName \"y\"", 30}};
    static const struct {
        struct masks_facts facts;
        const char *words;
    } cases[] = {
        {{.n = 1, .idle = 1, .warnings = warnings, .n_warnings = 1},
         "1 of 1 mask matches nothing: no cluster matches clusterName \"x\""},
        {{.n = 9, .idle = 5, .warnings = warnings, .n_warnings = 2},
         "5 of 9 masks match nothing: no cluster matches clusterName \"x\"; no score matches scoreName "
         "\"y\"; and 3 more"},
    };

    EXPECT_SENTENCES(sentence_masks, cases);
}

static void names_adjustments_that_change_nothing(void **state)
{
    static const struct str warnings[] = {STR("\"hour\": until has passed"), STR("\"b\": no score")};
    static const struct {
        struct masks_facts facts;
        const char *words;
    } cases[] = {
        {{1, 1, warnings, 1}, "1 of 1 adjustment changes nothing: \"hour\": until has passed"},
        {{9, 4, warnings, 2},
         "4 of 9 adjustments change nothing: \"hour\": until has passed; \"b\": no score; and 2 more"},
    };

    EXPECT_SENTENCES(sentence_adjustments, cases);
}

static void names_scorers_without_room(void **state)
{
    static const struct {
        struct named_facts facts;
        const char *words;
    } cases[] = {
        {{names, 1, 1},
         "no room for 1 DynamicScorer in the ManifestWorks of some clusters, which hold at most 500 KiB: a"},
        {{names, 2, 9},
         "no room for 9 DynamicScorers in the ManifestWorks of some clusters, which hold at most 500 KiB: a, "
         "b "
         "and 7 more"},
    };

    EXPECT_SENTENCES(sentence_no_room_for, cases);
}

static void names_clusters_with_agents_that_are_too_old(void **state)
{
    static const struct named_facts few = {names, 1, 1}, many = {names, 2, 3};
    static const struct {
        struct outdated_facts facts;
        const char *words;
    } cases[] = {
        {{FEATURE_SCORE_ITEMS, &many, 5},
         "; agents on 3 of 5 clusters are too old for scoreItems and use the first only: a, b and 1 more"},
        {{FEATURE_REVERSED_RANGE, &few, 1},
         "; agents on 1 of 1 cluster are too old for a scoreRange whose min is above its max and do not get "
         "this scorer: a"},
        {{FEATURE_SCORE_TOLERANCE, &few, 2},
         "; agents on 1 of 2 clusters are too old for scoreTolerance and write every change: a"},
        {{FEATURE_SCORING_CLUSTER, &few, 2},
         "; agents on 1 of 2 clusters are too old for ${cluster} in the scoring endpoint and send it as it "
         "is: "
         "a"},
        {{FEATURE_ADJUSTMENTS, &few, 2},
         "; agents on 1 of 2 clusters are too old for adjustments and write scores as they are: a"},
    };

    EXPECT_SENTENCES(sentence_put_outdated, cases);
}

static void says_what_agents_report_of_a_scoring_api(void **state)
{
    static const struct {
        struct reported_facts facts;
        const char *words;
    } cases[] = {
        {{.healthy = 1, .selected = 1}, "healthy on 1 of 1 cluster"},
        {{.unhealthy = 1, .healthy = 2, .selected = 3, .first = "c1", .error = "timed out"},
         "unhealthy on 1 of 3 clusters: c1: timed out; healthy on 2"},
        {{.unhealthy = 3, .selected = 3, .first = "c1"}, "unhealthy on 3 of 3 clusters: c1; healthy on 0"},
    };

    EXPECT_SENTENCES(sentence_reported, cases);
}

static void says_what_a_verdict_leads_to(void **state)
{
    static const struct {
        struct verdict_facts facts;
        const char *words;
    } cases[] = {
        {{.selected = 3}, ""},
        {{.is_kept = true, .scored_meanwhile = 1, .selected = 3},
         "; still distributed, as --keep-unhealthy is set"},
        {{.scored_meanwhile = 2, .selected = 3},
         "; agents on 2 of 3 clusters have called it successfully since: if only the hub cannot reach it, "
         "set "
         "spec.healthCheck to Agents"},
    };

    EXPECT_SENTENCES(sentence_put_verdict, cases);
}

static void says_what_became_of_a_configuration(void **state)
{
    static const struct {
        struct synced_facts facts;
        const char *words;
    } cases[] = {
        {{0}, "the configuration was read from the scoring API"},
        {{.overrides = {"spec.source.host", 16}},
         "the configuration was read from the scoring API; in mode Full it overrides spec.source.host"},
        {{.error = "HTTP 503", .has_last = true, .uses_spec = true},
         "HTTP 503; the last valid configuration stays active"},
        {{.error = "HTTP 503", .uses_spec = true},
         "HTTP 503; none has been read yet, so the fields of the DynamicScorer are active"},
        {{.error = "HTTP 503"}, "HTTP 503; no configuration has been read yet"},
    };

    EXPECT_SENTENCES(sentence_synced, cases);
}

static void says_what_an_invalid_spec_leaves_active(void **state)
{
    static const struct {
        struct spec_facts facts;
        const char *words;
    } cases[] = {
        {{.error = "no URL"}, "no URL"},
        {{.error = "no URL", .has_last_spec = true, .has_last_summary = true},
         "no URL; the last valid spec stays active"},
        {{.error = "no URL", .has_last_summary = true}, "no URL; the last valid summary stays active"},
    };

    EXPECT_SENTENCES(sentence_spec, cases);
}

static void says_which_of_two_is_distributed(void **state)
{
    static const struct {
        struct duplicate_facts facts;
        const char *words;
    } cases[] = {
        {{.score_name = "n", .other = "s1", .is_other_older = true},
         "score name n belongs to the older DynamicScorer s1; this one is not distributed"},
        {{.score_name = "n", .other = "s2"},
         "score name n is also used by the younger DynamicScorer s2, which is not distributed"},
        {{.score_name = "a_b",
          .other = "s1",
          .other_score_name = "a-b",
          .object = "a-b",
          .is_other_older = true},
         "score name a_b maps to AddOnPlacementScore a-b, as does score name a-b of the older DynamicScorer "
         "s1; "
         "this one is not distributed"},
        {{.score_name = "a-b", .other = "s2", .other_score_name = "a_b", .object = "a-b"},
         "score name a-b maps to AddOnPlacementScore a-b, as does score name a_b of the younger "
         "DynamicScorer "
         "s2; the younger one is not distributed"},
    };

    EXPECT_SENTENCES(sentence_duplicate, cases);
}

static void names_the_first_cluster_of_a_class(void **state)
{
    static const struct {
        struct class_facts facts;
        const char *words;
    } cases[] = {
        {{.word = "scoring", .n = 3, .of = 3}, "scoring on 3 of 3 clusters"},
        {{.word = "silent", .n = 0, .of = 1}, "silent on 0 of 1 cluster"},
        {{.word = "failing", .n = 1, .of = 2, .first = "c1", .why = "timed out"},
         "failing on 1 of 2 clusters: c1: timed out"},
        {{.word = "empty", .n = 4, .first = "c2", .why = "no series"},
         "empty on 4: c2: no series, and 3 more"},
    };

    EXPECT_SENTENCES(sentence_put_class, cases);
}

static void says_what_a_ready_scorer_lacks(void **state)
{
    static const struct {
        struct ready_facts facts;
        const char *words;
    } cases[] = {
        {{.scoring = "scoring on 1 of 1 cluster"}, "scoring on 1 of 1 cluster"},
        {{.unsynced = "HTTP 503", .scoring = "scoring on 1"}, "HTTP 503; scoring on 1"},
        {{.unsynced = "HTTP 503", .partly_distributed = "no room", .scoring = "scoring on 1"},
         "HTTP 503; no room; scoring on 1"},
    };

    EXPECT_SENTENCES(sentence_ready, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_a_deletion_waits_for),
        cmocka_unit_test(names_one_of_the_clusters),
        cmocka_unit_test(says_where_the_add_on_is_missing),
        cmocka_unit_test(says_which_summary_is_in_force),
        cmocka_unit_test(says_what_is_wrong_with_a_placement),
        cmocka_unit_test(says_how_many_objects_are_contested),
        cmocka_unit_test(says_to_how_many_clusters_it_is_distributed),
        cmocka_unit_test(says_which_masks_match_nothing),
        cmocka_unit_test(names_adjustments_that_change_nothing),
        cmocka_unit_test(names_scorers_without_room),
        cmocka_unit_test(names_clusters_with_agents_that_are_too_old),
        cmocka_unit_test(says_what_agents_report_of_a_scoring_api),
        cmocka_unit_test(says_what_a_verdict_leads_to),
        cmocka_unit_test(says_what_became_of_a_configuration),
        cmocka_unit_test(says_what_an_invalid_spec_leaves_active),
        cmocka_unit_test(says_which_of_two_is_distributed),
        cmocka_unit_test(names_the_first_cluster_of_a_class),
        cmocka_unit_test(says_what_a_ready_scorer_lacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
