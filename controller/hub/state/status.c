/* Statuses of DynamicScorers and DynamicScoringConfigs, computed from the state. Pure. */
#include "controller/hub/state/sentences.h"
#include "controller/hub/state/state.h"

#include "controller/kube/fight.h"
#include "exporter/base/alloc.h"
#include "exporter/base/text.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Parts of the statuses of both kinds: conditions, and members of a merge patch ---- */

enum truth { TRUTH_UNKNOWN, TRUTH_TRUE, TRUTH_FALSE };

/* A metav1.Condition without its times. A message contains nothing that changes all the time, such as
 * latencies: each change is a write. */
struct condition {
    const char *type;
    enum truth status;
    char reason[64], message[1024];
    unix_ms since; /* of its status, if that begins with this status; 0: now */
};

static const char *const truth_words[] = {
    [TRUTH_UNKNOWN] = "Unknown", [TRUTH_TRUE] = "True", [TRUTH_FALSE] = "False"};

/* Room for all parts of a sentence; the message of a condition cuts it. */
enum { SENTENCE_BYTES = 4096 };

/* For "%.*s". */
#define SENTENCE(text) (int)(text).n, cstr((text).p)

/* Makes the message one line of well-formed UTF-8. */
static void condition_put(struct condition *c, enum truth status, const char *reason, const char *fmt,
                          va_list ap)
{
    CLEANUP(cleanup_free) char *text = xvasprintf(fmt, ap);

    c->status = status;
    /* The API server rejects a status with an empty reason. */
    text_line(c->reason, sizeof(c->reason), str_of(*reason ? reason : "Failing"));
    text_line(c->message, sizeof(c->message), str_of(text));
}

static void PRINTF_LIKE(4, 5)
    condition_set(struct condition *c, enum truth status, enum hub_reason reason, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    condition_put(c, status, hub_reason_word(reason), fmt, ap);
    va_end(ap);
}

/* With the reason of another condition, of a probe, or of an earlier status. */
static void PRINTF_LIKE(4, 5)
    condition_set_as(struct condition *c, enum truth status, const char *reason, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    condition_put(c, status, reason, fmt, ap);
    va_end(ap);
}

/* Takes the condition from the object's status; false when that is of another generation. */
static bool condition_resume(struct condition *c, const json_t *object)
{
    const json_t *value = kube_condition(kube_get(object, "status", NULL), c->type);
    const char *reason = kube_str(value, "reason", NULL), *message = kube_str(value, "message", NULL);
    int64_t generation;

    if (!reason || !message || !kube_int(value, &generation, "observedGeneration", NULL) ||
        generation != object_generation(object))
        return false;
    for (enum truth t = 0; t < ARRAY_SIZE(truth_words); t++)
        if (kube_condition_is(value, truth_words[t])) {
            condition_set_as(c, t, reason, "%s", message);
            return true;
        }
    return false;
}

/* The list as JSON. lastTransitionTime comes from the object's status while the condition's status stays
 * the same, or from the last status sent where a CRD has pruned it. */
static json_t *conditions_value(const struct condition *list, size_t n, const json_t *object,
                                const struct last_status *written, const struct hub *h)
{
    unix_ms now = kube_wall(h->o.kube);
    const json_t *status = kube_get(object, "status", NULL);
    json_t *values = json_array();

    for (size_t i = 0; i < n; i++) {
        const struct kube_condition c = {.type = list[i].type,
                                         .status = truth_words[list[i].status],
                                         .reason = list[i].reason,
                                         .message = list[i].message,
                                         .generation = object_generation(object)};
        const char *since = kube_condition_since(status, &c) ?: kube_condition_since(written->sent, &c);

        json_array_append_new(values,
                              kube_condition_value(&c, since, list[i].since.ms ? list[i].since : now));
    }
    return values;
}

enum { STATUS_LINE_BYTES = 1023 };

static void status_null_removed(json_t *value, json_t *before)
{
    const char *name;
    json_t *was;

    json_object_foreach(before, name, was)
    {
        json_t *is = json_object_get(value, name);

        if (is)
            status_null_removed(is, was);
        else if (json_is_object(value) && !json_is_null(was))
            json_object_set_new(value, name, json_null());
    }
}

/* Makes the status a merge patch: what the object's has and it lacks becomes null, at any depth. ours: the
 * members that may be absent or objects, NULL-terminated; those of others stay. */
static json_t *status_patch(json_t *status, const json_t *object, const char *const *ours)
{
    for (; *ours; ours++) {
        json_t *is = json_object_get(status, *ours), *was = kube_get(object, "status", *ours, NULL);

        if (is)
            status_null_removed(is, was);
        else if (was)
            json_object_set_new(status, *ours, json_null());
    }
    return status;
}

/* "" for one and "s" for any other number. */
static const char *plural_s(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Adds how many clusters are left out because they lack the agent's add-on, and the name of the first. */
static void condition_add_without_addon(const struct hub *h, struct condition *c, size_t n, const char *first)
{
    const struct without_addon_facts facts = {.n = n, .addon = h->o.addon_name, .first = first};
    const struct condition was = *c;
    BUF_AUTO(text, SENTENCE_BYTES);

    if (!n)
        return;
    sentence_put_without_addon(&text, &facts);
    condition_set_as(c, was.status,
                     was.status == TRUTH_TRUE ? hub_reason_word(REASON_ADD_ON_MISSING) : was.reason, "%s%.*s",
                     was.message, SENTENCE(text));
}

static void condition_distributed(struct condition *c, size_t n)
{
    condition_set(c, TRUTH_TRUE, REASON_DISTRIBUTED, "distributed to %s%zu cluster%s", n == 1 ? "" : "all ",
                  n, plural_s(n));
}

/* "<what> 2 of 300 clusters: c1: no such namespace". */
static void condition_clusters(struct condition *c, enum hub_reason reason, const char *what, size_t n,
                               size_t of, const struct hub_cluster *first, const char *why)
{
    const struct clusters_facts facts = {
        .what = what, .n = n, .of = of, .first = first ? first->name : NULL, .why = why};
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_clusters(&text, &facts);
    condition_set(c, TRUTH_FALSE, reason, "%.*s", SENTENCE(text));
}

/* Why the cluster has not applied its up-to-date ManifestWork. */
static const char *cluster_unconfirmed_reason(const struct hub_cluster *c)
{
    return c->unavailable ? "the cluster is not available" : "the work agent has not applied it yet";
}

/* The work agents of n clusters have yet to apply the newest ManifestWork. */
static void condition_unconfirmed(struct condition *c, size_t n, size_t of, const struct hub_cluster *first)
{
    condition_clusters(c, REASON_PROGRESSING, "ManifestWork not yet applied on", n, of, first,
                       first ? cluster_unconfirmed_reason(first) : "");
}

/* ---- Contested: another writer keeps changing the object. Not among the conditions otherwise ---- */

char *status_fight_text(const struct last_status *l, const struct kube_object *fought, const char *kind,
                        const char *name)
{
    const char *part = fought == &l->finalizer ? "finalizers" : "status";
    CLEANUP(cleanup_free) char *object = xasprintf("the %s of %s %s", part, kind, name);

    return kube_fight_text(&fought->fight, object);
}

/* The part of the object that others fight over; NULL: none. */
static const struct kube_object *status_fought(const struct last_status *l)
{
    if (l->status.fight.is_on)
        return &l->status;
    return l->finalizer.fight.is_on ? &l->finalizer : NULL;
}

static void condition_set_contested(struct condition *c, const struct last_status *l, const char *kind,
                                    const char *name, size_t others)
{
    CLEANUP(cleanup_free) char *text = status_fight_text(l, status_fought(l), kind, name);

    if (others)
        condition_set(c, TRUTH_TRUE, REASON_WRITE_CONFLICT, "%s; likewise for %zu other object%s", text,
                      others, plural_s(others));
    else
        condition_set(c, TRUTH_TRUE, REASON_WRITE_CONFLICT, "%s", text);
}

/* ---- DynamicScoringConfigs: the state of the whole fleet ---- */

enum { CONFIG_VALID, CONFIG_DISTRIBUTED, CONFIG_READY, CONFIG_CONTESTED, CONFIG_CONDITIONS };
enum { NAMED_SCORERS = 5, NAMED_MASKS = 3, NAMES_BYTES = 2048 };
enum { CONFIG_DISTRIBUTED_BYTES = 400 }; /* in the message of Ready */

/* Whether masks match nothing, which the message says. */
static bool config_set_valid(const struct hub *h, const struct hub_config *c, struct condition *valid)
{
    BUF_AUTO(text, (NAMED_MASKS + 1) * MASK_WARNING_BYTES);
    char warning[MASK_WARNING_BYTES];
    size_t unmatched = 0;

    for (size_t i = 0; !*c->masks_error && hub_masks_counted(h) && i < h->plan->masks.n; i++) {
        const struct plan_mask *m = &h->plan->of_masks[i];

        if ((m->clusters && m->scores) || unmatched++ >= NAMED_MASKS)
            continue;
        hub_mask_warning(warning, h, i);
        text_join(&text, "; ");
        buf_puts(&text, warning);
    }
    if (unmatched > NAMED_MASKS)
        buf_printf(&text, "; and %zu more", unmatched - NAMED_MASKS);
    if (*c->masks_error)
        condition_set(valid, TRUTH_FALSE, REASON_INVALID_MASKS, "%s; %s", c->masks_error,
                      c->masks.owner ? "the last valid masks stay active"
                                     : "clusters keep their scorers until the masks are valid");
    else if (unmatched)
        /* "1 of 2 masks matches nothing: no cluster matches clusterName "c"" */
        condition_set(valid, TRUTH_TRUE, REASON_MASKS_MATCH_NOTHING,
                      "%zu of %zu mask%s match%s nothing: %.*s", unmatched, h->plan->masks.n,
                      plural_s(h->plan->masks.n), unmatched == 1 ? "es" : "", STR_ARG(buf_str(&text)));
    else
        condition_set(valid, TRUTH_TRUE, REASON_VALID, "%zu mask%s", c->masks.n, plural_s(c->masks.n));
    return unmatched > 0;
}

static void config_set_deleting(const struct hub *h, struct condition *c)
{
    const struct hub_totals *t = &h->totals;
    const struct hub_cluster *failed =
        t->named.n && hub_cluster_write_error(t->named.list[0]) ? t->named.list[0] : NULL;
    const struct hub_cluster *first = t->works.first;
    const struct deleting_facts facts = {.n = t->works.total,
                                         .first = first ? first->name : NULL,
                                         .failing = failed ? failed->name : NULL,
                                         .error = failed ? hub_cluster_write_error(failed) : NULL};
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_deleting(&text, &facts);
    condition_set(c, TRUTH_FALSE, REASON_DELETING, "%.*s", SENTENCE(text));
}

/* "no room for ...: a, b, c, d, e and 3 more": the scorers without room. */
static void config_set_no_room(const struct hub *h, struct condition *c)
{
    BUF_AUTO(names, NAMES_BYTES);
    size_t n = 0;

    for (size_t i = 0; i < h->n_scorers; i++)
        if (h->by_age[i]->tally.no_room && n++ < NAMED_SCORERS) {
            text_join(&names, ", ");
            buf_puts(&names, h->by_age[i]->name);
        }
    if (n > NAMED_SCORERS)
        buf_printf(&names, " and %zu more", n - NAMED_SCORERS);
    condition_set(c, TRUTH_FALSE, REASON_NO_ROOM,
                  "no room for %zu DynamicScorer%s in the ManifestWorks of some clusters, which hold at most "
                  "%d KiB: %.*s",
                  h->totals.left_out, plural_s(h->totals.left_out), WORK_MAX_BYTES / 1024, (int)names.n,
                  cstr(names.p));
}

static const char *config_cluster_error(const struct hub_cluster *c)
{
    return hub_cluster_write_error(c) ?: c->unapplied ?: cluster_unconfirmed_reason(c);
}

/* Write errors go before apply errors. */
static void config_set_error(const struct hub_totals *t, struct condition *c)
{
    const struct hub_cluster *first = NULL;

    for (size_t i = 0; i < t->named.n && !first; i++)
        if (!t->failing || hub_cluster_write_error(t->named.list[i]))
            first = t->named.list[i];
    condition_clusters(c, first && first->contested ? REASON_WRITE_CONFLICT : REASON_CLUSTERS_FAILING,
                       t->failing ? "ManifestWork not written on" : "ManifestWork not applied on",
                       t->failing ? t->failing : t->unapplied, t->managed, first,
                       first ? config_cluster_error(first) : "");
}

static void config_set_distributed(const struct hub *h, struct condition *c)
{
    const struct hub_totals *t = &h->totals;

    if (!hub_is_distributing(h))
        config_set_deleting(h, c);
    else if (!h->config.masks.owner)
        condition_set(c, TRUTH_FALSE, REASON_INVALID_MASKS,
                      "clusters keep their scorers until the masks are valid");
    else if (!t->managed && t->without_addon.total)
        condition_set(c, TRUTH_FALSE, REASON_ADD_ON_MISSING, "no accepted ManagedCluster has the add-on %s",
                      h->o.addon_name);
    else if (!t->managed)
        condition_set(c, TRUTH_FALSE, REASON_NO_CLUSTERS, "no ManagedCluster is accepted");
    else if (t->failing || t->unapplied)
        config_set_error(t, c);
    else if (t->left_out)
        config_set_no_room(h, c);
    else if (t->behind)
        condition_set(c, TRUTH_FALSE, REASON_PROGRESSING, "up to date on %zu of %zu clusters", t->up_to_date,
                      t->managed);
    else if (t->applied < t->managed)
        condition_unconfirmed(c, t->managed - t->applied, t->managed, t->named.list[0]);
    else
        condition_distributed(c, t->managed);
}

/* Of its own status and finalizers, and of the statuses of scorers, where another writer may undo the
 * condition, too. False: of none. */
static bool config_set_contested(const struct hub *h, const struct hub_config *c, struct condition *contested)
{
    const struct last_status *first = status_fought(&c->last_status) ? &c->last_status : NULL;
    const char *kind = kube_dynamicscoringconfigs.kind, *name = kube_name(c->object);
    size_t n = first ? 1 : 0;

    for (size_t i = 0; c == &h->config && i < h->n_scorers; i++) {
        if (!status_fought(&h->by_age[i]->last_status))
            continue;
        n++;
        if (first)
            continue;
        first = &h->by_age[i]->last_status;
        kind = kube_dynamicscorers.kind;
        name = h->by_age[i]->name;
    }
    if (n)
        condition_set_contested(contested, first, kind, name, n - 1);
    return n > 0;
}

/* Ready when it works on some cluster; Distributed names the others. unmatched: of config_set_valid(). */
static void config_set_ready(const struct hub *h, bool unmatched, struct condition list[CONFIG_CONDITIONS])
{
    const struct condition *cause = NULL;

    if (list[CONFIG_VALID].status != TRUTH_TRUE)
        cause = &list[CONFIG_VALID];
    else if (!hub_is_distributing(h) || !h->config.masks.owner || h->totals.up_to_date <= h->totals.unapplied)
        cause = &list[CONFIG_DISTRIBUTED];
    if (cause)
        condition_set_as(&list[CONFIG_READY], cause->status, cause->reason, "%s", cause->message);
    else
        condition_set(&list[CONFIG_READY], TRUTH_TRUE, REASON_READY, "%.*s%s%s",
                      unmatched ? CONFIG_DISTRIBUTED_BYTES : -1, list[CONFIG_DISTRIBUTED].message,
                      unmatched ? "; " : "", unmatched ? list[CONFIG_VALID].message : "");
}

enum { LISTED_MASKS = 20 };

static json_t *config_mask_value(const struct hub *h, size_t i)
{
    const struct mask *m = &h->plan->masks.list[i];
    const struct plan_mask *counts = &h->plan->of_masks[i];
    char warning[MASK_WARNING_BYTES];

    hub_mask_warning(warning, h, i);
    return json_pack("{s:o, s:o, s:I, s:I, s:o*}", "clusterName", kube_line(m->cluster, STATUS_LINE_BYTES),
                     "scoreName", kube_line(m->score, STATUS_LINE_BYTES), "clusters",
                     (json_int_t)counts->clusters, "scores", (json_int_t)counts->scores, "warning",
                     *warning ? kube_line(warning, STATUS_LINE_BYTES) : NULL);
}

/* The first masks, those that match nothing before the others. NULL without any. */
static json_t *config_masks_value(const struct hub *h)
{
    json_t *list;

    if (!hub_masks_counted(h) || !h->plan->masks.n)
        return NULL;
    list = json_array();
    for (int matching = 0; matching < 2; matching++)
        for (size_t i = 0; i < h->plan->masks.n && json_array_size(list) < LISTED_MASKS; i++)
            if ((h->plan->of_masks[i].clusters && h->plan->of_masks[i].scores) == matching)
                json_array_append_new(list, config_mask_value(h, i));
    return list;
}

static json_t *config_value(const struct hub *h, json_int_t generation, json_t *conditions)
{
    const struct hub_totals *t = &h->totals;
    json_t *failing = t->named.n ? json_array() : NULL;
    json_int_t distributed = 0;

    for (size_t i = 0; i < t->named.n; i++)
        json_array_append_new(
            failing, json_pack("{s:s, s:o}", "name", t->named.list[i]->name, "error",
                               kube_line(config_cluster_error(t->named.list[i]), STATUS_LINE_BYTES)));
    for (size_t i = 0; h->plan && i < h->plan->n; i++)
        distributed += !h->plan->entries[i].suspended;
    return json_pack("{s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I}, s:I, s:o*, s:o*, s:o}",
                     "observedGeneration", generation, "clusters", "managed", (json_int_t)t->managed,
                     "upToDate", (json_int_t)t->up_to_date, "applied", (json_int_t)t->applied, "behind",
                     (json_int_t)t->behind, "failing", (json_int_t)t->failing, "reporting",
                     (json_int_t)t->reporting, "scorers", "total", (json_int_t)h->n_scorers, "distributed",
                     distributed, "leftOut", (json_int_t)h->n_scorers - distributed, "noRoom",
                     (json_int_t)t->left_out, "summariesBytes", (json_int_t)t->largest, "masks",
                     config_masks_value(h), "failingClusters", failing, "conditions", conditions);
}

json_t *status_of_config(const struct hub *h, const struct hub_config *c)
{
    static const char *const ours[] = {"clusters", "scorers", "masks", "failingClusters", NULL};
    struct condition list[CONFIG_CONDITIONS] = {[CONFIG_VALID] = {.type = "Valid"},
                                                [CONFIG_DISTRIBUTED] = {.type = "Distributed"},
                                                [CONFIG_READY] = {.type = "Ready"},
                                                [CONFIG_CONTESTED] = {.type = HUB_CONTESTED}};
    struct condition *ready = &list[CONFIG_READY];
    const json_int_t generation = object_generation(c->object);
    const size_t n =
        config_set_contested(h, c, &list[CONFIG_CONTESTED]) ? CONFIG_CONDITIONS : CONFIG_CONDITIONS - 1;
    bool unmatched;

    if (c != &h->config) {
        condition_set(ready, TRUTH_FALSE, REASON_NOT_USED,
                      "not used: the controller uses only the DynamicScoringConfig named %s", HUB_CONFIG);
        return json_pack("{s:I, s:o}", "observedGeneration", generation, "conditions",
                         conditions_value(ready, n - CONFIG_READY, c->object, &c->last_status, h));
    }
    unmatched = config_set_valid(h, c, &list[CONFIG_VALID]);
    config_set_distributed(h, &list[CONFIG_DISTRIBUTED]);
    if (hub_is_distributing(h) && h->totals.managed && h->totals.without_addon.first)
        condition_add_without_addon(h, &list[CONFIG_DISTRIBUTED], h->totals.without_addon.total,
                                    h->totals.without_addon.first->name);
    config_set_ready(h, unmatched, list);
    return status_patch(config_value(h, generation, conditions_value(list, n, c->object, &c->last_status, h)),
                        c->object, ours);
}

/* ---- DynamicScorers: where one is distributed, and what agents report ---- */

enum { NAMED_REASON_BYTES = 250 }; /* in a condition's message, which names several */

static void clusters_set_distributed(const struct hub_scorer *s, struct condition *c)
{
    const struct tally *t = &s->tally;
    const struct hub_cluster *unwritten = t->write_errors.first, *unapplied = t->apply_errors.first;
    char why[256];
    enum hub_reason reason;
    const char *placement = hub_scorer_bad_placement(s, &reason, why);

    /* The first error that keeps a ManifestWork from being up to date and applied. */
    if (t->applied < t->selected && unwritten)
        condition_clusters(c, unwritten->contested ? REASON_WRITE_CONFLICT : REASON_CLUSTERS_FAILING,
                           "ManifestWork not written on", t->write_errors.total, t->selected, unwritten,
                           hub_cluster_write_error(unwritten));
    else if (t->applied < t->selected && unapplied)
        condition_clusters(c, REASON_CLUSTERS_FAILING, "ManifestWork not applied on", t->apply_errors.total,
                           t->selected, unapplied, unapplied->unapplied);
    else if (placement)
        condition_set(c, TRUTH_FALSE, reason, "Placement %s %s; selected for %zu cluster%s", placement, why,
                      t->selected, plural_s(t->selected));
    else if (t->no_room)
        condition_set(c, TRUTH_FALSE, REASON_NO_ROOM,
                      "no room in the ManifestWorks of %zu cluster%s, which hold at most %d KiB", t->no_room,
                      plural_s(t->no_room), WORK_MAX_BYTES / 1024);
    else if (!t->selected && s->n_without_addon)
        condition_set(c, TRUTH_FALSE, REASON_ADD_ON_MISSING, "selected for no cluster");
    else if (!t->selected)
        condition_set(c, TRUTH_FALSE, REASON_MASKED, "masked on all clusters");
    else if (t->up_to_date < t->selected)
        condition_set(c, TRUTH_FALSE, REASON_PROGRESSING, "up to date on %zu of %zu clusters", t->up_to_date,
                      t->selected);
    else if (s->place == PLACE_SUSPENDED)
        condition_set(
            c, TRUTH_FALSE, REASON_SUSPENDED,
            "suspended on %zu cluster%s, as the scoring API is unhealthy: agents do not call it, and "
            "its scores stay until they expire",
            t->selected, plural_s(t->selected));
    else if (t->unconfirmed.total)
        condition_unconfirmed(c, t->unconfirmed.total, t->selected, t->unconfirmed.first);
    else
        condition_distributed(c, t->selected);
}

/* Agents that do not report may be as old. */
static void clusters_add_one_item(const struct tally *t, struct condition *c)
{
    const struct named_clusters *named = &t->one_item;
    const struct condition was = *c;
    BUF_AUTO(names, NAMES_BYTES);

    if (!named->n)
        return;
    for (size_t i = 0; i < named->n; i++) {
        text_join(&names, ", ");
        buf_puts(&names, named->list[i]->name);
    }
    if (named->total > named->n)
        buf_printf(&names, " and %zu more", named->total - named->n);
    condition_set_as(c, was.status,
                     was.status == TRUTH_TRUE ? hub_reason_word(REASON_ITEMS_IGNORED) : was.reason,
                     "%s; agents on %zu of %zu cluster%s are too old for scoreItems and use the first only: "
                     "%.*s",
                     was.message, named->total, t->selected, plural_s(t->selected), STR_ARG(buf_str(&names)));
}

static void scorer_set_distributed(const struct hub_scorer *s, struct condition *c)
{
    const struct hub *h = s->hub;

    if (!h->config.object)
        condition_set(c, TRUTH_FALSE, REASON_NO_CONFIG, "no DynamicScoringConfig named %s in namespace %s",
                      HUB_CONFIG, h->o.namespace);
    else if (!hub_is_distributing(h))
        condition_set(c, TRUTH_FALSE, REASON_CONFIG_DELETING, "DynamicScoringConfig %s is being deleted",
                      HUB_CONFIG);
    else if (!h->config.masks.owner)
        condition_set(c, TRUTH_FALSE, REASON_INVALID_MASKS, "DynamicScoringConfig %s: %s", HUB_CONFIG,
                      h->config.masks_error);
    else if (!effective_usable(&s->effective))
        condition_set(c, TRUTH_FALSE, REASON_NOT_SELECTED, "not distributed: there is no valid summary");
    else if (s->older)
        condition_set(
            c, TRUTH_FALSE, REASON_NOT_SELECTED,
            "not distributed: an older DynamicScorer uses the same score name or AddOnPlacementScore");
    else if (hub_scorer_place(s) == PLACE_NONE)
        condition_set(c, TRUTH_FALSE, REASON_NOT_SELECTED, "not distributed: it is not known yet whether %s",
                      hub_scorer_awaits_config(s) ? "/config can be read" : "the scoring API is healthy");
    else if (!h->totals.managed && h->totals.without_addon.total)
        condition_set(c, TRUTH_FALSE, REASON_ADD_ON_MISSING, "no accepted ManagedCluster has the add-on %s",
                      h->o.addon_name);
    else if (!h->totals.managed)
        condition_set(c, TRUTH_FALSE, REASON_NO_CLUSTERS, "no ManagedCluster is accepted");
    else if (s->entry == SIZE_MAX)
        condition_set(c, TRUTH_FALSE, REASON_PROGRESSING, "the summaries are being computed");
    else {
        clusters_set_distributed(s, c);
        clusters_add_one_item(&s->tally, c);
        condition_add_without_addon(h, c, s->n_without_addon, s->first_without_addon);
    }
}

/* ---- Where it scores, and where it does not ---- */

static const char *const class_words[PAIR_CLASS_UNSELECTED] = {
    [PAIR_CLASS_FAILING] = "failing", [PAIR_CLASS_SUSPENDED] = "suspended", [PAIR_CLASS_EMPTY] = "empty",
    [PAIR_CLASS_SILENT] = "silent",   [PAIR_CLASS_WAITING] = "waiting",     [PAIR_CLASS_SCORING] = "scoring"};

/* The state of the scorer on a cluster that does not score, and why. */
static enum pair_state named_state(const struct hub_scorer *s, size_t i, char why[PAIR_REASON_BYTES])
{
    struct pair_facts facts;
    enum pair_state state = hub_pair_state(s, s->tally.named.list[i], &facts);

    pair_reason(why, state, &facts);
    return state;
}

/* "<word> on 2", and unless it scores there: ": c1: <reason>, and 1 more". */
static void clusters_put_class(const struct hub_scorer *s, enum pair_class class, struct buf *into)
{
    const struct tally *t = &s->tally;
    size_t n = t->of_class[class];
    bool is_first = into->n == 0;
    char why[PAIR_REASON_BYTES];

    if (!is_first && n == 0)
        return;
    text_join(into, "; ");
    buf_printf(into, "%s on %zu", class_words[class], n);
    if (is_first) {
        buf_puts(into, " of ");
        text_count(into, t->selected, "cluster");
    }
    for (size_t i = 0; i < t->named.n && class != PAIR_CLASS_SCORING; i++) {
        if (pair_info[named_state(s, i, why)].class != class)
            continue;
        buf_printf(into, ": %s: %.*s", t->named.list[i]->name, NAMED_REASON_BYTES, why);
        if (n > 1)
            buf_printf(into, ", and %zu more", n - 1);
        return;
    }
}

/* All selected clusters by class, those of the condition first. */
static void scorer_set_scoring(const struct hub_scorer *s, struct condition *c)
{
    static const struct {
        enum pair_class class;
        enum truth status;
        enum hub_reason reason;
    } kinds[] = {
        {PAIR_CLASS_FAILING, TRUTH_FALSE, REASON_CLUSTERS_FAILING},
        {PAIR_CLASS_SCORING, TRUTH_TRUE, REASON_SCORING},
        {PAIR_CLASS_SUSPENDED, TRUTH_FALSE, REASON_SUSPENDED},
        {PAIR_CLASS_EMPTY, TRUTH_FALSE, REASON_EMPTY},
        {PAIR_CLASS_WAITING, TRUTH_UNKNOWN, REASON_WAITING},
        {PAIR_CLASS_SILENT, TRUTH_UNKNOWN, REASON_SILENT},
    };
    const struct tally *t = &s->tally;
    size_t i = t->of_class[PAIR_CLASS_FAILING] <= t->not_applied; /* condition Distributed is about these */
    BUF_AUTO(text, sizeof(c->message) * 2);
    bool pending = !t->named.n || t->named.ranks[0] == RANK_PENDING;
    enum hub_reason reason;

    if (!t->selected) {
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_SELECTED, "selected for no cluster");
        return;
    }
    while (i < ARRAY_SIZE(kinds) - 1 && !t->of_class[kinds[i].class])
        i++;
    clusters_put_class(s, kinds[i].class, &text);
    for (enum pair_class k = 0; k < PAIR_CLASS_UNSELECTED; k++)
        if (k != kinds[i].class)
            clusters_put_class(s, k, &text);
    reason = kinds[i].reason;
    if (kinds[i].class == PAIR_CLASS_SILENT && pending)
        reason = REASON_NO_REPORTS;
    else if (kinds[i].class == PAIR_CLASS_EMPTY && t->no_items)
        reason = REASON_NO_ITEMS;
    condition_set(c, kinds[i].status, reason, "%.*s", STR_ARG(buf_str(&text)));
}

static void scorer_set_reported(const struct hub_scorer *s, struct condition *c)
{
    const struct tally *t = &s->tally;
    const struct hub_cluster *on = t->api_unhealthy.first;
    const struct report_cell *cell = on ? hub_pair_cell(s, on) : NULL;

    if (t->api_unhealthy.total)
        condition_set(c, TRUTH_FALSE, REASON_UNHEALTHY_ON_CLUSTERS,
                      "unhealthy on %zu of %zu cluster%s: %s%s%.*s; healthy on %zu", t->api_unhealthy.total,
                      t->selected, plural_s(t->selected), on->name, cell ? ": " : "", NAMED_REASON_BYTES,
                      cell ? report_error(&on->report, cell) : "", t->api_healthy);
    else if (t->api_healthy)
        condition_set(c, TRUTH_TRUE, REASON_HEALTHY, "healthy on %zu of %zu cluster%s", t->api_healthy,
                      t->selected, plural_s(t->selected));
    else
        condition_set(c, TRUTH_UNKNOWN, REASON_NO_REPORTS, "no agent has reported on the scoring API yet");
}

static json_t *clusters_failing_value(const struct hub_scorer *s)
{
    const struct tally *t = &s->tally;
    json_t *list = t->named.n ? json_array() : NULL;

    for (size_t i = 0; i < t->named.n; i++) {
        char why[PAIR_REASON_BYTES];
        enum pair_state state = named_state(s, i, why);

        if (*why)
            json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", t->named.list[i]->name, "state",
                                                  pair_info[state].word, "error",
                                                  kube_line(why, STATUS_LINE_BYTES)));
    }
    return list;
}

/* Each condition covers one aspect; Ready says whether the scorer works on some cluster. */
enum { SYNCED_BYTES = 300, DISTRIBUTED_BYTES = 300, VERDICT_BYTES = 200 }; /* in a message */
enum { HEALTHY, SYNCED, VALID, UNIQUE, DISTRIBUTED, SCORING, READY, CONTESTED, STATUS_CONDITIONS };

static void scorer_set_inactive(const struct hub_scorer *s, const struct probe_part *p, struct condition *c)
{
    const struct tally *t = &s->tally;
    char kept[VERDICT_BYTES] = ""; /* what the verdict means for the clusters, or what speaks against it */

    if (s->hub->o.keep_unhealthy)
        (void)strcpy(kept, "; still distributed, as --keep-unhealthy is set");
    else if (t->scored_meanwhile)
        (void)snprintf(kept, sizeof(kept),
                       "; agents on %zu of %zu cluster%s have called it successfully since: if only the hub "
                       "cannot reach it, set spec.healthCheck to Agents",
                       t->scored_meanwhile, t->selected, plural_s(t->selected));
    c->since.ms = s->suspended_ms;
    if (p->asked && p->ok)
        condition_set(c, TRUTH_FALSE, REASON_RECOVERING,
                      "the scoring API responds again; healthy after %u consecutive successes%s",
                      s->hub->o.probe.healthy_after, kept);
    else if (p->asked)
        condition_set_as(c, TRUTH_FALSE, probe_reason_word(p->reason), "%s%s", p->message, kept);
    else if (!condition_resume(c, s->object) || c->status != TRUTH_FALSE)
        condition_set(c, TRUTH_FALSE, REASON_NOT_PROBED, "the scoring API was unhealthy when last probed%s",
                      kept);
}

static void scorer_set_healthy(const struct hub_scorer *s, struct condition *c)
{
    const struct probe_status *p = probe_status(s->probe);

    if (s->spec.health_check == HEALTH_CHECK_AGENTS)
        scorer_set_reported(s, c);
    else if (s->spec.health_check == HEALTH_CHECK_NONE)
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_CHECKED, "spec.healthCheck is None");
    else if (p->health == HEALTH_INACTIVE)
        scorer_set_inactive(s, &p->probe, c);
    else if (p->health == HEALTH_ACTIVE && p->probe.asked && !p->probe.ok)
        condition_set(c, TRUTH_TRUE, REASON_HEALTHY,
                      "the last probe failed; unhealthy after %u consecutive failures: %s",
                      s->hub->o.probe.unhealthy_after, p->probe.message);
    else if (p->health == HEALTH_ACTIVE)
        condition_set(c, TRUTH_TRUE, REASON_HEALTHY, "the scoring API responds");
    else if (p->probe.asked)
        condition_set_as(c, TRUTH_UNKNOWN, probe_reason_word(p->probe.reason), "%s", p->probe.message);
    else
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_PROBED, "the scoring API has not been probed yet");
}

static void scorer_set_synced(const struct hub_scorer *s, struct condition *c)
{
    const struct probe_status *p = probe_status(s->probe);
    BUF_AUTO(overridden, sizeof(c->message));

    /* Users edit overridden fields and wonder why nothing happens. */
    if (s->has_spec && p->config.ok && p->synced.owner)
        effective_overrides(&s->spec, &p->synced, &overridden);
    if (s->has_spec && s->spec.mode == SYNC_NONE)
        condition_set(c, TRUTH_TRUE, REASON_NOT_NEEDED, "configSyncMode is None");
    else if (p->config.asked && p->config.ok)
        condition_set(c, TRUTH_TRUE, REASON_SYNCED, "the configuration was read from the scoring API%s%.*s",
                      overridden.n ? "; in mode Full it overrides " : "", STR_ARG(buf_str(&overridden)));
    else if (p->config.asked)
        condition_set_as(c, TRUTH_FALSE, probe_reason_word(p->config.reason), "%s; %s", p->config.message,
                         p->synced.owner ? "the last valid configuration stays active"
                         : s->effective.reason == EFFECTIVE_OK
                             ? "none has been read yet, so the fields of the DynamicScorer are active"
                             : "no configuration has been read yet");
    else if (!condition_resume(c, s->object) || (c->status == TRUTH_TRUE && !p->synced.owner))
        condition_set(c, TRUTH_UNKNOWN, REASON_NOT_ASKED,
                      "the configuration has not been read from the scoring API yet");
}

static void scorer_set_valid(const struct hub_scorer *s, struct condition *c)
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
    enum effective_reason reason = s->effective.reason;
    bool unknown = reason == EFFECTIVE_OK && s->effective.unknown_placeholder;
    const struct summary_facts facts = {.reason = reason,
                                        .error = s->effective.error,
                                        .warning = s->effective.warning,
                                        .is_harmless = unknown,
                                        .is_kept = s->effective.kept};
    BUF_AUTO(text, SENTENCE_BYTES);

    if (*s->spec_error || !s->has_spec)
        condition_set(c, TRUTH_FALSE, REASON_INVALID_SPEC, "%s%s", s->spec_error,
                      s->has_spec                       ? "; the last valid spec stays active"
                      : effective_usable(&s->effective) ? "; the last valid summary stays active"
                                                        : "");
    else {
        sentence_summary(&text, &facts);
        condition_set(c, reasons[reason].status,
                      unknown ? REASON_UNKNOWN_PLACEHOLDER : reasons[reason].reason, "%.*s", SENTENCE(text));
    }
}

static void scorer_set_unique(const struct hub_scorer *s, struct condition *c)
{
    const struct hub_scorer *other = s->older ?: s->younger;

    if (hub_scorer_shares_object(s))
        condition_set(c, TRUTH_FALSE, REASON_DUPLICATE_SCORE_NAME,
                      "score name %.256s maps to AddOnPlacementScore %s, as does score name %.256s of the %s "
                      "DynamicScorer %s; %s is not distributed",
                      cstr(s->effective.score_name), s->object_name, cstr(other->effective.score_name),
                      s->older ? "older" : "younger", other->name, s->older ? "this one" : "the younger one");
    else if (s->older)
        condition_set(c, TRUTH_FALSE, REASON_DUPLICATE_SCORE_NAME,
                      "score name %s belongs to the older DynamicScorer %s; this one is not distributed",
                      cstr(s->effective.score_name), s->older->name);
    else if (s->younger)
        condition_set(c, TRUTH_FALSE, REASON_DUPLICATE_SCORE_NAME,
                      "score name %s is also used by the younger DynamicScorer %s, which is not distributed",
                      cstr(s->effective.score_name), s->younger->name);
    else if (!s->effective.score_name)
        condition_set(c, TRUTH_UNKNOWN, REASON_NO_SCORE_NAME, "the score name is not known yet");
    else
        condition_set(c, TRUTH_TRUE, REASON_UNIQUE, "no other DynamicScorer uses score name %s",
                      s->effective.score_name);
}

/* What keeps the scorer from working on any cluster, False before Unknown; NULL when nothing does. */
static const struct condition *scorer_blocking_condition(const struct hub_scorer *s,
                                                         const struct condition list[])
{
    const struct tally *t = &s->tally;
    bool scores = t->of_class[PAIR_CLASS_SCORING] > 0;
    bool is_probed = s->spec.health_check == HEALTH_CHECK_HUB; /* otherwise Scoring says more than Healthy */

    if (list[VALID].status == TRUTH_FALSE)
        return &list[VALID];
    if (is_probed && list[HEALTHY].status == TRUTH_FALSE)
        return &list[HEALTHY];
    if (list[VALID].status == TRUTH_UNKNOWN)
        return list[SYNCED].status == TRUTH_FALSE ? &list[SYNCED] : &list[VALID];
    if (is_probed && list[HEALTHY].status == TRUTH_UNKNOWN)
        return &list[HEALTHY];
    if (t->up_to_date <= t->stuck && (t->stuck || !scores)) /* a change on its way stops no scoring */
        return &list[DISTRIBUTED];
    return scores ? NULL : &list[SCORING];
}

/* A scorer without any score may still be starting; after a while it counts as not ready. */
static void scorer_set_unscored(const struct hub_scorer *s, const struct condition *scoring,
                                struct condition *ready)
{
    const struct tally *t = &s->tally;
    bool is_pending = scoring->status == TRUTH_UNKNOWN && t->unavailable < t->selected;
    bool waits = kube_wall(s->hub->o.kube).ms < hub_scorer_patience_ms(s);

    if (!is_pending || !t->selected)
        condition_set_as(ready, scoring->status, scoring->reason, "%s", scoring->message);
    else
        condition_set_as(ready, waits || !t->reporting ? TRUTH_UNKNOWN : TRUTH_FALSE,
                         waits           ? hub_reason_word(REASON_WAITING)
                         : !t->reporting ? hub_reason_word(REASON_NO_REPORTS)
                                         : scoring->reason,
                         "%s", scoring->message);
}

static void scorer_set_ready(const struct hub_scorer *s, const struct condition list[],
                             struct condition *ready)
{
    const struct condition *cause = scorer_blocking_condition(s, list);
    const struct condition *synced = &list[SYNCED], *distributed = &list[DISTRIBUTED];
    bool unsynced = synced->status == TRUTH_FALSE;
    bool partly = s->tally.no_room && distributed->status == TRUTH_FALSE;

    if (cause == &list[SCORING])
        scorer_set_unscored(s, cause, ready);
    else if (cause)
        condition_set_as(ready, cause->status, cause->reason, "%s", cause->message);
    else
        condition_set(ready, TRUTH_TRUE, REASON_READY, "%.*s%s%.*s%s%s", unsynced ? SYNCED_BYTES : 0,
                      synced->message, unsynced ? "; " : "", partly ? DISTRIBUTED_BYTES : 0,
                      distributed->message, partly ? "; " : "", list[SCORING].message);
}

static void scorer_set_conditions(const struct hub_scorer *s, struct condition list[STATUS_CONDITIONS])
{
    static const struct {
        const char *type;
        void (*set)(const struct hub_scorer *s, struct condition *c);
    } aspects[READY] = {
        [HEALTHY] = {"Healthy", scorer_set_healthy}, [SYNCED] = {"ConfigSynced", scorer_set_synced},
        [VALID] = {"Valid", scorer_set_valid},       [UNIQUE] = {"UniqueScoreName", scorer_set_unique},
        [SCORING] = {"Scoring", scorer_set_scoring}, [DISTRIBUTED] = {"Distributed", scorer_set_distributed},
    };

    for (size_t i = 0; i < READY; i++) {
        list[i] = (struct condition){.type = aspects[i].type};
        aspects[i].set(s, &list[i]);
    }
    list[READY] = (struct condition){.type = "Ready"};
    scorer_set_ready(s, list, &list[READY]);
}

bool status_scorer_ready(const struct hub_scorer *s)
{
    struct condition list[STATUS_CONDITIONS];

    scorer_set_conditions(s, list);
    return list[READY].status == TRUTH_TRUE;
}

/* Whether its scores are in an AddOnPlacementScore that is its own. */
static bool scorer_is_placed(const struct hub_scorer *s)
{
    return *s->object_name && !s->older;
}

json_t *status_of_scorer(const struct hub_scorer *s)
{
    static const char *const sources[] = {[CONFIG_FROM_SPEC] = "Spec", [CONFIG_FROM_API] = "API"};
    static const char *const ours[] = {"lastSyncedConfig", "scoreName",       "addOnPlacementScore",
                                       "configSource",     "summary",         "interval",
                                       "clusters",         "failingClusters", NULL};
    const struct api_config *synced = &probe_status(s->probe)->synced;
    const struct effective *e = &s->effective;
    bool usable = effective_usable(e);
    struct condition list[STATUS_CONDITIONS];
    json_t *clusters = json_object(), *status;
    size_t n = CONTESTED;

    scorer_set_conditions(s, list);
    if (status_fought(&s->last_status)) {
        list[CONTESTED] = (struct condition){.type = HUB_CONTESTED};
        condition_set_contested(&list[n++], &s->last_status, kube_dynamicscorers.kind, s->name, 0);
    }
    for (size_t i = 0; i < TALLY_FIELDS; i++)
        json_object_set_new(clusters, tally_fields[i].member,
                            json_integer((json_int_t)tally_count(&s->tally, i)));
    status = json_pack(
        "{s:s, s:I, s:o*, s:s*, s:s*, s:o*, s:o*, s:o, s:o*, s:o}", "healthStatus",
        health_word(hub_scorer_health(s)), "observedGeneration", (json_int_t)object_generation(s->object),
        "lastSyncedConfig", synced->owner ? api_config_value(synced) : NULL, "scoreName", e->score_name,
        "configSource", s->has_spec || usable ? sources[e->source] : NULL, "summary",
        usable ? json_stringn(e->text.p, e->text.n) : NULL, "interval",
        usable ? json_sprintf("%" JSON_INTEGER_FORMAT "s", (json_int_t)e->interval_ms / 1000) : NULL,
        "clusters", clusters, "failingClusters", clusters_failing_value(s), "conditions",
        conditions_value(list, n, s->object, &s->last_status, s->hub));
    if (scorer_is_placed(s))
        json_object_set_new(status, "addOnPlacementScore", json_string(s->object_name));
    return status_patch(status, s->object, ours);
}
