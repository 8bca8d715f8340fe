/* A DynamicScoringConfig's status. */
#include "controller/hub/rules/masks.h"
#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "test/unit/hub/state/status_world.h"

static void all_well(struct world *w)
{
    (void)w;
}

static void bad_masks(struct world *w)
{
    SET_TEXT(w->hub.config.masks_error, "spec.masks[2].scoreName: expected a string");
}

static void bad_first_masks(struct world *w)
{
    bad_masks(w);
    w->hub.config.has_masks = false;
    w->hub.totals.up_to_date = 0;
    w->hub.totals.behind = 3;
}

/* The counts stand for what plan and scorers would yield. */
static void masks_of(struct world *w, struct mask *list, struct hub_mask_counts *counts, size_t n)
{
    w->hub.plan = (struct plan *)w;
    w->hub.plan_masks = w->hub.config.masks = (struct masks){.list = list, .n = n};
    w->hub.mask_counts = counts;
}

static void matching_mask(struct world *w)
{
    static struct mask list[] = {{"c1", "energy-*"}};
    static struct hub_mask_counts counts[] = {{1, 1}};

    masks_of(w, list, counts, 1);
}

static void unmatched_masks(struct world *w)
{
    static struct mask list[] = {
        {"c1", "*"}, {"C-1", "energy_score"}, {"c1", "[a-z]*"}, {"other", "other"}, {"c1", "energy"}};
    static struct hub_mask_counts counts[] = {{1, 1}, {0, 0}, {1, 0}, {0, 0}, {1, 0}};

    masks_of(w, list, counts, 5);
}

static void one_unmatched_mask(struct world *w)
{
    static struct mask list[] = {{"c1", "energy"}};
    static struct hub_mask_counts counts[] = {{1, 0}};

    masks_of(w, list, counts, 1);
}

static void masks_not_planned_yet(struct world *w)
{
    one_unmatched_mask(w);
    w->hub.plan = NULL;
}

static void no_clusters(struct world *w)
{
    w->hub.totals = (struct hub_totals){0};
}

static void one_cluster(struct world *w)
{
    w->hub.totals = (struct hub_totals){.managed = 1, .up_to_date = 1, .applied = 1};
}

static void progressing(struct world *w)
{
    w->hub.totals.up_to_date = w->hub.totals.applied = 1;
    w->hub.totals.behind = 2;
}

static void behind_everywhere(struct world *w)
{
    w->hub.totals.up_to_date = w->hub.totals.applied = 0;
    w->hub.totals.behind = 3;
}

static void unapplied(struct world *w)
{
    struct hub_totals *t = &w->hub.totals;

    SET_TEXT(w->clusters[1].work.why, "no namespace dynamic-scoring");
    t->applied = 2;
    t->unapplied = 1;
    t->n_named = 1;
    t->named[0] = &w->clusters[1];
}

static void unconfirmed(struct world *w)
{
    struct hub_totals *t = &w->hub.totals;

    w->clusters[1].work.applied = false;
    w->clusters[1].unavailable = (char *)(uintptr_t) "no lease";
    t->applied = 2;
    t->n_named = 1;
    t->named[0] = &w->clusters[1];
}

static void unapplied_anywhere(struct world *w)
{
    unapplied(w);
    w->hub.totals.applied = 0;
    w->hub.totals.unapplied = 3;
}

static void failing(struct world *w)
{
    struct hub_totals *t = &w->hub.totals;

    progressing(w);
    SET_TEXT(w->clusters[0].write.trouble, "namespaces \"c1\" not found");
    SET_TEXT(w->clusters[2].write.trouble, "forbidden");
    t->failing = 2;
    t->n_named = 2;
    t->named[0] = &w->clusters[0];
    t->named[1] = &w->clusters[2];
}

/* With both kinds, the unwritten ones are named. */
static void failing_and_unapplied(struct world *w)
{
    struct hub_totals *t = &w->hub.totals;

    failing(w);
    SET_TEXT(w->clusters[2].write.trouble, "forbidden");
    SET_TEXT(w->clusters[0].write.trouble, "");
    SET_TEXT(w->clusters[0].work.why, "no namespace dynamic-scoring");
    t->failing = t->unapplied = 1;
}

static void failing_unnamed(struct world *w)
{
    failing(w);
    w->hub.totals.n_named = 0;
}

static void left_out(struct world *w)
{
    w->hub.totals.left_out = 1;
    w->other.tally.no_room = 3;
}

static void many_left_out(struct world *w)
{
    static struct hub_scorer scorers[7];
    static struct hub_scorer *by_age[8];
    static char names[7][8];

    for (size_t i = 0; i < 7; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "s%zu", i);
        scorers[i] = (struct hub_scorer){.name = names[i], .tally.no_room = 1};
        by_age[i + 1] = &scorers[i];
    }
    by_age[0] = &w->scorer;
    w->hub.by_age = by_age;
    w->hub.n_scorers = 8;
    w->hub.totals.left_out = 7;
}

/* Names of 253 bytes, which a Kubernetes object may have. */
static void long_names_left_out(struct world *w)
{
    static char name[254];

    memset(name, 'n', sizeof(name) - 1);
    many_left_out(w);
    for (size_t i = 1; i < w->hub.n_scorers; i++)
        w->hub.by_age[i]->name = name;
}

static void deleting(struct world *w)
{
    json_object_set_new(json_object_get(w->hub.config.object, "metadata"), "deletionTimestamp",
                        json_string(NOON));
}

static void deleting_one_left(struct world *w)
{
    deleting(w);
    failing(w);
    w->hub.totals.works = 1;
}

static const struct {
    void (*arrange)(struct world *w);
    const char *type, *told, *piece;
} states[] = {
    {all_well, "Valid", "True Valid: ", "0 masks"},
    {all_well, "Distributed", "True Distributed: ", "distributed to all 3 clusters"},
    {all_well, "Ready", "True Ready: ", "distributed to all 3 clusters"},
    {bad_masks, "Valid",
     "False InvalidMasks: ", "spec.masks[2].scoreName: expected a string; the last valid masks stay active"},
    {bad_masks, "Distributed", "True Distributed: ", ""},
    {bad_masks, "Ready", "False InvalidMasks: ", "spec.masks[2]"},
    {matching_mask, "Valid", "True Valid: ", "1 mask"},
    {matching_mask, "Ready", "True Ready: ", "distributed to all 3 clusters"},
    {masks_not_planned_yet, "Valid", "True Valid: ", "1 mask"},
    {one_unmatched_mask, "Valid", "True MasksMatchNothing: ",
     "1 of 1 mask matches nothing: no score matches scoreName \"energy\": did you mean \"energy-score\"?"},
    {one_unmatched_mask, "Ready",
     "True Ready: distributed to all 3 clusters; 1 of 1 mask matches nothing: ", ""},
    {unmatched_masks, "Valid", "True MasksMatchNothing: ",
     "4 of 5 masks match nothing: no cluster matches clusterName \"C-1\": did you mean \"c1\"?, "
     "no score matches scoreName \"energy_score\": did you mean \"energy-score\"?; "
     "no score matches scoreName \"[a-z]*\": only * and ? are wildcards; "
     "no cluster matches clusterName \"other\", no score matches scoreName \"other\"; and 1 more"},
    {bad_first_masks, "Valid", "False InvalidMasks: ", "a string; clusters keep their scorers"},
    {bad_first_masks, "Distributed", "False InvalidMasks: ", "clusters keep their scorers"},
    {no_clusters, "Distributed", "False NoClusters: ", ""},
    {one_cluster, "Distributed", "True Distributed: ", "distributed to 1 cluster"},
    {progressing, "Distributed", "False Progressing: ", "up to date on 1 of 3 clusters"},
    {progressing, "Ready", "True Ready: ", "1 of 3 clusters"},
    {behind_everywhere, "Ready", "False Progressing: ", "0 of 3"},
    {unapplied, "Distributed",
     "False ClustersFailing: ", "ManifestWork not applied on 1 of 3 clusters: c2: no namespace"},
    {unapplied, "Ready", "True Ready: ", "ManifestWork not applied on 1 of 3 clusters: c2"},
    {unconfirmed, "Distributed", "False Progressing: ",
     "ManifestWork not yet applied on 1 of 3 clusters: c2: the cluster is not available"},
    {unconfirmed, "Ready", "True Ready: ", "ManifestWork not yet applied on 1 of 3 clusters: c2"},
    {unapplied_anywhere, "Ready",
     "False ClustersFailing: ", "ManifestWork not applied on 3 of 3 clusters: c2"},
    {failing_and_unapplied, "Distributed",
     "False ClustersFailing: ", "ManifestWork not written on 1 of 3 clusters: c3: forbidden"},
    {no_clusters, "Ready", "False NoClusters: ", ""},
    {bad_first_masks, "Ready", "False InvalidMasks: ", ""},
    {left_out, "Ready", "True Ready: ", "no room for 1 DynamicScorer"},
    {failing, "Ready", "True Ready: ", "ManifestWork not written on 2 of 3 clusters: c1"},
    {failing, "Distributed", "False ClustersFailing: ",
     "ManifestWork not written on 2 of 3 clusters: c1: namespaces \"c1\" not found"},
    {failing_unnamed, "Distributed",
     "False ClustersFailing: ", "ManifestWork not written on 2 of 3 clusters"},
    {left_out, "Distributed", "False NoRoom: ",
     "no room for 1 DynamicScorer in the ManifestWorks of some clusters, which hold at most 500 KiB: other"},
    {many_left_out, "Distributed", "False NoRoom: ", "at most 500 KiB: s0, s1, s2, s3, s4 and 2 more"},
    {long_names_left_out, "Distributed", "False NoRoom: ", "..."},
    {deleting, "Distributed", "False Deleting: ", "waiting for 3 ManifestWorks"},
    {deleting_one_left, "Distributed",
     "False Deleting: ", "waiting for 1 ManifestWork to be deleted; failed on c1: namespaces"},
    {deleting, "Ready", "False Deleting: ", "3 ManifestWorks"},
};

static json_t *status_at(struct world *w, int64_t seconds_later)
{
    json_t *status = status_of_config(&w->hub, &w->hub.config, (unix_ms){noon.ms + seconds_later * 1000});

    assert_non_null(status);
    return status;
}

static void derives_conditions_from_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        static const char *const order[] = {"Valid", "Distributed", "Ready"};
        struct world *w = world_new();
        json_t *status, *list;

        states[i].arrange(w);
        status = status_at(w, 0);
        assert_condition(status, states[i].type, states[i].told, states[i].piece);
        list = kube_list(status, "conditions", NULL);
        assert_int_equal(json_array_size(list), ARRAY_SIZE(order));
        for (size_t k = 0; k < ARRAY_SIZE(order); k++)
            assert_string_equal(kube_str(json_array_get(list, k), "type", NULL), order[k]);
        json_decref(status);
        world_free(w);
    }
}

static void needs_one_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        struct world *w = world_new();
        json_t *status, *written;

        failing(w);
        status = status_at(w, -5000);
        merge_status(w->hub.config.object, status);
        json_decref(status);
        world_clusters_well(w);
        states[i].arrange(w);
        status = status_at(w, 0);
        merge_status(w->hub.config.object, status);
        json_decref(status);
        written = json_deep_copy(w->hub.config.object);
        status = status_at(w, 3600);
        assert_json_equal(status, json_object_get(written, "status"));
        json_decref(status);
        json_decref(written);
        world_free(w);
    }
}

static void writes_counts_as_members(void **state)
{
    struct world *w = world_new();
    json_t *status, *wanted = json_of(
                        "{\"observedGeneration\":2,\"clusters\":{\"managed\":3,\"upToDate\":1,\"applied\":1,"
                        "\"behind\":2,\"failing\":2,\"reporting\":3},"
                        "\"scorers\":{\"total\":2,\"distributed\":1,\"leftOut\":1,\"noRoom\":3},"
                        "\"summariesBytes\":812,"
                        "\"failingClusters\":[{\"name\":\"c1\",\"error\":\"namespaces \\\"c1\\\" not "
                        "found\"},{\"name\":\"c3\",\"error\":\"forbidden\"}]}");

    (void)state;
    failing(w);
    w->hub.totals.left_out = 3;
    status = status_at(w, 0);
    json_object_del(status, "conditions");
    assert_json_equal(status, wanted);
    merge_status(w->hub.config.object, status);
    json_decref(status);

    world_clusters_well(w);
    status = status_at(w, 0);
    assert_true(json_is_null(json_object_get(status, "failingClusters")));
    merge_status(w->hub.config.object, status);
    json_decref(status);
    status = status_at(w, 0);
    assert_null(json_object_get(status, "failingClusters"));
    json_decref(status);
    json_decref(wanted);
    world_free(w);
}

static void marks_a_config_of_another_name_as_not_used(void **state)
{
    struct world *w = world_new();
    struct hub_config other = {.object = json_of("{\"metadata\":{\"name\":\"mine\",\"generation\":5}}")};
    json_t *status = status_of_config(&w->hub, &other, noon),
           *wanted = json_of(
               "{\"observedGeneration\":5,\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
               "\"reason\":\"NotUsed\",\"message\":"
               "\"not used: the controller uses only the DynamicScoringConfig named "
               "dynamic-scoring-config\",\"lastTransitionTime\":\"" NOON "\",\"observedGeneration\":5}]}");

    (void)state;
    assert_json_equal(status, wanted);
    merge_status(other.object, status);
    json_decref(status);
    status = status_of_config(&w->hub, &other, (unix_ms){noon.ms + 60 * 1000});
    assert_json_equal(status, wanted);
    json_decref(status);
    json_decref(wanted);
    json_decref(other.object);
    world_free(w);
}

static void lists_masks_that_match_nothing_first(void **state)
{
    struct world *w = world_new();
    json_t *status, *list;

    (void)state;
    unmatched_masks(w);
    status = status_at(w, 0);
    list = kube_list(status, "masks", NULL);
    assert_int_equal(json_array_size(list), 5);
    assert_string_equal(kube_str(json_array_get(list, 0), "clusterName", NULL), "C-1");
    assert_string_equal(kube_str(json_array_get(list, 1), "warning", NULL),
                        "no score matches scoreName \"[a-z]*\": only * and ? are wildcards");
    assert_null(kube_get(json_array_get(list, 4), "warning", NULL));
    merge_status(w->hub.config.object, status);
    json_decref(status);
    masks_not_planned_yet(w);
    status = status_at(w, 0);
    assert_true(json_is_null(json_object_get(status, "masks")));
    json_decref(status);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derives_conditions_from_states),
        cmocka_unit_test(needs_one_write),
        cmocka_unit_test(writes_counts_as_members),
        cmocka_unit_test(lists_masks_that_match_nothing_first),
        cmocka_unit_test(marks_a_config_of_another_name_as_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
