/* Writes statuses and finalizers by a queue of objects, and nothing that is already so; sends Events. */
#include "controller/hub/state/state.h"

#include "controller/kube/fight.h"
#include "exporter/base/alloc.h"

void last_status_done(struct last_status *s)
{
    kube_object_done(&s->status);
    kube_object_done(&s->finalizer);
    free(s->key);
    json_decref(s->sending);
    json_decref(s->before);
    json_decref(s->sent);
    json_decref(s->result);
    *s = (struct last_status){0};
}

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

static bool event_is_due(const json_t *was, const json_t *is, bool from_unknown)
{
    if (hub_reason_passes(cstr(kube_str(is, "reason", NULL))))
        return false;
    if (kube_condition_is(is, "False"))
        return !kube_condition_is(was, "False");
    if (!kube_condition_is(is, "True") || hub_reason_passes(cstr(kube_str(was, "reason", NULL))))
        return false;
    return kube_condition_is(was, "False") || (from_unknown && kube_condition_is(was, "Unknown"));
}

static bool event_same_text(const json_t *a, const json_t *b)
{
    return strcmp(cstr(kube_str(a, "reason", NULL)), cstr(kube_str(b, "reason", NULL))) == 0 &&
           strcmp(cstr(kube_str(a, "message", NULL)), cstr(kube_str(b, "message", NULL))) == 0;
}

/* before may be NULL: then only for what is wrong. Ready repeats the text of the condition that it fails by:
 * one Event tells of both, and one of their end. */
static void status_events(struct kube_events *e, const json_t *object, const char *kind, const json_t *before,
                          const json_t *after)
{
    const json_t *told[ARRAY_SIZE(event_sources)];
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(event_sources); i++) {
        const json_t *was = kube_condition(before, event_sources[i].type);
        const json_t *is = kube_condition(after, event_sources[i].type), *failure = is;
        const struct kube_event event = {.about = object,
                                         .api_version = HUB_API,
                                         .kind = kind,
                                         .warning = kube_condition_is(is, "False"),
                                         .reason = cstr(kube_str(is, "reason", NULL)),
                                         .action = "Reconcile",
                                         .note = cstr(kube_str(is, "message", NULL))};
        size_t k = 0;

        if (!event_is_due(was, is, event_sources[i].from_unknown))
            continue;
        if (kube_condition_is(is, "True"))
            failure = was;
        while (k < n && !event_same_text(told[k], failure))
            k++;
        if (k == n) {
            kube_events_add(e, &event);
            told[n++] = failure;
        }
    }
}

void hub_event_of_fight(struct hub *h, const json_t *about, const struct kube_resource *resource,
                        const char *text)
{
    const struct kube_event event = {.about = about,
                                     .api_version = HUB_API,
                                     .kind = resource->kind,
                                     .warning = true,
                                     .reason = KUBE_FIGHT_REASON,
                                     .action = "Reconcile",
                                     .note = text};

    if (about)
        kube_events_add(h->events, &event);
}

/* ---- Whose status ---- */

/* The parts of a scorer or a config that are needed here. */
struct subject {
    const struct kube_resource *resource;
    json_t *object;
    struct hub_config *config; /* NULL: a scorer */
    const struct hub_scorer *scorer;
    struct last_status *last;
};

static bool subject_find(struct hub *h, const char *key, struct subject *ret)
{
    const char *name = strchr(key, '/') + 1;
    struct hub_scorer *s = NULL;
    struct hub_config *c = NULL;

    if (strncmp(key, "scorer/", 7) == 0)
        s = hub_scorer_find(h, name);
    else if (strcmp(name, HUB_CONFIG) != 0)
        c = map_get(&h->other_configs, name);
    else if (h->config.object)
        c = &h->config;
    if (s)
        *ret = (struct subject){&kube_dynamicscorers, s->object, NULL, s, &s->last_status};
    else if (c)
        *ret = (struct subject){&kube_dynamicscoringconfigs, c->object, c, NULL, &c->last_status};
    return s || c;
}

/* ---- The finalizer ---- */

static bool config_works_left(const struct hub *h)
{
    const struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at)))
        if (c->write.call || (c->work.exists && hub_work_is_ours(h, &c->work)))
            return true;
    return false;
}

/* A merge patch that adds or removes our finalizer, or NULL. The reference's goes when ours is there, or
 * nothing is left to hold; an object that is being deleted accepts no new one. Order and all others stay. */
static json_t *config_finalizer_patch(const struct hub *h, const struct hub_config *c)
{
    json_t *current = kube_list(c->object, "metadata", "finalizers", NULL), *one;
    json_auto_t *wanted = json_array();
    bool used = c == &h->config, adds = used && hub_is_distributing(h);
    bool has = object_has_finalizer(c->object, HUB_FINALIZER);
    bool keeps = adds || (used && config_works_left(h));
    size_t i;

    json_array_foreach(current, i, one)
    {
        const char *name = cstr(kube_str(one, NULL));
        bool ours = strcmp(name, HUB_FINALIZER) == 0, reference = strcmp(name, REFERENCE_FINALIZER) == 0;

        if (!(ours && !keeps) && !(reference && (!keeps || adds || has)))
            json_array_append(wanted, one);
    }
    if (adds && !has)
        json_array_append_new(wanted, json_string(HUB_FINALIZER));
    if (current ? json_equal(current, wanted) : json_array_size(wanted) == 0)
        return NULL;
    /* With the version that was read, so that a finalizer that another writer adds meanwhile is not lost. */
    return json_pack("{s:{s:s, s:O}}", "metadata", "resourceVersion", kube_version(c->object), "finalizers",
                     wanted);
}

/* ---- Fights ----
 *
 * The object's condition Contested tells of one, unless the other writer undoes that, too: then the
 * DynamicScoringConfig has it, and the Event stays in any case. */

void hub_status_on_fight(void *arg, struct kube_object *o)
{
    struct hub *h = arg;
    struct subject s;
    bool known = subject_find(h, o->key, &s);
    CLEANUP(cleanup_free) char *text = NULL;

    if (!known)
        return;
    /* `rival` alone may have become known: that is no other fight. */
    if (o->fight.is_on && !s.last->event_sent) {
        text = status_fight_text(s.last, o, s.resource->kind, kube_name(s.object));
        hub_event_of_fight(h, s.object, s.resource, text);
    }
    s.last->event_sent = s.last->status.fight.is_on || s.last->finalizer.fight.is_on;
    hub_schedule_status(h, s.config ? "config" : "scorer", kube_name(s.object), false);
    hub_schedule_status(h, "config", HUB_CONFIG, false);
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

static void status_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct hub *h = o->writer->arg;
    struct subject s;
    struct last_status *l;
    bool ok = a->verdict == KUBE_OK;

    if (!subject_find(h, o->key, &s))
        return;
    l = s.last;
    if (ok && o == &l->status) {
        json_decref(l->sent);
        json_decref(l->result);
        l->sent = TAKE_PTR(l->sending);
        l->result = json_incref(json_object_get(a->object, "status"));
        status_events(h->events, s.object, s.resource->kind, l->before, l->sent);
    }
    hub_count_reconcile(h, "status", ok && o->wait_ms < 0);
    kube_object_set_trouble(&l->status, ok ? "" : a->why);
    /* After a finalizer comes the status, once the watch has shown the version that it led to. */
    kube_object_end(o, ok || a->verdict == KUBE_NOT_FOUND, a->retry_after_ms);
}

/* status: NULL for finalizers. */
static void status_write(struct hub *h, const char *key, const struct subject *s, json_t *patch,
                         json_t *status)
{
    struct last_status *l = s->last;
    const struct kube_request rq = {
        .method = KUBE_MERGE_PATCH,
        .resource = s->resource,
        .namespace = h->o.namespace,
        .name = kube_name(s->object),
        .subresource = status ? "status" : NULL,
        .body = patch,
    };
    json_t *before = json_object_get(s->object, "status");
    struct kube_goal goal = {KUBE_GOAL_NEW, 0};

    if (!l->key) {
        l->key = xstrdup(key);
        kube_object_init(&l->status, &h->status, l->key);
        kube_object_init(&l->finalizer, &h->status, l->key);
    }
    if (!status) {
        kube_object_look_for_rival(&l->finalizer, s->object);
        if (!object_is_deleting(s->object)) /* it is the one that others have removed */
            goal.kind = KUBE_GOAL_REPAIR;
        kube_object_call(&l->finalizer, KUBE_WRITE_FINALIZER, &rq, goal, status_on_written);
        return;
    }
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

/* A thousand pairs of a scorer and a cluster take a tenth of a millisecond to count. */
enum { PAIRS_PER_MS = 1000 };

/* Whether a write has been started. */
static bool status_reconcile(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *finalizers = s->config ? config_finalizer_patch(h, s->config) : NULL, *status = NULL,
                *patch = NULL;
    const json_t *stored = json_object_get(s->object, "status");

    if (finalizers && !s->last->finalizer.fight.is_on) {
        status_write(h, key, s, finalizers, NULL);
        return true;
    }
    /* In a large roll-out counts change all the time, and every status is computed again: if only clusters
     * have changed, they may be ten times as old as counting takes. */
    if (!h->tally_fits || mono_diff(h->tallied_at, loop_now(h->o.loop)) >=
                              (int64_t)(h->totals.managed * h->n_scorers / PAIRS_PER_MS))
        hub_tally(h);
    status = s->scorer ? status_of_scorer(s->scorer) : status_of_config(h, s->config);
    /* A status that says that another writer removes the finalizer goes first, unless that is undone, too. */
    if (finalizers && (!status_would_change(stored, status) || status_was_sent(s, status))) {
        status_write(h, key, s, finalizers, NULL);
        return true;
    }
    /* Also unchanged: it was sent before, and the object still has what the server stored of it. */
    if (!status_would_change(stored, status) ||
        (json_equal(s->last->result, stored) && status_was_sent(s, status)))
        return false;
    patch = json_pack("{s:O}", "status", status);
    status_write(h, key, s, patch, status);
    return true;
}

void hub_status_write(void *arg, const char *key)
{
    struct hub *h = arg;
    struct subject s;
    bool known = h->active && subject_find(h, key, &s);

    /* Until the watch shows our last write the state is unknown; then the object is reconciled again. */
    if (!known ||
        (s.last->key && (kube_object_see(&s.last->status, s.object) == KUBE_SEEN_OLD ||
                         kube_object_see(&s.last->finalizer, s.object) == KUBE_SEEN_OLD)) ||
        !status_reconcile(h, key, &s))
        kube_queue_done(h->status.queue, key, true, -1);
}

void hub_statuses_cancel(struct hub *h)
{
    struct hub_config *c;
    size_t at = 0;

    /* Another controller writes them from now on. */
    for (size_t i = 0; i < h->n_scorers; i++)
        last_status_done(&h->by_age[i]->last_status);
    last_status_done(&h->config.last_status);
    while ((c = map_next(&h->other_configs, &at)))
        last_status_done(&c->last_status);
}
