#include "controller/hub/state/status.h"

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/state.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <errno.h>
#include <stdio.h>

/* ---- Clusters ----
 *
 * The part of a DynamicScorer's status that is about clusters: where it is distributed, and what agents
 * report. */

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
                           t->selected, on ? on->name : NULL, on ? on->write.trouble : "");
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

static void scorer_set_distributed(const struct hub_scorer *s, struct status_condition *c)
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

static void scorer_set_scoring(const struct hub_scorer *s, struct status_condition *c)
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

static void scorer_set_reported(const struct hub_scorer *s, struct status_condition *c)
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

static int scorer_put_clusters(const struct hub_scorer *s, json_t *status)
{
    int r = status_put(status, "clusters", clusters_value(&s->tally), s->object);

    if (r == 0)
        r = s->tally.n_named
                ? status_put(status, "failingClusters", clusters_failing_value(&s->tally), s->object)
                : status_drop(status, "failingClusters", s->object);
    return r;
}

/* ---- The status ----
 *
 * A DynamicScorer's status. Each condition covers one aspect; Ready says whether the scorer works on some
 * cluster. */

enum { SYNCED_BYTES = 300, DISTRIBUTED_BYTES = 300 }; /* in the message of Ready */
enum { HEALTHY, SYNCED, VALID, UNIQUE, DISTRIBUTED, SCORING, READY, CONDITIONS };

static const char *const types[CONDITIONS] = {
    [HEALTHY] = "Healthy", [SYNCED] = "ConfigSynced",     [VALID] = "Valid", [UNIQUE] = "UniqueScoreName",
    [SCORING] = "Scoring", [DISTRIBUTED] = "Distributed", [READY] = "Ready",
};

static void scorer_set_inactive(const struct hub_scorer *s, const struct probe_part *p,
                                struct status_condition *c)
{
    const char *kept = s->hub->o.keep_unhealthy ? "; still distributed, as --keep-unhealthy is set" : "";

    if (p->asked && p->ok)
        condition_set(c, TRUTH_FALSE, "Recovering",
                      "the scoring API responds again; healthy after %u consecutive successes%s",
                      s->hub->o.probe.healthy_after, kept);
    else if (p->asked)
        condition_set(c, TRUTH_FALSE, p->reason, "%s%s", p->message, kept);
    else if (!condition_resume(c, s->object) || c->status != TRUTH_FALSE)
        condition_set(c, TRUTH_FALSE, "NotProbed", "the scoring API was unhealthy when last probed%s", kept);
}

/* By the hub's probes. */
static void scorer_set_probed(const struct hub_scorer *s, struct status_condition *c)
{
    const struct probe_status *p = scorer_probe(s);

    if (p->health == HEALTH_INACTIVE)
        scorer_set_inactive(s, &p->probe, c);
    else if (p->health == HEALTH_ACTIVE && p->probe.asked && !p->probe.ok)
        condition_set(c, TRUTH_TRUE, "Healthy",
                      "the last probe failed; unhealthy after %u consecutive failures: %s",
                      s->hub->o.probe.unhealthy_after, p->probe.message);
    else if (p->health == HEALTH_ACTIVE)
        condition_set(c, TRUTH_TRUE, "Healthy", "the scoring API responds");
    else if (p->probe.asked)
        condition_set(c, TRUTH_UNKNOWN, p->probe.reason, "%s", p->probe.message);
    else
        condition_set(c, TRUTH_UNKNOWN, "NotProbed", "the scoring API has not been probed yet");
}

static void scorer_set_healthy(const struct hub_scorer *s, struct status_condition *c)
{
    if (s->spec.health_check == HEALTH_CHECK_HUB)
        scorer_set_probed(s, c);
    else if (s->spec.health_check == HEALTH_CHECK_AGENTS)
        scorer_set_reported(s, c);
    else
        condition_set(c, TRUTH_UNKNOWN, "NotChecked", "spec.healthCheck is None");
}

/* What stays active while /config cannot be read. */
static const char *scorer_config_meanwhile(const struct hub_scorer *s)
{
    if (scorer_probe(s)->synced.owner)
        return "the last valid configuration stays active";
    return s->effective.reason == EFFECTIVE_OK
               ? "none has been read yet, so the fields of the DynamicScorer are active"
               : "no configuration has been read yet";
}

static void scorer_set_synced(const struct hub_scorer *s, struct status_condition *c)
{
    const struct probe_status *p = scorer_probe(s);

    if (s->has_spec && s->spec.mode == SYNC_NONE)
        condition_set(c, TRUTH_TRUE, "NotNeeded", "configSyncMode is None");
    else if (p->config.asked && p->config.ok)
        condition_set(c, TRUTH_TRUE, "Synced", "the configuration was read from the scoring API");
    else if (p->config.asked)
        condition_set(c, TRUTH_FALSE, p->config.reason, "%s; %s", p->config.message,
                      scorer_config_meanwhile(s));
    else if (!condition_resume(c, s->object) || (c->status == TRUTH_TRUE && !p->synced.owner))
        condition_set(c, TRUTH_UNKNOWN, "NotAsked",
                      "the configuration has not been read from the scoring API yet");
}

static void scorer_set_valid(const struct hub_scorer *s, struct status_condition *c)
{
    static const struct {
        const char *reason;
        enum truth status;
    } reasons[] = {
        [EFFECTIVE_OK] = {"Valid", TRUTH_TRUE},
        [EFFECTIVE_INCOMPLETE] = {"Incomplete", TRUTH_FALSE},
        [EFFECTIVE_TOKEN_HOST] = {"TokenHostNotAllowed", TRUTH_FALSE},
        [EFFECTIVE_WAITING] = {"Waiting", TRUTH_UNKNOWN},
    };
    enum effective_reason reason = s->effective.reason;

    if (*s->spec_error || !s->has_spec)
        condition_set(c, TRUTH_FALSE, "InvalidSpec", "%s%s", s->spec_error,
                      s->has_spec                       ? "; the last valid spec stays active"
                      : effective_usable(&s->effective) ? "; the last valid summary stays active"
                                                        : "");
    else
        condition_set(c, reasons[reason].status, reasons[reason].reason, "%s%s%s",
                      reason != EFFECTIVE_OK  ? s->effective.error
                      : *s->effective.warning ? "the summary is valid, but its rounds will fail: "
                                              : "the summary is valid",
                      reason == EFFECTIVE_OK ? s->effective.warning : "",
                      s->effective.kept ? "; the last valid summary stays active" : "");
}

/* Two score names that map to one object. */
static void scorer_set_same_object(const struct hub_scorer *s, struct status_condition *c)
{
    const struct hub_scorer *other = s->older ?: s->younger;

    condition_set(c, TRUTH_FALSE, "DuplicateScoreName",
                  "score name %.256s maps to AddOnPlacementScore %s, as does score name %.256s of the %s "
                  "DynamicScorer %s; %s is not distributed",
                  cstr(s->effective.score_name), s->object_name, cstr(other->effective.score_name),
                  s->older ? "older" : "younger", other->name, s->older ? "this one" : "the younger one");
}

static void scorer_set_unique(const struct hub_scorer *s, struct status_condition *c)
{
    if (hub_scorer_shares_object(s))
        scorer_set_same_object(s, c);
    else if (s->older)
        condition_set(c, TRUTH_FALSE, "DuplicateScoreName",
                      "score name %s belongs to the older DynamicScorer %s; this one is not distributed",
                      cstr(s->effective.score_name), s->older->name);
    else if (s->younger)
        condition_set(c, TRUTH_FALSE, "DuplicateScoreName",
                      "score name %s is also used by the younger DynamicScorer %s, which is not distributed",
                      cstr(s->effective.score_name), s->younger->name);
    else if (!s->effective.score_name)
        condition_set(c, TRUTH_UNKNOWN, "NoScoreName", "the score name is not known yet");
    else
        condition_set(c, TRUTH_TRUE, "Unique", "no other DynamicScorer uses score name %s",
                      s->effective.score_name);
}

/* The condition that keeps the scorer from working on any cluster; NULL when none does. False goes before
 * Unknown. */
static const struct status_condition *scorer_blocking_condition(const struct hub_scorer *s,
                                                                const struct status_condition list[])
{
    const struct tally *t = &s->tally;
    bool is_probed = s->spec.health_check == HEALTH_CHECK_HUB; /* otherwise Scoring says more than Healthy */

    if (list[VALID].status == TRUTH_FALSE)
        return &list[VALID];
    if (is_probed && list[HEALTHY].status == TRUTH_FALSE)
        return &list[HEALTHY];
    if (list[VALID].status == TRUTH_UNKNOWN)
        return list[SYNCED].status == TRUTH_FALSE ? &list[SYNCED] : &list[VALID];
    if (is_probed && list[HEALTHY].status == TRUTH_UNKNOWN)
        return &list[HEALTHY];
    if (t->up_to_date <= t->stuck)
        return &list[DISTRIBUTED];
    if (t->unavailable == t->selected)
        return &list[SCORING];
    return t->scoring || list[SCORING].status != TRUTH_FALSE ? NULL : &list[SCORING];
}

static void scorer_set_ready(const struct hub_scorer *s, const struct status_condition list[],
                             struct status_condition *ready)
{
    const struct status_condition *cause = scorer_blocking_condition(s, list);
    const struct status_condition *synced = &list[SYNCED], *distributed = &list[DISTRIBUTED];
    bool unsynced = synced->status == TRUTH_FALSE;
    bool partly = s->tally.no_room && distributed->status == TRUTH_FALSE;

    if (cause)
        condition_set(ready, cause->status, cause->reason, "%s", cause->message);
    else
        condition_set(ready, TRUTH_TRUE, "Ready", "%.*s%s%.*s%s%s", unsynced ? SYNCED_BYTES : 0,
                      synced->message, unsynced ? "; " : "", partly ? DISTRIBUTED_BYTES : 0,
                      distributed->message, partly ? "; " : "", list[SCORING].message);
}

static void scorer_set_conditions(const struct hub_scorer *s, struct status_condition list[CONDITIONS])
{
    for (size_t i = 0; i < CONDITIONS; i++)
        list[i].type = types[i];
    scorer_set_healthy(s, &list[HEALTHY]);
    scorer_set_synced(s, &list[SYNCED]);
    scorer_set_valid(s, &list[VALID]);
    scorer_set_unique(s, &list[UNIQUE]);
    scorer_set_distributed(s, &list[DISTRIBUTED]);
    scorer_set_scoring(s, &list[SCORING]);
    scorer_set_ready(s, list, &list[READY]);
}

bool status_scorer_ready(const struct hub_scorer *s)
{
    struct status_condition list[CONDITIONS];

    scorer_set_conditions(s, list);
    return list[READY].status == TRUTH_TRUE;
}

static int scorer_put_summary(const struct hub_scorer *s, json_t *status)
{
    const struct effective *e = &s->effective;

    if (!effective_usable(e))
        return status_drop(status, "summary", s->object) ?: status_drop(status, "interval", s->object);
    return status_put(status, "summary", json_stringn(e->text.p, e->text.n), s->object)
               ?: status_put(status, "interval",
                             json_sprintf("%" JSON_INTEGER_FORMAT "s", (json_int_t)e->interval_ms / 1000),
                             s->object);
}

/* The members that describe the active configuration. */
static int scorer_put_config(const struct hub_scorer *s, json_t *status)
{
    static const char *const sources[] = {[CONFIG_FROM_SPEC] = "Spec", [CONFIG_FROM_API] = "API"};
    const struct probe_status *p = scorer_probe(s);
    const char *name = s->effective.score_name;
    int r = p->synced.owner ? status_put(status, "lastSyncedConfig", api_config_value(&p->synced), s->object)
                            : status_drop(status, "lastSyncedConfig", s->object);

    if (r == 0)
        r = name ? status_put(status, "scoreName", json_string(name), s->object)
                 : status_drop(status, "scoreName", s->object);
    if (r == 0)
        r = s->has_spec || effective_usable(&s->effective)
                ? status_put(status, "configSource", json_string(sources[s->effective.source]), s->object)
                : status_drop(status, "configSource", s->object);
    return r ?: scorer_put_summary(s, status);
}

json_t *status_of_scorer(const struct hub_scorer *s, unix_ms now)
{
    struct status_condition list[CONDITIONS];
    json_auto_t *status = json_pack("{s:s, s:I}", "healthStatus", health_word(hub_scorer_health(s)),
                                    "observedGeneration", status_generation(s->object));

    scorer_set_conditions(s, list);
    if (!status || scorer_put_config(s, status) < 0 || scorer_put_clusters(s, status) < 0 ||
        status_put(status, "conditions", conditions_value(list, CONDITIONS, s->object, &s->last_status, now),
                   s->object) < 0)
        return NULL;
    return TAKE_PTR(status);
}
