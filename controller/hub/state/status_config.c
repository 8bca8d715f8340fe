/* A DynamicScoringConfig's status: the state of the whole fleet. Only the one named HUB_CONFIG is used;
 * others say that they are not. */
#include "controller/hub/rules/masks.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/state.h"
#include "controller/hub/state/status.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <errno.h>

enum { VALID, DISTRIBUTED, READY, CONDITIONS };
enum { NAMED_SCORERS = 5, NAMES_BYTES = 2048 };
enum { DISTRIBUTED_BYTES = 400 }; /* in the message of Ready */
enum { NAMED_MASKS = 3, LISTED_MASKS = 20 };

#define REASON_UNMATCHED "MasksMatchNothing"

/* "1 of 2 masks matches nothing: no cluster matches clusterName "c": did you mean "c1"?" */
static void config_set_unmatched(const struct hub *h, size_t unmatched, struct status_condition *valid)
{
    BUF_AUTO(text, NAMED_MASKS * MASK_WARNING_BYTES);
    char warning[MASK_WARNING_BYTES];
    size_t named = 0;

    for (size_t i = 0; i < h->plan_masks.n && named < NAMED_MASKS; i++) {
        if (hub_mask_matches(h, i))
            continue;
        hub_mask_warning(warning, h, i, true);
        if (buf_printf(&text, "%s%s", named ? "; " : "", warning) < 0)
            break;
        named++;
    }
    if (unmatched > named && buf_printf(&text, "; and %zu more", unmatched - named) < 0)
        text.n = 0;
    condition_set(valid, TRUTH_TRUE, REASON_UNMATCHED, "%zu of %zu mask%s match%s nothing: %.*s", unmatched,
                  h->plan_masks.n, plural_s(h->plan_masks.n), unmatched == 1 ? "es" : "", (int)text.n,
                  cstr(text.p));
}

static void config_set_valid(const struct hub *h, const struct hub_config *c, struct status_condition *valid)
{
    size_t unmatched = hub_masks_counted(h) ? hub_masks_unmatched(h) : 0;

    if (*c->masks_error)
        condition_set(valid, TRUTH_FALSE, "InvalidMasks", "%s; %s", c->masks_error,
                      c->has_masks ? "the last valid masks stay active"
                                   : "clusters keep their scorers until the masks are valid");
    else if (unmatched)
        config_set_unmatched(h, unmatched, valid);
    else
        condition_set(valid, TRUTH_TRUE, "Valid", "%zu mask%s", c->masks.n, plural_s(c->masks.n));
}

static void config_set_deleting(const struct hub *h, struct status_condition *c)
{
    const struct hub_totals *t = &h->totals;
    const struct hub_cluster *first = t->n_named ? t->named[0] : NULL;

    condition_set(c, TRUTH_FALSE, "Deleting", "waiting for %zu ManifestWork%s to be deleted%s%s%s%s",
                  t->works, plural_s(t->works), first ? "; failed on " : "", first ? first->name : "",
                  first && *first->write.trouble ? ": " : "", first ? first->write.trouble : "");
}

/* "a, b, c, d, e and 3 more": the scorers without room. */
static int config_put_left_out(const struct hub *h, struct buf *names)
{
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < h->n_scorers; i++)
        if (h->by_age[i]->tally.no_room && n++ < NAMED_SCORERS)
            r = buf_printf(names, "%s%s", n > 1 ? ", " : "", h->by_age[i]->name);
    if (r == 0 && n > NAMED_SCORERS)
        r = buf_printf(names, " and %zu more", n - NAMED_SCORERS);
    return r == 0 ? buf_putc(names, '\0') : r;
}

static int config_set_no_room(const struct hub *h, struct status_condition *c)
{
    BUF_AUTO(names, NAMES_BYTES);
    int r = config_put_left_out(h, &names);

    if (r < 0)
        return r;
    condition_set(c, TRUTH_FALSE, "NoRoom",
                  "no room for %zu DynamicScorer%s in the ManifestWorks of some clusters, which hold at most "
                  "%d KiB: %s",
                  h->totals.left_out, plural_s(h->totals.left_out), WORK_MAX_BYTES / 1024, names.p);
    return 0;
}

static const char *config_cluster_error(const struct hub_cluster *c)
{
    return *c->write.trouble ? c->write.trouble : *c->work.why ? c->work.why : cluster_unconfirmed_reason(c);
}

/* Write errors go before apply errors. */
static void config_set_error(const struct hub_totals *t, struct status_condition *c)
{
    const struct hub_cluster *first = NULL;

    for (size_t i = 0; i < t->n_named && !first; i++)
        if (!t->failing || *t->named[i]->write.trouble)
            first = t->named[i];
    condition_clusters(c, "ClustersFailing",
                       t->failing ? "ManifestWork not written on" : "ManifestWork not applied on",
                       t->failing ? t->failing : t->unapplied, t->managed, first ? first->name : NULL,
                       first ? config_cluster_error(first) : NULL);
}

static int config_set_distributed(const struct hub *h, struct status_condition *c)
{
    const struct hub_totals *t = &h->totals;

    if (!hub_is_distributing(h))
        config_set_deleting(h, c);
    else if (!h->config.has_masks)
        condition_set(c, TRUTH_FALSE, "InvalidMasks",
                      "clusters keep their scorers until the masks are valid");
    else if (!t->managed)
        condition_set(c, TRUTH_FALSE, "NoClusters", "no ManagedCluster is accepted");
    else if (t->failing || t->unapplied)
        config_set_error(t, c);
    else if (t->left_out)
        return config_set_no_room(h, c);
    else if (t->behind)
        condition_set(c, TRUTH_FALSE, "Progressing", "up to date on %zu of %zu clusters", t->up_to_date,
                      t->managed);
    else if (t->applied < t->managed)
        condition_unconfirmed(c, t->managed - t->applied, t->managed, t->n_named ? t->named[0] : NULL);
    else
        condition_distributed(c, t->managed);
    return 0;
}

/* Ready when it works on some cluster; Distributed names the others. */
static void config_set_ready(const struct hub *h, struct status_condition list[CONDITIONS])
{
    const struct status_condition *cause = NULL;
    bool unmatched = strcmp(list[VALID].reason, REASON_UNMATCHED) == 0;

    if (list[VALID].status != TRUTH_TRUE)
        cause = &list[VALID];
    else if (!hub_is_distributing(h) || !h->config.has_masks || h->totals.up_to_date <= h->totals.unapplied)
        cause = &list[DISTRIBUTED];
    if (cause)
        condition_set(&list[READY], cause->status, cause->reason, "%s", cause->message);
    else
        condition_set(&list[READY], TRUTH_TRUE, "Ready", "%.*s%s%s", unmatched ? DISTRIBUTED_BYTES : -1,
                      list[DISTRIBUTED].message, unmatched ? "; " : "", unmatched ? list[VALID].message : "");
}

static json_t *config_failing_value(const struct hub_totals *t)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < t->n_named; i++) {
        json_t *value = json_pack("{s:s, s:o}", "name", t->named[i]->name, "error",
                                  status_line(config_cluster_error(t->named[i])));
        if (json_array_append_new(list, value) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static json_t *config_mask_value(const struct hub *h, size_t i)
{
    const struct mask *m = &h->plan_masks.list[i];
    json_auto_t *value = json_pack(
        "{s:o, s:o, s:I, s:I}", "clusterName", status_line(m->cluster), "scoreName", status_line(m->score),
        "clusters", (json_int_t)h->mask_counts[i].clusters, "scores", (json_int_t)h->mask_counts[i].scores);
    char warning[MASK_WARNING_BYTES];

    hub_mask_warning(warning, h, i, false);
    if (*warning && json_object_set_new(value, "warning", status_line(warning)) < 0)
        return NULL;
    return TAKE_PTR(value);
}

/* The first masks, those that match nothing before the others. */
static json_t *config_masks_value(const struct hub *h)
{
    json_auto_t *list = json_array();

    for (int matching = 0; list && matching < 2; matching++)
        for (size_t i = 0; i < h->plan_masks.n && json_array_size(list) < LISTED_MASKS; i++)
            if (hub_mask_matches(h, i) == matching &&
                json_array_append_new(list, config_mask_value(h, i)) < 0)
                return NULL;
    return TAKE_PTR(list);
}

static int config_put_masks(const struct hub *h, json_t *status, const json_t *object)
{
    return hub_masks_counted(h) && h->plan_masks.n
               ? status_put(status, "masks", config_masks_value(h), object)
               : status_drop(status, "masks", object);
}

static int config_put_counts(const struct hub *h, json_t *status, const json_t *object)
{
    const struct hub_totals *t = &h->totals;
    int r = status_put(status, "clusters",
                       json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "managed", (json_int_t)t->managed,
                                 "upToDate", (json_int_t)t->up_to_date, "applied", (json_int_t)t->applied,
                                 "behind", (json_int_t)t->behind, "failing", (json_int_t)t->failing,
                                 "reporting", (json_int_t)t->reporting),
                       object);

    if (r == 0)
        r = status_put(status, "scorers",
                       json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)h->n_scorers, "distributed",
                                 (json_int_t)h->n_entries, "leftOut",
                                 (json_int_t)(h->n_scorers - h->n_entries), "noRoom",
                                 (json_int_t)t->left_out),
                       object);
    if (r == 0)
        r = status_put(status, "summariesBytes", json_integer((json_int_t)t->largest), object);
    if (r == 0)
        r = config_put_masks(h, status, object);
    if (r == 0)
        r = t->n_named ? status_put(status, "failingClusters", config_failing_value(t), object)
                       : status_drop(status, "failingClusters", object);
    return r;
}

static json_t *config_other_status(const struct hub_config *c, unix_ms now)
{
    struct status_condition ready = {.type = "Ready"};

    condition_set(&ready, TRUTH_FALSE, "NotUsed",
                  "not used: the controller uses only the DynamicScoringConfig named %s", HUB_CONFIG);
    return json_pack("{s:I, s:o}", "observedGeneration", status_generation(c->object), "conditions",
                     conditions_value(&ready, 1, c->object, &c->last_status, now));
}

json_t *status_of_config(const struct hub *h, const struct hub_config *c, unix_ms now)
{
    struct status_condition list[CONDITIONS] = {
        [VALID] = {.type = "Valid"}, [DISTRIBUTED] = {.type = "Distributed"}, [READY] = {.type = "Ready"}};
    json_auto_t *status = NULL;

    if (c != &h->config)
        return config_other_status(c, now);
    config_set_valid(h, c, &list[VALID]);
    if (config_set_distributed(h, &list[DISTRIBUTED]) < 0)
        return NULL;
    config_set_ready(h, list);
    status = json_pack("{s:I}", "observedGeneration", status_generation(c->object));
    if (!status || config_put_counts(h, status, c->object) < 0 ||
        status_put(status, "conditions", conditions_value(list, CONDITIONS, c->object, &c->last_status, now),
                   c->object) < 0)
        return NULL;
    return TAKE_PTR(status);
}
