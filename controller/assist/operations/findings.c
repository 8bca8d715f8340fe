#include "controller/assist/operations/findings.h"

#include "controller/assist/operations/answer.h"
#include "controller/assist/operations/scorers.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "controller/placement/name.h"
#include "exporter/base/buf.h"

enum { FINDING_BYTES = 1024, QUOTE_BYTES = 400 };

/* quote: words of others, shown as data; NULL or empty: none. */
static void findings_add(struct findings *f, const char *about, const char *quote, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

static void findings_add(struct findings *f, const char *about, const char *quote, const char *fmt, ...)
{
    BUF_AUTO(text, FINDING_BYTES);
    json_t *one = NULL;
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (r == 0)
        one = json_pack("{s:s,s:s%}", "about", about, "finding", text.p, text.n);
    if (one && quote && *quote)
        r = json_object_set_new(one, "quote", answer_text(quote, QUOTE_BYTES)) |
            json_object_set_new(one, "untrusted", json_true());
    if (r == 0 && json_array_append_new(f->list, one) == 0)
        return;
    if (r != 0)
        json_decref(one);
    json_decref(f->list);
    f->list = NULL;
}

static void findings_of_cluster(struct findings *f)
{
    const json_t *cluster = world_get(f->world, WORLD_CLUSTERS, "", f->cluster);
    const json_t *available =
        kube_condition(kube_get(cluster, "status", NULL), "ManagedClusterConditionAvailable");
    bool accepted = false;

    (void)kube_bool(cluster, &accepted, "spec", "hubAcceptsClient", NULL);
    if (!accepted)
        findings_add(f, "ManagedCluster", NULL, "The hub has not accepted ManagedCluster %s.", f->cluster);
    if (available && !kube_condition_is(available, "True"))
        findings_add(f, "ManagedCluster", kube_str(available, "message", NULL),
                     "ManagedCluster %s is not available: its agents cannot report to the hub.", f->cluster);
}

static void findings_of_condition(struct findings *f, const char *type, const char *effect)
{
    const json_t *c = kube_condition(kube_get(f->scorer, "status", NULL), type);

    if (c && !kube_condition_is(c, "True"))
        findings_add(f, "DynamicScorer", kube_str(c, "message", NULL),
                     "The condition %s of DynamicScorer %s is %s (%s)%s.", type, kube_name(f->scorer),
                     cstr(kube_str(c, "status", NULL)), cstr(kube_str(c, "reason", NULL)), effect);
}

static void findings_of_scorer(struct findings *f)
{
    const char *destination = kube_str(f->scorer, "spec", "scoreDestination", NULL);
    const char *check = kube_str(f->scorer, "spec", "healthCheck", NULL);
    bool by_hub = !check || !*check || str_eq_nocase(str_of(check), STR("hub"));

    if (!kube_list(f->scorer, "status", "conditions", NULL))
        findings_add(f, "DynamicScorer", NULL,
                     "DynamicScorer %s has no conditions: the controller has not looked at it yet.",
                     kube_name(f->scorer));
    if (destination && str_eq_nocase(str_of(destination), STR("none")))
        findings_add(
            f, "DynamicScorer", NULL,
            "spec.scoreDestination is None: its scores are metrics only, no AddOnPlacementScore is written.");
    findings_of_condition(f, "Valid", ": an invalid scorer is not distributed");
    if (by_hub)
        findings_of_condition(f, "Healthy",
                              ": an unhealthy scorer is not distributed, unless the controller has "
                              "--keep-unhealthy");
    findings_of_condition(f, "UniqueScoreName", ": of scorers with one score name the oldest is distributed");
    if (!scorer_score_name(f->scorer))
        findings_of_condition(f, "ConfigSynced",
                              ": without its configuration, the name of the score is not known");
}

/* Whether the summaries that the hub sends to the cluster hold the score. */
static bool findings_sends_score(const struct findings *f, const char *score)
{
    const json_t *manifests = kube_list(f->work, "spec", "workload", "manifests", NULL);
    struct str text = kube_text(json_array_get(manifests, 0), "data", "summaries", NULL);
    json_auto_t *summaries = NULL;
    const json_t *one;
    size_t i;

    if (kube_json_parse(&summaries, text, NULL) < 0)
        return false;
    json_array_foreach(summaries, i, one)
    {
        if (strcmp(cstr(kube_str(one, "scoreName", NULL)), score) == 0)
            return true;
    }
    return false;
}

/* What the hub's controller says of this cluster, for want of the ManifestWork. */
static void findings_of_failing_clusters(struct findings *f)
{
    const json_t *one;
    size_t i;

    json_array_foreach(kube_list(f->scorer, "status", "failingClusters", NULL), i, one)
    {
        if (strcmp(cstr(kube_str(one, "name", NULL)), f->cluster) == 0)
            findings_add(f, "DynamicScorer", kube_str(one, "error", NULL),
                         "The controller counts the cluster as %s for this scorer.",
                         cstr(kube_str(one, "state", NULL)));
    }
}

static void findings_of_report(struct findings *f, const struct work_found *found,
                               const struct report *report, const char *score)
{
    const struct pair_facts facts = {
        .in_sync = true,
        .applied = found->applied,
        .apply_error = found->applied ? "" : found->why,
        .report = report,
        .cell = report_find(report, report_score(str_of(score))),
        .interval_ms = INT64_MAX / 8,
        .now = world_now(f->world),
    };
    enum pair_state state = pair_state(&facts);
    char why[PAIR_REASON_BYTES];

    if (state == PAIR_OK)
        return;
    if (state == PAIR_EMPTY) {
        findings_add(f, "agent", NULL,
                     "The agent of the cluster scores, but its source had nothing to score: no item "
                     "is written.");
        return;
    }
    pair_reason(why, state, &facts);
    findings_add(f, "agent", why, "The agent of the cluster, or its work agent, is reported as: %s.",
                 pair_info[state].label);
}

static void findings_of_work(struct findings *f)
{
    const char *score = scorer_score_name(f->scorer);
    struct work_found found;
    struct report report = {0};

    if (f->work_trouble) {
        findings_add(f, "ManifestWork", NULL, "The report of the cluster's agent cannot be read: %s.",
                     f->work_trouble);
        findings_of_failing_clusters(f);
        return;
    }
    if (!f->work) {
        findings_add(
            f, "ManifestWork", NULL,
            "The hub sends no configuration to the cluster: there is no ManifestWork in namespace %s. Its "
            "controller writes it once a DynamicScoringConfig exists; an agent with a configuration of its "
            "own needs none.",
            f->cluster);
        return;
    }
    work_look(&found, f->work, "");
    if (score && !findings_sends_score(f, score)) {
        findings_add(
            f, "ManifestWork", NULL,
            "The configuration that the hub sends to the cluster lacks score %s: a mask of the "
            "DynamicScoringConfig excludes the cluster, there is no room, or the scorer is not distributed.",
            score);
        return;
    }
    if (score && report_parse(&report, work_feedback(f->work)) == 0)
        findings_of_report(f, &found, &report, score);
    report_done(&report);
}

static void findings_of_object_conditions(struct findings *f)
{
    const json_t *one;
    size_t i;

    json_array_foreach(f->score->conditions, i, one)
    {
        const char *type = cstr(kube_str(one, "type", NULL));

        findings_add(f, "AddOnPlacementScore", kube_str(one, "message", NULL),
                     "The condition %s of AddOnPlacementScore %s/%s is %s (%s).", type, f->cluster,
                     f->score->name, cstr(kube_str(one, "status", NULL)),
                     cstr(kube_str(one, "reason", NULL)));
    }
}

static void findings_of_object(struct findings *f)
{
    const char *score = scorer_score_name(f->scorer);
    char name[OBJECT_NAME_MAX + 1], until[KUBE_TIME_BYTES];

    if (!score)
        return;
    (void)object_name(str_of(score), name);
    f->score = world_score(f->world, f->cluster, name);
    if (!f->score) {
        findings_add(f, "AddOnPlacementScore", NULL,
                     "There is no AddOnPlacementScore %s in namespace %s: Placement "
                     "counts 0.",
                     name, f->cluster);
        return;
    }
    findings_of_object_conditions(f);
    kube_time_format(f->score->valid_until, until);
    if (f->score->n_items == 0)
        findings_add(f, "AddOnPlacementScore", NULL,
                     "AddOnPlacementScore %s/%s has no values: Placement counts 0.", f->cluster, name);
    else if (world_score_is_expired(f->score, world_now(f->world)))
        findings_add(
            f, "AddOnPlacementScore", NULL,
            "AddOnPlacementScore %s/%s expired at %s, its agent has not renewed it: Placement counts 0.",
            f->cluster, name, until);
    else
        f->has_score = true;
}

void findings_make(struct findings *f)
{
    findings_of_cluster(f);
    findings_of_scorer(f);
    findings_of_work(f);
    findings_of_object(f);
}
