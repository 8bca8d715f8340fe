/* A DynamicScorer's conditions. */
#include "controller/kube/json.h"
#include "test/unit/hub/state/scorer_states.h"

static const struct {
    void (*arrange)(struct world *w);
    const char *type, *told, *piece;
} states[] = {
    {all_well, "Healthy", "True Healthy: ", "the scoring API responds"},
    {all_well, "ConfigSynced", "True Synced: ", ""},
    {all_well, "Valid", "True Valid: ", ""},
    {all_well, "UniqueScoreName", "True Unique: ", "energy-score"},
    {all_well, "Distributed", "True Distributed: ", "distributed to all 3 clusters"},
    {all_well, "Scoring", "True Scoring: ", "scoring on 3 of 3 clusters"},
    {all_well, "Ready", "True Ready: ", "scoring on 3 of 3 clusters"},
    {not_asked, "Healthy", "Unknown NotProbed: ", "has not been probed"},
    {not_asked, "ConfigSynced", "Unknown NotAsked: ", "has not been read"},
    {not_asked, "Valid", "Unknown Waiting: ", "scoring.params.name: not known"},
    {not_asked, "UniqueScoreName", "Unknown NoScoreName: ", "not known"},
    {not_asked, "Distributed", "False NotSelected: ", "no valid summary"},
    {not_asked, "Scoring", "Unknown NotSelected: ", "selected for no cluster"},
    {not_asked, "Ready", "Unknown Waiting: ", "scoring.params.name"},
    {no_probe, "Healthy", "Unknown NotProbed: ", ""},
    {failed_once, "Healthy",
     "True Healthy: ", "unhealthy after 3 consecutive failures: timed out after 5 s with 0 bytes received"},
    {failed_once, "Ready", "True Ready: ", ""},
    {never_judged, "Healthy", "Unknown Timeout: ", "timed out after 5 s with 0 bytes received"},
    {never_judged, "Distributed", "False NotSelected: ", "not known yet"},
    {never_judged, "Ready", "Unknown Timeout: ", "timed out after 5 s with 0 bytes received"},
    {unhealthy, "Healthy", "False Timeout: ", "timed out after 5 s with 0 bytes received"},
    {unhealthy, "Distributed", "False NotSelected: ", "is unhealthy"},
    {unhealthy, "Ready", "False Timeout: ", "timed out after 5 s with 0 bytes received"},
    {unhealthy_kept, "Healthy", "False Timeout: ", "still distributed"},
    {unhealthy_kept, "Distributed", "True Distributed: ", ""},
    {unhealthy_kept, "Ready", "False Timeout: ", "timed out after 5 s with 0 bytes received"},
    {no_reason, "Healthy", "False Failing: ", ""},
    {recovering, "Healthy", "False Recovering: ", "after 2 consecutive successes"},
    {resumed_unhealthy, "Healthy", "False NotProbed: ", "was unhealthy"},
    {resumed_unhealthy_told, "Healthy", "False DNS: ", "said before"},
    {resumed_of_older_spec, "Healthy", "False NotProbed: ", "was unhealthy"},
    {resumed_synced, "ConfigSynced", "False HTTPStatus: ", "said before"},
    {resumed_lost, "ConfigSynced", "Unknown NotAsked: ", ""},
    {resumed_broken, "ConfigSynced", "Unknown NotAsked: ", ""},
    {mode_none, "ConfigSynced", "True NotNeeded: ", "None"},
    {fail_config, "ConfigSynced", "False HTTPStatus: ", "boom; the last valid configuration stays active"},
    {fail_config, "Ready", "True Ready: HTTP 500 Internal Server Error: boom; the last valid configuration",
     "; scoring on 3 of 3 clusters"},
    {config_never_read, "ConfigSynced", "False HTTPStatus: ", "boom; no configuration has been read yet"},
    {config_never_read, "Ready", "False HTTPStatus: ", "boom"},
    {never_read_but_complete, "ConfigSynced",
     "False HTTPStatus: ", "boom; none has been read yet, so the fields of the DynamicScorer are active"},
    {never_read_but_complete, "Ready", "True Ready: HTTP 500", "; scoring on 3 of 3 clusters"},
    {unchecked, "Healthy", "Unknown NotChecked: ", "spec.healthCheck is None"},
    {unchecked, "Distributed", "True Distributed: ", ""},
    {unchecked, "Ready", "True Ready: ", "scoring on 3 of 3 clusters"},
    {no_health_reports, "Healthy", "Unknown NoReports: ", "no agent has reported"},
    {no_health_reports, "Ready", "True Ready: ", ""},
    {healthy_by_agents, "Healthy", "True Healthy: ", "healthy on 3 of 3 clusters"},
    {degraded_by_agents, "Healthy", "False UnhealthyOnClusters: ",
     "unhealthy on 1 of 3 clusters: c2: scoring failed, http://api:8000/scoring: connection refused; healthy "
     "on 2"},
    {degraded_by_agents, "Ready", "True Ready: ", "failing on 1 of 3 clusters: c2: scoring failed"},
    {unhealthy_by_agents, "Healthy",
     "False UnhealthyOnClusters: ", "unhealthy on 3 of 3 clusters; healthy on 0"},
    {unhealthy_by_agents, "Distributed", "True Distributed: ", ""},
    {unhealthy_by_agents, "Ready", "False ClustersFailing: ", "failing on 3 of 3 clusters: c1: HTTP 503"},
    {bad_spec, "Valid",
     "False InvalidSpec: ", "spec.configURL: expected an http or https URL; the last valid spec"},
    {bad_spec, "Distributed", "True Distributed: ", ""},
    {bad_spec, "Ready", "False InvalidSpec: ", "spec.configURL"},
    {bad_first_spec, "Valid", "False InvalidSpec: ", "https URL"},
    {bad_first_spec, "Ready", "False InvalidSpec: ", "https URL"},
    {incomplete, "Valid", "False Incomplete: ", "spec.source.params.query: missing"},
    {incomplete, "Ready", "False Incomplete: ", "missing"},
    {incomplete, "Distributed", "False NotSelected: ", "no valid summary"},
    {incomplete_kept, "Valid",
     "False Incomplete: ", "spec.source.params.query: missing; the last valid summary stays active"},
    {incomplete_kept, "Distributed", "True Distributed: ", ""},
    {incomplete_kept, "Ready", "False Incomplete: ", "missing"},
    {warned, "Valid", "True Valid: ", "the summary is valid, but its rounds will fail: too many points"},
    {warned, "Ready", "True Ready: ", ""},
    {token_host, "Valid", "False TokenHostNotAllowed: ", "http://evil"},
    {younger_of_two, "UniqueScoreName",
     "False DuplicateScoreName: ", "belongs to the older DynamicScorer other"},
    {younger_of_two, "Distributed", "False NotSelected: ", "same score name"},
    {younger_of_two, "Ready", "False NotSelected: ", "same score name"},
    {older_of_two, "UniqueScoreName",
     "False DuplicateScoreName: ", "is also used by the younger DynamicScorer other"},
    {older_of_two, "Ready", "True Ready: ", ""},
    {younger_of_object, "UniqueScoreName", "False DuplicateScoreName: ",
     "maps to AddOnPlacementScore other-name, as does score name other_name of the older DynamicScorer "
     "other; this one is not distributed"},
    {older_of_object, "UniqueScoreName", "False DuplicateScoreName: ",
     "maps to AddOnPlacementScore other-name, as does score name other_name of the younger DynamicScorer "
     "other; the younger one is not distributed"},
    {long_name, "UniqueScoreName", "False DuplicateScoreName: ", "..."},
    {no_config, "Distributed", "False NoConfig: ", "dynamic-scoring-config in namespace ocm"},
    {no_config, "Ready", "False NoConfig: ", ""},
    {config_deleted, "Distributed", "False ConfigDeleting: ", "being deleted"},
    {bad_masks, "Distributed", "False InvalidMasks: ", "spec.masks[0]: expected an object"},
    {no_clusters, "Distributed", "False NoClusters: ", ""},
    {not_planned, "Distributed", "False Progressing: ", ""},
    {masked, "Distributed", "False Masked: ", "masked on all clusters"},
    {masked, "Ready", "False Masked: ", ""},
    {no_room, "Ready", "True Ready: ", "no room in the ManifestWorks of 1 cluster"},
    {no_room_anywhere, "Ready", "False NoRoom: ", "no room in the ManifestWorks of 3 clusters"},
    {no_room, "Distributed", "False NoRoom: ", "ManifestWorks of 1 cluster, which hold at most 500 KiB"},
    {progressing, "Distributed", "False Progressing: ", "up to date on 1 of 3 clusters"},
    {progressing, "Ready", "True Ready: ", "scoring on 1 of 3 clusters; silent on 2"},
    {unconfirmed, "Distributed", "False Progressing: ",
     "ManifestWork not yet applied on 2 of 3 clusters: c2: the work agent has not applied it yet"},
    {unconfirmed, "Ready", "True Ready: ",
     "scoring on 1 of 3 clusters; silent on 2: c2: the work agent has not applied the ManifestWork yet, and "
     "1 more"},
    {behind_everywhere, "Ready", "False Progressing: ", "0 of 3"},
    {unwritten, "Distributed",
     "False ClustersFailing: ", "ManifestWork not written on 2 of 3 clusters: c2: forbidden"},
    {unwritten, "Scoring", "True Scoring: ",
     "scoring on 1 of 3 clusters; failing on 2: c2: ManifestWork not written: forbidden, and 1 more"},
    {unapplied, "Distributed",
     "False ClustersFailing: ", "ManifestWork not applied on 1 of 3 clusters: c3: no namespace"},
    {failing, "Scoring", "False ClustersFailing: ",
     "failing on 2 of 3 clusters: c1: HTTP 503 Service Unavailable, and 1 more; scoring on 1"},
    {failing, "Ready", "True Ready: ", "failing on 2 of 3 clusters: c1: HTTP 503"},
    {unwritten, "Ready", "True Ready: ", "failing on 2: c2: ManifestWork not written: forbidden"},
    {unwritten_and_waiting, "Ready",
     "True Ready: ", "waiting on 1 of 3 clusters; failing on 2: c2: ManifestWork not written: forbidden"},
    {unapplied, "Scoring", "True Scoring: ", "scoring on 2 of 3 clusters"},
    {unapplied, "Ready", "True Ready: ", "failing on 1: c3: ManifestWork not applied: no namespace"},
    {unapplied_anywhere, "Ready",
     "False ClustersFailing: ", "ManifestWork not applied on 1 of 3 clusters: c3: no namespace"},
    {failing_everywhere, "Distributed", "True Distributed: ", ""},
    {failing_everywhere, "Ready", "False ClustersFailing: ", "failing on 3 of 3 clusters: c1: HTTP 503"},
    {failing_where_heard_of, "Ready",
     "False ClustersFailing: ", "failing on 1 of 3 clusters: c2: HTTP 503 Service Unavailable; silent on 2"},
    {failing_and_unwritten, "Scoring",
     "False ClustersFailing: ", "failing on 2 of 3 clusters: c2: failing, and 1 more"},
    {failing_and_unwritten, "Ready", "True Ready: ", "failing on 2 of 3 clusters: c2: failing"},
    {refused, "Scoring",
     "False ClustersFailing: ", "on 1 of 3 clusters: c2: the agent rejected its configuration: f:1:2: error"},
    {outdated, "Scoring", "True Scoring: ", "scoring on 3 of 3 clusters"},
    {away, "Scoring",
     "True Scoring: ", "scoring on 2 of 3 clusters; silent on 1: c1: the cluster is not available: no lease"},
    {away, "Ready", "True Ready: ", "silent on 1: c1: the cluster is not available: no lease"},
    {silent_everywhere, "Scoring",
     "Unknown Silent: ", "silent on 3 of 3 clusters: c1: the cluster is not available: no lease, and 2 more"},
    {placement_failing, "Scoring",
     "False ClustersFailing: ", "c2: AddOnPlacementScore not written: the agent does not say why"},
    {failing_unnamed, "Scoring", "False ClustersFailing: ", "failing on 3 of 4 clusters; scoring on 1"},
    {no_reports, "Scoring", "Unknown NoReports: ", "silent on 3 of 3 clusters"},
    {waiting, "Scoring", "Unknown Waiting: ", "waiting on 1 of 3 clusters; silent on 2"},
    {one_cluster, "Distributed", "True Distributed: ", "distributed to 1 cluster"},
};

static void derives_conditions_from_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        struct world *w = world_new();
        json_t *status;

        states[i].arrange(w);
        status = status_at(w, 0);
        assert_condition(status, states[i].type, states[i].told, states[i].piece);
        assert_true(status_scorer_ready(&w->scorer) ==
                    (strncmp(condition_text(status, "Ready"), "True", 4) == 0));
        json_decref(status);
        world_free(w);
    }
}

static void writes_complete_conditions_in_order(void **state)
{
    static const char *const order[] = {"Healthy",     "ConfigSynced", "Valid", "UniqueScoreName",
                                        "Distributed", "Scoring",      "Ready"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        struct world *w = world_new();
        json_t *status, *list;

        states[i].arrange(w);
        status = status_at(w, 0);
        list = kube_list(status, "conditions", NULL);
        assert_int_equal(json_array_size(list), ARRAY_SIZE(order));
        for (size_t k = 0; k < ARRAY_SIZE(order); k++) {
            const json_t *c = json_array_get(list, k);
            int64_t generation = 0;

            assert_int_equal(json_object_size(c), 6);
            assert_string_equal(kube_str(c, "type", NULL), order[k]);
            assert_true(*kube_str(c, "reason", NULL) != '\0');
            assert_non_null(kube_str(c, "message", NULL));
            assert_true(kube_int(c, &generation, "observedGeneration", NULL) && generation == 7);
        }
        json_decref(status);
        world_free(w);
    }
}

/* Whatever the object had, one write is enough, also an hour later. */
static void needs_one_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states) * 2; i++) {
        struct world *w = world_new();
        json_t *status, *written;

        if (i % 2) {
            failing(w);
            status = status_at(w, -5000);
            merge_status(w->scorer.object, status);
            json_decref(status);
            w->scorer.tally = (struct tally){.selected = 3, .up_to_date = 3, .applied = 3, .scoring = 3};
        }
        states[i / 2].arrange(w);
        status = status_at(w, 0);
        merge_status(w->scorer.object, status);
        json_decref(status);
        written = json_deep_copy(w->scorer.object);
        status = status_at(w, 3600);
        assert_json_equal(status, json_object_get(written, "status"));
        merge_status(w->scorer.object, status);
        assert_json_equal(w->scorer.object, written);
        json_decref(status);
        json_decref(written);
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derives_conditions_from_states),
        cmocka_unit_test(writes_complete_conditions_in_order),
        cmocka_unit_test(needs_one_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
