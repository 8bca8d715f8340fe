#include "controller/placement/slot.h"

#include "controller/kube/json.h"
#include "controller/placement/items.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

/* ---- Whose an AddOnPlacementScore is ---- */

bool object_is_labelled(const json_t *object)
{
    const char *label = kube_label(object, PLACEMENT_LABEL);

    return label && strcmp(label, PLACEMENT_LABEL_VALUE) == 0;
}

bool object_is_ours(const json_t *object, const char *owner)
{
    const char *is = kube_annotation(object, PLACEMENT_OWNER);

    return is ? strcmp(is, owner) == 0 : object_is_labelled(object);
}

bool object_owner(const json_t *object, char ret[OWNER_BYTES])
{
    static const char *const labels[] = {PLACEMENT_LABEL, "open-cluster-management.io/addon-name",
                                         "app.kubernetes.io/managed-by"};
    const json_t *reference = json_array_get(kube_list(object, "metadata", "ownerReferences", NULL), 0);
    const char *owner = kube_annotation(object, PLACEMENT_OWNER);

    for (size_t i = 0; !owner && i < ARRAY_SIZE(labels); i++)
        owner = kube_label(object, labels[i]);
    if (reference)
        (void)snprintf(ret, OWNER_BYTES, "%s %s", cstr(kube_str(reference, "kind", NULL)),
                       cstr(kube_str(reference, "name", NULL)));
    else
        (void)snprintf(ret, OWNER_BYTES, "%s", cstr(owner));
    return reference || owner;
}

/* ---- Slots as Kubernetes objects, and back ---- */

WORD_TABLE(
    condition_word, enum condition_type, CONDITIONS,
    {[CONDITION_SCORED] = "Scored", [CONDITION_CLAMPED] = "Clamped", [CONDITION_TRUNCATED] = "Truncated"});

/* Under the names of the last items, or that of the only one there can be. */
static int slot_fallback_items(const struct slot *s, const char *cluster_name, struct items *ret)
{
    const struct summary *sum = scorer_summary(s->scorer);
    struct items was = {0};
    int r;

    if (s->last) {
        r = items_make(&was, s->last, sum);
        if (r == 0)
            r = items_refill(ret, buf_str(&was.json), sum->fallback);
        items_done(&was);
        return r;
    }
    if (s->found.n > 2)
        return items_refill(ret, buf_str(&s->found), sum->fallback);
    return items_single(ret, sum, cluster_name, sum->fallback);
}

static int slot_make_items(const struct slot *s, const char *cluster_name, struct items *ret)
{
    switch (s->items) {
    case ITEMS_OF_ROUND:
        return items_make(ret, s->batch, scorer_summary(s->scorer));
    case ITEMS_OF_LAST:
        return items_make(ret, s->last, scorer_summary(s->scorer));
    case ITEMS_OF_FALLBACK:
        return slot_fallback_items(s, cluster_name, ret);
    case ITEMS_FOUND:
    case ITEMS_NONE:
        break;
    }
    *ret = (struct items){.json.max = 8};
    return buf_puts(&ret->json, "[]") < 0 ? -ENOMEM : 0;
}

json_t *slot_create_body(const struct slot *s, const struct placement_options *o)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:{s:s, s:s}}}", "apiVersion",
                     "cluster.open-cluster-management.io/v1alpha1", "kind", "AddOnPlacementScore", "metadata",
                     "name", s->object, "namespace", o->cluster_name, "labels", PLACEMENT_LABEL,
                     PLACEMENT_LABEL_VALUE, "annotations", PLACEMENT_OWNER, o->owner, PLACEMENT_SCORE_NAME,
                     s->score_name);
}

json_t *slot_claim_body(const struct slot *s, const struct placement_options *o, const char *version)
{
    return json_pack("{s:{s:s*, s:{s:s}, s:{s:s, s:s}}}", "metadata", "resourceVersion", version, "labels",
                     PLACEMENT_LABEL, PLACEMENT_LABEL_VALUE, "annotations", PLACEMENT_OWNER, o->owner,
                     PLACEMENT_SCORE_NAME, s->score_name);
}

static json_t *object_conditions(const struct slot *s)
{
    json_auto_t *list = json_array();

    for (enum condition_type i = 0; list && i < CONDITIONS; i++) {
        const struct condition *c = &s->conditions[i];
        const struct kube_condition value = {.type = condition_word(i),
                                             .status = c->on ? "True" : "False",
                                             .reason = c->reason,
                                             .message = c->message};

        if (json_array_append_new(list, kube_condition_value(&value, NULL, (unix_ms){c->since_ms})) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static json_t *object_valid_until(const struct slot *s)
{
    char text[KUBE_TIME_BYTES];

    if (s->valid_until_ms % 1000)
        unix_ms_format((unix_ms){s->valid_until_ms}, text);
    else
        kube_time_format((unix_ms){s->valid_until_ms}, text);
    return s->valid_until_ms ? json_string(text) : json_null();
}

json_t *slot_status_body(const struct slot *s, const struct placement_options *o)
{
    struct items items = {0};
    json_t *scores = NULL;

    if (s->items == ITEMS_FOUND)
        return json_pack("{s:{s:o}}", "status", "conditions", object_conditions(s));
    if (slot_make_items(s, o->cluster_name, &items) < 0)
        return NULL;
    if (kube_json_parse(&scores, buf_str(&items.json), NULL) < 0)
        scores = NULL;
    items_done(&items);
    return json_pack("{s:{s:o, s:o, s:o}}", "status", "scores", scores, "validUntil", object_valid_until(s),
                     "conditions", object_conditions(s));
}

static void object_learn_condition(struct slot *s, enum condition_type type, const json_t *status)
{
    const json_t *value = kube_condition(status, condition_word(type));
    struct condition *c = &s->conditions[type];
    bool on = kube_condition_is(value, "True");

    if (!value || (c->known && c->on != on))
        return;
    c->known = true;
    c->on = on;
    c->since_ms = kube_time_parse(kube_str(value, "lastTransitionTime", NULL)).ms;
}

void slot_learn(struct slot *s, const json_t *object)
{
    const json_t *status = kube_get(object, "status", NULL), *scores = kube_list(status, "scores", NULL);

    for (enum condition_type i = 0; i < CONDITIONS; i++)
        object_learn_condition(s, i, status);
    if (!scores || s->last)
        return;
    s->found.n = 0;
    s->found_until_ms = kube_time_parse(kube_str(status, "validUntil", NULL)).ms;
    if (kube_json_print(scores, &s->found) < 0)
        s->found.n = 0; /* then a fallback has no names to use */
}

/* By the second: a program that writes an object back may drop the fraction. */
static bool object_valid_until_is(const json_t *status, int64_t ms)
{
    return kube_time_parse(kube_str(status, "validUntil", NULL)).ms / 1000 == ms / 1000;
}

bool slot_matches(const struct slot *s, const struct placement_options *o, const json_t *object)
{
    json_auto_t *body = s->hash == s->written_hash ? slot_status_body(s, o) : NULL;
    const json_t *wanted = kube_get(body, "status", NULL), *scores = kube_list(wanted, "scores", NULL),
                 *status = kube_get(object, "status", NULL);

    if (!wanted)
        return true;
    for (enum condition_type i = 0; i < CONDITIONS; i++)
        if (!json_equal(kube_condition(wanted, condition_word(i)), kube_condition(status, condition_word(i))))
            return false;
    return !scores || (json_equal(scores, kube_list(status, "scores", NULL)) &&
                       object_valid_until_is(status, s->written_until_ms));
}

/* ---- The wanted state ---- */

struct slot *slot_new(struct placement *p, const char *object)
{
    struct slot *s = xcalloc(1, sizeof(*s));

    s->placement = p;
    (void)snprintf(s->object, sizeof(s->object), "%s", object);
    buf_init(&s->found, ITEMS_MAX_BYTES * 4);
    return s;
}

struct slot *slot_free(struct slot *s)
{
    if (!s)
        return NULL;
    kube_object_done(&s->write);
    s->batch = batch_unref(s->batch);
    s->last = batch_unref(s->last);
    buf_done(&s->found);
    free(s->score_name);
    free(s);
    return NULL;
}

void slot_assign(struct slot *s, const struct scorer *scorer)
{
    const char *name = scorer_summary(scorer)->score_name;
    char *copy;

    if (!s->score_name || strcmp(s->score_name, name) != 0) {
        copy = xstrdup(name);
        if (s->score_name) /* its items belong to another scorer: no fallback for this one */
            buf_done(&s->found);
        free(s->score_name);
        s->score_name = copy;
        s->batch = batch_unref(s->batch);
        s->last = batch_unref(s->last);
        s->wanted = s->expired = false;
    }
    s->scorer = scorer;
}

bool slot_falls_back(const struct slot *s)
{
    return s->items == ITEMS_OF_LAST || s->items == ITEMS_FOUND;
}

/* For Placement, an empty result is worse than a bad score: it counts as 0. With a fallbackScore it is
 * treated as a failure. */
static enum slot_items slot_choose_items(const struct slot *s, bool empty, unix_ms now)
{
    const struct summary *sum = scorer_summary(s->scorer);
    bool in_time = s->batch && !s->expired;

    if (in_time && !(empty && sum->has_fallback))
        return ITEMS_OF_ROUND;
    if (in_time && s->last && s->last_until_ms > now.ms)
        return ITEMS_OF_LAST;
    if (!s->last && s->found.n > 2 && s->found_until_ms > now.ms)
        return ITEMS_FOUND;
    return sum->has_fallback ? ITEMS_OF_FALLBACK : ITEMS_NONE;
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

static const char *slot_consequence(const struct slot *s, const struct items *items)
{
    if (s->items != ITEMS_FOUND && items->n == 0)
        return "there are no scores";
    return s->items == ITEMS_OF_FALLBACK ? "fallbackScore is used" : "the last scores stay until validUntil";
}

static void slot_set_empty(struct slot *s, const struct items *made, const char *consequence, unix_ms now)
{
    const struct scorer_status *st = scorer_status(s->scorer);
    bool no_series = scorer_summary(s->scorer)->source.type != SOURCE_NONE && st->last.source_series == 0;

    if (st->last.answer.results) {
        slot_set_condition(s, CONDITION_SCORED, false, "NoItems", now);
        SET_MESSAGE(s, CONDITION_SCORED,
                    "no item from %zu results of the scoring API: %zu are NaN or infinite, %zu have an empty "
                    "name; %s",
                    st->last.answer.results, made->left_out, made->unnamed, consequence);
    } else {
        slot_set_condition(s, CONDITION_SCORED, false, no_series ? "SourceEmpty" : "NoResults", now);
        SET_MESSAGE(s, CONDITION_SCORED, "%s; %s",
                    no_series ? "the source returned no series" : "the scoring API returned no results",
                    consequence);
    }
}

/* made: by the last successful round; shown: what the object gets. */
static void slot_set_scored(struct slot *s, const struct items *made, const struct items *shown, unix_ms now)
{
    const struct scorer_status *st = scorer_status(s->scorer);
    const char *consequence = slot_consequence(s, shown);
    char left_out[128] = "", error[1024];

    if (made->left_out || made->unnamed)
        (void)snprintf(left_out, sizeof(left_out),
                       "; skipped %zu results that are NaN or infinite and %zu with an empty name",
                       made->left_out, made->unnamed);

    if (st->last.error != ROUND_OK) {
        slot_set_condition(s, CONDITION_SCORED, false,
                           st->last.stage == STAGE_SCORING ? "ScoringFailed" : "SourceFailed", now);
        scorer_error_text(st, error, sizeof(error));
        SET_MESSAGE(s, CONDITION_SCORED, "%s; %s", error, consequence);
    } else if (made->n == 0) {
        slot_set_empty(s, made, consequence, now);
    } else {
        slot_set_condition(s, CONDITION_SCORED, true, "Scored", now);
        SET_MESSAGE(s, CONDITION_SCORED, "%zu %s%s", made->n, made->n == 1 ? "item" : "items", left_out);
    }
}

static void slot_set_clamped(struct slot *s, const struct items *items, unix_ms now)
{
    bool clamped = items->clamped > 0;

    slot_set_condition(s, CONDITION_CLAMPED, clamped, clamped ? "OutOfRange" : "InRange", now);
    if (clamped)
        SET_MESSAGE(s, CONDITION_CLAMPED,
                    "%zu of %zu values clamped to -100..100; set scoreRange to scale instead", items->clamped,
                    items->n + items->truncated);
    else
        SET_MESSAGE(s, CONDITION_CLAMPED, "all values are within -100..100");
}

static void slot_set_truncated(struct slot *s, const struct items *items, unix_ms now)
{
    size_t merged = items->merged_by_cut + (s->items == ITEMS_OF_ROUND ? s->batch->merged_by_cut : 0);
    bool truncated = items->truncated || merged;
    char labels[160] = "";

    slot_set_condition(s, CONDITION_TRUNCATED, truncated,
                       items->truncated ? "TooManyItems"
                       : merged         ? "LabelsTruncated"
                                        : "Complete",
                       now);
    if (merged)
        (void)snprintf(
            labels, sizeof(labels),
            "%zu result%s merged with others whose labels differ only beyond limits.labelValueBytes", merged,
            merged == 1 ? "" : "s");
    if (items->truncated)
        SET_MESSAGE(s, CONDITION_TRUNCATED,
                    "%zu of %zu items omitted, the last by name: an object holds at most 1.5 MiB%s%s",
                    items->truncated, items->n + items->truncated, merged ? "; " : "", labels);
    else
        SET_MESSAGE(s, CONDITION_TRUNCATED, "%s", merged ? labels : "all items are written");
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

/* made: by a new batch; NULL: counted before. */
static void slot_count(const struct slot *s, const struct placement_options *o, const struct items *shown,
                       const struct items *made)
{
    const char *name = s->score_name;

    metric_set(o->metrics, METRIC_PLACEMENT_ITEMS, LV(name), (double)shown->n);
    if (!made)
        return;
    metric_add(o->metrics, METRIC_MERGED, LV("item", name), (double)made->merged_by_cut);
    metric_add(o->metrics, METRIC_PLACEMENT_CLAMPED, LV(name), (double)made->clamped);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("no_room", name), (double)made->truncated);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("not_finite", name), (double)made->left_out);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("no_name", name), (double)made->unnamed);
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("same_name", name), (double)made->merged);
}

/* A fallback is valid for as long as the scores of a successful round. */
static void slot_set_times(struct slot *s, unix_ms now)
{
    const struct scorer_status *st = scorer_status(s->scorer);

    s->life_ms = st->life_ms;
    s->valid_until_ms = s->items == ITEMS_OF_ROUND      ? validity_until(st->expires_ms, s->life_ms)
                        : s->items == ITEMS_OF_LAST     ? s->last_until_ms
                        : s->items == ITEMS_FOUND       ? s->found_until_ms
                        : s->items == ITEMS_OF_FALLBACK ? validity_until(now.ms + s->life_ms, s->life_ms)
                                                        : 0;
}

/* Takes over the scorer's batch. True if it is a new one. */
static bool slot_take_batch(struct slot *s)
{
    struct batch *batch = scorer_batch(s->scorer);
    bool new_batch = batch && batch != s->batch;

    if (new_batch) {
        s->batch = batch_unref(s->batch);
        s->batch = batch_ref(batch);
    }
    s->expired = !batch;
    return new_batch;
}

static void slot_keep_last(struct slot *s)
{
    if (s->last != s->batch) {
        s->last = batch_unref(s->last);
        s->last = batch_ref(s->batch);
        buf_done(&s->found);
    }
    s->last_until_ms = s->valid_until_ms;
}

int slot_update(struct slot *s, const struct placement_options *o, unix_ms now)
{
    CLEANUP(items_done) struct items made = {0};
    CLEANUP(items_done) struct items other = {0};
    const struct items *shown = &other;
    bool new_batch;
    int r = 0;

    if (scorer_status(s->scorer)->rounds == 0)
        return 0;
    new_batch = slot_take_batch(s);
    if (s->batch && !s->expired)
        r = items_make(&made, s->batch, scorer_summary(s->scorer));
    if (r < 0)
        return r;
    s->items = slot_choose_items(s, made.n == 0, now);
    if (s->items == ITEMS_OF_ROUND)
        shown = &made;
    else
        r = slot_make_items(s, o->cluster_name, &other);
    if (r < 0)
        return r;
    slot_set_times(s, now);
    if (made.n)
        slot_keep_last(s);
    slot_set_scored(s, &made, shown, now);
    slot_set_clamped(s, shown, now);
    slot_set_truncated(s, shown, now);
    s->hash = slot_hash(s, shown);
    s->wanted = true;
    slot_count(s, o, shown, new_batch ? &made : NULL);
    return 0;
}

bool slot_is_due(const struct slot *s, unix_ms now)
{
    if (!s->wanted)
        return false;
    if (!s->written || !s->exists || s->hash != s->written_hash)
        return true;
    return validity_is_due(s->written_until_ms, s->valid_until_ms, s->life_ms, now.ms);
}
