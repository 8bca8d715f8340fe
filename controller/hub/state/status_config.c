/* A DynamicScoringConfig's status: the state of the whole fleet. Only the one named HUB_CONFIG is used;
 * others say that they are not. */
#include "controller/hub/rules/work_text.h"
#include "controller/hub/state/status.h"
#include "controller/hub/state/status_conditions.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <errno.h>

enum { VALID, DISTRIBUTED, READY, CONDITIONS };
enum { NAMED_SCORERS = 5, NAMES_BYTES = 2048 };

static void config_set_valid(const struct hub_config *c, struct status_condition *valid)
{
    if (*c->masks_error)
        condition_set(valid, TRUTH_FALSE, "InvalidMasks", "%s; %s", c->masks_error,
                      c->has_masks ? "the last valid masks stay active"
                                   : "clusters keep their scorers until the masks are valid");
    else
        condition_set(valid, TRUTH_TRUE, "Valid", "%zu mask%s", c->masks.n, plural_s(c->masks.n));
}

static void config_set_deleting(const struct hub *h, struct status_condition *c)
{
    const struct hub_totals *t = &h->totals;
    const struct hub_cluster *first = t->n_named ? t->named[0] : NULL;

    condition_set(c, TRUTH_FALSE, "Deleting", "waiting for %zu ManifestWork%s to be deleted%s%s%s%s",
                  t->works, plural_s(t->works), first ? "; failed on " : "", first ? first->name : "",
                  first && *first->write_error ? ": " : "", first ? first->write_error : "");
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
    return *c->write_error ? c->write_error : c->work.why;
}

/* Write errors go before apply errors. */
static void config_set_error(const struct hub_totals *t, struct status_condition *c)
{
    const struct hub_cluster *first = NULL;

    for (size_t i = 0; i < t->n_named && !first; i++)
        if (!t->failing || *t->named[i]->write_error)
            first = t->named[i];
    condition_failing(c, t->failing ? "ManifestWork not written on" : "ManifestWork not applied on",
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
    else
        condition_distributed(c, t->managed);
    return 0;
}

/* Ready when it works on some cluster; Distributed names the others. */
static void config_set_ready(const struct hub *h, struct status_condition list[CONDITIONS])
{
    const struct status_condition *cause = NULL;

    if (list[VALID].status != TRUTH_TRUE)
        cause = &list[VALID];
    else if (!hub_is_distributing(h) || !h->config.has_masks || h->totals.up_to_date <= h->totals.unapplied)
        cause = &list[DISTRIBUTED];
    if (cause)
        condition_set(&list[READY], cause->status, cause->reason, "%s", cause->message);
    else
        condition_set(&list[READY], TRUTH_TRUE, "Ready", "%s", list[DISTRIBUTED].message);
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
    config_set_valid(c, &list[VALID]);
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
