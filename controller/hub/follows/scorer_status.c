/* Owns nothing, changes nothing. Called by written/statuses.c for each status that is due, and by the
 * pages.
 *
 * Why a scorer is not Ready is decided by scorer_set_ready() at the end, from the other conditions; each
 * of these covers one aspect, and each sentence about more than one thing is made in sentences.c. */
#include "controller/hub/follows/scorer_status.h"

#include "controller/hub/follows/bad_placement.h"
#include "controller/hub/follows/common_conditions.h"
#include "controller/hub/follows/config_status.h"
#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/health.h"
#include "controller/hub/follows/pairs.h"
#include "controller/hub/follows/reason.h"
#include "controller/hub/follows/sentences.h"
#include "controller/hub/follows/status_value.h"
#include "controller/hub/follows/target.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/probe/probe_reason.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"
#include "exporter/score/feature.h"

enum scorer_condition {
    SCORER_HEALTHY,
    SCORER_SYNCED,
    SCORER_VALID,
    SCORER_UNIQUE,
    SCORER_DISTRIBUTED,
    SCORER_SCORING,
    SCORER_ASPECTS, /* the conditions above cover one each; Ready follows from them */
    SCORER_READY = SCORER_ASPECTS,
    SCORER_CONTESTED,
    SCORER_CONDITIONS
};

/* ---- Distributed ---- */

/* The first error that keeps a ManifestWork from being up to date and applied. False: there is none. */
static bool clusters_set_error(const struct tally *t, struct condition *c)
{
    const struct hub_cluster *unwritten = t->write_errors.first, *unapplied = t->apply_errors.first;

    if (t->applied >= t->selected)
        return false;
    if (unwritten)
        condition_clusters(c, unwritten->write.contested ? REASON_WRITE_CONFLICT : REASON_CLUSTERS_FAILING,
                           "ManifestWork not written on", t->write_errors.total, t->selected, unwritten,
                           cluster_write_error(unwritten));
    else if (unapplied)
        condition_clusters(c, REASON_CLUSTERS_FAILING, "ManifestWork not applied on", t->apply_errors.total,
                           t->selected, unapplied, unapplied->unapplied);
    return unwritten || unapplied;
}

static bool clusters_set_bad_placement(const struct fleet *f, const struct hub_scorer *s,
                                       const struct tally *t, struct condition *c)
{
    char why[256];
    enum hub_reason reason;
    const char *placement = scorer_bad_placement(f, s, &reason, why);
    BUF_AUTO(text, SENTENCE_BYTES);

    if (!placement)
        return false;
    buf_printf(&text, "Placement %s %s; selected for ", placement, why);
    text_count(&text, t->selected, "cluster");
    condition_say(c, TRUTH_FALSE, reason, &text);
    return true;
}

static void clusters_set_no_room(const struct tally *t, struct condition *c)
{
    BUF_AUTO(text, SENTENCE_BYTES);

    buf_puts(&text, "no room in the ManifestWorks of ");
    text_count(&text, t->no_room, "cluster");
    buf_printf(&text, ", which hold at most %d KiB", WORK_MAX_BYTES / 1024);
    condition_say(c, TRUTH_FALSE, REASON_NO_ROOM, &text);
}

static void clusters_set_suspended(const struct tally *t, struct condition *c)
{
    BUF_AUTO(text, SENTENCE_BYTES);

    buf_puts(&text, "suspended on ");
    text_count(&text, t->selected, "cluster");
    buf_puts(&text,
             ", as the scoring API is unhealthy: agents do not call it, and its scores stay until they "
             "expire");
    condition_say(c, TRUTH_FALSE, REASON_SUSPENDED, &text);
}

static void clusters_set_outdated(const struct tally *t, struct condition *c)
{
    BUF_AUTO(text, SENTENCE_BYTES);

    buf_puts(&text, "selected for ");
    text_count(&text, t->selected, "cluster");
    if (t->no_room) {
        buf_puts(&text, "; no room in the ManifestWorks of ");
        text_count(&text, t->no_room, "cluster");
    }
    condition_say(c, TRUTH_FALSE, REASON_AGENTS_OUTDATED, &text);
}

static void clusters_set_distributed(const struct fleet *f, const struct hub_scorer *s, const struct tally *t,
                                     struct condition *c)
{
    if (clusters_set_error(t, c) || clusters_set_bad_placement(f, s, t, c))
        return;
    if (tally_refusing(t))
        clusters_set_outdated(t, c);
    else if (t->no_room)
        clusters_set_no_room(t, c);
    else if (!t->selected && s->share.n_without_addon)
        condition_set(c, TRUTH_FALSE, REASON_ADD_ON_MISSING, "selected for no cluster");
    else if (!t->selected)
        condition_set(c, TRUTH_FALSE, REASON_MASKED, "masked on all clusters");
    else if (t->up_to_date < t->selected)
        condition_format(c, TRUTH_FALSE, REASON_PROGRESSING, "up to date on %zu of %zu clusters",
                         t->up_to_date, t->selected);
    else if (s->share.place == PLACE_SUSPENDED)
        clusters_set_suspended(t, c);
    else if (t->unconfirmed.total)
        condition_unconfirmed(c, t->unconfirmed.total, t->selected, t->unconfirmed.first);
    else
        condition_distributed(c, t->selected);
}

/* What keeps it from all clusters. False: nothing does. */
static bool scorer_set_undistributed(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct hub_config *config = &f->seen->configs.used;

    if (!config->object)
        condition_format(c, TRUTH_FALSE, REASON_NO_CONFIG, "no DynamicScoringConfig named %s in namespace %s",
                         HUB_CONFIG, f->o->namespace);
    else if (!configs_distribute(&f->seen->configs))
        condition_format(c, TRUTH_FALSE, REASON_CONFIG_DELETING, "DynamicScoringConfig %s is being deleted",
                         HUB_CONFIG);
    else if (!config_is_known(config))
        condition_format(c, TRUTH_FALSE, config_invalid_reason(config), "DynamicScoringConfig %s: %s",
                         HUB_CONFIG, config_error(config));
    else if (!effective_usable(&s->effective))
        condition_set(c, TRUTH_FALSE, REASON_NOT_SELECTED, "not distributed: there is no valid summary");
    else if (s->share.older)
        condition_set(
            c, TRUTH_FALSE, REASON_NOT_SELECTED,
            "not distributed: an older DynamicScorer uses the same score name or AddOnPlacementScore");
    else if (scorer_awaits_config(s))
        condition_set(c, TRUTH_FALSE, REASON_NOT_SELECTED,
                      "not distributed: it is not known yet whether /config can be read");
    else if (scorer_place(f->o, s) == PLACE_NONE)
        condition_set(c, TRUTH_FALSE, REASON_NOT_SELECTED,
                      "not distributed: it is not known yet whether the scoring API is healthy");
    else if (condition_unreadable(f, c) || condition_no_clusters(f, c))
        return true;
    else if (s->share.entry == SIZE_MAX)
        condition_set(c, TRUTH_FALSE, REASON_PROGRESSING, "the summaries are being computed");
    else
        return false;
    return true;
}

static void scorer_set_distributed(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct tally *t = counts_of(f->counts, s);

    if (scorer_set_undistributed(f, s, c))
        return;
    clusters_set_distributed(f, s, t, c);
    for (enum feature feature = 0; feature < FEATURES; feature++) {
        size_t refused = feature_refused() & 1u << feature ? t->outdated[feature].total : 0;

        condition_add_outdated(c, feature, &t->outdated[feature], t->selected + refused);
    }
    condition_add_without_addon(f, c, s->share.n_without_addon, s->share.first_without_addon);
    condition_add_unreadable_addons(f, c);
}

/* ---- Scoring: where it scores, and where it does not ---- */

static const char *const class_words[PAIR_CLASS_UNSELECTED] = {
    [PAIR_CLASS_FAILING] = "failing", [PAIR_CLASS_SUSPENDED] = "suspended", [PAIR_CLASS_EMPTY] = "empty",
    [PAIR_CLASS_SILENT] = "silent",   [PAIR_CLASS_WAITING] = "waiting",     [PAIR_CLASS_SCORING] = "scoring"};

/* The state of the scorer on a cluster that does not score, and why. */
static enum pair_state named_state(const struct fleet *f, const struct hub_scorer *s,
                                   const struct hub_cluster *c, char why[PAIR_REASON_BYTES])
{
    struct pair_facts facts;
    enum pair_state state = fleet_pair_state(f, s, c, &facts);

    pair_reason(why, state, &facts);
    return state;
}

/* The clusters of one class, with the first of those that do not score. of: 0: how many are selected was
 * said. */
static void clusters_put_class(const struct fleet *f, const struct hub_scorer *s, enum pair_class class,
                               size_t of, struct buf *into)
{
    const struct named_clusters *named = &counts_of(f->counts, s)->named;
    struct class_facts facts = {
        .word = class_words[class], .n = counts_of(f->counts, s)->of_class[class], .of = of};
    char why[PAIR_REASON_BYTES];

    for (size_t i = 0; i < named->n && !facts.first && class != PAIR_CLASS_SCORING; i++)
        if (pair_info[named_state(f, s, named->list[i], why)].class == class)
            facts.first = named->list[i]->name;
    facts.why = why;
    text_join(into, "; ");
    sentence_put_class(into, &facts);
}

/* What the condition says, by the first class of these that has a cluster. */
static const struct class_verdict {
    enum pair_class class;
    enum truth status;
    enum hub_reason reason;
} class_verdicts[] = {
    {PAIR_CLASS_FAILING, TRUTH_FALSE, REASON_CLUSTERS_FAILING},
    {PAIR_CLASS_SCORING, TRUTH_TRUE, REASON_SCORING},
    {PAIR_CLASS_SUSPENDED, TRUTH_FALSE, REASON_SUSPENDED},
    {PAIR_CLASS_EMPTY, TRUTH_FALSE, REASON_EMPTY},
    {PAIR_CLASS_WAITING, TRUTH_UNKNOWN, REASON_WAITING},
    {PAIR_CLASS_SILENT, TRUTH_UNKNOWN, REASON_SILENT},
};

/* Condition Distributed is about ManifestWorks that are not written or not applied. */
static bool class_counts(const struct tally *t, enum pair_class class)
{
    return t->of_class[class] > (class == PAIR_CLASS_FAILING ? t->not_applied : 0);
}

static const struct class_verdict *scorer_class_verdict(const struct tally *t)
{
    size_t i = 0;

    while (i < ARRAY_SIZE(class_verdicts) - 1 && !class_counts(t, class_verdicts[i].class))
        i++;
    return &class_verdicts[i];
}

static enum hub_reason scorer_scoring_reason(const struct tally *t, const struct class_verdict *verdict)
{
    bool is_pending = !t->named.n || t->named.ranks[0] == RANK_PENDING;

    if (verdict->class == PAIR_CLASS_SILENT && is_pending)
        return REASON_NO_REPORTS;
    if (verdict->class == PAIR_CLASS_EMPTY && t->no_items)
        return REASON_NO_ITEMS;
    return verdict->reason;
}

/* All selected clusters by class, those of the condition first. */
static void scorer_set_scoring(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct tally *t = counts_of(f->counts, s);
    const struct class_verdict *verdict = scorer_class_verdict(t);
    BUF_AUTO(text, SENTENCE_BYTES);

    if (!t->selected) {
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_SELECTED, "selected for no cluster");
        return;
    }
    clusters_put_class(f, s, verdict->class, t->selected, &text);
    for (enum pair_class k = 0; k < PAIR_CLASS_UNSELECTED; k++)
        if (k != verdict->class && t->of_class[k])
            clusters_put_class(f, s, k, 0, &text);
    condition_say(c, verdict->status, scorer_scoring_reason(t, verdict), &text);
}

/* NULL when no cluster is named. */
static json_t *clusters_failing_value(const struct fleet *f, const struct hub_scorer *s)
{
    const struct named_clusters *named = &counts_of(f->counts, s)->named;
    json_t *list = named->n ? json_array() : NULL;

    for (size_t i = 0; i < named->n; i++) {
        char why[PAIR_REASON_BYTES];
        enum pair_state state = named_state(f, s, named->list[i], why);
        json_t *value;

        if (!*why)
            continue;
        value = json_object();
        json_object_set_new(value, "name", json_string(named->list[i]->name));
        json_object_set_new(value, "state", json_string(pair_info[state].word));
        status_set_line(value, "error", why);
        json_array_append_new(list, value);
    }
    return list;
}

/* ---- Healthy ---- */

/* By what agents report. */
static void scorer_set_reported(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct tally *t = counts_of(f->counts, s);
    const struct hub_cluster *on = t->api_unhealthy.first;
    const struct report_cell *cell = on ? fleet_pair_cell(f, s, on) : NULL;
    const char *error = cell ? report_error(&on->report, cell) : "";
    const struct reported_facts facts = {.unhealthy = t->api_unhealthy.total,
                                         .healthy = t->api_healthy,
                                         .selected = t->selected,
                                         .first = on ? on->name : NULL,
                                         .error = *error ? error : NULL};
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_reported(&text, &facts);
    if (facts.unhealthy)
        condition_say(c, TRUTH_FALSE, REASON_UNHEALTHY_ON_CLUSTERS, &text);
    else if (facts.healthy)
        condition_say(c, TRUTH_TRUE, REASON_HEALTHY, &text);
    else
        condition_set(c, TRUTH_UNKNOWN, REASON_NO_REPORTS, "no agent has reported on the scoring API yet");
}

static void scorer_set_inactive(const struct fleet *f, const struct hub_scorer *s, const struct probe_part *p,
                                struct condition *c)
{
    const struct tally *t = counts_of(f->counts, s);
    const struct verdict_facts verdict = {
        .is_kept = f->o->keep_unhealthy, .scored_meanwhile = t->scored_meanwhile, .selected = t->selected};
    BUF_AUTO(text, SENTENCE_BYTES);

    c->since.ms = s->suspended_ms;
    if (p->asked && p->ok) {
        buf_printf(&text, "the scoring API responds again; healthy after %u consecutive successes",
                   f->o->probe.healthy_after);
        sentence_put_verdict(&text, &verdict);
        condition_say(c, TRUTH_FALSE, REASON_RECOVERING, &text);
    } else if (p->asked) {
        buf_puts(&text, p->message);
        sentence_put_verdict(&text, &verdict);
        condition_say_as(c, TRUTH_FALSE, probe_reason_word(p->reason), &text);
    } else if (!condition_resume(c, s->object) || c->status != TRUTH_FALSE) {
        buf_puts(&text, "the scoring API was unhealthy when last probed");
        sentence_put_verdict(&text, &verdict);
        condition_say(c, TRUTH_FALSE, REASON_NOT_PROBED, &text);
    }
}

static void scorer_set_active(const struct fleet *f, const struct probe_part *p, struct condition *c)
{
    if (p->asked && !p->ok)
        condition_format(c, TRUTH_TRUE, REASON_HEALTHY,
                         "the last probe failed; unhealthy after %u consecutive failures: %s",
                         f->o->probe.unhealthy_after, p->message);
    else
        condition_set(c, TRUTH_TRUE, REASON_HEALTHY, "the scoring API responds");
}

static void scorer_set_healthy(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct probe_status *p = probe_status(s->probe);

    if (s->spec.health_check == HEALTH_CHECK_AGENTS)
        scorer_set_reported(f, s, c);
    else if (s->spec.health_check == HEALTH_CHECK_NONE)
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_CHECKED, "spec.healthCheck is None");
    else if (p->health == HEALTH_INACTIVE)
        scorer_set_inactive(f, s, &p->probe, c);
    else if (p->health == HEALTH_ACTIVE)
        scorer_set_active(f, &p->probe, c);
    else if (p->probe.asked)
        condition_set_as(c, TRUTH_UNKNOWN, probe_reason_word(p->probe.reason), p->probe.message);
    else
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_PROBED, "the scoring API has not been probed yet");
}

/* ---- ConfigSynced, Valid, UniqueScoreName ---- */

static void scorer_set_asked(const struct hub_scorer *s, const struct probe_status *p, struct condition *c)
{
    BUF_AUTO(overrides, CONDITION_MESSAGE_BYTES);
    struct synced_facts facts = {.error = p->config.ok ? NULL : p->config.message,
                                 .has_last = p->synced.owner,
                                 .uses_spec = s->effective.reason == EFFECTIVE_OK};
    BUF_AUTO(text, SENTENCE_BYTES);

    /* Users edit overridden fields and wonder why nothing happens. */
    if (s->has_spec && p->config.ok && p->synced.owner)
        effective_overrides(&s->spec, &p->synced, &overrides);
    facts.overrides = buf_str(&overrides);
    sentence_synced(&text, &facts);
    if (p->config.ok)
        condition_say(c, TRUTH_TRUE, REASON_SYNCED, &text);
    else
        condition_say_as(c, TRUTH_FALSE, probe_reason_word(p->config.reason), &text);
}

static void scorer_set_synced(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct probe_status *p = probe_status(s->probe);

    (void)f;
    if (s->has_spec && s->spec.mode == SYNC_NONE)
        condition_set(c, TRUTH_TRUE, REASON_NOT_NEEDED, "configSyncMode is None");
    else if (p->config.asked)
        scorer_set_asked(s, p, c);
    else if (!condition_resume(c, s->object) || (c->status == TRUTH_TRUE && !p->synced.owner))
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_ASKED,
                      "the configuration has not been read from the scoring API yet");
}

static void scorer_set_summary(const struct effective *e, struct condition *c)
{
    static const struct {
        enum hub_reason reason;
        enum truth status;
    } reasons[] = {
        [EFFECTIVE_OK] = {REASON_VALID, TRUTH_TRUE},
        [EFFECTIVE_INCOMPLETE] = {REASON_INCOMPLETE, TRUTH_FALSE},
        [EFFECTIVE_TOKEN_HOST] = {REASON_TOKEN_HOST_NOT_ALLOWED, TRUTH_FALSE},
        [EFFECTIVE_WAITING] = {REASON_WAITING, TRUTH_UNKNOWN},
    };
    bool is_unknown = e->reason == EFFECTIVE_OK && e->unknown_placeholder;
    const struct summary_facts facts = {.reason = e->reason,
                                        .error = e->error,
                                        .warning = e->warning,
                                        .is_harmless = is_unknown,
                                        .is_kept = e->kept};
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_summary(&text, &facts);
    condition_say(c, reasons[e->reason].status,
                  is_unknown ? REASON_UNKNOWN_PLACEHOLDER : reasons[e->reason].reason, &text);
}

static void scorer_set_valid(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct spec_facts facts = {.error = s->spec_error,
                                     .has_last_spec = s->has_spec,
                                     .has_last_summary = effective_usable(&s->effective)};
    BUF_AUTO(text, SENTENCE_BYTES);

    (void)f;
    if (s->has_spec && !*s->spec_error) {
        scorer_set_summary(&s->effective, c);
        return;
    }
    sentence_spec(&text, &facts);
    condition_say(c, TRUTH_FALSE, REASON_INVALID_SPEC, &text);
}

bool scorer_shares_object(const struct hub_scorer *s)
{
    const struct hub_scorer *younger = s->share.younger;

    return s->share.older ? s->share.same_object : younger && younger->share.same_object;
}

static void scorer_set_unique(const struct fleet *f, const struct hub_scorer *s, struct condition *c)
{
    const struct hub_scorer *other = s->share.older ?: s->share.younger;
    struct duplicate_facts facts = {.score_name = cstr(s->effective.score_name),
                                    .object = s->share.object_name,
                                    .is_other_older = s->share.older};
    BUF_AUTO(text, SENTENCE_BYTES);

    (void)f;
    if (other) {
        facts.other = other->name;
        facts.other_score_name = scorer_shares_object(s) ? cstr(other->effective.score_name) : NULL;
        sentence_duplicate(&text, &facts);
        condition_say(c, TRUTH_FALSE, REASON_DUPLICATE_SCORE_NAME, &text);
    } else if (!s->effective.score_name) {
        condition_set(c, TRUTH_UNKNOWN, REASON_NO_SCORE_NAME, "the score name is not known yet");
    } else {
        condition_format(c, TRUTH_TRUE, REASON_UNIQUE, "no other DynamicScorer uses score name %s",
                         s->effective.score_name);
    }
}

/* ---- Ready ---- */

/* What keeps the scorer from working on any cluster, False before Unknown; NULL when nothing does. */
static const struct condition *scorer_blocking_condition(const struct hub_scorer *s, const struct tally *t,
                                                         const struct condition list[])
{
    bool scores = t->of_class[PAIR_CLASS_SCORING] > 0;
    bool is_probed = s->spec.health_check == HEALTH_CHECK_HUB; /* otherwise Scoring says more than Healthy */

    if (list[SCORER_VALID].status == TRUTH_FALSE)
        return &list[SCORER_VALID];
    if (is_probed && list[SCORER_HEALTHY].status == TRUTH_FALSE)
        return &list[SCORER_HEALTHY];
    if (list[SCORER_VALID].status == TRUTH_UNKNOWN)
        return list[SCORER_SYNCED].status == TRUTH_FALSE ? &list[SCORER_SYNCED] : &list[SCORER_VALID];
    if (is_probed && list[SCORER_HEALTHY].status == TRUTH_UNKNOWN)
        return &list[SCORER_HEALTHY];
    if (t->up_to_date <= t->stuck && (t->stuck || !scores)) /* a change on its way stops no scoring */
        return &list[SCORER_DISTRIBUTED];
    return scores ? NULL : &list[SCORER_SCORING];
}

/* A scorer without any score may still be starting; after a while it counts as not ready. */
static void scorer_set_unscored(const struct fleet *f, const struct hub_scorer *s,
                                const struct condition *scoring, struct condition *ready)
{
    const struct tally *t = counts_of(f->counts, s);
    bool is_pending = scoring->status == TRUTH_UNKNOWN && t->unavailable < t->selected;

    if (!is_pending || !t->selected)
        condition_copy(ready, scoring);
    else if (f->wall.ms < scorer_patience_ms(s))
        condition_set(ready, TRUTH_UNKNOWN, REASON_WAITING, scoring->message);
    else if (!t->reporting)
        condition_set(ready, TRUTH_UNKNOWN, REASON_NO_REPORTS, scoring->message);
    else
        condition_set_as(ready, TRUTH_FALSE, scoring->reason, scoring->message);
}

static void scorer_set_ready(const struct fleet *f, const struct hub_scorer *s, struct condition list[])
{
    const struct tally *t = counts_of(f->counts, s);
    const struct condition *cause = scorer_blocking_condition(s, t, list);
    const struct condition *synced = &list[SCORER_SYNCED], *distributed = &list[SCORER_DISTRIBUTED];
    bool is_partly = (t->no_room || tally_refusing(t)) && distributed->status == TRUTH_FALSE;
    const struct ready_facts facts = {.unsynced = synced->status == TRUTH_FALSE ? synced->message : NULL,
                                      .partly_distributed = is_partly ? distributed->message : NULL,
                                      .scoring = list[SCORER_SCORING].message};
    BUF_AUTO(text, SENTENCE_BYTES);

    if (cause == &list[SCORER_SCORING]) {
        scorer_set_unscored(f, s, cause, &list[SCORER_READY]);
    } else if (cause) {
        condition_copy(&list[SCORER_READY], cause);
    } else {
        sentence_ready(&text, &facts);
        condition_say(&list[SCORER_READY], TRUTH_TRUE, REASON_READY, &text);
    }
}

/* ---- The status ---- */

static void scorer_set_conditions(const struct fleet *f, const struct hub_scorer *s,
                                  struct condition list[SCORER_CONDITIONS])
{
    static const struct {
        const char *type;
        void (*set)(const struct fleet *f, const struct hub_scorer *s, struct condition *c);
    } aspects[SCORER_ASPECTS] = {
        [SCORER_HEALTHY] = {"Healthy", scorer_set_healthy},
        [SCORER_SYNCED] = {"ConfigSynced", scorer_set_synced},
        [SCORER_VALID] = {"Valid", scorer_set_valid},
        [SCORER_UNIQUE] = {"UniqueScoreName", scorer_set_unique},
        [SCORER_DISTRIBUTED] = {"Distributed", scorer_set_distributed},
        [SCORER_SCORING] = {"Scoring", scorer_set_scoring},
    };

    for (size_t i = 0; i < SCORER_ASPECTS; i++) {
        list[i] = (struct condition){.type = aspects[i].type};
        aspects[i].set(f, s, &list[i]);
    }
    list[SCORER_READY] = (struct condition){.type = "Ready"};
    scorer_set_ready(f, s, list);
    list[SCORER_CONTESTED] = (struct condition){.type = HUB_CONTESTED};
}

bool scorer_is_ready(const struct fleet *f, const struct hub_scorer *s)
{
    struct condition list[SCORER_CONDITIONS];

    scorer_set_conditions(f, s, list);
    return list[SCORER_READY].status == TRUTH_TRUE;
}

static json_t *scorer_clusters_value(const struct tally *t)
{
    json_t *value = json_object();

    for (size_t i = 0; i < TALLY_FIELDS; i++)
        status_set_count(value, tally_fields[i].key, tally_count(t, i));
    return value;
}

/* The summary that agents should have, and where it comes from. */
static void scorer_put_summary(json_t *status, const struct hub_scorer *s)
{
    static const char *const sources[] = {[CONFIG_FROM_SPEC] = "Spec", [CONFIG_FROM_API] = "API"};
    const struct effective *e = &s->effective;

    if (e->score_name)
        json_object_set_new(status, "scoreName", json_string(e->score_name));
    if (s->has_spec || effective_usable(e))
        json_object_set_new(status, "configSource", json_string(sources[e->source]));
    if (!effective_usable(e))
        return;
    json_object_set_new(status, "summary", json_stringn(e->text.p, e->text.n));
    json_object_set_new(status, "interval",
                        json_sprintf("%" JSON_INTEGER_FORMAT "s", (json_int_t)e->interval_ms / 1000));
}

json_t *status_of_scorer(const struct fleet *f, const struct hub_scorer *s, const struct contest *contest)
{
    static const char *const ours[] = {"lastSyncedConfig", "scoreName",       "addOnPlacementScore",
                                       "configSource",     "summary",         "interval",
                                       "clusters",         "failingClusters", NULL};
    const struct api_config *synced = &probe_status(s->probe)->synced;
    struct condition list[SCORER_CONDITIONS];
    json_t *status = json_object();
    size_t n = SCORER_CONTESTED;

    scorer_set_conditions(f, s, list);
    if (condition_set_contested(&list[SCORER_CONTESTED], contest))
        n = SCORER_CONDITIONS;
    json_object_set_new(status, "healthStatus", json_string(probe_health_word(scorer_health(f, s))));
    json_object_set_new(status, "observedGeneration", json_integer(object_generation(s->object)));
    status_set_optional(status, "lastSyncedConfig", synced->owner ? api_config_value(synced) : NULL);
    scorer_put_summary(status, s);
    json_object_set_new(status, "clusters", scorer_clusters_value(counts_of(f->counts, s)));
    status_set_optional(status, "failingClusters", clusters_failing_value(f, s));
    json_object_set_new(status, "conditions",
                        conditions_value(list, n, s->object, s->last_status.sent, f->wall));
    /* Its scores are in an AddOnPlacementScore that is its own. */
    if (*s->share.object_name && !s->share.older)
        json_object_set_new(status, "addOnPlacementScore", json_string(s->share.object_name));
    return status_patch(status, s->object, ours);
}
