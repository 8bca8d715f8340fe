/* A DynamicScorer's status: which states give which conditions, and that what is written once is not written again. */
#include "test/unit/hub/status_world.h"

/* ---- States ---- */

static void all_well(struct world *w)
{
    (void)w;
}

static void no_summary(struct world *w, enum effective_reason reason)
{
    w->scorer.effective.reason = reason;
    w->scorer.effective.text = (struct buf){0};
}

static void not_asked(struct world *w)
{
    w->probe.status.health = HEALTH_UNKNOWN;
    w->probe.status.probe = w->probe.status.config = (struct probe_part){0};
    api_config_done(&w->probe.status.synced);
    w->probe.status.synced = (struct api_config){0};
    no_summary(w, EFFECTIVE_WAITING);
    SET_TEXT(w->scorer.effective.why, "scoring.params.name: not known before /config has been read");
    w->scorer.effective.score_name = NULL;
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static void no_probe(struct world *w)
{
    not_asked(w);
    w->scorer.probe = NULL;
    w->hub.o.keep_unhealthy = true;
}

static void fail_probe(struct world *w, enum probe_health health)
{
    w->probe.status.health = health;
    w->probe.status.probe = (struct probe_part){
        .asked = true, .failures = 1, .reason = "Timeout", .message = "no answer within 5 s"};
}

static void failed_once(struct world *w)
{
    fail_probe(w, HEALTH_ACTIVE);
}

static void never_judged(struct world *w)
{
    fail_probe(w, HEALTH_UNKNOWN);
}

static void unhealthy(struct world *w)
{
    fail_probe(w, HEALTH_INACTIVE);
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static void unhealthy_kept(struct world *w)
{
    fail_probe(w, HEALTH_INACTIVE);
    w->hub.o.keep_unhealthy = true;
}

static void no_reason(struct world *w)
{
    unhealthy(w);
    w->probe.status.probe.reason[0] = '\0';
}

static void recovering(struct world *w)
{
    unhealthy(w);
    w->probe.status.probe = (struct probe_part){.asked = true, .ok = true, .reason = "Healthy"};
}

static void resumed_unhealthy(struct world *w)
{
    unhealthy(w);
    w->probe.status.probe = (struct probe_part){0};
}

static void put_condition(struct world *w, const char *type, const char *status, const char *reason,
                          int generation)
{
    json_object_set_new(w->scorer.object, "status",
                        json_pack("{s:[{s:s, s:s, s:s, s:s, s:i, s:s}]}", "conditions", "type", type,
                                  "status", status, "reason", reason, "message", "said before",
                                  "observedGeneration", generation, "lastTransitionTime",
                                  "2026-11-20T01:02:03Z"));
}

static void resumed_unhealthy_told(struct world *w)
{
    resumed_unhealthy(w);
    put_condition(w, "Healthy", "False", "DNS", 7);
}

static void resumed_of_older_spec(struct world *w)
{
    resumed_unhealthy(w);
    put_condition(w, "Healthy", "False", "DNS", 6);
}

static void resumed_synced(struct world *w)
{
    w->probe.status.config = (struct probe_part){0};
    put_condition(w, "ConfigSynced", "False", "HTTPStatus", 7);
}

static void resumed_lost(struct world *w)
{
    not_asked(w);
    put_condition(w, "ConfigSynced", "True", "Synced", 7);
}

static void resumed_broken(struct world *w)
{
    w->probe.status.config = (struct probe_part){0};
    put_condition(w, "ConfigSynced", "Perhaps", "Synced", 7);
}

static void mode_none(struct world *w)
{
    w->scorer.spec.mode = SYNC_NONE;
    w->scorer.effective.source = CONFIG_FROM_SPEC;
    api_config_done(&w->probe.status.synced);
    w->probe.status.synced = (struct api_config){0};
}

static void fail_config(struct world *w)
{
    w->probe.status.config = (struct probe_part){.asked = true,
                                                 .failures = 4,
                                                 .reason = "HTTPStatus",
                                                 .message = "HTTP 500 Internal Server Error: boom"};
}

static void config_never_read(struct world *w)
{
    not_asked(w);
    w->probe.status.health = HEALTH_ACTIVE;
    w->probe.status.probe = (struct probe_part){.asked = true, .ok = true};
    fail_config(w);
}

static void bad_spec(struct world *w)
{
    SET_TEXT(w->scorer.spec_why, "spec.configURL: expected an http or https URL");
}

static void bad_first_spec(struct world *w)
{
    not_asked(w);
    bad_spec(w);
    w->scorer.has_spec = false;
    w->scorer.effective = (struct effective){0};
}

static void incomplete(struct world *w)
{
    no_summary(w, EFFECTIVE_INCOMPLETE);
    SET_TEXT(w->scorer.effective.why, "spec.source.params.query: missing");
}

static void incomplete_kept(struct world *w)
{
    incomplete(w);
    w->scorer.effective.kept = true;
    w->scorer.effective.text = (struct buf){.p = (char *)"{}", .n = 2};
}

static void warned(struct world *w)
{
    SET_TEXT(w->scorer.effective.warning, "too many points");
}

static void token_host(struct world *w)
{
    no_summary(w, EFFECTIVE_TOKEN_HOST);
    SET_TEXT(w->scorer.effective.why, "the token would go to http://evil");
}

static void younger_of_two(struct world *w)
{
    w->scorer.older = &w->other;
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static void older_of_two(struct world *w)
{
    w->scorer.younger = &w->other;
}

static void share_object(struct world *w, struct hub_scorer *younger)
{
    static char name[] = "other_name";

    SET_TEXT(w->scorer.object_name, "other-name");
    w->other.effective.score_name = name;
    younger->same_object = true;
}

static void younger_of_object(struct world *w)
{
    younger_of_two(w);
    share_object(w, &w->scorer);
}

static void older_of_object(struct world *w)
{
    older_of_two(w);
    share_object(w, &w->other);
}

static void long_name(struct world *w)
{
    static char name[4096];

    for (size_t i = 0; i + 3 < sizeof(name); i += 3)
        memcpy(name + i, "\xe2\x82\xac", 3);
    w->scorer.effective.score_name = name;
    older_of_two(w);
}

static void no_plan(struct world *w)
{
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static void no_config(struct world *w)
{
    no_plan(w);
    json_decref(w->hub.config.object);
    w->hub.config.object = NULL;
}

static void config_deleted(struct world *w)
{
    no_plan(w);
    json_object_set_new(json_object_get(w->hub.config.object, "metadata"), "deletionTimestamp",
                        json_string(NOON));
}

static void bad_masks(struct world *w)
{
    no_plan(w);
    w->hub.config.has_masks = false;
    SET_TEXT(w->hub.config.why, "spec.masks[0]: expected an object");
}

static void no_clusters(struct world *w)
{
    w->hub.totals = (struct hub_totals){0};
    w->scorer.tally = (struct tally){0};
}

static void not_planned(struct world *w)
{
    w->scorer.entry = SIZE_MAX;
}

static void masked(struct world *w)
{
    w->scorer.tally = (struct tally){0};
    w->group->set[0] = 0;
}

static void no_room(struct world *w)
{
    w->scorer.tally =
        (struct tally){.selected = 2, .up_to_date = 2, .applied = 2, .waiting = 2, .no_room = 1};
}

static void no_room_anywhere(struct world *w)
{
    w->scorer.tally = (struct tally){.no_room = 3};
    w->group->set[0] = 0;
}

static void progressing(struct world *w)
{
    w->scorer.tally = (struct tally){.selected = 3, .up_to_date = 1, .applied = 1, .scoring = 1, .silent = 2};
}

static void behind_everywhere(struct world *w)
{
    w->scorer.tally = (struct tally){.selected = 3, .scoring = 3};
}

static void unwritten(struct world *w)
{
    SET_TEXT(w->clusters[2].why, "namespaces \"c3\" not found");
    SET_TEXT(w->clusters[1].why, "forbidden");
    w->clusters[1].found.applied = false;
    w->scorer.tally = (struct tally){
        .selected = 3,
        .up_to_date = 1,
        .applied = 1,
        .scoring = 1,
        .failing = 2,
        .unwritten = 2,
        .n_named = 2,
        .named = {{&w->clusters[1], NULL, PAIR_NOT_WRITTEN}, {&w->clusters[2], NULL, PAIR_NOT_WRITTEN}}};
}

static void unapplied(struct world *w)
{
    w->clusters[2].found.applied = false;
    SET_TEXT(w->clusters[2].found.why, "no namespace dynamic-scoring");
    w->scorer.tally = (struct tally){.selected = 3,
                                     .up_to_date = 3,
                                     .applied = 2,
                                     .scoring = 2,
                                     .failing = 1,
                                     .unapplied = 1,
                                     .stuck = 1,
                                     .n_named = 1,
                                     .named = {{&w->clusters[2], NULL, PAIR_NOT_APPLIED}}};
}

static void unapplied_anywhere(struct world *w)
{
    unapplied(w);
    w->scorer.tally.applied = w->scorer.tally.scoring = 0;
    w->scorer.tally.failing = w->scorer.tally.unapplied = w->scorer.tally.stuck = 3;
}

/* No agent has reported yet: that some cluster cannot be written makes the rest no worse. */
static void unwritten_and_waiting(struct world *w)
{
    unwritten(w);
    w->scorer.tally.scoring = 0;
    w->scorer.tally.waiting = 1;
}

static void fail_cluster(struct world *w, size_t i, enum report_state state, const char *error)
{
    struct tally *t = &w->scorer.tally;

    w->cells[i] = (struct report_cell){.state = (uint8_t)state, .error = *error != '\0'};
    w->errors[i] = (char *)(uintptr_t)error;
    w->clusters[i].report.errors = &w->errors[i];
    t->named[t->n_named].cluster = &w->clusters[i];
    t->named[t->n_named++].cell = &w->cells[i];
    t->failing++;
    t->scoring--;
}

static void failing(struct world *w)
{
    fail_cluster(w, 0, REPORT_FAILING, "HTTP 503 Service Unavailable");
    fail_cluster(w, 2, REPORT_STALE, "");
}

static void failing_everywhere(struct world *w)
{
    for (size_t i = 0; i < WORLD_CLUSTERS; i++)
        fail_cluster(w, i, REPORT_STALE, "HTTP 503 Service Unavailable");
}

/* One fails, and nothing is heard of the others. */
static void failing_where_heard_of(struct world *w)
{
    fail_cluster(w, 1, REPORT_STALE, "HTTP 503 Service Unavailable");
    w->scorer.tally.silent = 2;
    w->scorer.tally.scoring = 0;
}

static void failing_and_unwritten(struct world *w)
{
    unwritten(w);
    w->clusters[1].why[0] = '\0';
    w->cells[1] = (struct report_cell){.state = REPORT_FAILING};
    w->scorer.tally.named[0].cell = &w->cells[1];
    w->scorer.tally.named[0].pair = PAIR_FAILING;
    w->scorer.tally.unwritten = 1;
}

static void refused(struct world *w)
{
    w->clusters[1].report.trouble = (char *)(uintptr_t) "f:1:2: error: no such field";
    w->scorer.tally.scoring = 2;
    w->scorer.tally.failing = 1;
    w->scorer.tally.n_named = 1;
    w->scorer.tally.named[0].cluster = &w->clusters[1];
    w->scorer.tally.named[0].pair = PAIR_REFUSED;
}

static void outdated(struct world *w)
{
    refused(w);
    w->scorer.tally.scoring = 3;
    w->scorer.tally.failing = 0;
    w->scorer.tally.named[0].pair = PAIR_OUTDATED;
}

static void name_silent(struct world *w, size_t i, enum pair p)
{
    struct tally *t = &w->scorer.tally;

    w->cells[i] = (struct report_cell){.state = REPORT_OK, .succeeded = 1795242181};
    t->named[t->n_named].cluster = &w->clusters[i];
    t->named[t->n_named].cell = p == PAIR_OLD ? &w->cells[i] : NULL;
    t->named[t->n_named++].pair = p;
    t->silent++;
    t->scoring--;
}

static void away(struct world *w)
{
    w->clusters[0].away = (char *)(uintptr_t) "no lease";
    name_silent(w, 0, PAIR_AWAY);
}

static void silent_everywhere(struct world *w)
{
    away(w);
    name_silent(w, 1, PAIR_OLD);
    name_silent(w, 2, PAIR_CUT);
}

static void placement_failing(struct world *w)
{
    fail_cluster(w, 1, REPORT_OK, "");
    w->cells[1].placement = true;
}

/* So many cannot be written that there was no room to name one that fails. */
static void failing_unnamed(struct world *w)
{
    w->scorer.tally = (struct tally){
        .selected = 4, .up_to_date = 3, .applied = 3, .scoring = 1, .failing = 3, .unwritten = 1};
}

static void no_reports(struct world *w)
{
    w->scorer.tally.scoring = 0;
    w->scorer.tally.silent = 3;
}

static void waiting(struct world *w)
{
    w->scorer.tally.scoring = 0;
    w->scorer.tally.waiting = 1;
    w->scorer.tally.silent = 2;
}

static void one_cluster(struct world *w)
{
    w->scorer.tally = (struct tally){.selected = 1, .up_to_date = 1, .applied = 1, .scoring = 1};
}

static const struct {
    void (*arrange)(struct world *w);
    const char *type, *told, *piece;
} states[] = {
    {all_well, "Healthy", "True Healthy: ", "the scoring API answers"},
    {all_well, "ConfigSynced", "True Synced: ", ""},
    {all_well, "Valid", "True Valid: ", ""},
    {all_well, "UniqueScoreName", "True Unique: ", "energy-score"},
    {all_well, "Distributed", "True Distributed: ", "on all 3 clusters"},
    {all_well, "Scoring", "True Scoring: ", "scores on 3 of 3 clusters"},
    {all_well, "Ready", "True Ready: ", "on all 3 clusters"},
    {not_asked, "Healthy", "Unknown NotProbed: ", "has not been asked"},
    {not_asked, "ConfigSynced", "Unknown NotAsked: ", "has not been asked"},
    {not_asked, "Valid", "Unknown Waiting: ", "scoring.params.name: not known"},
    {not_asked, "UniqueScoreName", "Unknown NoScoreName: ", "not known"},
    {not_asked, "Distributed", "False NotSelected: ", "nothing valid"},
    {not_asked, "Scoring", "Unknown NoReports: ", ""},
    {not_asked, "Ready", "Unknown Waiting: ", "scoring.params.name"},
    {no_probe, "Healthy", "Unknown NotProbed: ", ""},
    {failed_once, "Healthy", "True Healthy: ", "3 failures in a row count: no answer within 5 s"},
    {failed_once, "Ready", "True Ready: ", ""},
    {never_judged, "Healthy", "Unknown Timeout: ", "no answer within 5 s"},
    {never_judged, "Distributed", "False NotSelected: ", "not known yet"},
    {never_judged, "Ready", "Unknown Timeout: ", "no answer within 5 s"},
    {unhealthy, "Healthy", "False Timeout: ", "no answer within 5 s"},
    {unhealthy, "Distributed", "False NotSelected: ", "not healthy"},
    {unhealthy, "Ready", "False Timeout: ", "no answer within 5 s"},
    {unhealthy_kept, "Healthy", "False Timeout: ", "clusters keep it"},
    {unhealthy_kept, "Distributed", "True Distributed: ", ""},
    {unhealthy_kept, "Ready", "False Timeout: ", "no answer within 5 s"},
    {no_reason, "Healthy", "False Failing: ", ""},
    {recovering, "Healthy", "False Recovering: ", "2 successes in a row"},
    {resumed_unhealthy, "Healthy", "False NotProbed: ", "was not healthy"},
    {resumed_unhealthy_told, "Healthy", "False DNS: ", "said before"},
    {resumed_of_older_spec, "Healthy", "False NotProbed: ", "was not healthy"},
    {resumed_synced, "ConfigSynced", "False HTTPStatus: ", "said before"},
    {resumed_lost, "ConfigSynced", "Unknown NotAsked: ", ""},
    {resumed_broken, "ConfigSynced", "Unknown NotAsked: ", ""},
    {mode_none, "ConfigSynced", "True NotNeeded: ", "None"},
    {fail_config, "ConfigSynced", "False HTTPStatus: ", "boom; the configuration read before stays in force"},
    {fail_config, "Ready", "True Ready: ", ""},
    {config_never_read, "ConfigSynced", "False HTTPStatus: ", "boom; none has been read yet"},
    {config_never_read, "Ready", "False HTTPStatus: ", "boom"},
    {bad_spec, "Valid",
     "False InvalidSpec: ", "spec.configURL: expected an http or https URL; the spec read before"},
    {bad_spec, "Distributed", "True Distributed: ", ""},
    {bad_spec, "Ready", "False InvalidSpec: ", "spec.configURL"},
    {bad_first_spec, "Valid", "False InvalidSpec: ", "https URL"},
    {bad_first_spec, "Ready", "False InvalidSpec: ", "https URL"},
    {incomplete, "Valid", "False Incomplete: ", "spec.source.params.query: missing"},
    {incomplete, "Ready", "False Incomplete: ", "missing"},
    {incomplete, "Distributed", "False NotSelected: ", "nothing valid"},
    {incomplete_kept, "Valid",
     "False Incomplete: ", "spec.source.params.query: missing; the one before stays in force"},
    {incomplete_kept, "Distributed", "True Distributed: ", ""},
    {incomplete_kept, "Ready", "False Incomplete: ", "missing"},
    {warned, "Valid", "True Valid: ", "clusters can be given it, but will fail with it: too many points"},
    {warned, "Ready", "True Ready: ", ""},
    {token_host, "Valid", "False TokenHostNotAllowed: ", "http://evil"},
    {younger_of_two, "UniqueScoreName",
     "False DuplicateScoreName: ", "belongs to DynamicScorer other, which is older"},
    {younger_of_two, "Distributed", "False NotSelected: ", "same score name"},
    {younger_of_two, "Ready", "False NotSelected: ", "same score name"},
    {older_of_two, "UniqueScoreName",
     "False DuplicateScoreName: ", "DynamicScorer other has the same score name"},
    {older_of_two, "Ready", "True Ready: ", ""},
    {younger_of_object, "UniqueScoreName", "False DuplicateScoreName: ",
     "leads to AddOnPlacementScore other-name, as does other_name of DynamicScorer other, which is older: "
     "this one is left out"},
    {older_of_object, "UniqueScoreName", "False DuplicateScoreName: ",
     "leads to AddOnPlacementScore other-name, as does other_name of DynamicScorer other, which is younger "
     "and left out"},
    {long_name, "UniqueScoreName", "False DuplicateScoreName: ", "..."},
    {no_config, "Distributed", "False NoConfig: ", "dynamic-scoring-config in namespace ocm"},
    {no_config, "Ready", "False NoConfig: ", ""},
    {config_deleted, "Distributed", "False ConfigDeleting: ", "being deleted"},
    {bad_masks, "Distributed", "False InvalidMasks: ", "spec.masks[0]: expected an object"},
    {no_clusters, "Distributed", "False NoClusters: ", ""},
    {not_planned, "Distributed", "False Progressing: ", ""},
    {masked, "Distributed", "False Masked: ", "masked on all clusters"},
    {masked, "Ready", "False Masked: ", ""},
    {no_room, "Ready", "True Ready: ", "summaries of 1 cluster"},
    {no_room_anywhere, "Ready", "False NoRoom: ", "summaries of 3 clusters"},
    {no_room, "Distributed", "False NoRoom: ", "summaries of 1 cluster: a ManifestWork holds 500 KiB"},
    {progressing, "Distributed", "False Progressing: ", "1 of 3 clusters have it"},
    {progressing, "Ready", "True Ready: ", "1 of 3 clusters have it"},
    {behind_everywhere, "Ready", "False Progressing: ", "0 of 3"},
    {unwritten, "Distributed", "False ClustersFailing: ", "2 of 3 clusters cannot be written: c2: forbidden"},
    {unwritten, "Scoring", "True Scoring: ", "scores on 1 of 3 clusters"},
    {unapplied, "Distributed",
     "False ClustersFailing: ", "1 of 3 clusters cannot apply it: c3: no namespace"},
    {failing, "Scoring",
     "False ClustersFailing: ", "fails on 2 of 3 clusters: c1: HTTP 503 Service Unavailable"},
    {failing, "Ready", "True Ready: ", "fails on 2 of 3 clusters: c1: HTTP 503"},
    {unwritten, "Ready", "True Ready: ", "2 of 3 clusters cannot be written: c2: forbidden"},
    {unwritten_and_waiting, "Ready", "True Ready: ", "2 of 3 clusters cannot be written: c2: forbidden"},
    {unapplied, "Scoring", "True Scoring: ", "scores on 2 of 3 clusters"},
    {unapplied, "Ready", "True Ready: ", "1 of 3 clusters cannot apply it"},
    {unapplied_anywhere, "Ready",
     "False ClustersFailing: ", "1 of 3 clusters cannot apply it: c3: no namespace"},
    {failing_everywhere, "Distributed", "True Distributed: ", ""},
    {failing_everywhere, "Ready", "False ClustersFailing: ", "fails on 3 of 3 clusters: c1: HTTP 503"},
    {failing_where_heard_of, "Ready", "False ClustersFailing: ", "fails on 1 of 3 clusters: c2: HTTP 503"},
    {failing_and_unwritten, "Scoring", "False ClustersFailing: ", "fails on 1 of 3 clusters: c2: failing"},
    {failing_and_unwritten, "Ready", "True Ready: ", "1 of 3 clusters cannot be written: c3: "},
    {refused, "Scoring",
     "False ClustersFailing: ", "on 1 of 3 clusters: c2: the agent refuses its configuration: f:1:2: error"},
    {outdated, "Scoring", "True Scoring: ", "scores on 3 of 3 clusters"},
    {away, "Scoring", "True Scoring: ", "scores on 2 of 3 clusters"},
    {away, "Ready", "True Ready: ", "on all 3 clusters"},
    {silent_everywhere, "Scoring", "Unknown Silent: ",
     "nothing is heard of it from 3 of 3 clusters: c1: the cluster is not available: no lease"},
    {placement_failing, "Scoring",
     "False ClustersFailing: ", "c2: its AddOnPlacementScore cannot be written"},
    {failing_unnamed, "Scoring", "False ClustersFailing: ", "fails on 2 of 4 clusters"},
    {no_reports, "Scoring", "Unknown NoReports: ", ""},
    {waiting, "Scoring", "Unknown Waiting: ", ""},
    {one_cluster, "Distributed", "True Distributed: ", "on 1 cluster"},
};

static json_t *status_at(struct world *w, int64_t seconds_later)
{
    json_t *status = status_of_scorer(&w->scorer, (unix_ms){noon.ms + seconds_later * 1000});

    assert_non_null(status);
    return status;
}

static void states_give_conditions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        struct world *w = world_new();
        json_t *status;

        states[i].arrange(w);
        status = status_at(w, 0);
        assert_told(status, states[i].type, states[i].told, states[i].piece);
        assert_true(status_scorer_ready(&w->scorer) == (strncmp(told(status, "Ready"), "True", 4) == 0));
        json_decref(status);
        world_free(w);
    }
}

static void conditions_are_whole_and_in_order(void **state)
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

/* Whatever was there before, after one write there is nothing to write, an hour later neither. */
static void one_write_is_enough(void **state)
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

/* ---- Members ---- */

static const struct {
    void (*arrange)(struct world *w);
    const char *members; /* of a status; null: it has none such */
} members[] = {
    {all_well,
     "{\"healthStatus\":\"Active\",\"observedGeneration\":7,\"scoreName\":\"energy-score\",\"configSource\":"
     "\"API\","
     "\"clusters\":{\"selected\":3,\"upToDate\":3,\"applied\":3,\"scoring\":3,\"failing\":0,\"waiting\":0,"
     "\"silent\":0,\"noRoom\":0},\"failingClusters\":null}"},
    {not_asked, "{\"healthStatus\":\"Unknown\",\"scoreName\":null,\"lastSyncedConfig\":null}"},
    {mode_none, "{\"configSource\":\"Spec\",\"lastSyncedConfig\":null,\"summary\":\"{}\"}"},
    {bad_first_spec, "{\"configSource\":null,\"scoreName\":null,\"summary\":null}"},
    {unhealthy, "{\"healthStatus\":\"Inactive\"}"},
    {no_room,
     "{\"clusters\":{\"selected\":2,\"upToDate\":2,\"applied\":2,\"scoring\":0,\"failing\":0,\"waiting\":2,"
     "\"silent\":0,\"noRoom\":1}}"},
    {failing, "{\"failingClusters\":[{\"name\":\"c1\",\"state\":\"failing\",\"error\":\"HTTP 503 Service "
              "Unavailable\"},"
              "{\"name\":\"c3\",\"state\":\"stale\",\"error\":\"stale\"}]}"},
    {placement_failing, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"ok\","
                        "\"error\":\"its AddOnPlacementScore cannot be written\"}]}"},
    {unwritten, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"notWritten\",\"error\":\"forbidden\"},"
                "{\"name\":\"c3\",\"state\":\"notWritten\",\"error\":\"namespaces \\\"c3\\\" not found\"}]}"},
    {refused, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"refused\","
              "\"error\":\"the agent refuses its configuration: f:1:2: error: no such field\"}]}"},
    {outdated, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"refused\","
               "\"error\":\"the agent refuses its configuration, an older one is in force: "
               "f:1:2: error: no such field\"}]}"},
    {silent_everywhere,
     "{\"failingClusters\":[{\"name\":\"c1\",\"state\":\"silent\",\"error\":\"the cluster is not available: "
     "no "
     "lease\"},{\"name\":\"c2\",\"state\":\"silent\",\"error\":\"its last success was at "
     "2026-11-21T06:23:01Z\"},"
     "{\"name\":\"c3\",\"state\":\"silent\",\"error\":\"the agent's report has no room for all of its "
     "scorers\"}]}"},
    {unapplied, "{\"failingClusters\":[{\"name\":\"c3\",\"state\":\"notApplied\","
                "\"error\":\"no namespace dynamic-scoring\"}]}"},
};

static void states_give_members(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        struct world *w = world_new();
        json_t *wanted = json_of(members[i].members), *status, *value;
        const char *name;

        members[i].arrange(w);
        status = status_at(w, 0);
        json_object_foreach(wanted, name, value)
        {
            if (json_is_null(value))
                assert_null(json_object_get(status, name));
            else
                assert_json_equal(json_object_get(status, name), value);
        }
        json_decref(wanted);
        json_decref(status);
        world_free(w);
    }
}

/* What the object has and nobody means any more goes: as null in the patch, which is how a merge takes things away. */
static void what_went_is_taken_away(void **state)
{
    struct world *w = world_new();
    json_t *status;

    (void)state;
    failing(w);
    status = status_at(w, 0);
    merge_status(w->scorer.object, status);
    json_decref(status);
    not_asked(w);
    status = status_at(w, 1);
    assert_true(json_is_null(json_object_get(status, "lastSyncedConfig")));
    assert_true(json_is_null(json_object_get(status, "failingClusters")));
    assert_true(json_is_null(json_object_get(status, "scoreName")));
    merge_status(w->scorer.object, status);
    assert_null(kube_get(w->scorer.object, "status", "lastSyncedConfig", NULL));
    json_decref(status);
    world_free(w);
}

/* A synced configuration replaces the one before; a merge alone would mix them. */
static void synced_config_replaces_the_one_before(void **state)
{
    struct world *w = world_new();
    json_t *status, *wanted = api_config_value(&w->probe.status.synced);

    (void)state;
    assert_non_null(wanted);
    json_object_set_new(w->scorer.object, "status",
                        json_of("{\"lastSyncedConfig\":{\"old\":1,\"none\":null,\"source\":{\"old\":{\"x\":1}"
                                ",\"params\":{\"old\":\"y\"}},"
                                "\"scoring\":\"no object\"}}"));
    status = status_at(w, 0);
    assert_true(json_is_null(json_object_get(kube_map(status, "lastSyncedConfig", NULL), "old")));
    json_object_del(kube_map(w->scorer.object, "status", "lastSyncedConfig", NULL), "none");
    merge_status(w->scorer.object, status);
    assert_json_equal(kube_get(w->scorer.object, "status", "lastSyncedConfig", NULL), wanted);
    json_decref(status);
    json_decref(wanted);
    world_free(w);
}

/* ---- Times ---- */

static const char *since(const json_t *status, const char *type)
{
    return cstr(kube_str(condition_find(status, type), "lastTransitionTime", NULL));
}

static void time_moves_with_the_status_alone(void **state)
{
    struct world *w = world_new();
    json_t *status = status_at(w, 0);

    (void)state;
    assert_string_equal(since(status, "Healthy"), NOON);
    merge_status(w->scorer.object, status);
    json_decref(status);

    failed_once(w);
    status = status_at(w, 30);
    assert_string_equal(since(status, "Healthy"), NOON);
    json_decref(status);

    unhealthy(w);
    status = status_at(w, 60);
    assert_string_equal(since(status, "Healthy"), "2026-11-21T12:01:00Z");
    assert_string_equal(since(status, "Ready"), "2026-11-21T12:01:00Z");
    assert_string_equal(since(status, "ConfigSynced"), NOON);
    json_decref(status);
    world_free(w);
}

/* With a CRD that has no conditions they are pruned: what was sent is all that is known of them. Also while the watch has not told yet. */
static void time_is_kept_where_conditions_are_pruned(void **state)
{
    struct world *w = world_new();

    (void)state;
    w->scorer.written.sent = status_at(w, 0);
    json_object_set_new(w->scorer.object, "status", json_of("{\"healthStatus\":\"Active\"}"));
    json_t *status = status_at(w, 3600);
    assert_json_equal(status, w->scorer.written.sent);
    json_decref(status);
    world_free(w);
}

static json_t *make(struct world *w)
{
    return status_of_scorer(&w->scorer, noon);
}

static void memory_runs_out(void **state)
{
    struct world *w = world_new();
    json_t *status;

    (void)state;
    failing(w);
    status = status_at(w, 0);
    merge_status(w->scorer.object, status);
    json_decref(status);
    json_object_set_new(kube_map(w->scorer.object, "status", "lastSyncedConfig", NULL), "old",
                        json_integer(1));
    assert_survives_json_failures(make, w);
    w->scorer.tally.n_named = 0;
    w->scorer.effective.score_name = NULL;
    w->scorer.has_spec = false;
    assert_survives_json_failures(make, w);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_give_conditions),
        cmocka_unit_test(conditions_are_whole_and_in_order),
        cmocka_unit_test(one_write_is_enough),
        cmocka_unit_test(states_give_members),
        cmocka_unit_test(what_went_is_taken_away),
        cmocka_unit_test(synced_config_replaces_the_one_before),
        cmocka_unit_test(time_moves_with_the_status_alone),
        cmocka_unit_test(time_is_kept_where_conditions_are_pruned),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
