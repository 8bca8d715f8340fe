/* The part of a DynamicScorer's status that is about clusters: where it is distributed, and what agents
 * report. */
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work_text.h"
#include "controller/hub/state/hub_pair.h"
#include "controller/hub/state/state.h"
#include "controller/hub/state/status_conditions.h"
#include "exporter/base/buf.h"

enum { NAMED_REASON_BYTES = 250 }; /* in a condition's message, which names several */

/* Why the scorer is in no cluster's summaries, whatever the masks; NULL when it may be. */
static const char *clusters_not_selected(const struct hub_scorer *s)
{
    if (!effective_usable(&s->effective))
        return "not distributed: there is no valid summary";
    if (s->older)
        return "not distributed: an older DynamicScorer uses the same score name or AddOnPlacementScore";
    if (hub_scorer_is_eligible(s))
        return NULL;
    if (hub_scorer_awaits_config(s))
        return "not distributed: it is not known yet whether /config can be read";
    return scorer_probe(s)->health == HEALTH_INACTIVE
               ? "not distributed: the scoring API is unhealthy"
               : "not distributed: it is not known yet whether the scoring API is healthy";
}

/* The first error that keeps a ManifestWork from being up to date and applied, if there is one. */
static bool clusters_set_error(const struct tally *t, struct status_condition *c)
{
    const struct hub_cluster *on = t->write_errors.first;

    if (t->applied == t->selected)
        return false;
    if (t->write_errors.n) {
        condition_clusters(c, "ClustersFailing", "ManifestWork not written on", t->write_errors.n,
                           t->selected, on ? on->name : NULL, on ? on->write_error : "");
        return true;
    }
    on = t->apply_errors.first;
    if (t->apply_errors.n)
        condition_clusters(c, "ClustersFailing", "ManifestWork not applied on", t->apply_errors.n,
                           t->selected, on ? on->name : NULL, on ? on->work.why : "");
    return t->apply_errors.n > 0;
}

static void clusters_set_distributed(const struct hub_scorer *s, struct status_condition *c)
{
    const struct tally *t = &s->tally;

    if (clusters_set_error(t, c))
        return;
    if (t->no_room)
        condition_set(c, TRUTH_FALSE, "NoRoom",
                      "no room in the ManifestWorks of %zu cluster%s, which hold at most %d KiB", t->no_room,
                      plural_s(t->no_room), WORK_MAX_BYTES / 1024);
    else if (!t->selected)
        condition_set(c, TRUTH_FALSE, "Masked", "masked on all clusters");
    else if (t->up_to_date < t->selected)
        condition_set(c, TRUTH_FALSE, "Progressing", "up to date on %zu of %zu clusters", t->up_to_date,
                      t->selected);
    else if (t->unconfirmed.n)
        condition_unconfirmed(c, t->unconfirmed.n, t->selected, t->unconfirmed.first);
    else
        condition_distributed(c, t->selected);
}

void scorer_set_distributed(const struct hub_scorer *s, struct status_condition *c)
{
    const struct hub *h = s->hub;
    const char *why = clusters_not_selected(s);

    if (!h->config.object)
        condition_set(c, TRUTH_FALSE, "NoConfig", "no DynamicScoringConfig named %s in namespace %s",
                      HUB_CONFIG, h->o.namespace);
    else if (!hub_is_distributing(h))
        condition_set(c, TRUTH_FALSE, "ConfigDeleting", "DynamicScoringConfig %s is being deleted",
                      HUB_CONFIG);
    else if (!h->config.has_masks)
        condition_set(c, TRUTH_FALSE, "InvalidMasks", "DynamicScoringConfig %s: %s", HUB_CONFIG,
                      h->config.masks_error);
    else if (why)
        condition_set(c, TRUTH_FALSE, "NotSelected", "%s", why);
    else if (!h->totals.managed)
        condition_set(c, TRUTH_FALSE, "NoClusters", "no ManagedCluster is accepted");
    else if (s->entry == SIZE_MAX)
        condition_set(c, TRUTH_FALSE, "Progressing", "the summaries are being computed");
    else
        clusters_set_distributed(s, c);
}

/* ---- Where it scores, and where it does not ---- */

static const struct class_words {
    enum pair_class class;
    const char *word;
} class_words[] = {
    {PAIR_CLASS_FAILING, "failing"},
    {PAIR_CLASS_SILENT, "silent"},
    {PAIR_CLASS_WAITING, "waiting"},
    {PAIR_CLASS_SCORING, "scoring"},
};

static size_t clusters_in_class(const struct tally *t, enum pair_class class)
{
    return class == PAIR_CLASS_FAILING   ? t->failing
           : class == PAIR_CLASS_SILENT  ? t->silent
           : class == PAIR_CLASS_WAITING ? t->waiting
                                         : t->scoring;
}

/* "<word> on 2", and unless it scores there: ": c1: <reason>, and 1 more". */
static int clusters_put_class(const struct tally *t, const struct class_words *words, bool first,
                              struct buf *into)
{
    size_t n = clusters_in_class(t, words->class), i = 0;
    char why[PAIR_REASON_BYTES];
    int r = buf_printf(into, "%s%s on %zu", first ? "" : "; ", words->word, n);

    if (r == 0 && first)
        r = buf_printf(into, " of %zu cluster%s", t->selected, plural_s(t->selected));
    while (i < t->n_named && pair_info[t->named[i].pair].class != words->class)
        i++;
    if (r < 0 || words->class == PAIR_CLASS_SCORING || i == t->n_named)
        return r;
    hub_pair_reason(why, t->named[i].pair, t->named[i].cluster, t->named[i].cell);
    r = buf_printf(into, ": %s: %.*s", t->named[i].cluster->name, NAMED_REASON_BYTES, why);
    return r == 0 && n > 1 ? buf_printf(into, ", and %zu more", n - 1) : r;
}

/* All selected clusters by class, those of the condition first. */
static void clusters_set_scoring(const struct tally *t, struct status_condition *c, enum truth status,
                                 const char *reason, enum pair_class first)
{
    BUF_AUTO(text, sizeof(c->message) * 2);
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(class_words); i++)
        if (class_words[i].class == first)
            r = clusters_put_class(t, &class_words[i], true, &text);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(class_words); i++)
        if (class_words[i].class != first && clusters_in_class(t, class_words[i].class))
            r = clusters_put_class(t, &class_words[i], false, &text);
    condition_set(c, status, reason, "%.*s", (int)text.n, cstr(text.p));
}

void scorer_set_scoring(const struct hub_scorer *s, struct status_condition *c)
{
    const struct tally *t = &s->tally;
    size_t reported =
        t->failing - t->unwritten - t->unapplied; /* condition Distributed is about the others */

    if (!t->selected)
        condition_set(c, TRUTH_UNKNOWN, "NotSelected", "selected for no cluster");
    else if (reported)
        clusters_set_scoring(t, c, TRUTH_FALSE, "ClustersFailing", PAIR_CLASS_FAILING);
    else if (t->scoring)
        clusters_set_scoring(t, c, TRUTH_TRUE, "Scoring", PAIR_CLASS_SCORING);
    else if (t->waiting)
        clusters_set_scoring(t, c, TRUTH_UNKNOWN, "Waiting", PAIR_CLASS_WAITING);
    else if (t->n_named && !pair_is_pending(t->named[0].pair))
        clusters_set_scoring(t, c, TRUTH_UNKNOWN, "Silent", PAIR_CLASS_SILENT);
    else
        clusters_set_scoring(t, c, TRUTH_UNKNOWN, "NoReports", PAIR_CLASS_SILENT);
}

void scorer_set_reported(const struct hub_scorer *s, struct status_condition *c)
{
    const struct tally *t = &s->tally;
    const struct hub_cluster *on = t->api_unhealthy.first;
    uint64_t score = report_score(str_of(cstr(s->effective.score_name)));
    const struct report_cell *cell = on ? report_find(&on->report, score) : NULL;

    if (t->api_unhealthy.n)
        condition_set(c, TRUTH_FALSE, "UnhealthyOnClusters",
                      "unhealthy on %zu of %zu cluster%s%s%s%s%.*s; healthy on %zu", t->api_unhealthy.n,
                      t->selected, plural_s(t->selected), on ? ": " : "", on ? on->name : "",
                      cell ? ": " : "", NAMED_REASON_BYTES, cell ? report_error(&on->report, cell) : "",
                      t->api_healthy);
    else if (t->api_healthy)
        condition_set(c, TRUTH_TRUE, "Healthy", "healthy on %zu of %zu cluster%s", t->api_healthy,
                      t->selected, plural_s(t->selected));
    else
        condition_set(c, TRUTH_UNKNOWN, "NoReports", "no agent has reported on the scoring API yet");
}

static json_t *clusters_value(const struct tally *t)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "selected", (json_int_t)t->selected,
                     "upToDate", (json_int_t)t->up_to_date, "applied", (json_int_t)t->applied, "scoring",
                     (json_int_t)t->scoring, "failing", (json_int_t)t->failing, "waiting",
                     (json_int_t)t->waiting, "silent", (json_int_t)t->silent, "noRoom",
                     (json_int_t)t->no_room);
}

static json_t *clusters_failing_value(const struct tally *t)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < t->n_named; i++) {
        const struct hub_cluster *c = t->named[i].cluster;
        char why[PAIR_REASON_BYTES];
        json_t *value;

        hub_pair_reason(why, t->named[i].pair, c, t->named[i].cell);
        value = json_pack("{s:s, s:s, s:o}", "name", c->name, "state", pair_info[t->named[i].pair].word,
                          "error", status_line(why));
        if (json_array_append_new(list, value) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

int scorer_put_clusters(const struct hub_scorer *s, json_t *status)
{
    int r = status_put(status, "clusters", clusters_value(&s->tally), s->object);

    if (r == 0)
        r = s->tally.n_named
                ? status_put(status, "failingClusters", clusters_failing_value(&s->tally), s->object)
                : status_drop(status, "failingClusters", s->object);
    return r;
}
