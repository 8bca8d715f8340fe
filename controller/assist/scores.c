/* GET /addonplacementscores, /scorers, and /scorers/explain: why a scorer has no score on a cluster. */
#include "controller/assist/assist.h"
#include "controller/hub/rules/rules.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "controller/placement/items.h"
#include "exporter/base/alloc.h"
#include "exporter/base/map.h"
#include "exporter/base/utf8.h"

#define DOMAIN "dynamic-scoring.open-cluster-management.io/"

enum {
    DESCRIPTION_BYTES = 200, /* for assistants */
    MESSAGE_BYTES = 160,
    QUOTE_BYTES = 400,
    FEW_ITEMS = 5, /* of each object, for assistants */
};

/* ---- DynamicScorers ---- */

/* NULL while it is not known. */
static const char *scorer_score_name(const json_t *scorer)
{
    return kube_str(scorer, "status", "scoreName", NULL)
               ?: kube_str(scorer, "spec", "scoring", "params", "name", NULL)
               ?: kube_str(scorer, "spec", "name", NULL);
}

/* "" without. Written by the author of the scorer or of its scoring API. */
static const char *scorer_description(const json_t *scorer)
{
    const char *text = kube_str(scorer, "spec", "description", NULL);

    return cstr(text && *text ? text : kube_str(scorer, "status", "lastSyncedConfig", "description", NULL));
}

static const char *scorer_dimension_format(const json_t *scorer)
{
    const json_t *first = json_array_get(kube_list(scorer, "spec", "scoreItems", NULL), 0);
    const char *text =
        kube_str(first, "format", NULL) ?: kube_str(scorer, "spec", "scoreDimensionFormat", NULL);

    return text && *text ? text : "${scoreName}";
}

/* The name of its AddOnPlacementScores, in `name`; NULL while it is not known. */
static const char *scorer_object_name(const json_t *scorer, char name[OBJECT_NAME_MAX + 1])
{
    const char *score = scorer_score_name(scorer);

    if (score)
        (void)object_name(str_of(score), name);
    return score ? name : NULL;
}

static bool scorer_has_object(const json_t *scorer, const char *object)
{
    char name[OBJECT_NAME_MAX + 1];

    return strcmp(cstr(scorer_object_name(scorer, name)), object) == 0;
}

/* The DynamicScorer that an AddOnPlacementScore comes from: the first whose score name is that of its
 * annotation, or maps to its name. NULL without. */
static const json_t *scorer_of_score(const struct snapshot *hub, const struct score *s)
{
    const char *score = kube_annotation(s->object, "dynamic-scoring.open-cluster-management.io/score-name");
    const json_t *scorer;
    size_t at = 0;

    while ((scorer = snapshot_next(hub, KIND_SCORERS, &at)))
        if (score ? strcmp(cstr(scorer_score_name(scorer)), score) == 0 : scorer_has_object(scorer, s->name))
            return scorer;
    return NULL;
}

/* By its own name, the name of its score, or that of its AddOnPlacementScores. NULL without. */
static const json_t *scorer_by_name(const struct snapshot *hub, const char *name)
{
    const json_t *scorer, *found = NULL;
    size_t at = 0;

    while ((scorer = snapshot_next(hub, KIND_SCORERS, &at))) {
        if (strcmp(kube_name(scorer), name) == 0)
            return scorer;
        if (!found && (strcmp(cstr(scorer_score_name(scorer)), name) == 0 || scorer_has_object(scorer, name)))
            found = scorer;
    }
    return found;
}

/* A string of at most so many bytes, cut with "..." if it is longer. */
static json_t *text_cut(const char *text, size_t max)
{
    size_t n = strlen(cstr(text));

    if (n <= max)
        return json_string(cstr(text));
    return json_sprintf("%.*s...", (int)utf8_cut(str_of(text), max).n, text);
}

/* ---- The summary of scores ---- */

enum { VALUES = ITEM_MAX - ITEM_MIN + 1, ROW_BYTES = 150 /* without texts */ };

/* What an assistant can read of 20,000 objects: a row for each name. */
struct summary_row {
    const struct score *first;
    size_t clusters, expired, items;
    size_t counts[VALUES];
};

/* Counts one more. Its values count unless it has expired, as for Placement. */
static void summary_add(struct map *by_name, const struct score *score)
{
    struct summary_row *row = map_get(by_name, score->name);

    if (!row) {
        row = xcalloc(1, sizeof(*row));
        row->first = score;
        map_set(by_name, score->name, row);
    }
    row->clusters++;
    row->expired += score->is_expired;
    if (score->is_expired)
        return;
    row->items += score->n_items;
    for (size_t i = 0; i < score->n_items; i++) {
        int32_t v = score->items[i].value;

        row->counts[(v < ITEM_MIN ? ITEM_MIN : v > ITEM_MAX ? ITEM_MAX : v) - ITEM_MIN]++;
    }
}

/* The nth value in ascending order; NULL without any. */
static json_t *summary_nth(const struct summary_row *row, size_t n)
{
    size_t i = 0;

    if (row->items == 0)
        return NULL;
    while (i < VALUES - 1 && n >= row->counts[i])
        n -= row->counts[i++];
    return json_integer((int)i + ITEM_MIN);
}

/* max_text: bytes of each of the scorer's texts. */
static json_t *summary_row_value(const struct snapshot *hub, const struct summary_row *row, size_t max_text)
{
    const json_t *scorer = max_text ? scorer_of_score(hub, row->first) : NULL;
    const char *description = scorer ? scorer_description(scorer) : "";

    return json_pack("{s:s,s:I,s:I,s:I,s:o*,s:o*,s:o*,s:o*,s:o*}", "name", row->first->name, "clusters",
                     (json_int_t)row->clusters, "expired", (json_int_t)row->expired, "items",
                     (json_int_t)row->items, "min", summary_nth(row, 0), "median",
                     summary_nth(row, (row->items - 1) / 2), "max", summary_nth(row, row->items - 1),
                     "scoreDimensionFormat",
                     scorer ? text_cut(scorer_dimension_format(scorer), max_text) : NULL, "description",
                     *description ? text_cut(description, max_text) : NULL);
}

DEFINE_ORDER(summary_compare_rows, struct summary_row *const, strcmp((*a)->first->name, (*b)->first->name))

/* A row for each name, in ascending order. For assistants, texts are cut so that all rows fit; if that is not
 * enough, the last rows are left out. */
static void summary_put(struct listing *l, const struct snapshot *hub, const struct map *by_name)
{
    size_t n = by_name->n, at = 0, room = listing_is_short(l) ? listing_room(l) * 7 / 8 : SIZE_MAX, bytes = 2;
    size_t each = n && listing_is_short(l) ? room / n : SIZE_MAX;
    size_t max_text = each == SIZE_MAX ? each : each > ROW_BYTES ? (each - ROW_BYTES) / 2 : 0;
    CLEANUP(cleanup_free) struct summary_row **rows = xcalloc(n + 1, sizeof(struct summary_row *));
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        rows[i] = map_next(by_name, &at);
    qsort(rows, n, sizeof(struct summary_row *), summary_compare_rows);
    for (size_t i = 0; i < n && bytes <= room; i++) {
        json_t *row = summary_row_value(hub, rows[i], max_text);

        bytes += listing_is_short(l) ? json_dumpb(row, NULL, 0, JSON_COMPACT) + 1 : 0;
        if (bytes <= room)
            (void)json_array_append(list, row);
        json_decref(row);
    }
    (void)json_object_set_new(l->head, "untrusted", json_true());
    n -= json_array_size(list);
    (void)json_object_set_new(l->head, "summary", list);
    if (n)
        list_note(l->notes, "%zu more scores are left out of the summary: ask with a larger maxBytes.", n);
}

/* ---- Parts of a score ---- */

static json_t *scores_items(const struct score *s, size_t max)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n_items && i < max; i++)
        (void)json_array_append_new(list, json_pack("{s:s%,s:i}", "name", s->items[i].name.p,
                                                    s->items[i].name.n, "value", (int)s->items[i].value));
    return list;
}

/* Name, namespace, labels, annotations, and two annotations from the DynamicScorer. */
static json_t *scores_metadata(const struct snapshot *hub, const struct score *s)
{
    const json_t *scorer = scorer_of_score(hub, s);
    json_t *annotations = json_copy(kube_map(s->object, "metadata", "annotations", NULL)) ?: json_object();

    if (scorer) {
        (void)json_object_set_new(annotations, DOMAIN "description", json_string(scorer_description(scorer)));
        (void)json_object_set_new(annotations, DOMAIN "score-dimension-format",
                                  json_string(scorer_dimension_format(scorer)));
    }
    return json_pack("{s:s,s:s,s:O*,s:o}", "name", s->name, "namespace", s->cluster, "labels",
                     kube_map(s->object, "metadata", "labels", NULL), "annotations", annotations);
}

static json_t *scores_valid_until(const struct score *s)
{
    char until[KUBE_TIME_BYTES];

    kube_time_format(s->valid_until, until);
    return s->valid_until.ms ? json_string(until) : NULL;
}

/* ---- The list of scores ---- */

/* For assistants a few values, and what the summary does not have. */
static json_t *scores_item(const struct listing *l, const struct snapshot *hub, const struct score *s)
{
    bool is_short = listing_is_short(l),
         alone = call_text(l->call, "name") && call_text(l->call, "namespace");
    size_t max = !is_short ? SIZE_MAX : alone ? listing_room(l) / 48 : FEW_ITEMS;

    return json_pack("{s:s*,s:s*,s:o,s:{s:o,s:o*},s:b,s:o*}", "apiVersion",
                     is_short ? NULL : "cluster.open-cluster-management.io/v1alpha1", "kind",
                     is_short ? NULL : "AddOnPlacementScore", "metadata",
                     is_short ? json_pack("{s:s,s:s}", "namespace", s->cluster, "name", s->name)
                              : scores_metadata(hub, s),
                     "status", "scores", scores_items(s, max), "validUntil", scores_valid_until(s), "expired",
                     s->is_expired, "scoresTotal", is_short ? json_integer((json_int_t)s->n_items) : NULL);
}

void scores_fill(struct listing *l, const struct snapshot *hub)
{
    struct map by_name = {0};
    struct summary_row *row;
    const struct score *s;

    for (size_t at = 0; (s = snapshot_next(hub, KIND_SCORES, &at));)
        summary_add(&by_name, s);
    summary_put(l, hub, &by_name);
    for (size_t at = 0; (row = map_next(&by_name, &at));)
        free(row);
    map_done(&by_name);
    if (listing_is_short(l))
        list_note(l->notes,
                  "Items show at most %d values; namespace (a cluster) and name together give the values of "
                  "one score.",
                  FEW_ITEMS);
    for (size_t at = 0; (s = snapshot_next(hub, KIND_SCORES, &at));)
        if (listing_wants(l))
            listing_add(l, scores_item(l, hub, s));
}

/* ---- The list of scorers ---- */

/* For assistants the condition Ready and those that are not True, whose messages may be long. */
static json_t *scorers_conditions(const struct listing *l, const json_t *scorer)
{
    json_t *list = json_array(), *one;
    size_t i;

    json_array_foreach(kube_list(scorer, "status", "conditions", NULL), i, one)
    {
        const char *type = cstr(kube_str(one, "type", NULL)), *status = cstr(kube_str(one, "status", NULL));

        if (listing_is_short(l) && strcmp(status, "True") == 0 && strcmp(type, "Ready") != 0)
            continue;
        (void)json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:o}", "type", type, "status", status, "reason",
                            cstr(kube_str(one, "reason", NULL)), "message",
                            text_cut(kube_str(one, "message", NULL), listing_at_most(l, MESSAGE_BYTES))));
    }
    return list;
}

static json_t *scorers_item(const struct listing *l, const json_t *scorer)
{
    char object[OBJECT_NAME_MAX + 1];

    return json_pack("{s:s,s:s,s:s*,s:s*,s:o,s:s,s:O*,s:s,s:o,s:O*,s:b}", "namespace", kube_namespace(scorer),
                     "name", kube_name(scorer), "scoreName", scorer_score_name(scorer), "addonPlacementScore",
                     scorer_object_name(scorer, object), "description",
                     text_cut(scorer_description(scorer), listing_at_most(l, DESCRIPTION_BYTES)),
                     "scoreDimensionFormat", scorer_dimension_format(scorer), "scoreItems",
                     kube_list(scorer, "spec", "scoreItems", NULL), "health",
                     kube_str(scorer, "status", "healthStatus", NULL) ?: "Unknown", "conditions",
                     scorers_conditions(l, scorer), "clusters", kube_map(scorer, "status", "clusters", NULL),
                     "untrusted", 1);
}

void scorers_fill(struct listing *l, const struct snapshot *hub)
{
    const json_t *scorer;
    size_t at = 0;

    while ((scorer = snapshot_next(hub, KIND_SCORERS, &at)))
        if (listing_wants(l))
            listing_add(l, scorers_item(l, scorer));
}

/* ---- Findings ---- */

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

static void explain_put_findings(struct listing *l, const struct explanation *f)
{
    const char *first = kube_str(json_array_get(f->list, 0), "finding", NULL);
    const struct score *s = f->score;

    (void)json_object_update_new(l->head,
                                 json_pack("{s:s,s:s,s:b,s:s}", "cluster", f->cluster, "scorer",
                                           kube_name(f->scorer), "hasScore", f->has_score, "cause",
                                           f->has_score ? "The score is there and valid." : cstr(first)));
    if (s)
        (void)json_object_set_new(l->head, "addonPlacementScore",
                                  json_pack("{s:s,s:I,s:o*,s:b}", "name", s->name, "values",
                                            (json_int_t)s->n_items, "validUntil", scores_valid_until(s),
                                            "expired", s->is_expired));
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
