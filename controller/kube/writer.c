/* Owns nothing: an object's state of writing is embedded in its owner, which is told of each call's end,
 * and the calls are the client's. On the loop, called in the object's turn of the queue, by the watch that
 * shows the object, and by the timer of a fight. An object never has two calls under way. */
#include "controller/kube/writer.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/reach.h"
#include "controller/kube/verdict.h"
#include "controller/kube/version.h"
#include "controller/kube/watch.h"
#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"

#include <stdio.h>

enum {
    SAME_MS = 10 * 60 * 1000, /* after which the same write again undoes nobody's */
    MIN_WAIT_MS = 500,
    MAX_WAIT_MS = 60 * 1000,
    FIGHT_UNDONE = 3, /* undone so often in a row, it is a fight */
    OLD_MS = 60 * 1000,
    QUERY_BYTES = sizeof("fieldManager=") + KUBE_MANAGER_BYTES,
};

/* ---- A fight: from the third write in a row that others undo until one stands ---- */

static void fight_tell(struct kube_object *o)
{
    if (o->writer->on_fight)
        o->writer->on_fight(o->writer->arg, o);
}

static void fight_restart_timer(struct kube_object *o)
{
    kube_timer_move(kube_loop(o->writer->kube), &o->settle, kube_fight_settle_ms(&o->fight));
}

/* A write was undone. stood_ms: after that time at most. */
static void fight_note_undone(struct kube_object *o, int64_t stood_ms)
{
    struct kube_fight *f = &o->fight;

    if (stood_ms > f->longest_ms)
        f->longest_ms = stood_ms;
    if (!f->is_on && o->undone < FIGHT_UNDONE)
        return;
    fight_restart_timer(o);
    if (f->is_on)
        return;
    f->is_on = true;
    log_warn("another writer keeps undoing our writes, backing off", L_STR("kind", o->writer->kind),
             L_STR("name", o->key), L_STR("manager", f->rival == RIVAL_NAMED ? f->manager : "unknown"));
    fight_tell(o);
}

/* While the object's turn is yet to come, or there is no news, the last write may have been undone, too. */
static void fight_on_settle(struct timer *t)
{
    struct kube_object *o = CONTAINER_OF(t, struct kube_object, settle);

    invariant(o->fight.is_on);
    if (kube_queue_has(o->writer->queue, o->key) || kube_is_unreachable(o->writer->kube)) {
        fight_restart_timer(o);
        return;
    }
    o->fight = (struct kube_fight){0};
    o->undone = 0;
    log_info("our writes are not undone any more", L_STR("kind", o->writer->kind), L_STR("name", o->key));
    fight_tell(o);
}

/* ---- Objects ---- */

void kube_object_init(struct kube_object *o, struct kube_writer *w, const char *key)
{
    *o = (struct kube_object){
        .writer = w, .key = key, .wait_ms = -1, .subresource = "", .settle.fn = fight_on_settle};
}

void kube_object_done(struct kube_object *o)
{
    if (o->fight.is_on)
        loop_timer_clear(kube_loop(o->writer->kube), &o->settle);
    o->fight = (struct kube_fight){0};
    free(TAKE_PTR(o->last_error));
    if (!o->call)
        return;
    o->call = kube_cancel(o->call);
    kube_queue_done(o->writer->queue, o->key, true, -1);
}

void kube_object_set_error(struct kube_object *o, const char *error)
{
    const struct kube_writer *w = o->writer;
    CLEANUP(cleanup_free) char *what = NULL;

    if (strcmp(cstr(o->last_error), error) == 0)
        return;
    what = xasprintf("%s not written", w->kind);
    log_warn(what, L_STR(w->detail, o->key), L_STR("err", error));
    free(o->last_error);
    o->last_error = xstrdup(error);
}

void kube_object_clear_error(struct kube_object *o)
{
    const struct kube_writer *w = o->writer;
    CLEANUP(cleanup_free) char *what = NULL;

    if (!o->last_error)
        return;
    what = xasprintf("%s written again", w->kind);
    log_info(what, L_STR(w->detail, o->key));
    free(TAKE_PTR(o->last_error));
}

void kube_object_end(struct kube_object *o, bool ok, int64_t retry_after_ms)
{
    int64_t wait_ms = o->wait_ms;
    bool undone = ok && wait_ms >= 0;

    invariant(!o->call); /* `done` ends the turn */
    o->wait_ms = -1;     /* a turn without a write waits for nobody */
    o->failures = ok && !undone ? 0 : o->failures + 1;
    kube_queue_done(o->writer->queue, o->key, ok && !undone, undone ? wait_ms : retry_after_ms);
}

void kube_object_fail(struct kube_object *o, const struct kube_answer *a)
{
    kube_object_set_error(o, a->why);
    kube_object_end(o, false, a->retry_after_ms);
}

/* Whether the write that has just ended repeats the last one, which others have undone. */
static bool object_repeats_write(const struct kube_object *o)
{
    switch (o->sent.kind) {
    case KUBE_GOAL_STATE:
        return o->written.kind == KUBE_GOAL_STATE && o->written.hash == o->sent.hash;
    case KUBE_GOAL_AGAIN:
        return o->written.kind != KUBE_GOAL_NONE;
    case KUBE_GOAL_REPAIR:
        return o->written.kind == KUBE_GOAL_REPAIR;
    case KUBE_GOAL_NONE:
    case KUBE_GOAL_NEW:
        break;
    }
    return false;
}

static void object_take_write(struct kube_object *o, const json_t *object)
{
    mono_ms now = kube_now(o->writer->kube);
    bool was_restored = o->version_era != o->call_era; /* nobody has undone it */
    bool undone = !was_restored && object_repeats_write(o) && mono_diff(o->written_at, now) < SAME_MS;

    invariant(o->sent.kind != KUBE_GOAL_NONE);
    (void)snprintf(o->version, sizeof(o->version), "%s", kube_version(object));
    o->version_era = o->call_era;
    if (!*o->version)
        return;
    o->undone = undone ? o->undone + 1 : 0;
    o->wait_ms = undone ? kube_backoff_ms(o->undone, MIN_WAIT_MS, MAX_WAIT_MS, -1) : -1;
    if (undone)
        fight_note_undone(o, mono_diff(o->written_at, now));
    else if (!o->fight.is_on)
        o->fight = (struct kube_fight){0};
    o->written = o->sent;
    o->written_at = now;
}

WORD_TABLE(kube_operation_word, enum kube_operation, KUBE_OPERATIONS,
           {[KUBE_READ] = "read",
            [KUBE_WRITE_CREATE] = "create",
            [KUBE_WRITE_PATCH] = "patch",
            [KUBE_WRITE_STATUS] = "status",
            [KUBE_WRITE_FINALIZER] = "finalizer",
            [KUBE_WRITE_DELETE] = "delete",
            [KUBE_WRITE_LABEL] = "label",
            [KUBE_WRITE_ADOPT] = "adopt",
            [KUBE_WRITE_TAKE_OVER] = "take_over"});

static void object_on_answer(void *arg, struct kube_answer *a)
{
    struct kube_object *o = arg;
    const struct kube_writer *w = o->writer;

    o->call = NULL;
    if (w->count && o->operation != KUBE_READ)
        w->count(w->arg, o->operation, a);
    if (a->verdict == KUBE_OK && o->sent.kind != KUBE_GOAL_NONE)
        object_take_write(o, a->object);
    o->done(o, a);
}

void kube_object_call(struct kube_object *o, enum kube_operation operation, const struct kube_request *rq,
                      struct kube_goal goal, void (*done)(struct kube_object *o, struct kube_answer *a))
{
    bool writes = rq->method == KUBE_CREATE || rq->method == KUBE_MERGE_PATCH;
    struct kube_request request = *rq;
    char query[QUERY_BYTES];

    if (writes) {
        (void)snprintf(query, sizeof(query), "fieldManager=%s", o->writer->manager);
        request.query = query;
    }
    invariant(!o->call); /* of one turn, or of two */
    o->operation = operation;
    o->call_era = kube_era(o->writer->kube);
    o->sent = goal;
    o->done = done;
    o->wait_ms = -1;
    if (goal.kind != KUBE_GOAL_NONE) {
        o->vanished = false;
        o->subresource = cstr(rq->subresource);
    }
    if (rq->method == KUBE_CREATE)
        o->watched[0] = '\0'; /* that of an earlier one */
    o->call = kube_start(o->writer->kube, &request, object_on_answer, o);
}

const char *kube_object_version(const struct kube_object *o)
{
    return o->version_era == kube_era(o->writer->kube) ? o->version : "";
}

enum kube_seen kube_object_see(const struct kube_object *o, const json_t *object)
{
    const char *version = kube_version(object), *written = kube_object_version(o);

    if (!*written)
        return KUBE_SEEN_NEW;
    if (strcmp(version, written) == 0)
        return KUBE_SEEN_OWN;
    return kube_version_newer(written, version) &&
                   mono_diff(o->written_at, kube_now(o->writer->kube)) < OLD_MS
               ? KUBE_SEEN_OLD
               : KUBE_SEEN_NEW;
}

void kube_object_look_for_rival(struct kube_object *o, const json_t *object)
{
    bool is_later = *kube_object_version(o) && kube_object_see(o, object) == KUBE_SEEN_NEW;

    if (is_later && (o->undone || o->fight.is_on) &&
        kube_fight_note(&o->fight, object, o->writer->manager, o->subresource) && o->fight.is_on)
        fight_tell(o);
}

void kube_object_watched(struct kube_object *o, const json_t *object)
{
    if (object)
        kube_object_look_for_rival(o, object);
    o->vanished = !object && o->call;
    (void)snprintf(o->watched, sizeof(o->watched), "%s", kube_version(object));
    o->watched_era = kube_era(o->writer->kube);
}

bool kube_object_is_overtaken(const struct kube_object *o)
{
    if (o->vanished || !*o->watched || !*o->version)
        return o->vanished;
    if (o->watched_era != o->version_era)
        return o->watched_era > o->version_era;
    return kube_version_newer(o->watched, o->version);
}

bool kube_object_is_reported(const struct kube_object *o, const struct kube_watch *w)
{
    const char *version = kube_object_version(o);

    if (!*version) /* unknown, or of before the store went back */
        return *o->version && !kube_watch_is_first_list(w);
    return kube_watch_has_passed(w, version);
}
