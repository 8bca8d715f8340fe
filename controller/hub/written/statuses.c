/* Owns the writer of statuses and its queue; each write belongs to its object. Called by the conductor
 * when something is to be looked at, and by the queue when it is an object's turn. On the loop; never
 * waits. */
#include "controller/hub/written/statuses.h"

#include "controller/hub/follows/adjusted.h"
#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/config_status.h"
#include "controller/hub/follows/finalizer.h"
#include "controller/hub/follows/reason.h"
#include "controller/hub/follows/scorer_status.h"
#include "controller/hub/follows/sentences.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/last_status.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/written/account.h"
#include "controller/kube/condition.h"
#include "controller/kube/events.h"
#include "controller/kube/fight.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/kube/writer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/map.h"

/* ---- Comparing statuses ---- */

/* Whether the merge patch would change anything in the status. */
static bool status_would_change(const json_t *status, const json_t *patch)
{
    const char *name;
    const json_t *wanted;

    json_object_foreach((json_t *)(uintptr_t)patch, name, wanted)
    {
        const json_t *found = json_object_get(status, name);

        if (json_is_null(wanted) ? found != NULL : !found || !json_equal(found, wanted))
            return true;
    }
    return false;
}

static json_t *status_without_times(const json_t *status)
{
    json_t *copy = json_deep_copy(status), *condition;
    size_t i;

    json_array_foreach(kube_list(copy, "conditions", NULL), i, condition)
    {
        (void)json_object_del(condition, "lastTransitionTime");
    }
    return copy;
}

/* ---- Events ----
 *
 * Events for transitions of conditions. The progress of a roll-out is none, nor is what an earlier process
 * has seen. */

static const struct {
    const char *type;
    bool from_unknown; /* Unknown → True is a transition, too */
} event_sources[] = {
    {"Healthy", true},          {"ConfigSynced", true}, {"Valid", false},
    {"UniqueScoreName", false}, {"Scoring", false},     {"Ready", false},
};

/* Nobody was told of a reason that passes: what follows is news if it is a failure, and otherwise not. */
static bool event_is_due(const json_t *was, const json_t *is, bool from_unknown)
{
    bool was_passing = hub_reason_passes(cstr(kube_str(was, "reason", NULL)));

    if (hub_reason_passes(cstr(kube_str(is, "reason", NULL))))
        return false;
    if (kube_condition_is(is, "False"))
        return was_passing || !kube_condition_is(was, "False");
    if (!kube_condition_is(is, "True") || was_passing)
        return false;
    return kube_condition_is(was, "False") || (from_unknown && kube_condition_is(was, "Unknown"));
}

static bool event_same_text(const json_t *a, const json_t *b)
{
    return strcmp(cstr(kube_str(a, "reason", NULL)), cstr(kube_str(b, "reason", NULL))) == 0 &&
           strcmp(cstr(kube_str(a, "message", NULL)), cstr(kube_str(b, "message", NULL))) == 0;
}

/* Whether the DynamicScoringConfig has got an Event about this already: works.c sends one when a fight over
 * ManifestWorks begins. Ready may become False by it a second later, or have been Progressing before. */
static bool event_is_of_fight(const struct kube_resource *resource, const json_t *is)
{
    return resource == &kube_dynamicscoringconfigs &&
           strcmp(cstr(kube_str(is, "reason", NULL)), hub_reason_word(REASON_WRITE_CONFLICT)) == 0;
}

/* before may be NULL: then only for what is wrong. Ready repeats the text of the condition that it fails
 * by: one Event tells of both, and one of their end. */
static void status_events(struct kube_events *e, const json_t *object, const struct kube_resource *resource,
                          const json_t *before, const json_t *after)
{
    const json_t *failures[ARRAY_SIZE(event_sources)]; /* of which an Event tells, or tells the end */
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(event_sources); i++) {
        const json_t *was = kube_condition(before, event_sources[i].type);
        const json_t *is = kube_condition(after, event_sources[i].type);
        const json_t *failure = kube_condition_is(is, "True") ? was : is;
        const struct kube_event event = {.about = object,
                                         .api_version = HUB_API,
                                         .kind = resource->kind,
                                         .warning = kube_condition_is(is, "False"),
                                         .reason = cstr(kube_str(is, "reason", NULL)),
                                         .action = "Reconcile",
                                         .note = cstr(kube_str(is, "message", NULL))};
        size_t k = 0;

        if (!event_is_due(was, is, event_sources[i].from_unknown) || event_is_of_fight(resource, is))
            continue;
        while (k < n && !event_same_text(failures[k], failure))
            k++;
        if (k < n)
            continue;
        kube_events_add(e, &event);
        failures[n++] = failure;
    }
}

/* Whether the status says that the adjustment is in force. */
static bool adjustment_is_in(const json_t *status, const char *name)
{
    const json_t *list = kube_list(status, "adjustments", NULL), *entry;
    size_t i;

    json_array_foreach(list, i, entry)
    {
        if (strcmp(cstr(kube_str(entry, "name", NULL)), name) == 0)
            return kube_str(entry, "since", NULL);
    }
    return false;
}

static void adjustment_event(struct statuses *st, const json_t *object, const char *reason,
                             const struct buf *note)
{
    CLEANUP(cleanup_free) char *text = str_dup(buf_str(note));
    const struct kube_event event = {.about = object,
                                     .api_version = HUB_API,
                                     .kind = kube_dynamicscoringconfigs.kind,
                                     .reason = reason,
                                     .action = "Adjust",
                                     .note = text};

    kube_events_add(st->events, &event);
}

/* Tells of what begins and what ends by the new status. What the status told before stays untold: a
 * restart is no reason to tell it again. */
static void adjustment_events(struct statuses *st, const json_t *object, const json_t *before,
                              const json_t *after)
{
    const struct fleet f = census_count_lazily(st->census);
    const json_t *list = kube_list(before, "adjustments", NULL), *entry;
    size_t i;

    for (size_t k = 0; f.plan && k < f.plan->adjustments.n; k++) {
        const char *name = f.plan->adjustments.list[k].what.name;
        BUF_AUTO(note, SENTENCE_BYTES);

        if (adjustment_is_in(before, name) || !adjustment_is_in(after, name))
            continue;
        adjustment_describe(&note, f.plan, k);
        adjustment_event(st, object, "AdjustmentBegan", &note);
    }
    json_array_foreach(list, i, entry)
    {
        const char *name = cstr(kube_str(entry, "name", NULL));
        BUF_AUTO(note, SENTENCE_BYTES);

        if (!kube_str(entry, "since", NULL) || adjustment_is_in(after, name))
            continue;
        problem_quote(str_of(name), &note);
        buf_puts(&note, " no longer changes scores");
        adjustment_event(st, object, "AdjustmentEnded", &note);
    }
}

/* ---- Whose status ---- */

#define KEY_OF_SCORER "scorer/"
#define KEY_OF_CONFIG "config/"

/* The parts of a scorer or a config that are needed here. */
struct subject {
    const struct kube_resource *resource;
    json_t *object;
    struct hub_config *config;       /* NULL: it is a scorer */
    const struct hub_scorer *scorer; /* NULL: it is a config */
    struct last_status *last;
};

/* False: it has gone. */
static bool subject_find(struct statuses *st, const char *key, struct subject *ret)
{
    const char *name = strchr(key, '/') + 1;

    if (strncmp(key, KEY_OF_SCORER, strlen(KEY_OF_SCORER)) == 0) {
        struct hub_scorer *s = scorers_find(&st->seen->scorers, name);

        if (s)
            *ret = (struct subject){&kube_dynamicscorers, s->object, NULL, s, &s->last_status};
        return s;
    }
    struct hub_config *c = configs_find(&st->seen->configs, name);

    if (c)
        *ret = (struct subject){&kube_dynamicscoringconfigs, c->object, c, NULL, &c->last_status};
    return c;
}

/* ---- What to look at ---- */

/* Leads to a look, unless it is our own write that the watch shows. */
static void status_see(struct statuses *st, const char *prefix, const char *name)
{
    CLEANUP(cleanup_free) char *key = xasprintf("%s%s", prefix, name);

    if (st->is_active)
        kube_queue_add(st->writer.queue, key);
}

static void status_look_at(struct statuses *st, const char *prefix, const char *name)
{
    CLEANUP(cleanup_free) char *key = xasprintf("%s%s", prefix, name);
    struct subject s;

    if (!st->is_active || !subject_find(st, key, &s))
        return;
    s.last->is_look_due = true;
    kube_queue_add(st->writer.queue, key);
}

static void status_hurry(struct statuses *st, const char *prefix, const char *name)
{
    CLEANUP(cleanup_free) char *key = xasprintf("%s%s", prefix, name);

    if (st->is_active)
        kube_queue_forget(st->writer.queue, key);
    status_look_at(st, prefix, name);
}

void statuses_see_scorer(struct statuses *st, const char *name)
{
    status_see(st, KEY_OF_SCORER, name);
}

void statuses_see_config(struct statuses *st, const char *name)
{
    status_see(st, KEY_OF_CONFIG, name);
}

void statuses_look_at_scorer(struct statuses *st, const char *name)
{
    status_look_at(st, KEY_OF_SCORER, name);
}

void statuses_look_at_config(struct statuses *st, const char *name)
{
    status_look_at(st, KEY_OF_CONFIG, name);
}

void statuses_hurry_scorer(struct statuses *st, const char *name)
{
    status_hurry(st, KEY_OF_SCORER, name);
}

void statuses_hurry_config(struct statuses *st, const char *name)
{
    status_hurry(st, KEY_OF_CONFIG, name);
}

void statuses_look_at_all(struct statuses *st)
{
    const struct configs *configs = &st->seen->configs;
    const struct hub_config *c;

    for (size_t i = 0; i < st->seen->scorers.n; i++)
        statuses_look_at_scorer(st, st->seen->scorers.by_age[i]->name);
    if (configs->used.object)
        statuses_look_at_config(st, HUB_CONFIG);
    for (size_t at = 0; (c = map_next(&configs->others, &at));)
        statuses_look_at_config(st, kube_name(c->object));
}

/* ---- Fights ----
 *
 * The object's condition Contested tells of one, unless the other writer undoes that, too: then the
 * DynamicScoringConfig has it, and the Event stays in any case. */

static char *fight_text_of(const struct kube_object *fought, bool is_finalizer, const char *kind,
                           const char *name)
{
    const char *part = is_finalizer ? "finalizers" : "status";
    CLEANUP(cleanup_free) char *object = xasprintf("the %s of %s %s", part, kind, name);

    return kube_fight_text(&fought->fight, object);
}

/* Adds the fight over that object, if there is one. */
static void contest_add(struct contest *c, const struct last_status *last, const char *kind, const char *name)
{
    const struct kube_object *fought = last_status_fought(last);

    if (!fought)
        return;
    if (c->text)
        c->others++;
    else
        c->text = fight_text_of(fought, fought == &last->finalizer, kind, name);
}

struct contest scorer_contest(const struct hub_scorer *s)
{
    struct contest c = {0};

    contest_add(&c, &s->last_status, kube_dynamicscorers.kind, s->name);
    return c;
}

/* Of its own status and finalizers; and of the statuses of scorers, where another writer may undo the
 * condition, too. */
static struct contest config_contest(const struct observed *seen, const struct hub_config *config)
{
    struct contest c = {0};

    contest_add(&c, &config->last_status, kube_dynamicscoringconfigs.kind, kube_name(config->object));
    for (size_t i = 0; config == &seen->configs.used && i < seen->scorers.n; i++) {
        const struct hub_scorer *s = seen->scorers.by_age[i];

        contest_add(&c, &s->last_status, kube_dynamicscorers.kind, s->name);
    }
    return c;
}

void contest_done(struct contest *c)
{
    free(c->text);
}

static void status_on_fight(void *arg, struct kube_object *o)
{
    struct statuses *st = arg;
    struct subject s;
    CLEANUP(cleanup_free) char *text = NULL;

    if (!subject_find(st, o->key, &s))
        return;
    /* `rival` alone may have become known: that is no other fight. */
    if (o->fight.is_on && !s.last->event_sent) {
        text = fight_text_of(o, o == &s.last->finalizer, s.resource->kind, kube_name(s.object));
        account_fight(st->events, s.object, s.resource, text);
    }
    s.last->event_sent = last_status_fought(s.last) != NULL;
    s.last->is_look_due = true;
    if (st->is_active)
        kube_queue_add(st->writer.queue, o->key);
    statuses_look_at_config(st, HUB_CONFIG);
}

/* ---- Whether there is anything to write ---- */

/* Times do not count: where a CRD has no conditions, they would start anew each time. */
static bool status_was_sent(const struct subject *s, const json_t *wanted)
{
    json_auto_t *sent = status_without_times(s->last->sent), *now = status_without_times(wanted);

    return sent && json_equal(sent, now);
}

static json_t *status_without_fight(const json_t *status)
{
    json_t *copy = status_without_times(status), *conditions = kube_list(copy, "conditions", NULL);

    for (size_t i = json_array_size(conditions); i > 0; i--)
        if (strcmp(cstr(kube_str(json_array_get(conditions, i - 1), "type", NULL)), HUB_CONTESTED) == 0)
            (void)json_array_remove(conditions, i - 1);
    return copy;
}

/* Whether writing this repeats the last write: to say that others undo it does not end the back-off. */
static bool status_repeats(const struct subject *s, const json_t *wanted)
{
    json_auto_t *sent = status_without_fight(s->last->sent), *now = status_without_fight(wanted);

    return sent && json_equal(sent, now);
}

/* ---- Writing ---- */

/* The API server has accepted the status. */
static void status_take_sent(struct statuses *st, const struct subject *s, const json_t *answer)
{
    struct last_status *l = s->last;

    invariant(l->sending);
    json_decref(l->sent);
    json_decref(l->result);
    l->sent = TAKE_PTR(l->sending);
    l->result = json_incref(json_object_get(answer, "status"));
    status_events(st->events, s->object, s->resource, l->before, l->sent);
    if (s->config)
        adjustment_events(st, s->object, l->before, l->sent);
}

/* Another version of the object exists, which the watch is about to show. By the time that the back-off
 * ends it has, and the next write is for that one. If it has not even then, something is wrong. */
static bool status_was_overtaken(const struct kube_object *o, const struct kube_answer *a)
{
    return a->verdict == KUBE_CONFLICT && o->failures == 0;
}

static void status_take_failure(struct statuses *st, struct last_status *l, const char *why)
{
    account_failure(st->o, "status");
    kube_object_set_error(&l->status, why);
}

static void status_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct statuses *st = o->writer->arg;
    struct subject s;
    bool ok = a->verdict == KUBE_OK;

    if (!subject_find(st, o->key, &s))
        return;
    if (ok && o == &s.last->status)
        status_take_sent(st, &s, a->object);
    if (ok && o->wait_ms < 0)
        account_success(st->o, "status");
    else if (ok)
        account_failure(st->o, "status");
    if (ok)
        kube_object_clear_error(&s.last->status);
    else if (!status_was_overtaken(o, a))
        status_take_failure(st, s.last, a->why);
    if (!ok) /* also if it was written all the same: that is found out by looking */
        s.last->is_look_due = true;
    /* After a finalizer comes the status, once the watch has shown the version that it led to. */
    kube_object_end(o, ok || a->verdict == KUBE_NOT_FOUND, a->retry_after_ms);
}

static void status_begin_writes(struct statuses *st, const char *key, struct last_status *l)
{
    if (l->key)
        return;
    l->key = xstrdup(key);
    kube_object_init(&l->status, &st->writer, l->key);
    kube_object_init(&l->finalizer, &st->writer, l->key);
}

static void status_write_finalizers(struct statuses *st, const char *key, const struct subject *s,
                                    json_t *patch)
{
    struct last_status *l = s->last;
    const struct kube_request rq = {.method = KUBE_MERGE_PATCH,
                                    .resource = s->resource,
                                    .namespace = st->o->namespace,
                                    .name = kube_name(s->object),
                                    .body = patch};
    struct kube_goal goal = {KUBE_GOAL_NEW, 0};

    status_begin_writes(st, key, l);
    l->is_look_due = true; /* after it comes the status */
    kube_object_look_for_rival(&l->finalizer, s->object);
    if (!object_is_deleting(s->object)) /* it is the one that others have removed */
        goal.kind = KUBE_GOAL_REPAIR;
    kube_object_call(&l->finalizer, KUBE_WRITE_FINALIZER, &rq, goal, status_on_written);
}

/* Only the version that was seen is written: another program may have deleted the object and made its own of
 * that name, which the watch has not shown yet. A status has no other precondition: the API server ignores
 * the uid in a patch of one. */
static json_t *status_body(const struct subject *s, json_t *status)
{
    const char *version = kube_version(s->object);
    json_t *body = json_object();

    if (*version)
        kube_set_str(kube_set_object(body, "metadata"), "resourceVersion", version);
    kube_set(body, "status", json_incref(status));
    return body;
}

static void status_write(struct statuses *st, const char *key, const struct subject *s, json_t *status)
{
    struct last_status *l = s->last;
    json_auto_t *body = status_body(s, status);
    const struct kube_request rq = {.method = KUBE_MERGE_PATCH,
                                    .resource = s->resource,
                                    .namespace = st->o->namespace,
                                    .name = kube_name(s->object),
                                    .subresource = "status",
                                    .body = body};
    json_t *before = json_object_get(s->object, "status");
    struct kube_goal goal = {KUBE_GOAL_NEW, 0};

    status_begin_writes(st, key, l);
    json_decref(l->sending);
    json_decref(l->before);
    l->sending = json_incref(status);
    /* Where a CRD has no conditions, each of them would cause an Event each time. */
    l->before = json_incref(kube_get(before, "conditions", NULL) || !l->sent ? before : l->sent);
    kube_object_look_for_rival(&l->status, s->object);
    if (status_repeats(s, status))
        goal.kind = KUBE_GOAL_AGAIN;
    kube_object_call(&l->status, KUBE_WRITE_STATUS, &rq, goal, status_on_written);
}

/* The status that the subject should have; a new reference. */
static json_t *subject_status(struct statuses *st, const struct subject *s)
{
    const struct fleet f = census_count_lazily(st->census);
    CLEANUP(contest_done)
    struct contest contest = s->scorer ? scorer_contest(s->scorer) : config_contest(st->seen, s->config);

    return s->scorer ? status_of_scorer(&f, s->scorer, &contest) : status_of_config(&f, s->config, &contest);
}

/* Nothing is left to write, also if that is so in spite of what the last answer said, or of its absence. */
static void status_settle(struct last_status *l)
{
    if (!l->key)
        return;
    l->status.failures = l->finalizer.failures = 0;
    kube_object_clear_error(&l->status);
}

/* Whether a write has been started. */
static bool status_reconcile(struct statuses *st, const char *key, const struct subject *s)
{
    json_auto_t *finalizers = s->config ? config_finalizer_patch(st->seen, s->config) : NULL;
    json_auto_t *status = NULL;
    const json_t *stored = json_object_get(s->object, "status");

    if (finalizers && !s->last->finalizer.fight.is_on) {
        status_write_finalizers(st, key, s, finalizers);
        return true;
    }
    status = subject_status(st, s);
    /* A status that says that another writer removes the finalizer goes first, unless that is undone, too. */
    if (finalizers && (!status_would_change(stored, status) || status_was_sent(s, status))) {
        status_write_finalizers(st, key, s, finalizers);
        return true;
    }
    /* Or it was sent before, and the object still has what the server stored of it. */
    if (!status_would_change(stored, status) ||
        (json_equal(s->last->result, stored) && status_was_sent(s, status))) {
        status_settle(s->last);
        return false;
    }
    status_write(st, key, s, status);
    return true;
}

/* Until the watch shows our last write the state is unknown; then the object is reconciled again. */
static bool subject_is_outdated(const struct subject *s)
{
    const struct last_status *l = s->last;

    return l->key && (kube_object_see(&l->status, s->object) == KUBE_SEEN_OLD ||
                      kube_object_see(&l->finalizer, s->object) == KUBE_SEEN_OLD);
}

/* The watch shows our own write, and nobody has asked for a look since. The write replaced all members of
 * the status that are ours, but left the finalizers alone: another writer may have changed them just
 * before it. */
static bool subject_is_as_written(const struct statuses *st, const struct subject *s)
{
    const struct last_status *l = s->last;
    json_auto_t *finalizers = NULL;

    if (l->is_look_due || !l->key)
        return false;
    if (kube_object_see(&l->status, s->object) != KUBE_SEEN_OWN &&
        kube_object_see(&l->finalizer, s->object) != KUBE_SEEN_OWN)
        return false;
    finalizers = s->config ? config_finalizer_patch(st->seen, s->config) : NULL;
    return !finalizers;
}

/* Whether a write has been started. */
static bool status_take_turn(struct statuses *st, const char *key)
{
    struct subject s;

    if (!st->is_active || !subject_find(st, key, &s))
        return false;
    if (subject_is_outdated(&s) || subject_is_as_written(st, &s))
        return false;
    s.last->is_look_due = false;
    return status_reconcile(st, key, &s);
}

/* The queue's work. */
static void status_on_turn(void *arg, const char *key)
{
    struct statuses *st = arg;

    if (!status_take_turn(st, key))
        kube_queue_done(st->writer.queue, key, true, -1);
}

/* ---- The beginning and the end ---- */

static void status_on_count(void *arg, enum kube_operation operation, const struct kube_answer *a)
{
    const struct statuses *st = arg;

    account_write(st->o, operation, a);
}

void statuses_begin(struct statuses *st)
{
    const struct kube_queue_options queue = {.work = status_on_turn,
                                             .arg = st,
                                             .kube = st->o->kube,
                                             .max_active = 16,
                                             .max_retry_ms = 60 * 1000,
                                             .per_second = 10 * (st->o->api_qps / 4 + 1),
                                             .burst = 10 * (st->o->api_burst / 4 + 1)};

    st->writer = (struct kube_writer){.kube = st->o->kube,
                                      .queue = kube_queue_new(st->o->loop, &queue),
                                      .manager = "dynamic-scoring-controller",
                                      .kind = "status",
                                      .detail = "object",
                                      .on_fight = status_on_fight,
                                      .count = status_on_count,
                                      .arg = st};
}

void statuses_start(struct statuses *st)
{
    st->is_active = true;
}

void statuses_stop(struct statuses *st)
{
    struct configs *configs = &st->seen->configs;
    struct hub_config *c;
    size_t at = 0;

    st->is_active = false;
    for (size_t i = 0; i < st->seen->scorers.n; i++)
        last_status_done(&st->seen->scorers.by_age[i]->last_status);
    last_status_done(&configs->used.last_status);
    while ((c = map_next(&configs->others, &at)))
        last_status_done(&c->last_status);
}

void statuses_done(struct statuses *st)
{
    statuses_stop(st);
    st->writer.queue = kube_queue_free(st->writer.queue);
}
