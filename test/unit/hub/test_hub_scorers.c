/* A controller that starts, stands by and takes over. */
#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/health.h"
#include "controller/hub/follows/scorer_status.h"
#include "controller/hub/hub.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/condition.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/watch.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/hub_world.h"

#define STATUS(health, distributed)                                                     \
    "{\"healthStatus\":\"" health                                                       \
    "\",\"observedGeneration\":1,\"conditions\":[{\"type\":\"Distributed\",\"status\":" \
    "\"True\",\"reason\":\"" distributed                                                \
    "\",\"message\":\"distributed to 1 cluster\",\"observedGeneration\":1}]}"

static void show_scorer_with(struct world *w, const char *status)
{
    show(w, HUB_SCORERS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":1,\"creationTimestamp\":"
                        "\"2026-01-01T00:00:00Z\"},\"status\":%s,\"spec\":{\"configURL\":\"%s\","
                        "\"configSyncMode\":\"None\",\"source\":{\"type\":\"None\"},"
                        "\"scoring\":{\"params\":{\"name\":\"score\",\"interval\":60}}}}",
                        status, fake_url(w->f->server, "/config")));
}

static void lead(struct world *w, bool leads)
{
    hub_lead(w->hub, leads);
}

static const struct fake_request *status_patch(struct world *w, const char *of, size_t nth)
{
    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        const struct fake_request *rq = fake_request(w->f->server, i);
        if (strcmp(rq->method, "PATCH") == 0 && strstr(rq->target, of) && nth-- == 0)
            return rq;
    }
    return NULL;
}

static enum probe_health health_of(struct world *w, const struct hub_scorer *s)
{
    const struct fleet f = hub_fleet(w->hub);

    return scorer_health(&f, s);
}

/* As after a restore from a backup and an edit. */
static void reads_another_spec_of_the_same_generation(void **state)
{
    static const char spec[] = "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":4},\"spec\":{"
                               "\"configURL\":\"http://scorer.invalid/config\",\"healthCheck\":\"None\","
                               "\"source\":{\"type\":\"None\"},\"scoring\":{\"params\":{\"name\":\"score\","
                               "\"interval\":%u}}}}";
    struct world *w = *state;

    for (unsigned interval = 60; interval <= 90; interval += 30) {
        show(w, HUB_SCORERS, fake_kube_text(w->f, spec, interval));
        assert_int_equal(scorers_find(&seen(w)->scorers, "s")->effective.interval_ms, interval * 1000);
    }
}

/* A standby starts from what the leader wrote. */
static void takes_over_health_from_statuses(void **state)
{
    struct world *w = *state;

    lead(w, false);
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer_with(w, STATUS("Inactive", "Distributed"));
    assert_int_not_equal(scorer_place(hub_fleet(w->hub).o, scorers_find(&seen(w)->scorers, "s")),
                         PLACE_SUMMARIES);
    show_scorer_with(w, STATUS("Active", "Distributed"));
    assert_int_equal(scorer_place(hub_fleet(w->hub).o, scorers_find(&seen(w)->scorers, "s")),
                     PLACE_SUMMARIES);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/healthz"});
    lead(w, true);
    assert_non_null(strstr(wait_written(w, "POST", "c1")->body, "scoreName"));
}

/* Nobody could ever report on it otherwise. */
static void distributes_what_it_does_not_check(void **state)
{
    static const char *const checks[] = {"Agents", "None"};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        show(w, HUB_SCORERS,
             fake_kube_text(
                 w->f,
                 "{\"metadata\":{\"name\":\"s%zu\",\"uid\":\"s\",\"generation\":1},"
                 "\"status\":" STATUS(
                     "Inactive",
                     "Distributed") ",\"spec\":{"
                                    "\"configURL\":\"http://scorer.invalid/config\",\"healthCheck\":\"%s\","
                                    "\"source\":{\"type\":\"None\"},"
                                    "\"scoring\":{\"params\":{\"name\":\"score%zu\",\"interval\":60}}}}",
                 i, checks[i], i));
        assert_int_equal(scorer_place(hub_fleet(w->hub).o, scorers_find(&seen(w)->scorers, i ? "s1" : "s0")),
                         PLACE_SUMMARIES);
        assert_int_equal(health_of(w, scorers_find(&seen(w)->scorers, i ? "s1" : "s0")), HEALTH_UNKNOWN);
    }
    show_config(w, HELD);
    show_cluster(w, "c1");
    assert_non_null(strstr(wait_written(w, "POST", "c1")->body, "score1"));
    assert_non_null(strstr(written(w, "POST", "c1")->body, "score0"));
}

/* The summary in the status stays active while the newest spec is invalid, also after a restart. */
static void distributes_what_it_does_not_check_despite_an_invalid_spec(void **state)
{
    struct world *w = *state;

    show(w, HUB_SCORERS,
         "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":2},\"status\":{\"healthStatus\":"
         "\"Unknown\",\"configSource\":\"Spec\",\"summary\":\"{\\\"name\\\":\\\"s\\\",\\\"scoreName\\\":"
         "\\\"kept\\\",\\\"sourceType\\\":\\\"None\\\",\\\"scoringEndpoint\\\":\\\"http://s.invalid/\\\","
         "\\\"scoringInterval\\\":60}\"},\"spec\":{\"healthCheck\":\"Agents\",\"configURL\":[]}}");
    show_config(w, HELD);
    show_cluster(w, "c1");
    assert_non_null(strstr(wait_written(w, "POST", "c1")->body, "kept"));
}

static void takes_over_the_status_seen_before_it_lost_the_lead(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer_with(w, STATUS("Active", "Distributed"));
    show_scorer_with(w, STATUS("Inactive", "Distributed"));
    assert_int_equal(scorer_place(hub_fleet(w->hub).o, scorers_find(&seen(w)->scorers, "s")),
                     PLACE_SUMMARIES);
    lead(w, false);
    assert_int_not_equal(scorer_place(hub_fleet(w->hub).o, scorers_find(&seen(w)->scorers, "s")),
                         PLACE_SUMMARIES);
}

/* Counts are not known before the first plan. */
static void writes_no_status_before_the_first_plan(void **state)
{
    struct world *w = *state;
    const struct fake_request *rq;

    lead(w, false);
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer_with(w, STATUS("Active", "Distributed"));
    /* A second scorer of unknown health, whose API hangs, delays the first plan. */
    show(w, HUB_SCORERS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"new\",\"uid\":\"n\",\"generation\":1,"
                        "\"creationTimestamp\":\"2025-01-01T00:00:00Z\"},\"spec\":{\"configURL\":"
                        "\"%s\",\"configSyncMode\":\"None\",\"source\":{\"type\":\"None\"},"
                        "\"scoring\":{\"params\":{\"name\":\"new\",\"interval\":60}}}}",
                        fake_url(w->f->server, "/config")));
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/healthz"});
    lead(w, true);
    pass_time(w, 3000);
    assert_non_null(status_patch(w, "dynamicscorers/s/status", 0));
    for (size_t i = 0; (rq = status_patch(w, "dynamicscorers/s/status", i)); i++)
        assert_null(strstr(rq->body, "the summaries are being computed"));
}

static void makes_no_plan_for_a_change_of_status(void **state)
{
    struct world *w = *state;
    const struct plan *plan;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer(w);
    (void)wait_written(w, "POST", "c1");
    pass_time(w, 2000);
    plan = hub_fleet(w->hub).plan;
    assert_non_null(plan);
    show_config(w, HELD ",\"resourceVersion\":\"9\"");
    pass_time(w, 1000);
    assert_ptr_equal(hub_fleet(w->hub).plan, plan);
}

#define OWN_SPEC                                                                                   \
    "{\"configURL\":\"http://scorer.invalid/config\",\"configSyncMode\":\"None\",\"healthCheck\":" \
    "\"None\",\"source\":{\"type\":\"None\"},\"scoring\":{\"params\":{\"name\":\"score\",\"interval\":60}}}"

static size_t count_statuses(struct world *w)
{
    size_t n = 0;

    while (status_patch(w, "dynamicscorers/s/status", n))
        n++;
    return n;
}

/* What the API server makes of a merge patch. */
static void merge(json_t *into, const char *patch)
{
    json_t *body = json_loads(patch, 0, NULL), *value;
    const char *name;

    json_object_foreach(json_object_get(body, "status"), name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(into, name);
        else
            assert_int_equal(json_object_set(into, name, value), 0);
    }
    json_decref(body);
}

enum { FIRST_VERSION = 100 }; /* that a write of the status leads to */

/* The watch shows the scorer with all that has been written of its status. */
static void show_written_status(struct world *w)
{
    json_t *status = json_object();
    size_t n = count_statuses(w);
    char *text;

    for (size_t i = 0; i < n; i++)
        merge(status, status_patch(w, "dynamicscorers/s/status", i)->body);
    text = json_dumps(status, 0);
    show(w, HUB_SCORERS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":1,\"resourceVersion\":"
                        "\"%zu\"},\"status\":%s,\"spec\":" OWN_SPEC "}",
                        FIRST_VERSION + n - 1, text));
    free(text);
    json_decref(status);
}

static void show_applied_work(struct world *w, const char *name)
{
    json_t *work = json_loads(wait_written(w, "POST", name)->body, 0, NULL);
    json_t *metadata = json_object_get(work, "metadata");
    char *text;

    assert_int_equal(json_object_set_new(metadata, "resourceVersion", json_string("8")), 0);
    assert_int_equal(json_object_set_new(metadata, "generation", json_integer(1)), 0);
    assert_int_equal(json_object_set_new(work, "status",
                                         json_pack("{s:[{s:s,s:s,s:i}]}", "conditions", "type", "Applied",
                                                   "status", "True", "observedGeneration", 1)),
                     0);
    text = json_dumps(work, 0);
    show_work(w, text, name);
    free(text);
    json_decref(work);
}

#define CONFLICT "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409}"

static void show_scorer_at(struct world *w, const char *uid, unsigned version)
{
    show(w, HUB_SCORERS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"%s\",\"generation\":1,\"resourceVersion\":"
                        "\"%u\"},\"spec\":" OWN_SPEC "}",
                        uid, version));
}

static void assert_status_names_version(struct world *w, size_t nth, const char *version)
{
    const struct fake_request *rq = status_patch(w, "dynamicscorers/s/status", nth);
    json_t *body;

    assert_non_null(rq);
    body = json_loads(rq->body, 0, NULL);
    assert_string_equal(kube_version(body), version);
    json_decref(body);
}

static void push_conflicts(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fake_push(w->f->server, (struct fake_answer){.status = 409,
                                                     .body = CONFLICT,
                                                     .only_path = OURS "dynamicscorers/s/status"});
}

static const char *status_error(struct world *w)
{
    return scorers_find(&seen(w)->scorers, "s")->last_status.status.last_error;
}

/* Each write of a status is shown by the watch, which is a reason to look again. While clusters keep changing
 * this must not lead to the next write: that waits until the fleet is counted anew. */
static void follows_clusters_at_a_pace_of_its_own(void **state)
{
    enum { CLUSTERS = 8, MOST_WRITES = 2 * CLUSTERS };
    struct world *w = *state;
    size_t before;

    show_config(w, HELD);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        const char *name = fake_kube_text(w->f, "c%u", i);

        fake_push(w->f->server,
                  (struct fake_answer){.status = 201,
                                       .body = "{\"metadata\":{\"resourceVersion\":\"7\"}}",
                                       .only_path = fake_kube_text(w->f, WORKS "%s/manifestworks", name)});
        show_cluster(w, name);
    }
    for (unsigned i = 0; i < MOST_WRITES; i++)
        fake_push(w->f->server, (struct fake_answer){.body = fake_kube_text(
                                                         w->f, "{\"metadata\":{\"resourceVersion\":\"%u\"}}",
                                                         FIRST_VERSION + i),
                                                     .only_path = OURS "dynamicscorers/s/status"});
    show(w, HUB_SCORERS,
         "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":1},\"spec\":" OWN_SPEC "}");
    for (unsigned i = 0; i < CLUSTERS; i++)
        (void)wait_written(w, "POST", fake_kube_text(w->f, "c%u", i));
    pass_time(w, 3000);
    show_written_status(w);
    pass_time(w, 3000);
    before = count_statuses(w);
    assert_in_range(before, 1, SIZE_MAX);

    for (unsigned i = 0; i < CLUSTERS; i++) {
        show_applied_work(w, fake_kube_text(w->f, "c%u", i));
        show_written_status(w);
        fake_kube_idle(w->f);
    }
    assert_int_equal(count_statuses(w), before);
    pass_time(w, 2000);
    assert_int_equal(count_statuses(w), before + 1); /* about all of them */
    /* None was meant for an older version than there was: no roll-out leads to a conflict. */
    for (unsigned i = 1; i < count_statuses(w); i++)
        assert_status_names_version(w, i, fake_kube_text(w->f, "%u", FIRST_VERSION + i - 1));
}

/* Another program has deleted the scorer and made its own of that name, and no watch has shown it yet. The
 * API server refuses what was meant for the one before. */
static void writes_no_status_into_a_scorer_made_anew(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    push_conflicts(w, 1);
    show_scorer_at(w, "s", 5);
    while (count_statuses(w) == 0)
        pass_time(w, 100);
    assert_status_names_version(w, 0, "5");
    show_scorer_at(w, "t", 12);
    pass_time(w, 3000);
    assert_in_range(count_statuses(w), 2, SIZE_MAX);
    for (size_t i = 1; i < count_statuses(w); i++)
        assert_status_names_version(w, i, "12");
}

/* Its labels, say. That is no failure, and costs one write. */
static void writes_a_status_again_that_others_have_overtaken(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    pass_time(w, 3000);
    push_conflicts(w, 1);
    fake_push(w->f->server, (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"7\"}}",
                                                 .only_path = OURS "dynamicscorers/s/status"});
    show_scorer_at(w, "s", 5);
    while (count_statuses(w) == 0)
        pass_time(w, 100);
    show_scorer_at(w, "s", 6);
    pass_time(w, 10000);
    assert_int_equal(count_statuses(w), 2);
    assert_status_names_version(w, 1, "6");
    assert_null(status_error(w));
}

/* No watch shows what the API server has: the hub asks less and less, and says so. */
static void backs_off_while_no_watch_shows_the_newer_version(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    push_conflicts(w, 20);
    show_scorer_at(w, "s", 5);
    pass_time(w, 60000);
    assert_in_range(count_statuses(w), 2, 8);
    assert_non_null(strstr(status_error(w), "409"));
}

static size_t count_finalizers(struct world *w)
{
    size_t n = 0;

    for (size_t k = 0; k < fake_requests(w->f->server); k++)
        n += strstr(fake_request(w->f->server, k)->body, "finalizers") != NULL;
    return n;
}

/* With the old resourceVersion the next write would be a conflict. */
static void waits_for_the_watch_after_a_finalizer(void **state)
{
    struct world *w = *state;

    fake_push(w->f->server, (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"6\"}}",
                                                 .only_path = OURS "dynamicscoringconfigs/" HUB_CONFIG});
    show_config(w, ",\"resourceVersion\":\"5\"");
    pass_time(w, 4000);
    assert_int_equal(count_finalizers(w), 1);
    assert_null(status_patch(w, HUB_CONFIG "/status", 0));
    show_config(w, ",\"resourceVersion\":\"6\",\"finalizers\":[\"" HUB_FINALIZER "\"]");
    pass_time(w, 400);
    assert_int_equal(count_finalizers(w), 1);
    assert_non_null(status_patch(w, HUB_CONFIG "/status", 0));
}

/* Our write of a status says nothing of finalizers: the watch may show it without ours. */
static void puts_back_a_finalizer_that_went_before_a_status(void **state)
{
    struct world *w = *state;

    fake_push(w->f->server,
              (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"7\"}}",
                                   .only_path = OURS "dynamicscoringconfigs/" HUB_CONFIG "/status"});
    show_config(w, ",\"resourceVersion\":\"5\"" HELD);
    pass_time(w, 4000);
    assert_non_null(status_patch(w, HUB_CONFIG "/status", 0));
    assert_int_equal(count_finalizers(w), 0);
    show_config(w, ",\"resourceVersion\":\"7\"");
    pass_time(w, 400); /* the next look at all statuses is later */
    assert_int_equal(count_finalizers(w), 1);
}

static void show_full(struct world *w, struct fake_server *api, unsigned generation, const char *scoring)
{
    show(
        w, HUB_SCORERS,
        fake_kube_text(w->f,
                       "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":%u,\"creationTimestamp\":"
                       "\"2026-01-01T00:00:00Z\"},\"spec\":{\"configURL\":\"%s\",\"configSyncMode\":\"Full\","
                       "\"source\":{\"type\":\"None\"},\"scoring\":%s}}",
                       generation, fake_url(api, "/config"), scoring));
}

/* With another score name than that of /config, the fields of the DynamicScorer would bring an
 * AddOnPlacementScore that the next moment takes away. */
static void sends_own_fields_only_once_config_has_failed(void **state)
{
    struct world *w = *state;
    struct fake_server *api = fake_new();

    fake_default(api, (struct fake_answer){.mode = FAKE_HANG});
    show_config(w, HELD);
    show_cluster(w, "c1");
    show(w, HUB_SCORERS,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":1},\"spec\":{"
                        "\"configURL\":\"%s\",\"configSyncMode\":\"Full\",\"healthCheck\":\"Agents\","
                        "\"source\":{\"type\":\"None\"},"
                        "\"scoring\":{\"params\":{\"name\":\"own\",\"interval\":60}}}}",
                        fake_url(api, "/config")));
    pass_time(w, 2000);
    assert_null(strstr(wait_written(w, "POST", "c1")->body, "scoreName"));
    assert_true(effective_usable(&scorers_find(&seen(w)->scorers, "s")->effective));
    assert_true(scorer_awaits_config(scorers_find(&seen(w)->scorers, "s")));
    assert_true(scorers_find(&seen(w)->scorers, "s")->share.entry == SIZE_MAX);
    api = fake_free(api);
    for (unsigned i = 0; i < 500 && scorers_find(&seen(w)->scorers, "s")->share.entry == SIZE_MAX; i++)
        pass_time(w, 100);
    assert_true(scorers_find(&seen(w)->scorers, "s")->share.entry == 0);
}

static void makes_no_plan_while_the_last_valid_summary_stays_active(void **state)
{
    struct world *w = *state;
    struct fake_server *api = fake_new();
    const struct hub_scorer *s;
    unsigned plans = 0;

    ((struct hub_options *)(uintptr_t)hub_fleet(w->hub).o)->probe.interval_ms = 30000;
    fake_default(api,
                 (struct fake_answer){
                     .close = true,
                     .body = "{\"name\":\"a\",\"source\":{\"type\":\"None\"},\"scoring\":{\"path\":\"/s\","
                             "\"params\":{\"name\":\"score\",\"interval\":60}}}"});
    show_config(w, HELD);
    show_cluster(w, "c1");
    show_full(w, api, 1, "{\"params\":{\"name\":\"score\",\"interval\":60}}");
    pass_time(w, 3000);
    show_full(w, api, 2, "{\"host\":\"ftp://x\",\"params\":{\"name\":\"score\",\"interval\":60}}");
    pass_time(w, 5000);
    s = scorers_find(&seen(w)->scorers, "s");
    assert_true(s->effective.kept);
    assert_true(probe_status(s->probe)->config.ok);
    for (unsigned i = 0; i < 1800; i++) {
        const struct plan *plan = hub_fleet(w->hub).plan;

        pass_time(w, 100);
        plans += plan != hub_fleet(w->hub).plan;
    }
    assert_in_range(plans, 0, 1);
    fake_free(api);
}

static void show_scorer_of(struct world *w, const char *name, const char *score, unsigned day)
{
    show(
        w, HUB_SCORERS,
        fake_kube_text(w->f,
                       "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"generation\":1,\"creationTimestamp\":"
                       "\"2026-01-0%uT00:00:00Z\"},\"spec\":{\"configURL\":\"http://scorer.invalid/config\","
                       "\"healthCheck\":\"None\",\"source\":{\"type\":\"None\"},"
                       "\"scoring\":{\"params\":{\"name\":\"%s\",\"interval\":60}}}}",
                       name, name, day, score));
}

/* field: "status" or "reason". */
static void assert_condition(struct world *w, const char *name, const char *type, const char *field,
                             const char *is)
{
    const struct fleet f = hub_count(w->hub);
    const struct contest none = {0};
    json_t *status = status_of_scorer(&f, scorers_find(&seen(w)->scorers, name), &none);

    assert_string_equal(cstr(kube_str(kube_condition(status, type), field, NULL)), is);
    json_decref(status);
}

static void assert_unique(struct world *w, const char *name, const char *is)
{
    assert_condition(w, name, "UniqueScoreName", "status", is);
}

/* Also until the next plan, and for whoever had nothing to do with it. */
static void knows_who_shares_a_score_name_while_another_scorer_goes(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer_of(w, "older", "same", 1);
    show_scorer_of(w, "younger", "same", 2);
    show_scorer_of(w, "other", "other", 3);
    (void)wait_written(w, "POST", "c1");
    assert_unique(w, "older", "False");
    hub_see(w->hub, HUB_SCORERS, "other", NULL);
    assert_unique(w, "older", "False");
    assert_unique(w, "younger", "False");
    hub_see(w->hub, HUB_SCORERS, "older", NULL);
    assert_unique(w, "younger", "True");
}

/* The cluster's ManifestWork with its agent's report about the score `score`. */
static void show_report(struct world *w, const char *version, const char *scorer)
{
    json_t *work = json_loads(wait_written(w, "POST", "c1")->body, 0, NULL), *entry;
    CLEANUP(cleanup_free)
    char *report =
        xasprintf("{\"configurationInForce\":true,\"scorers\":[{\"scoreName\":\"score\",%s}]}", scorer);
    char *text;

    assert_int_equal(
        json_object_set_new(json_object_get(work, "metadata"), "resourceVersion", json_string(version)), 0);
    entry = json_pack("{s:{s:s,s:s},s:{s:[{s:s,s:{s:s,s:s}}]}}", "resourceMeta", "resource", "configmaps",
                      "name", WORK_STATUS, "statusFeedback", "values", "name", "status", "fieldValue", "type",
                      "String", "string", report);
    assert_int_equal(
        json_object_set_new(work, "status", json_pack("{s:{s:[o]}}", "resourceStatus", "manifests", entry)),
        0);
    text = json_dumps(work, 0);
    show_work(w, text, "c1");
    free(text);
    json_decref(work);
}

static size_t count_class(struct world *w, enum pair_class class)
{
    return counts_of(hub_count(w->hub).counts, scorers_find(&seen(w)->scorers, "s"))->of_class[class];
}

/* As of the last count, which nobody has asked for. */
static size_t counted_class(struct world *w, enum pair_class class)
{
    return counts_of(hub_fleet(w->hub).counts, scorers_find(&seen(w)->scorers, "s"))->of_class[class];
}

/* One cluster, whose agent has just reported scores that are valid for that long. */
static void settle_scores(struct world *w, int64_t valid_ms)
{
    char from[32], until[32];

    show_config(w, HELD);
    show_cluster(w, "c1");
    show(w, HUB_SCORERS,
         "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":1},\"spec\":" OWN_SPEC "}");
    (void)wait_written(w, "POST", "c1");
    pass_time(w, 2000);
    unix_ms_format(kube_wall(w->f->kube), from);
    unix_ms_format((unix_ms){kube_wall(w->f->kube).ms + valid_ms}, until);
    show_report(
        w, "20",
        fake_kube_text(w->f, "\"state\":\"ok\",\"lastSuccess\":\"%s\",\"validUntil\":\"%s\"", from, until));
    assert_int_equal(count_class(w, PAIR_CLASS_SCORING), 1);
}

/* Its first round takes long: the scores on the hub are valid for as long as the last report says. */
static void counts_valid_scores_of_an_agent_that_starts_anew(void **state)
{
    struct world *w = *state;

    settle_scores(w, 60000);
    show_report(w, "21", "\"state\":\"waiting\",\"lastSuccess\":null");
    assert_int_equal(count_class(w, PAIR_CLASS_SCORING), 1);
    pass_time(w, 80000);
    assert_int_equal(count_class(w, PAIR_CLASS_SCORING), 1);
    pass_time(w, 20000); /* half a minute is for the way of reports */
    assert_int_equal(counted_class(w, PAIR_CLASS_WAITING), 1);
}

/* Its add-on has no pod meanwhile. */
static void counts_valid_scores_while_an_agent_is_rolled_out(void **state)
{
    struct world *w = *state;
    char since[32];
    json_t *addon;

    settle_scores(w, 600000);
    unix_ms_format(kube_wall(w->f->kube), since);
    addon = json_pack("{s:{s:s},s:{s:[{s:s,s:s,s:s}]}}", "metadata", "name", "addon", "status", "conditions",
                      "type", "Available", "status", "False", "lastTransitionTime", since);
    hub_see(w->hub, HUB_ADDONS, "c1", addon);
    json_decref(addon);
    assert_int_equal(count_class(w, PAIR_CLASS_SCORING), 1);
    pass_time(w, 110000);
    assert_int_equal(counted_class(w, PAIR_CLASS_SCORING), 1);
    pass_time(w, 20000);
    assert_int_equal(counted_class(w, PAIR_CLASS_SILENT), 1);
}

static size_t count_statuses_that_say(struct world *w, const char *words)
{
    size_t n = 0;

    for (size_t i = 0; i < count_statuses(w); i++)
        n += strstr(status_patch(w, "dynamicscorers/s/status", i)->body, words) != NULL;
    return n;
}

/* An API server that starts refuses everything at first. */
static void says_that_objects_cannot_be_read_once_that_lasts(void **state)
{
    struct world *w = *state;

    settle_scores(w, 600000);
    fake_aside(w->f->server, (struct fake_answer){
                                 .status = 403,
                                 .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":"
                                         "\"cannot list managedclusters\",\"code\":403}",
                                 .only_path = "/apis/cluster.open-cluster-management.io/v1/managedclusters"});
    kube_watch_relist(seen(w)->watches[HUB_CLUSTERS]);
    pass_time(w, 25000);
    assert_true(observed_is_refused(seen(w), HUB_CLUSTERS));
    assert_condition(w, "s", "Distributed", "reason", "Progressing");
    pass_time(w, 10000);
    assert_condition(w, "s", "Distributed", "reason", "ObjectsUnreadable");
    assert_condition(w, "s", "Ready", "status", "True");
    assert_in_range(count_statuses_that_say(w, "cannot list managedclusters"), 1, SIZE_MAX);
}

static void forgets_writes_from_before_another_leader(void **state)
{
    struct world *w = *state;

    show_config(w, HELD);
    show_cluster(w, "c1");
    show_scorer(w);
    (void)wait_written(w, "POST", "c1");
    pass_time(w, 2000);
    assert_non_null(scorers_find(&seen(w)->scorers, "s")->last_status.sent);
    assert_true(cluster(w, "c1")->write.is_late);
    (void)hub_count(w->hub);
    lead(w, false);
    assert_null(scorers_find(&seen(w)->scorers, "s")->last_status.sent);
    assert_false(cluster(w, "c1")->write.is_late || hub_self(w->hub).has_counts);
    assert_null(cluster(w, "c1")->write.object.last_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_another_spec_of_the_same_generation, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_over_health_from_statuses, setup, teardown),
        cmocka_unit_test_setup_teardown(distributes_what_it_does_not_check, setup, teardown),
        cmocka_unit_test_setup_teardown(sends_own_fields_only_once_config_has_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(distributes_what_it_does_not_check_despite_an_invalid_spec, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(takes_over_the_status_seen_before_it_lost_the_lead, setup, teardown),
        cmocka_unit_test_setup_teardown(makes_no_plan_while_the_last_valid_summary_stays_active, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(forgets_writes_from_before_another_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(knows_who_shares_a_score_name_while_another_scorer_goes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(counts_valid_scores_of_an_agent_that_starts_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_valid_scores_while_an_agent_is_rolled_out, setup, teardown),
        cmocka_unit_test_setup_teardown(says_that_objects_cannot_be_read_once_that_lasts, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_no_status_before_the_first_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(makes_no_plan_for_a_change_of_status, setup, teardown),
        cmocka_unit_test_setup_teardown(follows_clusters_at_a_pace_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_no_status_into_a_scorer_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_a_status_again_that_others_have_overtaken, setup, teardown),
        cmocka_unit_test_setup_teardown(backs_off_while_no_watch_shows_the_newer_version, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_for_the_watch_after_a_finalizer, setup, teardown),
        cmocka_unit_test_setup_teardown(puts_back_a_finalizer_that_went_before_a_status, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
