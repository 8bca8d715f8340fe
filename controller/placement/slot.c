#include "controller/placement/slot.h"

#include "controller/kube/client.h"
#include "controller/kube/watch.h"
#include "controller/placement/validity.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"

#include <errno.h>
#include <stdio.h>

int slot_new(struct slot **ret, struct placement *p, const char *object)
{
    struct slot *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->placement = p;
    (void)snprintf(s->object, sizeof(s->object), "%s", object);
    buf_init(&s->found, ITEMS_MAX_BYTES * 4);
    *ret = s;
    return 0;
}

struct slot *slot_free(struct slot *s)
{
    if (!s)
        return NULL;
    s->call = kube_cancel(s->call);
    s->batch = batch_unref(s->batch);
    buf_done(&s->found);
    free(s->score_name);
    free(s);
    return NULL;
}

int slot_assign(struct slot *s, const struct scorer *scorer)
{
    const char *name = scorer_summary(scorer)->score_name;
    char *copy;

    if (!s->score_name || strcmp(s->score_name, name) != 0) {
        copy = strdup(name);
        if (!copy)
            return -ENOMEM;
        if (s->score_name) /* its items belong to another scorer: no fallback for this one */
            buf_done(&s->found);
        free(s->score_name);
        s->score_name = copy;
        s->batch = batch_unref(s->batch);
        s->wanted = s->expired = false;
    }
    s->scorer = scorer;
    return 0;
}

int slot_items(const struct slot *s, const char *cluster_name, struct items *ret)
{
    const struct summary *sum = scorer_summary(s->scorer);
    struct items was = {0};
    int r;

    if (s->batch && !s->expired)
        return items_make(ret, s->batch, sum);
    if (!sum->has_fallback) {
        *ret = (struct items){.json.max = 8};
        return buf_puts(&ret->json, "[]") < 0 ? -ENOMEM : 0;
    }
    if (s->batch) {
        r = items_make(&was, s->batch, sum);
        if (r == 0)
            r = items_refill(ret, buf_str(&was.json), sum->fallback);
        items_done(&was);
        return r;
    }
    if (s->found.n > 2)
        return items_refill(ret, buf_str(&s->found), sum->fallback);
    return items_single(ret, sum, cluster_name, sum->fallback);
}

static void slot_set_condition(struct slot *s, enum condition_type type, bool on, const char *reason,
                               unix_ms now)
{
    struct condition *c = &s->conditions[type];

    if (!c->known || c->on != on)
        c->since_ms = now.ms;
    c->known = true;
    c->on = on;
    (void)snprintf(c->reason, sizeof(c->reason), "%s", reason);
}

#define SET_MESSAGE(s, type, ...) \
    (void)snprintf((s)->conditions[type].message, sizeof((s)->conditions[type].message), __VA_ARGS__)

static void slot_set_scored(struct slot *s, const struct items *items, unix_ms now)
{
    const struct scorer_status *st = scorer_status(s->scorer);
    bool scoring = st->stage == STAGE_SCORING;
    char left_out[128] = "";

    if (items->left_out || items->unnamed)
        (void)snprintf(left_out, sizeof(left_out),
                       "; skipped %zu results that are NaN or infinite and %zu with an empty name",
                       items->left_out, items->unnamed);

    if (st->error != ROUND_OK) {
        slot_set_condition(s, CONDITION_SCORED, false, scoring ? "ScoringFailed" : "SourceFailed", now);
        SET_MESSAGE(s, CONDITION_SCORED, "%s: %s: %s; %s", round_stage_word(st->stage),
                    round_error_word(st->error), st->reason,
                    (s->batch && !s->expired) || s->keeps_found ? "the last scores stay until validUntil"
                    : scorer_summary(s->scorer)->has_fallback   ? "fallbackScore is used"
                                                                : "there are no scores");
    } else if (items->n == 0) {
        slot_set_condition(s, CONDITION_SCORED, false, "NoItems", now);
        SET_MESSAGE(
            s, CONDITION_SCORED,
            "no item from %zu results of the scoring API: %zu are NaN or infinite, %zu have an empty name",
            st->results, items->left_out, items->unnamed);
    } else {
        slot_set_condition(s, CONDITION_SCORED, true, "Scored", now);
        SET_MESSAGE(s, CONDITION_SCORED, "%zu %s%s", items->n, items->n == 1 ? "item" : "items", left_out);
    }
}

static void slot_set_limits(struct slot *s, const struct items *items, unix_ms now)
{
    bool clamped = items->clamped > 0, truncated = items->truncated > 0;

    slot_set_condition(s, CONDITION_CLAMPED, clamped, clamped ? "OutOfRange" : "InRange", now);
    if (clamped)
        SET_MESSAGE(s, CONDITION_CLAMPED,
                    "%zu of %zu values clamped to -100..100; set scoreRange to scale instead", items->clamped,
                    items->n + items->truncated);
    else
        SET_MESSAGE(s, CONDITION_CLAMPED, "all values are within -100..100");
    slot_set_condition(s, CONDITION_TRUNCATED, truncated, truncated ? "TooManyItems" : "Complete", now);
    if (truncated)
        SET_MESSAGE(s, CONDITION_TRUNCATED,
                    "%zu of %zu items omitted, the last by name: an object holds at most 1.5 MiB",
                    items->truncated, items->n + items->truncated);
    else
        SET_MESSAGE(s, CONDITION_TRUNCATED, "all items are written");
}

static uint64_t slot_hash(const struct slot *s, const struct items *items)
{
    uint64_t h = hash_bytes(buf_str(&items->json));

    for (size_t i = 0; i < CONDITIONS; i++) {
        const struct condition *c = &s->conditions[i];
        h = hash_chain(hash_chain(hash_chain_u64(h, c->on), str_of(c->message)), str_of(c->reason));
    }
    return h;
}

static void slot_count(const struct slot *s, const struct placement_options *o, const struct items *items,
                       bool new_batch)
{
    const char *name = s->score_name;

    metric_set(o->metrics, METRIC_PLACEMENT_ITEMS, LV(name), (double)items->n);
    if (!new_batch)
        return;
    metric_add(o->metrics, METRIC_PLACEMENT_CLAMPED, LV(name), (double)items->clamped);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("no_room", name), (double)items->truncated);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("not_finite", name), (double)items->left_out);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("no_name", name), (double)items->unnamed);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("same_name", name), (double)items->merged);
}

/* A fallback is valid for as long as the scores of a successful round. */
static void slot_set_times(struct slot *s, unix_ms now)
{
    const struct scorer_status *st = scorer_status(s->scorer);
    const struct summary *sum = scorer_summary(s->scorer);

    s->life_ms = st->life_ms;
    if (st->error == ROUND_OK)
        s->valid_until_ms = validity_until(st->expires_ms, s->life_ms);
    else if (s->keeps_found)
        s->valid_until_ms = s->found_until_ms;
    else if (!s->batch || s->expired)
        s->valid_until_ms = sum->has_fallback ? validity_until(now.ms + s->life_ms, s->life_ms) : 0;
}

int slot_update(struct slot *s, const struct placement_options *o, unix_ms now)
{
    struct batch *batch = scorer_batch(s->scorer);
    struct items items = {0};
    bool new_batch = batch && batch != s->batch;
    int r;

    if (scorer_status(s->scorer)->rounds == 0)
        return 0;
    if (new_batch) {
        s->batch = batch_unref(s->batch);
        s->batch = batch_ref(batch);
        buf_done(&s->found);
    }
    s->expired = !batch;
    s->keeps_found = !s->batch && s->found.n > 2 && s->found_until_ms > now.ms;
    r = slot_items(s, o->cluster_name, &items);
    if (r < 0)
        return r;
    slot_set_times(s, now);
    slot_set_scored(s, &items, now);
    slot_set_limits(s, &items, now);
    s->hash = slot_hash(s, &items);
    s->wanted = true;
    slot_count(s, o, &items, new_batch);
    items_done(&items);
    return 0;
}

bool slot_is_overtaken(const struct slot *s)
{
    return *s->watched_version && *s->written_version &&
           kube_version_newer(s->watched_version, s->written_version);
}

bool slot_is_due(const struct slot *s, unix_ms now)
{
    if (!s->wanted)
        return false;
    if (!s->written || !s->exists || s->hash != s->written_hash)
        return true;
    return validity_is_due(s->written_until_ms, s->valid_until_ms, s->life_ms, now.ms);
}
