/* A queue owns its items, one for each key that waits or is active. */
#include "controller/kube/kube.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/map.h"
#include "exporter/base/random.h"
#include "exporter/base/utf8.h"

#include <stdio.h>

/* ---- The queue ---- */

enum {
    DEFAULT_ACTIVE = 8,
    DEFAULT_MIN_RETRY_MS = 1000,
    DEFAULT_MAX_RETRY_MS = 5 * 60 * 1000,
    DEFAULT_PER_SECOND = 20,
    DEFAULT_BURST = 50,
    TOKEN = 1000, /* tokens are counted in thousandths */
};
static const double TURN_SECONDS = 0.004; /* of starts, then others have their turn */

enum state { WAITING, READY, ACTIVE };

struct item {
    struct kube_queue *queue;
    TAILQ_ENTRY(item) entry; /* READY: in the order of the starts */
    struct timer timer;      /* WAITING: until when */
    enum state state;
    bool urgent;
    bool again; /* ACTIVE: wanted once more, at again_at */
    mono_ms again_at;
    bool forgotten;
    unsigned failures;
    char key[];
};

struct kube_queue {
    struct loop *loop;
    struct kube_queue_options o;
    struct map items;         /* by key */
    TAILQ_HEAD(, item) ready; /* the urgent ones first */
    size_t active;
    int64_t tokens;
    mono_ms filled_at;
    struct timer pump;
    struct kube_waiter waiter;
};

static void item_make_ready(struct item *it)
{
    it->state = READY;
    loop_timer_clear(it->queue->loop, &it->timer);
    if (it->urgent)
        TAILQ_INSERT_HEAD(&it->queue->ready, it, entry);
    else
        TAILQ_INSERT_TAIL(&it->queue->ready, it, entry);
    kube_timer_move(it->queue->loop, &it->queue->pump, 0);
}

static void item_make_waiting(struct item *it, int64_t ms)
{
    it->state = WAITING;
    kube_timer_move(it->queue->loop, &it->timer, ms > 0 ? ms : 0);
}

static void item_remove(struct item *it)
{
    struct kube_queue *q = it->queue;

    if (it->state == READY)
        TAILQ_REMOVE(&it->queue->ready, it, entry);
    (void)map_take(&q->items, it->key);
    loop_timer_clear(q->loop, &it->timer);
    free(it);
}

static void item_on_timer(struct timer *t)
{
    item_make_ready(CONTAINER_OF(t, struct item, timer));
}

static void queue_on_pump(struct timer *t)
{
    struct kube_queue *q = CONTAINER_OF(t, struct kube_queue, pump);
    int64_t most = (int64_t)q->o.burst * TOKEN;
    int64_t more = mono_diff(q->filled_at, loop_now(q->loop)) * q->o.per_second;
    struct item *next;

    q->filled_at = loop_now(q->loop);
    q->tokens = more > most - q->tokens ? most : q->tokens + more;
    if (q->o.kube && kube_is_unreachable(q->o.kube))
        return;
    while ((next = TAILQ_FIRST(&q->ready)) && q->active < q->o.max_active && q->tokens >= TOKEN &&
           (loop_turn_seconds(q->loop) < TURN_SECONDS || !q->active)) {
        TAILQ_REMOVE(&q->ready, next, entry);
        next->state = ACTIVE;
        next->again = false;
        q->active++;
        q->tokens -= TOKEN;
        q->o.work(q->o.arg, next->key);
    }
    if (next && q->active < q->o.max_active)
        kube_timer_move(q->loop, t, (TOKEN - q->tokens) / q->o.per_second + 1);
}

static void queue_on_return(struct kube_waiter *w)
{
    struct kube_queue *q = CONTAINER_OF(w, struct kube_queue, waiter);
    struct item *it;
    size_t at = 0;

    while ((it = map_next(&q->items, &at))) {
        bool waits = it->state == READY || (it->state == WAITING && it->failures);

        it->failures = 0;
        if (it->state == READY)
            TAILQ_REMOVE(&q->ready, it, entry);
        if (waits)
            item_make_waiting(it, kube_return_ms());
    }
}

struct kube_queue *kube_queue_new(struct loop *loop, const struct kube_queue_options *o)
{
    struct kube_queue *q = xcalloc(1, sizeof(*q));

    q->loop = loop;
    q->o = *o;
    q->o.max_active = o->max_active ? o->max_active : DEFAULT_ACTIVE;
    q->o.min_retry_ms = o->min_retry_ms ? o->min_retry_ms : DEFAULT_MIN_RETRY_MS;
    q->o.max_retry_ms = o->max_retry_ms ? o->max_retry_ms : DEFAULT_MAX_RETRY_MS;
    q->o.per_second = o->per_second ? o->per_second : DEFAULT_PER_SECOND;
    q->o.burst = o->burst ? o->burst : DEFAULT_BURST;
    TAILQ_INIT(&q->ready);
    q->tokens = (int64_t)q->o.burst * TOKEN;
    q->filled_at = loop_now(loop);
    q->pump.fn = queue_on_pump;
    q->waiter.on_return = queue_on_return;
    if (o->kube)
        kube_waiter_add(o->kube, &q->waiter);
    return q;
}

struct kube_queue *kube_queue_free(struct kube_queue *q)
{
    struct item *it;
    size_t at = 0;

    if (!q)
        return NULL;
    if (q->o.kube)
        LIST_REMOVE(&q->waiter, entry);
    while ((it = map_next(&q->items, &at))) {
        loop_timer_clear(q->loop, &it->timer);
        free(it);
    }
    map_done(&q->items);
    loop_timer_clear(q->loop, &q->pump);
    free(q);
    return NULL;
}

static struct item *item_new(struct kube_queue *q, const char *key)
{
    size_t n = strlen(key);
    struct item *it = xcalloc(1, sizeof(*it) + n + 1);

    memcpy(it->key, key, n);
    it->queue = q;
    it->timer.fn = item_on_timer;
    map_set(&q->items, it->key, it);
    return it;
}

static void queue_add(struct kube_queue *q, const char *key, bool urgent, int64_t ms)
{
    struct item *it = map_get(&q->items, key);
    bool moves = it && it->state == READY && urgent && !it->urgent;
    mono_ms at = mono_add(loop_now(q->loop), ms);

    if (!it)
        it = item_new(q, key);
    it->urgent = it->urgent || urgent;
    if (it->state == ACTIVE) {
        if (!it->again || mono_before(at, it->again_at))
            it->again_at = at;
        it->again = true;
        it->forgotten = false;
    } else if (moves) {
        TAILQ_REMOVE(&q->ready, it, entry);
        item_make_ready(it);
    } else if (it->state == WAITING && it->failures == 0) {
        if (ms <= 0)
            item_make_ready(it);
        else if (it->timer.place == 0 || mono_before(at, it->timer.at))
            item_make_waiting(it, ms);
    }
}

void kube_queue_add(struct kube_queue *q, const char *key)
{
    queue_add(q, key, false, 0);
}

void kube_queue_add_after(struct kube_queue *q, const char *key, int64_t ms)
{
    queue_add(q, key, false, ms);
}

void kube_queue_add_urgent(struct kube_queue *q, const char *key)
{
    queue_add(q, key, true, 0);
}

void kube_queue_done(struct kube_queue *q, const char *key, bool ok, int64_t retry_after_ms)
{
    struct item *it = map_get(&q->items, key);

    if (!it || it->state != ACTIVE)
        return;
    q->active--;
    kube_timer_move(q->loop, &q->pump, 0);
    if (it->forgotten || (ok && !it->again)) {
        item_remove(it);
    } else if (ok) {
        it->failures = 0;
        item_make_waiting(it, mono_diff(loop_now(q->loop), it->again_at));
    } else {
        it->failures++;
        item_make_waiting(
            it, kube_backoff_ms(it->failures, q->o.min_retry_ms, q->o.max_retry_ms, retry_after_ms));
    }
}

void kube_queue_forget(struct kube_queue *q, const char *key)
{
    struct item *it = map_get(&q->items, key);

    if (it && it->state != ACTIVE) {
        item_remove(it);
    } else if (it) {
        it->forgotten = true;
        it->again = false;
    }
}

size_t kube_queue_length(const struct kube_queue *q)
{
    return q->items.n;
}

/* ---- The writer ---- */

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
    if (map_get(&o->writer->queue->items, o->key) || kube_is_unreachable(o->writer->kube)) {
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
    free(TAKE_PTR(o->trouble));
    if (!o->call)
        return;
    o->call = kube_cancel(o->call);
    kube_queue_done(o->writer->queue, o->key, true, -1);
}

void kube_object_set_trouble(struct kube_object *o, const char *text)
{
    const struct kube_writer *w = o->writer;
    char what[64];

    if (strcmp(cstr(o->trouble), text) == 0)
        return;
    (void)snprintf(what, sizeof(what), "%s %s", w->kind, *text ? "not written" : "written again");
    if (*text)
        log_warn(what, L_STR(w->detail, o->key), L_STR("err", text));
    else
        log_info(what, L_STR(w->detail, o->key));
    free(o->trouble);
    o->trouble = *text ? xstrdup(text) : NULL;
}

void kube_object_end(struct kube_object *o, bool ok, int64_t retry_after_ms)
{
    int64_t wait_ms = o->wait_ms;
    bool undone = ok && wait_ms >= 0;

    o->wait_ms = -1; /* a turn without a write waits for nobody */
    o->failures = ok && !undone ? 0 : o->failures + 1;
    kube_queue_done(o->writer->queue, o->key, ok && !undone, undone ? wait_ms : retry_after_ms);
}

void kube_object_fail(struct kube_object *o, const struct kube_answer *a)
{
    kube_object_set_trouble(o, a->why);
    kube_object_end(o, false, a->retry_after_ms);
}

/* Whether the write under way repeats the last one, which others have undone. */
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

/* ---- Events, in a queue whose keys are the events themselves, as JSON ---- */

enum { MAX_WAITING = 512, MAX_RETRY_MS = 30 * 1000, NOTE_BYTES = 1024, WORD_BYTES = 128 };

struct kube_events {
    struct kube *kube;
    const char *controller;
    char *instance;
    struct kube_queue *queue;
    const char *sending; /* the active key */
    struct kube_call *call;
    uint64_t dropped;
};

uint64_t kube_events_dropped(const struct kube_events *e)
{
    return e->dropped;
}

static void event_on_sent(void *arg, struct kube_answer *a)
{
    struct kube_events *e = arg;
    bool transient = a->verdict == KUBE_RETRY || a->verdict == KUBE_UNAUTHORIZED;

    e->call = NULL;
    /* KUBE_EXISTS: an earlier answer was lost. */
    e->dropped += !transient && a->verdict != KUBE_OK && a->verdict != KUBE_EXISTS;
    kube_queue_done(e->queue, e->sending, !transient, a->retry_after_ms);
}

static void event_post(void *arg, const char *text)
{
    struct kube_events *e = arg;
    json_auto_t *event = json_loads(text, 0, NULL);
    const struct kube_request rq = {
        .method = KUBE_CREATE, .resource = &kube_events, .namespace = kube_namespace(event), .body = event};

    e->sending = text;
    e->call = kube_start(e->kube, &rq, event_on_sent, e);
}

struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance)
{
    struct kube_events *e = xcalloc(1, sizeof(*e));
    const struct kube_queue_options o = {
        .work = event_post, .arg = e, .kube = k, .max_active = 1, .max_retry_ms = MAX_RETRY_MS};

    e->kube = k;
    e->controller = controller;
    e->instance = str_dup(utf8_cut(str_of(instance), WORD_BYTES));
    e->queue = kube_queue_new(kube_loop(k), &o);
    return e;
}

struct kube_events *kube_events_free(struct kube_events *e)
{
    if (!e)
        return NULL;
    (void)kube_cancel(e->call);
    (void)kube_queue_free(e->queue);
    free(e->instance);
    free(e);
    return NULL;
}

static char *event_text(const struct kube_events *e, const struct kube_event *ev)
{
    /* Events of cluster-scoped objects are in "default". */
    const char *namespace = *kube_namespace(ev->about) ? kube_namespace(ev->about) : "default";
    char now[KUBE_TIME_BYTES];
    json_auto_t *event = NULL;

    kube_micro_time_format(kube_wall(e->kube), now);
    event = json_pack(
        "{s:s, s:s, s:{s:o, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:o, s:o, s:o, s:s, s:s}",
        "apiVersion", "events.k8s.io/v1", "kind", "Event", //
        "metadata", "name",
        json_sprintf("%.200s.%016llx", kube_name(ev->about), (unsigned long long)rand_u64()), "namespace",
        namespace, //
        "regarding", "apiVersion", ev->api_version, "kind", ev->kind, "namespace", namespace, "name",
        kube_name(ev->about), "uid", kube_uid(ev->about), //
        "eventTime", now, "type", ev->warning ? "Warning" : "Normal", "reason",
        kube_line(ev->reason, WORD_BYTES), "action", kube_line(ev->action, WORD_BYTES), "note",
        kube_line(ev->note, NOTE_BYTES), "reportingController", e->controller, "reportingInstance",
        e->instance);
    return json_dumps(event, JSON_COMPACT);
}

void kube_events_add(struct kube_events *e, const struct kube_event *ev)
{
    CLEANUP(cleanup_free) char *text = NULL;

    if (kube_queue_length(e->queue) >= MAX_WAITING) {
        e->dropped++;
        return;
    }
    text = event_text(e, ev);
    kube_queue_add(e->queue, text);
}
