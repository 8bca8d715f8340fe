/* Follows a score from the DynamicScorer to the AddOnPlacementScore. Owns the findings while an answer is
 * made. On the worker that fills in the answer. What others have written is quoted as data, never part of
 * a sentence. */
#include "controller/assist/explain.h"

#include "controller/assist/call.h"
#include "controller/assist/kind.h"
#include "controller/assist/list.h"
#include "controller/assist/listing.h"
#include "controller/assist/score.h"
#include "controller/assist/scorer.h"
#include "controller/assist/snapshot.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "controller/placement/items.h"

enum { QUOTE_BYTES = 400 };

struct explanation {
    const struct snapshot *hub;
    const char *cluster;
    const json_t *scorer;
    json_t *list;              /* [{"about", "finding", "quote", "untrusted"}] */
    const struct score *score; /* the object; NULL without */
    bool has_score;            /* it has values that have not expired */
};

/* quote: words of others, shown as data; NULL or empty: none. */
static void PRINTF_LIKE(4, 5)
    explain_add(struct explanation *f, const char *about, const char *quote, const char *fmt, ...)
{
    bool has_quote = quote && *quote;
    va_list ap;

    va_start(ap, fmt);
    (void)json_array_append_new(f->list, json_pack("{s:s,s:o,s:o*,s:o*}", "about", about, "finding",
                                                   json_vsprintf(fmt, ap), "quote",
                                                   has_quote ? text_cut(quote, QUOTE_BYTES) : NULL,
                                                   "untrusted", has_quote ? json_true() : NULL));
    va_end(ap);
}

static void explain_cluster(struct explanation *f)
{
    const json_t *cluster = snapshot_get(f->hub, KIND_CLUSTERS, "", f->cluster);
    const json_t *available =
        kube_condition(kube_get(cluster, "status", NULL), "ManagedClusterConditionAvailable");

    if (!kube_bool(cluster, "spec", "hubAcceptsClient", NULL))
        explain_add(f, "ManagedCluster", NULL, "The hub has not accepted ManagedCluster %s.", f->cluster);
    if (available && !kube_condition_is(available, "True"))
        explain_add(f, "ManagedCluster", kube_str(available, "message", NULL),
                    "ManagedCluster %s is not available: its agents cannot report to the hub.", f->cluster);
}

static void explain_condition(struct explanation *f, const char *type, const char *effect)
{
    const json_t *c = kube_condition(kube_get(f->scorer, "status", NULL), type);

    if (c && !kube_condition_is(c, "True"))
        explain_add(f, "DynamicScorer", kube_str(c, "message", NULL),
                    "The condition %s of DynamicScorer %s is %s (%s)%s.", type, kube_name(f->scorer),
                    cstr(kube_str(c, "status", NULL)), cstr(kube_str(c, "reason", NULL)), effect);
}

static void explain_scorer(struct explanation *f)
{
    const char *destination = kube_str(f->scorer, "spec", "scoreDestination", NULL);
    const char *check = kube_str(f->scorer, "spec", "healthCheck", NULL);
    bool by_hub = !check || !*check || str_eq_nocase(str_of(check), STR("hub"));

    if (!kube_list(f->scorer, "status", "conditions", NULL))
        explain_add(f, "DynamicScorer", NULL,
                    "DynamicScorer %s has no conditions: the controller has not looked at it yet.",
                    kube_name(f->scorer));
    if (destination && str_eq_nocase(str_of(destination), STR("none")))
        explain_add(
            f, "DynamicScorer", NULL,
            "spec.scoreDestination is None: its scores are metrics only, no AddOnPlacementScore is written.");
    explain_condition(f, "Valid", ": an invalid scorer is not distributed");
    if (by_hub)
        explain_condition(f, "Healthy",
                          ": an unhealthy scorer is not distributed, unless the controller has "
                          "--keep-unhealthy");
    explain_condition(f, "UniqueScoreName", ": of scorers with one score name the oldest is distributed");
    if (!scorer_score_name(f->scorer))
        explain_condition(f, "ConfigSynced",
                          ": without its configuration, the name of the score is not known");
}

/* Whether the summaries that the hub sends to the cluster hold the score. */
static bool explain_sends_score(const struct explanation *f, const char *score)
{
    const json_t *manifests = kube_list(f->hub->work, "spec", "workload", "manifests", NULL);
    struct str text = kube_text(json_array_get(manifests, 0), "data", "summaries", NULL);
    json_auto_t *summaries = NULL;

    return kube_json_parse(&summaries, text, NULL) == 0 && list_find(summaries, "scoreName", score);
}

static void explain_report(struct explanation *f, const struct work_found *found, const char *error,
                           const struct report *report, const char *score)
{
    const struct pair_facts facts = {
        .in_sync = true,
        .applied = found->applied,
        .apply_error = found->applied ? "" : error,
        .report = report,
        .cell = report_find(report, report_score(str_of(score))),
        .interval_ms = INT64_MAX / 8,
        .now = f->hub->now,
    };
    enum pair_state state = pair_state(&facts);
    char why[PAIR_REASON_BYTES];

    if (state == PAIR_EMPTY) {
        explain_add(
            f, "agent", NULL,
            "The agent of the cluster scores, but its source had nothing to score: no item is written.");
    } else if (state != PAIR_OK) {
        pair_reason(why, state, &facts);
        explain_add(f, "agent", why, "The agent of the cluster, or its work agent, is reported as: %s.",
                    pair_info[state].label);
    }
}

static void explain_work(struct explanation *f)
{
    const char *score = scorer_score_name(f->scorer);
    char error[WORK_WHY_BYTES];
    struct work_found found;
    struct report report = {0};

    if (f->hub->work_error)
        explain_add(f, "ManifestWork", NULL, "The report of the cluster's agent cannot be read: %s.",
                    f->hub->work_error);
    else if (!f->hub->work)
        explain_add(
            f, "ManifestWork", NULL,
            "The hub sends no configuration to the cluster: there is no ManifestWork in namespace %s. "
            "Its controller writes it once a DynamicScoringConfig exists; an agent with a "
            "configuration of its own needs none.",
            f->cluster);
    else if (score && !explain_sends_score(f, score))
        explain_add(f, "ManifestWork", NULL,
                    "The configuration that the hub sends to the cluster lacks score %s: a mask of the "
                    "DynamicScoringConfig excludes the cluster, there is no room, or the scorer is not "
                    "distributed.",
                    score);
    else if (score && report_parse(&report, work_feedback(f->hub->work)) == 0) {
        work_look(&found, f->hub->work, NULL, error);
        explain_report(f, &found, error, &report, score);
    }
    report_done(&report);
}

static void explain_object_conditions(struct explanation *f)
{
    const json_t *one;
    size_t i;

    json_array_foreach(kube_list(f->score->object, "status", "conditions", NULL), i, one)
    {
        const char *type = cstr(kube_str(one, "type", NULL));

        /* All is well if Scored is True and all others are False. */
        if (!kube_condition_is(one, strcmp(type, "Scored") == 0 ? "True" : "False"))
            explain_add(f, "AddOnPlacementScore", kube_str(one, "message", NULL),
                        "The condition %s of AddOnPlacementScore %s/%s is %s (%s).", type, f->cluster,
                        f->score->name, cstr(kube_str(one, "status", NULL)),
                        cstr(kube_str(one, "reason", NULL)));
    }
}

static void explain_object(struct explanation *f)
{
    char name[OBJECT_NAME_MAX + 1], until[KUBE_TIME_BYTES];

    if (!scorer_object_name(f->scorer, name))
        return;
    f->score = snapshot_get(f->hub, KIND_SCORES, f->cluster, name);
    if (!f->score) {
        explain_add(f, "AddOnPlacementScore", NULL,
                    "There is no AddOnPlacementScore %s in namespace %s: Placement counts 0.", name,
                    f->cluster);
        return;
    }
    explain_object_conditions(f);
    kube_time_format(f->score->valid_until, until);
    if (f->score->n_items == 0)
        explain_add(f, "AddOnPlacementScore", NULL,
                    "AddOnPlacementScore %s/%s has no values: Placement counts 0.", f->cluster, name);
    else if (f->score->is_expired)
        explain_add(f, "AddOnPlacementScore", NULL,
                    "AddOnPlacementScore %s/%s expired at %s, its agent has not renewed it: "
                    "Placement counts 0.",
                    f->cluster, name, until);
    else
        f->has_score = true;
}

/* ---- The explanation ---- */

static void explain_put_score(json_t *head, const struct score *s)
{
    json_t *score = kube_set_object(head, "addonPlacementScore");

    kube_set_str(score, "name", s->name);
    kube_set_int(score, "values", (int64_t)s->n_items);
    kube_set(score, "validUntil", score_valid_until_value(s));
    kube_set_bool(score, "expired", s->is_expired);
}

static void explain_put_findings(struct listing *l, const struct explanation *f)
{
    const char *first = kube_str(json_array_get(f->list, 0), "finding", NULL);

    kube_set_str(l->head, "cluster", f->cluster);
    kube_set_str(l->head, "scorer", kube_name(f->scorer));
    kube_set_bool(l->head, "hasScore", f->has_score);
    kube_set_str(l->head, "cause", f->has_score ? "The score is there and valid." : cstr(first));
    if (f->score)
        explain_put_score(l->head, f->score);
    listing_add_all(l, f->list);
}

void explain_fill(struct listing *l, const struct snapshot *hub)
{
    const char *name = cstr(call_text(l->call, "scorer"));
    json_auto_t *list = json_array();
    struct explanation f = {.hub = hub,
                            .cluster = cstr(call_text(l->call, "cluster")),
                            .scorer = scorer_by_name(hub, name),
                            .list = list};

    if (!snapshot_get(hub, KIND_CLUSTERS, "", f.cluster)) {
        call_fail(l->call, 404, "cluster", "ManagedCluster \"%s\" does not exist", f.cluster);
        return;
    }
    if (!f.scorer) {
        call_fail(l->call, 404, "scorer",
                  "no DynamicScorer has the name, the score name or the AddOnPlacementScore \"%s\"; "
                  "scorers_list lists them",
                  name);
        return;
    }
    /* In the order in which scores come about, so that the first is the cause. */
    explain_cluster(&f);
    explain_scorer(&f);
    explain_work(&f);
    explain_object(&f);
    explain_put_findings(l, &f);
}
