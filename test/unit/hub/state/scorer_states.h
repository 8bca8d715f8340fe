/* States of a DynamicScorer, as the tests of its status set them up. */
#ifndef DS_TEST_SCORER_STATES_H
#define DS_TEST_SCORER_STATES_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/state.h"
#include "controller/hub/state/status.h"
#include "exporter/base/clock.h"
#include "exporter/score/state.h"
#include "test/unit/hub/state/status_world.h"

static inline void all_well(struct world *w)
{
    (void)w;
}

static inline void no_summary(struct world *w, enum effective_reason reason)
{
    w->scorer.effective.reason = reason;
    w->scorer.effective.text = (struct buf){0};
}

static inline void not_asked(struct world *w)
{
    w->probe.status.health = HEALTH_UNKNOWN;
    w->probe.status.probe = w->probe.status.config = (struct probe_part){0};
    api_config_done(&w->probe.status.synced);
    w->probe.status.synced = (struct api_config){0};
    no_summary(w, EFFECTIVE_WAITING);
    SET_TEXT(w->scorer.effective.error, "scoring.params.name: not known before /config has been read");
    w->scorer.effective.score_name = NULL;
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static inline void no_probe(struct world *w)
{
    not_asked(w);
    w->scorer.probe = NULL;
    w->hub.o.keep_unhealthy = true;
}

static inline void fail_probe(struct world *w, enum probe_health health)
{
    w->probe.status.health = health;
    w->probe.status.probe = (struct probe_part){.asked = true,
                                                .failures = 1,
                                                .reason = "Timeout",
                                                .message = "timed out after 5 s with 0 bytes received"};
}

static inline void failed_once(struct world *w)
{
    fail_probe(w, HEALTH_ACTIVE);
}

static inline void never_judged(struct world *w)
{
    fail_probe(w, HEALTH_UNKNOWN);
}

static inline void unhealthy(struct world *w)
{
    fail_probe(w, HEALTH_INACTIVE);
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static inline void unhealthy_kept(struct world *w)
{
    fail_probe(w, HEALTH_INACTIVE);
    w->hub.o.keep_unhealthy = true;
}

static inline void no_reason(struct world *w)
{
    unhealthy(w);
    w->probe.status.probe.reason[0] = '\0';
}

static inline void recovering(struct world *w)
{
    unhealthy(w);
    w->probe.status.probe = (struct probe_part){.asked = true, .ok = true, .reason = "Healthy"};
}

static inline void resumed_unhealthy(struct world *w)
{
    unhealthy(w);
    w->probe.status.probe = (struct probe_part){0};
}

static inline void put_condition(struct world *w, const char *type, const char *status, const char *reason,
                                 int generation)
{
    json_object_set_new(w->scorer.object, "status",
                        json_pack("{s:[{s:s, s:s, s:s, s:s, s:i, s:s}]}", "conditions", "type", type,
                                  "status", status, "reason", reason, "message", "said before",
                                  "observedGeneration", generation, "lastTransitionTime",
                                  "2026-11-20T01:02:03Z"));
}

static inline void resumed_unhealthy_told(struct world *w)
{
    resumed_unhealthy(w);
    put_condition(w, "Healthy", "False", "DNS", 7);
}

static inline void resumed_of_older_spec(struct world *w)
{
    resumed_unhealthy(w);
    put_condition(w, "Healthy", "False", "DNS", 6);
}

static inline void resumed_synced(struct world *w)
{
    w->probe.status.config = (struct probe_part){0};
    put_condition(w, "ConfigSynced", "False", "HTTPStatus", 7);
}

static inline void resumed_lost(struct world *w)
{
    not_asked(w);
    put_condition(w, "ConfigSynced", "True", "Synced", 7);
}

static inline void resumed_broken(struct world *w)
{
    w->probe.status.config = (struct probe_part){0};
    put_condition(w, "ConfigSynced", "Perhaps", "Synced", 7);
}

static inline void mode_none(struct world *w)
{
    w->scorer.spec.mode = SYNC_NONE;
    w->scorer.effective.source = CONFIG_FROM_SPEC;
    api_config_done(&w->probe.status.synced);
    w->probe.status.synced = (struct api_config){0};
}

static inline void fail_config(struct world *w)
{
    w->probe.status.config = (struct probe_part){.asked = true,
                                                 .failures = 4,
                                                 .reason = "HTTPStatus",
                                                 .message = "HTTP 500 Internal Server Error: boom"};
}

static inline void config_never_read(struct world *w)
{
    not_asked(w);
    w->probe.status.health = HEALTH_ACTIVE;
    w->probe.status.probe = (struct probe_part){.asked = true, .ok = true};
    fail_config(w);
}

static inline void bad_spec(struct world *w)
{
    SET_TEXT(w->scorer.spec_error, "spec.configURL: expected an http or https URL");
}

static inline void bad_first_spec(struct world *w)
{
    not_asked(w);
    bad_spec(w);
    w->scorer.has_spec = false;
    w->scorer.effective = (struct effective){0};
}

static inline void incomplete(struct world *w)
{
    no_summary(w, EFFECTIVE_INCOMPLETE);
    SET_TEXT(w->scorer.effective.error, "spec.source.params.query: missing");
}

static inline void incomplete_kept(struct world *w)
{
    incomplete(w);
    w->scorer.effective.kept = true;
    w->scorer.effective.text = (struct buf){.p = (char *)"{}", .n = 2};
}

static inline void warned(struct world *w)
{
    SET_TEXT(w->scorer.effective.warning, "too many points");
}

static inline void token_host(struct world *w)
{
    no_summary(w, EFFECTIVE_TOKEN_HOST);
    SET_TEXT(w->scorer.effective.error, "the token would go to http://evil");
}

static inline void younger_of_two(struct world *w)
{
    w->scorer.older = &w->other;
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static inline void older_of_two(struct world *w)
{
    w->scorer.younger = &w->other;
}

static inline void share_object(struct world *w, struct hub_scorer *younger)
{
    static char name[] = "other_name";

    SET_TEXT(w->scorer.object_name, "other-name");
    w->other.effective.score_name = name;
    younger->same_object = true;
}

static inline void younger_of_object(struct world *w)
{
    younger_of_two(w);
    share_object(w, &w->scorer);
}

static inline void older_of_object(struct world *w)
{
    older_of_two(w);
    share_object(w, &w->other);
}

static inline void long_name(struct world *w)
{
    static char name[4096];

    for (size_t i = 0; i + 3 < sizeof(name); i += 3)
        memcpy(name + i, "\xe2\x82\xac", 3);
    w->scorer.effective.score_name = name;
    older_of_two(w);
}

static inline void no_plan(struct world *w)
{
    w->scorer.entry = SIZE_MAX;
    w->scorer.tally = (struct tally){0};
}

static inline void no_config(struct world *w)
{
    no_plan(w);
    json_decref(w->hub.config.object);
    w->hub.config.object = NULL;
}

static inline void config_deleted(struct world *w)
{
    no_plan(w);
    json_object_set_new(json_object_get(w->hub.config.object, "metadata"), "deletionTimestamp",
                        json_string(NOON));
}

static inline void bad_masks(struct world *w)
{
    no_plan(w);
    w->hub.config.has_masks = false;
    SET_TEXT(w->hub.config.masks_error, "spec.masks[0]: expected an object");
}

static inline void no_clusters(struct world *w)
{
    w->hub.totals = (struct hub_totals){0};
    w->scorer.tally = (struct tally){0};
}

static inline void not_planned(struct world *w)
{
    w->scorer.entry = SIZE_MAX;
}

static inline void masked(struct world *w)
{
    w->scorer.tally = (struct tally){0};
    w->group->set[0] = 0;
}

static inline void no_room(struct world *w)
{
    w->scorer.tally =
        (struct tally){.selected = 2, .up_to_date = 2, .applied = 2, .waiting = 2, .no_room = 1};
}

static inline void no_room_anywhere(struct world *w)
{
    w->scorer.tally = (struct tally){.no_room = 3};
    w->group->set[0] = 0;
}

static inline void progressing(struct world *w)
{
    w->scorer.tally = (struct tally){.selected = 3, .up_to_date = 1, .applied = 1, .scoring = 1, .silent = 2};
}

/* Their agents have not reported either. */
static inline void unconfirmed(struct world *w)
{
    struct tally *t = &w->scorer.tally;

    *t = (struct tally){
        .selected = 3,
        .up_to_date = 3,
        .applied = 1,
        .scoring = 1,
        .silent = 2,
        .unconfirmed = {2, &w->clusters[1]},
        .n_named = 2,
        .named = {{&w->clusters[1], NULL, PAIR_NO_REPORT}, {&w->clusters[2], NULL, PAIR_NO_REPORT}}};
    w->clusters[1].work.applied = w->clusters[2].work.applied = false;
}

static inline void behind_everywhere(struct world *w)
{
    w->scorer.tally = (struct tally){.selected = 3, .scoring = 3};
}

static inline void unwritten(struct world *w)
{
    SET_TEXT(w->clusters[2].write.trouble, "namespaces \"c3\" not found");
    SET_TEXT(w->clusters[1].write.trouble, "forbidden");
    w->clusters[1].work.applied = false;
    w->scorer.tally = (struct tally){
        .selected = 3,
        .up_to_date = 1,
        .applied = 1,
        .scoring = 1,
        .failing = 2,
        .unwritten = 2,
        .write_errors = {2, &w->clusters[1]},
        .n_named = 2,
        .named = {{&w->clusters[1], NULL, PAIR_NOT_WRITTEN}, {&w->clusters[2], NULL, PAIR_NOT_WRITTEN}}};
}

static inline void unapplied(struct world *w)
{
    w->clusters[2].work.applied = false;
    SET_TEXT(w->clusters[2].work.why, "no namespace dynamic-scoring");
    w->scorer.tally = (struct tally){.selected = 3,
                                     .up_to_date = 3,
                                     .applied = 2,
                                     .scoring = 2,
                                     .failing = 1,
                                     .unapplied = 1,
                                     .stuck = 1,
                                     .apply_errors = {1, &w->clusters[2]},
                                     .n_named = 1,
                                     .named = {{&w->clusters[2], NULL, PAIR_NOT_APPLIED}}};
}

static inline void unapplied_anywhere(struct world *w)
{
    unapplied(w);
    w->scorer.tally.applied = w->scorer.tally.scoring = 0;
    w->scorer.tally.failing = w->scorer.tally.unapplied = w->scorer.tally.stuck = 3;
}

/* No agent has reported yet: a cluster that cannot be written does not make the others fail. */
static inline void unwritten_and_waiting(struct world *w)
{
    unwritten(w);
    w->scorer.tally.scoring = 0;
    w->scorer.tally.waiting = 1;
}

static inline void fail_cluster(struct world *w, size_t i, enum scorer_state state, const char *error)
{
    struct tally *t = &w->scorer.tally;

    w->cells[i] = (struct report_cell){.state = (uint8_t)state, .error = *error != '\0'};
    w->errors[i] = (char *)(uintptr_t)error;
    w->clusters[i].report.errors = &w->errors[i];
    t->named[t->n_named].cluster = &w->clusters[i];
    t->named[t->n_named].cell = &w->cells[i];
    t->named[t->n_named++].pair = state == SCORER_FAILING ? PAIR_FAILING
                                  : state == SCORER_STALE ? PAIR_STALE
                                                          : PAIR_NOT_PLACED;
    t->failing++;
    t->scoring--;
}

static inline void failing(struct world *w)
{
    fail_cluster(w, 0, SCORER_FAILING, "HTTP 503 Service Unavailable");
    fail_cluster(w, 2, SCORER_STALE, "");
}

static inline void failing_everywhere(struct world *w)
{
    for (size_t i = 0; i < WORLD_CLUSTERS; i++)
        fail_cluster(w, i, SCORER_STALE, "HTTP 503 Service Unavailable");
}

/* One fails, and the others do not report. */
static inline void failing_where_heard_of(struct world *w)
{
    fail_cluster(w, 1, SCORER_STALE, "HTTP 503 Service Unavailable");
    w->scorer.tally.silent = 2;
    w->scorer.tally.scoring = 0;
}

static inline void failing_and_unwritten(struct world *w)
{
    unwritten(w);
    w->clusters[1].write.trouble[0] = '\0';
    w->cells[1] = (struct report_cell){.state = SCORER_FAILING};
    w->scorer.tally.named[0].cell = &w->cells[1];
    w->scorer.tally.named[0].pair = PAIR_FAILING;
    w->scorer.tally.unwritten = 1;
    w->scorer.tally.write_errors.n = 1;
    w->scorer.tally.write_errors.first = &w->clusters[2];
}

static inline void checked_by(struct world *w, enum health_check check)
{
    w->probe.status.health = HEALTH_UNKNOWN;
    w->probe.status.probe = (struct probe_part){0};
    w->scorer.spec.health_check = check;
}

static inline void unchecked(struct world *w)
{
    checked_by(w, HEALTH_CHECK_NONE);
}

static inline void no_health_reports(struct world *w)
{
    checked_by(w, HEALTH_CHECK_AGENTS);
}

static inline void healthy_by_agents(struct world *w)
{
    checked_by(w, HEALTH_CHECK_AGENTS);
    w->scorer.tally.api_healthy = 3;
}

static inline void degraded_by_agents(struct world *w)
{
    healthy_by_agents(w);
    fail_cluster(w, 1, SCORER_FAILING, "scoring failed, http://api:8000/scoring: connection refused");
    w->cells[1].score = report_score(STR("energy-score"));
    w->clusters[1].report.cells = &w->cells[1];
    w->clusters[1].report.n = 1;
    w->scorer.tally.api_healthy = 2;
    w->scorer.tally.api_unhealthy = (struct cluster_errors){1, &w->clusters[1]};
}

static inline void unhealthy_by_agents(struct world *w)
{
    checked_by(w, HEALTH_CHECK_AGENTS);
    failing_everywhere(w);
    w->scorer.tally.api_unhealthy = (struct cluster_errors){3, NULL};
}

static inline void never_read_but_complete(struct world *w)
{
    fail_config(w);
    api_config_done(&w->probe.status.synced);
    w->probe.status.synced = (struct api_config){0};
    w->scorer.effective.source = CONFIG_FROM_SPEC;
}

static inline void refused(struct world *w)
{
    w->clusters[1].report.problem = (char *)(uintptr_t) "f:1:2: error: no such field";
    w->scorer.tally.scoring = 2;
    w->scorer.tally.failing = 1;
    w->scorer.tally.n_named = 1;
    w->scorer.tally.named[0].cluster = &w->clusters[1];
    w->scorer.tally.named[0].pair = PAIR_REFUSED;
}

static inline void outdated(struct world *w)
{
    refused(w);
    w->scorer.tally.scoring = 3;
    w->scorer.tally.failing = 0;
    w->scorer.tally.named[0].pair = PAIR_OLD_CONFIG;
}

static inline void name_silent(struct world *w, size_t i, enum pair_state p)
{
    struct tally *t = &w->scorer.tally;

    w->cells[i] = (struct report_cell){.state = SCORER_OK, .succeeded = 1795242181};
    t->named[t->n_named].cluster = &w->clusters[i];
    t->named[t->n_named].cell = p == PAIR_EXPIRED ? &w->cells[i] : NULL;
    t->named[t->n_named++].pair = p;
    t->silent++;
    t->scoring--;
}

static inline void away(struct world *w)
{
    w->clusters[0].unavailable = (char *)(uintptr_t) "no lease";
    name_silent(w, 0, PAIR_UNAVAILABLE);
}

static inline void silent_everywhere(struct world *w)
{
    away(w);
    name_silent(w, 1, PAIR_EXPIRED);
    name_silent(w, 2, PAIR_REPORT_FULL);
}

static inline void placement_failing(struct world *w)
{
    fail_cluster(w, 1, SCORER_OK, "");
    w->cells[1].placement = true;
}

/* Too many cannot be written for a failing one to be named. */
static inline void failing_unnamed(struct world *w)
{
    w->scorer.tally = (struct tally){
        .selected = 4, .up_to_date = 3, .applied = 3, .scoring = 1, .failing = 3, .unwritten = 1};
}

static inline void no_reports(struct world *w)
{
    w->scorer.tally.scoring = 0;
    w->scorer.tally.silent = 3;
}

static inline void waiting(struct world *w)
{
    w->scorer.tally.scoring = 0;
    w->scorer.tally.waiting = 1;
    w->scorer.tally.silent = 2;
}

static inline void one_cluster(struct world *w)
{
    w->scorer.tally = (struct tally){.selected = 1, .up_to_date = 1, .applied = 1, .scoring = 1};
}

static inline json_t *status_at(struct world *w, int64_t seconds_later)
{
    json_t *status = status_of_scorer(&w->scorer, (unix_ms){noon.ms + seconds_later * 1000});

    assert_non_null(status);
    return status;
}

#endif
