/* Owns the slots of objects, what is known of each scorer, the watch, and the queue of writes. Called by
 * the agent as its sink, by the watch and by the queue, all on the loop. What belongs to another is never
 * written or deleted. */
#include "controller/placement/placement.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/fight.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "controller/placement/items.h"
#include "controller/placement/owner.h"
#include "controller/placement/scorers.h"
#include "controller/placement/slot.h"
#include "controller/placement/validity.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/summary.h"

#include <stdio.h>

struct placement {
    struct placement_options o;
    struct kube_writer writer; /* its keys: object names */
    struct kube_watch *watch;
    struct slot **slots;
    size_t n;
    struct placement_scorers scorers;
    struct adjustments adjustments;
    struct timer adjustment_ends; /* the next of them, */
    unix_ms next_end;             /* by the hub's clock; 0: none ends */
    bool may_write;               /* the first list is complete, or its failure is known */
    bool configured;              /* the scorers are known */
};

/* ---- Slots ---- */

static void placement_renew(struct placement *p, struct slot *s);
static void placement_on_adjustment_end(struct timer *t);
static void placement_watch_end(struct placement *p);

static struct slot *placement_find(const struct placement *p, const char *object)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->slots[i]->object, object) == 0)
            return p->slots[i];
    return NULL;
}

/* The slot that the scorer has; NULL if it has none. */
static struct slot *placement_slot_of(const struct placement *p, const char *score_name)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->slots[i]->scorer && strcmp(p->slots[i]->scorer->score_name, score_name) == 0)
            return p->slots[i];
    return NULL;
}

static void placement_on_late_timer(struct timer *t)
{
    struct slot *s = CONTAINER_OF(t, struct slot, late);

    if (s->scorer)
        placement_renew(s->placement, s);
}

static struct slot *placement_add_slot(struct placement *p, const char *object)
{
    struct slot *s = xcalloc(1, sizeof(*s));

    s->placement = p;
    s->adjustments = &p->adjustments;
    (void)snprintf(s->object, sizeof(s->object), "%s", object);
    p->slots = xrealloc(p->slots, (p->n + 1) * sizeof(struct slot *));
    p->slots[p->n++] = s;
    s->late.fn = placement_on_late_timer;
    kube_object_init(&s->write, &p->writer, s->object);
    return s;
}

static void slot_note_name(struct slot *s, const char *annotated_name)
{
    if (!annotated_name)
        return;
    free(s->annotated_name);
    s->annotated_name = xstrdup(annotated_name);
}

static void slot_note_version(struct slot *s, const json_t *object)
{
    const char *version = kube_version(object);

    (void)snprintf(s->uid, sizeof(s->uid), "%s", kube_uid(object));
    /* A part of one would match no version. */
    (void)snprintf(s->version, sizeof(s->version), "%s", strlen(version) < sizeof(s->version) ? version : "");
    slot_note_name(s, kube_annotation(object, SCORE_NAME_ANNOTATION));
}

static void placement_free_slot(struct slot *s)
{
    loop_timer_clear(kube_loop(s->placement->o.hub), &s->late);
    kube_object_done(&s->write);
    (void)batch_unref(s->batch);
    (void)batch_unref(s->last);
    slot_forget_shown(s);
    json_decref(s->found);
    free(s->found_adjusted);
    free(s->annotated_name);
    for (size_t i = 0; i < ARRAY_SIZE(s->conditions); i++)
        json_decref(s->conditions[i]);
    free(s->score_name);
    free(s->contested);
    free(s);
}

static void placement_remove(struct placement *p, struct slot *s)
{
    size_t i = 0;

    invariant(!s->write.call && !s->scorer);
    while (p->slots[i] != s) {
        i++;
        invariant(i < p->n);
    }
    p->slots[i] = p->slots[--p->n];
    kube_queue_forget(p->writer.queue, s->object);
    placement_free_slot(s);
}

/* Updates the metrics about all objects. */
static void placement_update_metrics(struct placement *p)
{
    bool up = kube_watch_synced(p->watch) && !kube_watch_error(p->watch);

    metric_set(p->o.metrics, METRIC_PLACEMENT_BEHIND, LV_NONE, (double)placement_behind(p));
    metric_set(p->o.metrics, METRIC_KUBE_UP, LV("addonplacementscores", "hub"), up);
    if (p->o.on_change)
        p->o.on_change(p->o.arg);
}

/* Derives the slot's wanted state from its scorer. */
static void placement_refresh(struct placement *p, struct slot *s)
{
    struct loop *l = kube_loop(p->o.hub);

    unix_ms now = kube_wall(p->o.hub), again;

    slot_update(s, &p->o, now);
    placement_watch_end(p); /* the hub's clock may only now be known */
    /* Its items end, or are renewed, without a round or an expiry that would tell. */
    again = slot_look_again_at(s, now);
    if (s->wanted && again.ms)
        loop_timer_set(l, &s->late, mono_add(loop_now(l), again.ms > now.ms ? again.ms - now.ms : 1));
}

/* ---- The calls for one object: create, get its owner, claim it, patch its status, delete ---- */

enum { FOREIGN_RETRY_MS = 300000 }; /* between checks whether a foreign object is gone */

static void write_next(struct slot *s);
static void write_get_owner(struct slot *s);

static void write_done(struct slot *s, bool ok)
{
    slot_check(s);
    placement_update_metrics(s->placement);
    kube_object_end(&s->write, ok, -1);
}

static struct slot *write_slot(struct kube_object *o)
{
    return CONTAINER_OF(o, struct slot, write);
}

/* Whether the call went well. If not, the turn is over: what is gone meanwhile is created in the next one. */
static bool write_is_ok(struct slot *s, const struct kube_answer *a)
{
    if (a->verdict == KUBE_OK)
        return true;
    if (a->verdict == KUBE_NOT_FOUND) {
        slot_note_gone(s);
        write_done(s, false);
    } else {
        placement_update_metrics(s->placement);
        kube_object_fail(&s->write, a);
    }
    return false;
}

/* Only the version that was seen is written: another program may have deleted the object and made its own of
 * that name, which no watch has shown yet. A status has no other precondition: the API server ignores the uid
 * in a patch of one. */
static void metadata_set_precondition(json_t *metadata, const struct slot *s)
{
    if (*s->version)
        kube_set_str(metadata, "resourceVersion", s->version);
}

/* Whether the precondition failed and a look at the object follows: perhaps it is not ours any more. Once a
 * turn, so that a writer who never rests keeps nobody waiting. */
static bool write_looks_again(struct slot *s, const struct kube_answer *a)
{
    if (a->verdict != KUBE_CONFLICT || s->looked_again)
        return false;
    s->looked_again = true;
    write_get_owner(s);
    return true;
}

static void write_call(struct slot *s, enum kube_operation operation, struct kube_request rq,
                       struct kube_goal goal, void (*done)(struct kube_object *o, struct kube_answer *a))
{
    rq.resource = &kube_addonplacementscores;
    rq.namespace = s->placement->o.cluster_name;
    kube_object_call(&s->write, operation, &rq, goal, done);
}

/* It is another's: nothing is written or deleted until it is gone, or may be taken over. */
static void slot_let_go(struct slot *s, const char *why)
{
    slot_note_foreign(s);
    kube_object_set_error(&s->write, why);
    kube_queue_add_after(s->placement->writer.queue, s->object, FOREIGN_RETRY_MS);
}

/* Of the same add-on in another namespace. */
static void slot_let_go_to_namespace(struct slot *s, const json_t *object)
{
    BUF_AUTO(why, SIZE_MAX / 2);
    CLEANUP(cleanup_free) char *text = NULL;

    buf_printf(&why, "%s/%s has been taken over by ", s->placement->o.cluster_name, s->object);
    buf_puts(&why, cstr(kube_annotation(object, SCORE_OWNER_ANNOTATION)));
    buf_puts(&why, ", the agent of the same add-on in another namespace");
    if (buf_failed(&why) < 0)
        memory_exhausted(why.n);
    text = str_dup(buf_str(&why));
    slot_let_go(s, text);
}

/* owner: NULL or empty if it names none. */
static void write_leave_alone(struct slot *s, const char *owner)
{
    BUF_AUTO(why, SIZE_MAX / 2);
    CLEANUP(cleanup_free) char *text = NULL;

    buf_printf(&why, "%s/%s was created by ", s->placement->o.cluster_name, s->object);
    buf_puts(&why, *cstr(owner) ? owner : "another program");
    buf_puts(&why, " and is left alone; delete it");
    if (!*cstr(owner))
        buf_puts(&why, ", adopt it with --adopt-unowned-scores");
    buf_puts(&why, ", or choose another scoreName");
    if (buf_failed(&why) < 0)
        memory_exhausted(why.n);
    text = str_dup(buf_str(&why));
    slot_let_go(s, text);
    write_done(s, true);
}

/* Ways to put our name on an object: the operation, and the words for its success. */
static const struct {
    enum kube_operation operation;
    const char *done;
} claims[] = {
    [CLAIM_LABEL] = {KUBE_WRITE_LABEL, "label restored"},
    [CLAIM_NAME] = {KUBE_WRITE_LABEL, "AddOnPlacementScore named after another score"},
    [CLAIM_UNOWNED] = {KUBE_WRITE_ADOPT, "AddOnPlacementScore adopted"},
    [CLAIM_MOVED] = {KUBE_WRITE_TAKE_OVER, "AddOnPlacementScore taken over"},
};

/* Without the right to label it, the scores of an object of ours are written all the same. */
static void write_on_claimed(struct kube_object *o, struct kube_answer *a)
{
    struct slot *s = write_slot(o);

    if (write_looks_again(s, a))
        return;
    if (a->verdict == KUBE_OK || a->verdict == KUBE_FORBIDDEN)
        slot_note_name(s, s->score_name); /* or it stays as it is */
    if (s->claim == CLAIM_NAME && a->verdict == KUBE_FORBIDDEN)
        log_warn("annotation not written, the optimizer takes the object for another score's",
                 L_STR("object", s->object), L_STR("err", a->why));
    else if (s->claim == CLAIM_LABEL && a->verdict == KUBE_FORBIDDEN)
        log_warn("label not restored, changes by other writers go unnoticed", L_STR("object", s->object),
                 L_STR("err", a->why));
    else if (!write_is_ok(s, a))
        return;
    else
        log_info(claims[s->claim].done, L_STR("object", s->object));
    if (a->verdict == KUBE_OK)
        slot_note_version(s, a->object);
    slot_note_ours(s);
    if (s->scorer) /* its last scores are known now */
        placement_refresh(s->placement, s);
    write_next(s);
}

static void write_claim(struct slot *s, enum slot_claim claim)
{
    json_auto_t *body = json_object();
    json_t *metadata = kube_set_object(body, "metadata");

    metadata_set_precondition(metadata, s);
    metadata_set_ours(metadata, s->placement->o.owner, s->score_name);
    s->claim = claim;
    write_call(s, claims[claim].operation,
               (struct kube_request){
                   .method = KUBE_MERGE_PATCH, .name = s->object, .body = body, .metadata_only = true},
               KUBE_NO_GOAL, write_on_claimed);
}

/* Without this check a new scorer would take over, and later delete, another program's object. One that
 * nobody owns is adopted if that is asked for: its scores count until the first round has succeeded, and
 * those without an end get one. */
static void write_take_over(struct slot *s, const json_t *object)
{
    slot_learn(s, object, kube_wall(s->placement->o.hub));
    s->taken_over = true;
    log_info("taking over an AddOnPlacementScore from another namespace", L_STR("object", s->object),
             L_STR("from", kube_annotation(object, SCORE_OWNER_ANNOTATION)));
    write_claim(s, CLAIM_MOVED);
}

/* From the agent in another namespace: as this one began to lead, where nothing could be listed by the first
 * look at the object; or later, as that one does not renew its scores any more. */
static bool slot_may_take_over(const struct slot *s, const json_t *object)
{
    const struct placement *p = s->placement;

    if (!object_is_of_other_namespace(object, p->o.owner))
        return false;
    if (s->takes_over)
        return true;
    if (!s->scorer)
        return false;
    if (!kube_watch_synced(p->watch) && !*s->write.version)
        return true;
    return s->foreign && object_is_expired(object, kube_wall(p->o.hub));
}

static void write_on_owner(struct kube_object *o, struct kube_answer *a)
{
    struct slot *s = write_slot(o);
    const struct placement_options *options = &s->placement->o;
    CLEANUP(cleanup_free) char *owner = a->verdict == KUBE_OK ? object_owner(a->object) : NULL;

    s->unsure = s->unsure && a->verdict != KUBE_OK && a->verdict != KUBE_NOT_FOUND;
    if (!write_is_ok(s, a))
        return;
    slot_note_version(s, a->object);
    if (object_is_ours(a->object, options->owner)) {
        slot_learn(s, a->object, kube_wall(options->hub));
        slot_note_ours(s);
        if (!object_is_labelled(a->object))
            write_claim(s, CLAIM_LABEL);
        else
            write_next(s);
    } else if (slot_may_take_over(s, a->object)) {
        write_take_over(s, a->object);
    } else if (!s->scorer) {
        slot_note_gone(s); /* another's */
        write_next(s);
    } else if (object_is_of_other_namespace(a->object, options->owner)) {
        slot_let_go_to_namespace(s, a->object);
        write_done(s, true);
    } else if (owner || !options->adopt_unowned) {
        write_leave_alone(s, owner);
    } else {
        slot_learn(s, a->object, kube_wall(options->hub));
        if (!s->found_until_ms)
            s->found_until_ms = kube_wall(options->hub).ms + s->life_ms;
        write_claim(s, CLAIM_UNOWNED);
    }
}

static void write_get_owner(struct slot *s)
{
    write_call(s, KUBE_READ, (struct kube_request){.method = KUBE_GET, .name = s->object}, KUBE_NO_GOAL,
               write_on_owner);
}

static void write_on_created(struct kube_object *o, struct kube_answer *a)
{
    struct slot *s = write_slot(o);

    s->unsure = a->verdict == KUBE_RETRY || a->verdict == KUBE_EXISTS;
    if (a->verdict == KUBE_EXISTS) {
        write_get_owner(s);
    } else if (a->verdict != KUBE_OK) { /* not found: the namespace */
        placement_update_metrics(s->placement);
        kube_object_fail(o, a);
    } else {
        slot_note_version(s, a->object);
        slot_note_ours(s);
        s->written = false;
        write_next(s);
    }
}

static void write_create(struct slot *s)
{
    const char *cluster = s->placement->o.cluster_name;
    json_auto_t *body = kube_resource_object(&kube_addonplacementscores, cluster, s->object);

    invariant(s->scorer && !s->exists);
    metadata_set_ours(kube_get(body, "metadata", NULL), s->placement->o.owner, s->score_name);
    write_call(s, KUBE_WRITE_CREATE, (struct kube_request){.method = KUBE_CREATE, .body = body}, KUBE_NO_GOAL,
               write_on_created);
}

static void write_on_status(struct kube_object *o, struct kube_answer *a)
{
    struct slot *s = write_slot(o);
    struct placement *p = s->placement;

    if (a->verdict != KUBE_OK) /* it may be there all the same */
        slot_forget_written(s);
    if (write_looks_again(s, a) || !write_is_ok(s, a))
        return;
    if (object_is_of_other_namespace(a->object, p->o.owner)) { /* it did so just before */
        slot_let_go_to_namespace(s, a->object);
        write_done(s, true);
        return;
    }
    slot_note_version(s, a->object);
    s->has_status = true;
    s->written_hash = s->sent_hash;
    s->written_until_ms = s->sent_until_ms;
    if (s->scorer)
        metric_set(p->o.metrics, METRIC_PLACEMENT_LAST_WRITE, LV(s->score_name),
                   (double)loop_wall(kube_loop(p->o.hub)).ms / 1000);
    kube_object_clear_error(o);
    s->overwritten = kube_object_is_overtaken(o);
    s->exists = !o->vanished;
    s->written = !s->overwritten;
    if (o->wait_ms >= 0)
        write_done(s, true);
    else
        write_next(s); /* what has changed meanwhile */
}

/* Repairs alone are alike: others undo what is repaired twice in a row. */
static void write_status(struct slot *s)
{
    json_auto_t *body = NULL;
    struct kube_goal goal = {s->overwritten ? KUBE_GOAL_REPAIR : KUBE_GOAL_NEW, 0};

    invariant(s->scorer && s->wanted && s->exists && !s->foreign);
    slot_show_newest(s);
    body = slot_status_body(s, &s->placement->o);
    if (body)
        metadata_set_precondition(kube_set_object(body, "metadata"), s);
    s->sent_hash = s->hash;
    s->sent_until_ms = s->valid_until_ms;
    write_call(s, KUBE_WRITE_STATUS,
               (struct kube_request){.method = KUBE_MERGE_PATCH,
                                     .name = s->object,
                                     .subresource = "status",
                                     .body = body,
                                     .metadata_only = true},
               goal, write_on_status);
}

static void write_on_deleted(struct kube_object *o, struct kube_answer *a)
{
    struct slot *s = write_slot(o);

    if (write_looks_again(s, a))
        return;
    if (a->verdict != KUBE_NOT_FOUND && !write_is_ok(s, a))
        return;
    log_info("AddOnPlacementScore deleted", L_STR("object", s->object));
    slot_note_gone(s);
    write_next(s); /* its scorer may be back */
}

static void write_delete(struct slot *s)
{
    json_auto_t *body = json_object();
    json_t *preconditions;

    invariant(!s->scorer && s->exists && !s->foreign && !s->takes_over);
    kube_set_str(body, "apiVersion", "v1");
    kube_set_str(body, "kind", "DeleteOptions");
    preconditions = kube_set_object(body, "preconditions");
    kube_set_str(preconditions, "uid", *s->uid ? s->uid : NULL);
    kube_set_str(preconditions, "resourceVersion", *s->version ? s->version : NULL);
    write_call(s, KUBE_WRITE_DELETE,
               (struct kube_request){.method = KUBE_DELETE, .name = s->object, .body = body}, KUBE_NO_GOAL,
               write_on_deleted);
}

static void write_next(struct slot *s)
{
    struct placement *p = s->placement;

    slot_check(s);
    /* The hub may have been out of reach, and its clock unknown, when the slot was made. */
    if (s->scorer && s->wanted && s->offset_ms != kube_clock_offset_ms(p->o.hub))
        placement_refresh(p, s);
    if (s->takes_over) {
        write_get_owner(s);
    } else if (!s->scorer && s->exists && s->taken_over) {
        kube_queue_done(p->writer.queue, s->object, true, -1); /* its scorer may be on its way */
    } else if (!s->scorer && s->exists && !s->foreign) {
        write_delete(s);
    } else if (!s->scorer && s->unsure) {
        write_get_owner(s);
    } else if (!s->scorer) {
        kube_queue_done(p->writer.queue, s->object, true, -1);
        placement_remove(p, s);
    } else if (!slot_is_due(s, kube_wall(p->o.hub))) {
        if (s->wanted && s->exists && slot_is_misnamed(s)) /* after its items */
            write_claim(s, CLAIM_NAME);
        else
            write_done(s, true);
    } else if (!s->exists) {
        write_create(s);
    } else {
        write_status(s);
    }
}

/* The queue's work: takes the object's next step, call by call. */
static void placement_work(void *arg, const char *object)
{
    struct placement *p = arg;
    struct slot *s = placement_find(p, object);

    if (!s || !p->may_write) {
        kube_queue_done(p->writer.queue, object, true, -1);
        return;
    }
    s->looked_again = false;
    write_next(s);
}

/* ---- The queue ---- */

/* Queues the object for a write or a delete. */
static void placement_enqueue(struct placement *p, const struct slot *s)
{
    if (p->may_write)
        kube_queue_add(p->writer.queue, s->object);
    placement_update_metrics(p);
}

static void placement_enqueue_all(struct placement *p)
{
    unix_ms now = kube_wall(p->o.hub);

    for (size_t i = 0; i < p->n; i++) {
        const struct slot *s = p->slots[i];

        if (s->takes_over || (s->scorer ? slot_is_due(s, now) : p->configured))
            placement_enqueue(p, s);
    }
}

/* ---- State on the hub ---- */

/* Only objects of the first list can be left over from before a restart, or be back after a restore from a
 * backup. Later ones with this agent's name come from another replica, which may already know a scorer that
 * this one does not. */
static void placement_on_set(void *arg, json_t *object)
{
    struct placement *p = arg;
    struct slot *s = placement_find(p, kube_name(object));
    bool is_first = kube_watch_is_first_list(p->watch);
    bool moved = object_is_of_other_namespace(object, p->o.owner), is_overtaken;

    if (!is_first && moved && s && s->exists && !s->takes_over && !s->write.call)
        slot_let_go_to_namespace(s, object);
    if ((!moved && !object_is_ours(object, p->o.owner)) || (!is_first && (!s || moved)))
        return;
    if (!s)
        s = placement_add_slot(p, kube_name(object));
    s->takes_over = moved;
    if (kube_object_see(&s->write, object) != KUBE_SEEN_OLD)
        slot_note_version(s, object);
    kube_object_watched(&s->write, object);
    if (s->write.call) /* its answer tells whether this came later */
        return;
    if (!s->written)
        slot_learn(s, object, kube_wall(p->o.hub));
    slot_note_ours(s);
    s->takes_over = moved;
    is_overtaken = s->scorer && s->written && kube_object_is_overtaken(&s->write);
    if (is_overtaken && (!s->wanted || s->hash != s->written_hash)) {
        /* The wanted state, which waits to be written, may by then be the one that was there before. */
        slot_forget_written(s);
    } else if (is_overtaken && !slot_matches(s, &p->o, object)) {
        log_info("AddOnPlacementScore changed by another writer, writing it again",
                 L_STR("object", s->object));
        s->overwritten = true;
        s->written = false;
        placement_enqueue(p, s);
    } else if (s->takes_over || (!s->scorer && p->configured)) {
        placement_enqueue(p, s);
    }
}

/* Also when the object has only lost the label that the watch selects by. */
static void placement_on_delete(void *arg, const char *namespace, const char *name)
{
    struct placement *p = arg;
    struct slot *s = placement_find(p, name);

    (void)namespace;
    if (!s || !(s->exists || s->foreign))
        return;
    kube_object_watched(&s->write, NULL);
    if (s->write.call)
        return;
    s->overwritten |= s->written;
    slot_note_gone(s);
    placement_enqueue(p, s);
}

/* After a restore from a backup: no watch tells of the end of what it has never shown. */
static void placement_on_restored(void *arg)
{
    struct placement *p = arg;

    for (size_t i = 0; i < p->n; i++)
        if (p->slots[i]->exists && !kube_watch_has(p->watch, p->o.cluster_name, p->slots[i]->object))
            placement_on_delete(p, p->o.cluster_name, p->slots[i]->object);
}

static void placement_begin_writes(struct placement *p)
{
    if (p->may_write)
        return;
    p->may_write = true;
    for (size_t i = 0; i < p->n; i++) /* now that the hub's objects are known */
        if (p->slots[i]->scorer)
            placement_refresh(p, p->slots[i]);
    placement_enqueue_all(p);
}

static void placement_on_synced(void *arg)
{
    struct placement *p = arg;

    placement_update_metrics(p);
    placement_begin_writes(p);
}

/* Writes may be allowed where lists are not, and report their own errors. */
static void placement_on_error(void *arg, const char *error)
{
    struct placement *p = arg;

    log_warn("watch of AddOnPlacementScores failed", L_STR("err", error));
    placement_update_metrics(p);
    placement_begin_writes(p);
}

static void placement_on_recovered(void *arg)
{
    log_info("watch of AddOnPlacementScores works again");
    placement_update_metrics(arg);
}

/* To tell of it is a write, too: in its turn. */
static void placement_on_fight(void *arg, struct kube_object *o)
{
    struct placement *p = arg;
    struct slot *s = write_slot(o);
    CLEANUP(cleanup_free) char *object = xasprintf("AddOnPlacementScore %s/%s", p->o.cluster_name, s->object);

    free(s->contested);
    s->contested = o->fight.is_on ? kube_fight_text(&o->fight, object) : NULL;
    if (s->scorer && s->wanted)
        placement_refresh(p, s);
    placement_enqueue(p, s);
}

static void placement_count(void *arg, enum kube_operation operation, const struct kube_answer *a)
{
    struct metrics *m = ((struct placement *)arg)->o.metrics;

    metric_add(m, METRIC_PLACEMENT_WRITES, LV(kube_operation_word(operation), kube_verdict_word(a->verdict)),
               1);
    metric_observe(m, METRIC_PLACEMENT_DURATION, LV(kube_operation_word(operation)), a->seconds);
}

struct placement *placement_new(const struct placement_options *o)
{
    struct placement *p = xcalloc(1, sizeof(*p));
    const struct kube_queue_options q = {.work = placement_work, .arg = p, .kube = o->hub};
    const struct kube_watch_options w = {
        .resource = &kube_addonplacementscores,
        .namespace = o->cluster_name,
        .label_selector = SCORE_LABEL "=" SCORE_LABEL_VALUE,
        .page = 10, /* each may be as large as the store allows */
        .on_set = placement_on_set,
        .on_delete = placement_on_delete,
        .on_synced = placement_on_synced,
        .on_restored = placement_on_restored,
        .on_error = placement_on_error,
        .on_recovered = placement_on_recovered,
        .arg = p,
    };

    p->o = *o;
    p->adjustment_ends.fn = placement_on_adjustment_end;
    p->writer = (struct kube_writer){.kube = o->hub,
                                     .manager = "dynamic-scoring-agent",
                                     .kind = "AddOnPlacementScore",
                                     .detail = "object",
                                     .on_fight = placement_on_fight,
                                     .count = placement_count,
                                     .arg = p};
    p->writer.queue = kube_queue_new(kube_loop(o->hub), &q);
    p->watch = kube_watch_new(o->hub, &w);
    return p;
}

struct placement *placement_free(struct placement *p)
{
    if (!p)
        return NULL;
    metric_remove(p->o.metrics, METRIC_PLACEMENT_BEHIND, LV_NONE);
    metric_remove(p->o.metrics, METRIC_KUBE_UP, LV("addonplacementscores", "hub"));
    p->watch = kube_watch_free(p->watch);
    for (size_t i = 0; i < p->n; i++)
        placement_free_slot(p->slots[i]);
    p->writer.queue = kube_queue_free(p->writer.queue);
    free(p->slots);
    placement_scorers_done(&p->scorers);
    loop_timer_clear(kube_loop(p->o.hub), &p->adjustment_ends);
    adjustments_done(&p->adjustments);
    free(p);
    return NULL;
}

/* ---- Wanted state ---- */

/* Derives the wanted state of a slot with a scorer, and has it written if it is due. */
static void placement_renew(struct placement *p, struct slot *s)
{
    placement_refresh(p, s);
    if (!s->foreign &&
        slot_is_due(s, kube_wall(p->o.hub))) /* the queue checks on a foreign object by itself */
        placement_enqueue(p, s);
}

void placement_round_ended(struct placement *p, const char *score_name, const struct round_outcome *o)
{
    struct placement_scorer *scorer = placement_scorers_at(&p->scorers, score_name);
    struct slot *s = placement_slot_of(p, score_name);

    placement_scorer_note(scorer, o, p->o.hub);
    if (s)
        placement_renew(p, s);
}

/* What follows from it waits for the next turn, as `applied` may tell in this one that the scorer is gone. */
void placement_withdrawn(struct placement *p, const char *score_name)
{
    struct placement_scorer *scorer = placement_scorers_at(&p->scorers, score_name);
    struct slot *s = placement_slot_of(p, score_name);
    struct loop *l = kube_loop(p->o.hub);

    scorer->batch = batch_unref(scorer->batch);
    if (s)
        loop_timer_set(l, &s->late, loop_now(l));
}

/* The scorer, which runs, has no object, but may have had one. */
static void placement_forget_object(const struct placement *p, const char *score_name)
{
    metric_remove(p->o.metrics, METRIC_PLACEMENT_ITEMS, LV(score_name));
    metric_remove(p->o.metrics, METRIC_PLACEMENT_LAST_WRITE, LV(score_name));
}

static void placement_assign(struct placement *p, struct placement_scorer *scorer)
{
    char object[OBJECT_NAME_MAX + 1];
    struct slot *s;

    if (scorer->summary->destination != DESTINATION_PLACEMENT_SCORE) {
        placement_forget_object(p, scorer->score_name);
        return;
    }
    (void)object_name(str_of(scorer->score_name), object);
    s = placement_find(p, object);
    if (s && s->scorer) {
        placement_forget_object(p, scorer->score_name);
        log_warn("two scorers share one AddOnPlacementScore name: the first keeps it",
                 L_STR("object", object), L_STR("first", s->score_name), L_STR("second", scorer->score_name));
        return;
    }
    if (!s)
        s = placement_add_slot(p, object);
    slot_assign(s, scorer);
    placement_refresh(p, s);
}

/* A scorer that is added again before its object is deleted is another one. */
static void placement_release_slots(struct placement *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!p->slots[i]->scorer)
            slot_forget_scorer(p->slots[i]);
        p->slots[i]->scorer = NULL;
    }
}

/* ---- Adjustments ---- */

enum { ADJUSTMENT_LOOK_MS = 30 * 1000 };

/* Looks again now and then: how far the hub's clock is from ours may become known, or change, meanwhile. */
static void placement_watch_end(struct placement *p)
{
    struct loop *l = kube_loop(p->o.hub);
    unix_ms now = kube_wall(p->o.hub);
    int64_t left_ms;

    if (p->next_end.ms && now.ms >= p->next_end.ms) {
        /* One ended before the timer: a round of one slot found it, and the others are to see it as well. */
        loop_timer_set(l, &p->adjustment_ends, loop_now(l));
        return;
    }
    p->next_end = adjustments_next_end(&p->adjustments, now);
    left_ms = p->next_end.ms - now.ms;
    if (p->next_end.ms)
        loop_timer_set(l, &p->adjustment_ends,
                       mono_add(loop_now(l), left_ms < ADJUSTMENT_LOOK_MS ? left_ms : ADJUSTMENT_LOOK_MS));
    else
        loop_timer_clear(l, &p->adjustment_ends);
}

static void placement_renew_all(struct placement *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->slots[i]->scorer)
            placement_renew(p, p->slots[i]);
}

static void placement_on_adjustment_end(struct timer *t)
{
    struct placement *p = CONTAINER_OF(t, struct placement, adjustment_ends);

    if (kube_wall(p->o.hub).ms >= p->next_end.ms) {
        p->next_end = (unix_ms){0};
        placement_renew_all(p);
    }
    placement_watch_end(p);
}

void placement_adjust(struct placement *p, struct adjustments *list)
{
    adjustments_done(&p->adjustments);
    p->adjustments = *list;
    *list = (struct adjustments){0};
    p->next_end = (unix_ms){0};
    placement_renew_all(p);
    placement_watch_end(p);
}

void placement_sync(struct placement *p, const struct summaries *list, int64_t stale_intervals)
{
    placement_release_slots(p);
    placement_scorers_set(&p->scorers, list, stale_intervals);
    for (size_t i = 0; i < p->n; i++)
        p->slots[i]->taken_over = false;
    for (size_t i = 0; i < list->n; i++)
        placement_assign(p, p->scorers.list[i]);
    p->configured = true;
    placement_enqueue_all(p);
}

void placement_sync_none(struct placement *p)
{
    placement_release_slots(p);
    placement_scorers_done(&p->scorers);
    p->configured = true;
    placement_enqueue_all(p);
}

const char *placement_error(const struct placement *p, const struct summary *sum)
{
    const struct slot *s = placement_slot_of(p, sum->score_name);

    if (s)
        return cstr(s->write.last_error ?: s->contested);
    if (!p->configured)
        return "";
    return sum->destination == DESTINATION_PLACEMENT_SCORE
               ? "no AddOnPlacementScore: an earlier scorer uses the same object name"
               : "";
}

const char *placement_why_no_items(const struct placement *p, const char *score_name)
{
    const struct slot *s = placement_slot_of(p, score_name);

    return s ? slot_why_no_items(s) : "";
}

int64_t placement_clock_set_by_ms(const struct placement *p, const char *score_name)
{
    struct placement_scorer *s = placement_scorers_find(&p->scorers, score_name);

    if (!s)
        return 0;
    placement_scorer_follow_clock(s, p->o.hub);
    return s->set_by_ms;
}

const char *placement_hub_error(const struct placement *p)
{
    return kube_watch_error(p->watch);
}

size_t placement_behind(const struct placement *p)
{
    unix_ms now = kube_wall(p->o.hub);
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->slots[i]->scorer ? slot_is_due(p->slots[i], now) : p->slots[i]->exists || p->slots[i]->unsure;
    return n;
}
