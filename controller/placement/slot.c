/* Derives an object's wanted state from what is known of its scorer, and compares it with what was
 * written. Sends nothing. On the loop. */
#include "controller/placement/slot.h"

#include "controller/kube/condition.h"
#include "controller/kube/fight.h"
#include "controller/kube/json.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/time.h"
#include "controller/placement/sentences.h"
#include "controller/placement/validity.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/summary.h"

#include <stdio.h>

/* ---- Slots as Kubernetes objects, and back ---- */

enum { SHOWN_FORMAT_BYTES = 250 }; /* a longer one is not shown before its message */

static const char *const condition_words[CONDITIONS] = {
    [CONDITION_SCORED] = "Scored",     [CONDITION_CLAMPED] = "Clamped",
    [CONDITION_ROUNDED] = "Rounded",   [CONDITION_TRUNCATED] = "Truncated",
    [CONDITION_CLOCK] = "ClockSkewed", [CONDITION_CONTESTED] = "Contested",
    [CONDITION_ADJUSTED] = "Adjusted"};

/* At the last look at the scorer: what that led to is what is written. */
static struct adjuster slot_adjuster(const struct slot *s)
{
    return (struct adjuster){.all = s->adjustments, .now = s->updated_at};
}

/* Whether what is in force can be applied to the items found on the hub. Not if it has been, before the
 * start; nor if something else has been, as then the scores are unknown, unless that no longer matters. */
static bool slot_adjusts_found(const struct slot *s)
{
    const struct adjuster by = slot_adjuster(s);
    BUF_AUTO(text, 2 * ADJUST_TEXT_BYTES);

    if (!s->found_adjusted)
        return true;
    adjust_put(&by, s->score_name, &text);
    return adjust_sets(&by, s->score_name) && !str_eq(buf_str(&text), str_of(s->found_adjusted));
}

static struct items slot_make_items(const struct slot *s, const char *cluster_name)
{
    const struct summary *sum = s->scorer->summary;
    const struct adjuster by = slot_adjuster(s), as_they_are = {0};
    struct items none = {.json.max = 8};

    if (s->items == ITEMS_OF_ROUND)
        return items_make(s->shown, sum, &by);
    if (s->items == ITEMS_OF_LAST)
        return items_make(s->last, sum, &by);
    if (s->items == ITEMS_FOUND)
        return items_found(s->found, sum, slot_adjusts_found(s) ? &by : &as_they_are);
    if (s->items == ITEMS_OF_FALLBACK)
        return items_fallback(s->last, s->found, sum, cluster_name, &by);
    buf_puts(&none.json, "[]");
    return none;
}

json_t *slot_status_body(const struct slot *s, const struct placement_options *o)
{
    CLEANUP(items_done) struct items items = slot_make_items(s, o->cluster_name);
    char until[KUBE_TIME_BYTES];
    json_t *scores = NULL, *conditions, *body, *status;

    if (s->valid_until_ms % 1000)
        unix_ms_format((unix_ms){s->valid_until_ms}, until);
    else
        kube_time_format((unix_ms){s->valid_until_ms}, until);
    if (kube_json_parse(&scores, buf_str(&items.json), NULL) < 0)
        return NULL;
    conditions = json_array();
    for (enum condition_type i = 0; i < CONDITIONS; i++)
        if (s->conditions[i])
            (void)json_array_append(conditions, s->conditions[i]);
    body = json_object();
    status = kube_set_object(body, "status");
    kube_set(status, "scores", scores);
    kube_set(status, "validUntil", s->valid_until_ms ? json_string(until) : json_null());
    kube_set(status, "conditions", conditions);
    return body;
}

bool slot_is_misnamed(const struct slot *s)
{
    return s->annotated_name && s->score_name && strcmp(s->annotated_name, s->score_name) != 0;
}

static void slot_drop_found(struct slot *s)
{
    json_decref(TAKE_PTR(s->found));
    free(TAKE_PTR(s->found_adjusted));
}

static void slot_take_found(struct slot *s, const json_t *status, json_t *scores, unix_ms now)
{
    const json_t *adjusted = kube_condition(status, condition_words[CONDITION_ADJUSTED]);

    slot_drop_found(s);
    if (slot_is_misnamed(s)) /* they belong to another score */
        return;
    s->found = json_incref(scores);
    s->found_at_ms = now.ms;
    s->found_until_ms = kube_time_parse(kube_str(status, "validUntil", NULL)).ms;
    if (kube_condition_is(adjusted, "True"))
        s->found_adjusted = xstrdup(cstr(kube_str(adjusted, "message", NULL)));
}

void slot_learn(struct slot *s, const json_t *object, unix_ms now)
{
    const json_t *status = kube_get(object, "status", NULL);
    json_t *scores = kube_list(status, "scores", NULL);
    bool is_ours_since = s->wanted && s->exists && s->found; /* what is there now may be what we wrote */
    /* A finalizer of another holds it. Perhaps its scorer was removed: one that is added again is another. */
    bool is_going = kube_get(object, "metadata", "deletionTimestamp", NULL);

    s->has_status |= json_array_size(kube_list(status, "conditions", NULL)) > 0;
    for (enum condition_type i = 0; i < CONDITIONS; i++) {
        json_t *c = s->conditions[i], *is = kube_condition(status, condition_words[i]);

        if (i == CONDITION_CONTESTED) /* perhaps of an earlier process: no state of this one */
            continue;
        if (!c)
            s->conditions[i] = json_incref(is);
        else if (kube_condition_is(is, cstr(kube_str(c, "status", NULL))))
            (void)json_object_set(c, "lastTransitionTime", json_object_get(is, "lastTransitionTime"));
    }
    if (scores && !s->last && !is_ours_since && !is_going)
        slot_take_found(s, status, scores, now);
}

/* Whether another message is a reason to write. It has numbers of the round, which may change each time
 * though no item does, unless the condition is False, or is not about the round. */
static bool condition_message_counts(const struct slot *s, enum condition_type type)
{
    return kube_condition_is(s->conditions[type], "False") || type == CONDITION_CLOCK ||
           type == CONDITION_CONTESTED || type == CONDITION_ADJUSTED;
}

bool slot_matches(const struct slot *s, const struct placement_options *o, const json_t *object)
{
    json_auto_t *body = s->wanted && s->hash == s->written_hash ? slot_status_body(s, o) : NULL;
    const json_t *wanted = kube_get(body, "status", NULL), *scores = kube_list(wanted, "scores", NULL),
                 *status = kube_get(object, "status", NULL);

    if (!wanted)
        return true;
    for (enum condition_type i = 0; i < CONDITIONS; i++) {
        const json_t *is = kube_condition(status, condition_words[i]);
        json_auto_t *want = json_copy(s->conditions[i]);

        if (!want && !is)
            continue;
        if (!condition_message_counts(s, i))
            (void)json_object_set(want, "message", json_object_get(is, "message"));
        if (!json_equal(want, is))
            return false;
    }
    return !scores ||
           (json_equal(scores, kube_list(status, "scores", NULL)) &&
            validity_matches(s->written_until_ms, kube_time_parse(kube_str(status, "validUntil", NULL)).ms,
                             s->life_ms));
}

/* ---- The wanted state ---- */

void slot_forget_shown(struct slot *s)
{
    s->shown = batch_unref(s->shown);
    items_done(&s->shown_items);
    summary_done(&s->shown_summary);
}

void slot_forget_scorer(struct slot *s)
{
    if (!s->score_name)
        return;
    free(TAKE_PTR(s->score_name));
    slot_drop_found(s);
    s->batch = batch_unref(s->batch);
    s->last = batch_unref(s->last);
    slot_forget_shown(s);
    s->wanted = false;
}

void slot_assign(struct slot *s, struct placement_scorer *scorer)
{
    const char *name = scorer->score_name;

    s->scorer = scorer;
    if (s->score_name && strcmp(s->score_name, name) == 0)
        return;
    slot_forget_scorer(s);
    s->score_name = xstrdup(name);
    if (slot_is_misnamed(s)) /* the items found belong to another score: no fallback for this one */
        slot_drop_found(s);
}

/* Until when those found on the hub are good: no longer than ours could be, whatever wrote the time there. */
static int64_t slot_found_until(const struct slot *s)
{
    int64_t longest = s->found_at_ms + s->scorer->longest_life_ms;

    return s->found_until_ms < longest ? s->found_until_ms : validity_until(longest, s->scorer->life_ms);
}

/* For Placement, an empty result is worse than a bad score: it counts as 0. With a fallbackScore it is
 * treated as a failure. */
static enum slot_items slot_choose_items(const struct slot *s, bool empty, unix_ms now)
{
    if (s->batch && !(empty && s->scorer->summary->has_fallback))
        return ITEMS_OF_ROUND;
    if (s->batch && s->last && s->last_until_ms > now.ms)
        return ITEMS_OF_LAST;
    if (!s->last && json_array_size(s->found) && slot_found_until(s) > now.ms)
        return ITEMS_FOUND;
    return s->scorer->summary->has_fallback ? ITEMS_OF_FALLBACK : ITEMS_NONE;
}

static void slot_set_message(struct slot *s, enum condition_type type, bool on, const char *reason,
                             struct buf *message)
{
    json_auto_t *before = s->conditions[type];
    CLEANUP(cleanup_free) char *text = str_dup(buf_str(message));
    const struct kube_condition c = {
        .type = condition_words[type], .status = on ? "True" : "False", .reason = reason, .message = text};
    bool same = kube_condition_is(before, c.status);

    if (buf_failed(message) < 0)
        memory_exhausted(message->n);
    s->conditions[type] =
        kube_condition_value(&c, same ? kube_str(before, "lastTransitionTime", NULL) : NULL, s->updated_at);
}

static PRINTF_LIKE(5, 6) void slot_set(struct slot *s, enum condition_type type, bool on, const char *reason,
                                       const char *message, ...)
{
    BUF_AUTO(text, SIZE_MAX / 2);
    va_list ap;

    va_start(ap, message);
    buf_vprintf(&text, message, ap);
    va_end(ap);
    slot_set_message(s, type, on, reason, &text);
}

static enum scored_instead slot_shows_instead(const struct slot *s, const struct items *shown)
{
    if (shown->n == 0)
        return INSTEAD_NOTHING;
    return s->items == ITEMS_OF_FALLBACK ? INSTEAD_FALLBACK : INSTEAD_LAST_SCORES;
}

/* made: by the last successful round; shown: what the object gets. */
static void slot_set_scored(struct slot *s, const struct items *made, const struct items *shown)
{
    const struct placement_scorer *scorer = s->scorer;
    const struct scored_facts facts = {.summary = scorer->summary,
                                       .error = scorer->error,
                                       .stage = scorer->stage,
                                       .reason = cstr(scorer->reason),
                                       .source_series = scorer->source_series,
                                       .results = scorer->results,
                                       .invalid = scorer->invalid,
                                       .expired = !scorer->batch,
                                       .made = made,
                                       .instead = slot_shows_instead(s, shown)};
    enum scored_reason reason = scored_reason(&facts);
    BUF_AUTO(message, SIZE_MAX / 2);

    sentence_scored(&message, &facts);
    s->lacks_items =
        reason == SCORED_NO_ITEMS || reason == SCORED_SOURCE_EMPTY || reason == SCORED_NO_RESULTS;
    slot_set_message(s, CONDITION_SCORED, reason == SCORED_OK, scored_reason_word(reason), &message);
}

const char *slot_why_no_items(const struct slot *s)
{
    return s->wanted && s->lacks_items ? cstr(kube_str(s->conditions[CONDITION_SCORED], "message", NULL))
                                       : "";
}

static void slot_set_clamped(struct slot *s, const struct items *items)
{
    if (items->clamped)
        slot_set(s, CONDITION_CLAMPED, true, "OutOfRange",
                 "%zu of %zu values clamped to -100..100; set scoreRange to scale instead", items->clamped,
                 items->n + items->truncated);
    else
        slot_set(s, CONDITION_CLAMPED, false, "InRange", "all values are within -100..100");
}

static void slot_set_rounded(struct slot *s, const struct items *items)
{
    const struct summary *sum = s->scorer->summary;
    char text[ROUNDING_BYTES];
    BUF_AUTO(message, SIZE_MAX / 2);

    for (size_t i = 0; i < sum->n_items; i++) {
        if (!rounding_loses(&items->formats[i].rounding, sum, text))
            continue;
        if (sum->n_items > 1 && strlen(sum->items[i].format) < SHOWN_FORMAT_BYTES) {
            problem_quote(str_of(sum->items[i].format), &message);
            buf_puts(&message, ": ");
        }
        buf_puts(&message, text);
        slot_set_message(s, CONDITION_ROUNDED, true, "ValuesBecomeZero", &message);
        return;
    }
    slot_set(s, CONDITION_ROUNDED, false, "ValuesKept", "few values, if any, become 0");
}

static void slot_set_truncated(struct slot *s, const struct items *items)
{
    struct truncated_facts facts = {
        .omitted = items->truncated, .of = items->n + items->truncated, .merged = items->merged_by_cut};
    const char *reason = "Complete";
    BUF_AUTO(message, SIZE_MAX / 2);

    if (s->items == ITEMS_OF_ROUND)
        facts.merged += s->batch->merged_by_cut;
    if (facts.omitted)
        reason = "TooManyItems";
    else if (facts.merged)
        reason = "LabelsTruncated";
    sentence_truncated(&message, &facts);
    slot_set_message(s, CONDITION_TRUNCATED, facts.omitted || facts.merged, reason, &message);
}

/* An object gets the condition with the first skew, and keeps it. */
static void slot_set_clock(struct slot *s, const struct kube *hub)
{
    int64_t seconds = kube_clock_offset_ms(hub) / 1000;

    if (kube_clock_is_skewed(hub))
        slot_set(s, CONDITION_CLOCK, true, seconds > 0 ? "ClockBehind" : "ClockAhead",
                 "the agent's clock is %lld s %s that of the hub's API server, whose time is used here",
                 (long long)llabs(seconds), seconds > 0 ? "behind" : "ahead of");
    else if (s->conditions[CONDITION_CLOCK])
        slot_set(s, CONDITION_CLOCK, false, "ClockInSync",
                 "the agent's clock is within 30 s of that of the hub's API server");
}

/* An object has it while its items are adjusted. Those found on the hub may be as the condition found there
 * says. */
static void slot_set_adjusted(struct slot *s, const struct items *items)
{
    const struct adjuster by = slot_adjuster(s);
    BUF_AUTO(text, SIZE_MAX / 2); /* what was found may be another writer's, and of any length */

    if (s->items == ITEMS_FOUND && !slot_adjusts_found(s))
        buf_puts(&text, s->found_adjusted);
    else if (items->n > 0)
        adjust_put(&by, s->score_name, &text);
    if (text.n)
        slot_set_message(s, CONDITION_ADJUSTED, true, "Adjusted", &text);
    else
        json_decref(TAKE_PTR(s->conditions[CONDITION_ADJUSTED]));
}

static void slot_set_contested(struct slot *s)
{
    if (s->contested)
        slot_set(s, CONDITION_CONTESTED, true, KUBE_FIGHT_REASON, "%s", s->contested);
    else
        json_decref(TAKE_PTR(s->conditions[CONDITION_CONTESTED]));
}

/* Of all that is a reason to write, but for the items. */
static uint64_t slot_hash_conditions(const struct slot *s)
{
    const struct adjuster by = slot_adjuster(s);
    uint64_t h = s->conditions[CONDITION_ADJUSTED] ? adjust_hash(&by, s->score_name) : 0;

    for (size_t i = 0; i < CONDITIONS; i++) {
        const json_t *c = s->conditions[i];

        h = hash_chain(h, kube_text(c, "status", NULL));
        h = hash_chain(h, kube_text(c, "reason", NULL));
        if (condition_message_counts(s, i))
            h = hash_chain(h, kube_text(c, "message", NULL));
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
    metric_add(o->metrics, METRIC_PLACEMENT_LEFT_OUT, LV("same_name", name),
               (double)(made->merged + made->overlap.results));
}

/* A fallback is valid for as long as the scores of a successful round. */
static int64_t slot_valid_until(const struct slot *s, unix_ms now)
{
    switch (s->items) {
    case ITEMS_OF_ROUND:
        return validity_until(s->scorer->expires_ms + s->offset_ms, s->life_ms);
    case ITEMS_OF_LAST:
        return s->last_until_ms;
    case ITEMS_FOUND:
        return slot_found_until(s);
    case ITEMS_OF_FALLBACK:
        return validity_until(now.ms + s->life_ms, s->life_ms);
    case ITEMS_NONE:
        break;
    }
    return 0;
}

static void slot_set_times(struct slot *s, unix_ms now, const struct kube *hub)
{
    s->life_ms = s->scorer->life_ms;
    s->offset_ms = kube_clock_offset_ms(hub);
    s->valid_until_ms = slot_valid_until(s, now);
}

/* ---- scoreTolerance ----
 *
 * `shown` is the round whose items the object has. A later round whose items are near enough only prolongs
 * validUntil. Whatever is written is of the newest round: slot_show_newest().
 *
 * Clamped and Rounded are about those items, so they change with them and not without: values that wander
 * around 0, or around the end of the range, would otherwise change them in every round. */

static void slot_set_about_items(struct slot *s, const struct items *shown)
{
    slot_set_clamped(s, shown);
    slot_set_rounded(s, shown);
}

/* Whether the hub has what is shown, or a write under way brings it: that a hub is slow is no reason to write
 * more. */
static bool slot_has_shown(const struct slot *s)
{
    if (s->write.call)
        return s->hash == s->sent_hash;
    return s->exists && s->written && s->hash == s->written_hash;
}

/* Whether the items of the new round need not be written for their own sake. conditions: the hash of what is
 * new but Clamped and Rounded. */
static bool slot_is_calm(const struct slot *s, const struct items *made, uint64_t conditions)
{
    int tolerance = s->scorer->summary->score_tolerance;

    return tolerance > 0 && s->items == ITEMS_OF_ROUND && s->shown && slot_has_shown(s) &&
           s->hash_conditions == conditions && summary_same(&s->shown_summary, s->scorer->summary) &&
           items_are_near(&s->shown_items, made, tolerance);
}

/* The object is to have these items, of the last round. Takes them. */
static void slot_show(struct slot *s, struct items *shown)
{
    uint64_t conditions;

    slot_set_about_items(s, shown);
    conditions = slot_hash_conditions(s);
    slot_forget_shown(s);
    s->shown = s->batch ? batch_ref(s->batch) : NULL;
    s->hash = hash_chain_u64(hash_bytes(buf_str(&shown->json)), conditions);
    s->hash_conditions = conditions;
    if (s->scorer->summary->score_tolerance == 0)
        return;
    s->shown_summary = summary_copy(s->scorer->summary);
    s->shown_items = *shown;
    *shown = (struct items){0};
    buf_done(&s->shown_items.json); /* the values are enough */
}

void slot_show_newest(struct slot *s)
{
    const struct adjuster by = slot_adjuster(s);
    CLEANUP(items_done) struct items newest = {0};

    if (s->items != ITEMS_OF_ROUND || s->shown == s->batch)
        return;
    newest = items_make(s->batch, s->scorer->summary, &by);
    slot_show(s, &newest);
}

/* Conditions that the hub has never had were made before its clock was known: their times are not by it. */
static void slot_forget_early_conditions(struct slot *s, const struct kube *hub)
{
    if (s->has_status || s->offset_ms == kube_clock_offset_ms(hub))
        return;
    for (enum condition_type i = 0; i < CONDITIONS; i++)
        json_decref(TAKE_PTR(s->conditions[i]));
}

void slot_update(struct slot *s, const struct placement_options *o, unix_ms now)
{
    CLEANUP(items_done) struct items made = {0};
    CLEANUP(items_done) struct items other = {0};
    struct items *shown = &made;
    struct batch *batch = s->scorer->batch;
    bool new_batch = batch && batch != s->batch;
    bool is_told = s->scorer->has_ended || s->scorer->summary->suspended_since; /* how the scorer fares */
    struct adjuster by;
    uint64_t conditions;

    if (!s->wanted && !is_told)
        return;
    s->updated_at = now;
    slot_forget_early_conditions(s, o->hub);
    placement_scorer_follow_clock(s->scorer, o->hub);
    by = slot_adjuster(s);
    (void)batch_unref(s->batch);
    s->batch = batch ? batch_ref(batch) : NULL;
    if (batch)
        made = items_make(s->batch, s->scorer->summary, &by);
    s->items = slot_choose_items(s, made.n == 0, now);
    if (s->items != ITEMS_OF_ROUND) {
        other = slot_make_items(s, o->cluster_name);
        shown = &other;
    }
    slot_set_times(s, now, o->hub);
    if (made.n) {
        (void)batch_unref(s->last);
        s->last = batch_ref(s->batch);
        s->last_until_ms = s->valid_until_ms;
        slot_drop_found(s);
    }
    /* What a suspended scorer found on the hub stays, also when it is resumed, until a round has ended. */
    if (is_told || s->items != ITEMS_FOUND)
        slot_set_scored(s, &made, shown);
    slot_set_truncated(s, shown);
    slot_set_adjusted(s, shown);
    slot_set_contested(s);
    slot_set_clock(s, o->hub);
    s->wanted = true;
    slot_count(s, o, shown, new_batch ? &made : NULL);
    conditions = slot_hash_conditions(s);
    if (!slot_is_calm(s, &made, conditions))
        slot_show(s, shown);
    else if (new_batch && hash_chain_u64(hash_bytes(buf_str(&made.json)), conditions) != s->hash &&
             !slot_is_due(s, now))
        metric_add(o->metrics, METRIC_PLACEMENT_HELD_BACK, LV(s->score_name), 1);
}

void slot_check(const struct slot *s)
{
    invariant(!s->written || s->exists);    /* what is written is there */
    invariant(!s->foreign || !s->exists);   /* another's is not ours to renew or to delete */
    invariant(!s->scorer || s->score_name); /* the state is of this scorer */
    /* What it is to have is of a round; of an earlier one only within a tolerance. */
    invariant(!s->wanted || s->items != ITEMS_OF_ROUND || s->shown);
    invariant(s->items != ITEMS_OF_ROUND || s->shown == s->batch || s->shown_summary.score_tolerance > 0);
}

void slot_note_gone(struct slot *s)
{
    s->exists = s->written = false;
}

void slot_note_ours(struct slot *s)
{
    s->exists = true;
    s->foreign = s->takes_over = false;
}

void slot_note_foreign(struct slot *s)
{
    slot_note_gone(s);
    s->foreign = true;
    s->takes_over = false;
}

void slot_forget_written(struct slot *s)
{
    s->written = false;
}

unix_ms slot_look_again_at(const struct slot *s, unix_ms now)
{
    bool is_written = s->written && s->hash == s->written_hash;
    int64_t until_ms = is_written ? s->written_until_ms : s->valid_until_ms, renew_ms;

    switch (s->items) {
    case ITEMS_OF_LAST:
    case ITEMS_FOUND:
        return (unix_ms){s->valid_until_ms};
    case ITEMS_OF_FALLBACK:
        renew_ms = until_ms - s->life_ms / 2 + 1;
        /* It may be due already: the queue has it, and is to send a time that is not long past. */
        return (unix_ms){renew_ms > now.ms ? renew_ms : now.ms + s->life_ms / 2 + 1};
    case ITEMS_OF_ROUND:
    case ITEMS_NONE:
        break;
    }
    return (unix_ms){0};
}

bool slot_is_due(const struct slot *s, unix_ms now)
{
    if (!s->wanted)
        return false;
    if (!s->written || !s->exists || s->hash != s->written_hash)
        return true;
    return validity_is_due(s->written_until_ms, s->valid_until_ms, s->life_ms, now.ms);
}
