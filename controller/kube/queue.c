/* Owns its items, one for each key that waits or is active; each is waiting, ready or active, and only the
 * ready ones are in the list of starts. On the loop: called by watches, timers and whoever wants something
 * written. No key is worked on twice at once, and no work starts while the API server is away. */
#include "controller/kube/queue.h"

#include "controller/kube/client.h"
#include "controller/kube/reach.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/map.h"

#include <stdio.h>

enum {
    DEFAULT_ACTIVE = 8,
    DEFAULT_MIN_RETRY_MS = 1000,
    DEFAULT_MAX_RETRY_MS = 5 * 60 * 1000,
    DEFAULT_PER_SECOND = 20,
    DEFAULT_BURST = 50,
    TOKEN = 1000, /* tokens are counted in thousandths */
};
static const double TURN_SECONDS = 0.004; /* of starts, then others have their turn */

enum item_state {
    ITEM_NEW,     /* in no state, between two of the others */
    ITEM_WAITING, /* for its timer */
    ITEM_READY,   /* in the list of starts */
    ITEM_ACTIVE,  /* until kube_queue_done() */
};

struct queue_item {
    struct kube_queue *queue;
    TAILQ_ENTRY(queue_item) entry; /* ITEM_READY: in the order of the starts */
    struct timer timer;            /* ITEM_WAITING: until when */
    enum item_state state;
    bool urgent;
    bool again; /* ITEM_ACTIVE: wanted once more, at again_at */
    mono_ms again_at;
    bool forgotten; /* ITEM_ACTIVE: not to be repeated */
    unsigned failures;
    char key[];
};

struct kube_queue {
    struct loop *loop;
    struct kube_queue_options o;
    struct map items;               /* by key */
    TAILQ_HEAD(, queue_item) ready; /* the urgent ones first */
    size_t active;
    int64_t tokens;
    mono_ms filled_at;
    struct timer pump;
    bool is_pumping; /* `work` may be running */
    struct kube_waiter waiter;
};

/* ---- The states of an item. Each function enters one, from whichever other it may follow ---- */

static void item_leave_state(struct queue_item *it)
{
    struct kube_queue *q = it->queue;

    switch (it->state) {
    case ITEM_WAITING:
        loop_timer_clear(q->loop, &it->timer);
        break;
    case ITEM_READY:
        TAILQ_REMOVE(&q->ready, it, entry);
        break;
    case ITEM_ACTIVE:
        invariant(q->active > 0);
        q->active--;
        break;
    case ITEM_NEW:
        break;
    }
    invariant(it->timer.place == 0); /* only who waits has a timer */
    it->state = ITEM_NEW;
}

/* Also for an item that is ready, and has become urgent. */
static void item_make_ready(struct queue_item *it)
{
    struct kube_queue *q = it->queue;

    invariant(it->state != ITEM_ACTIVE); /* what is worked on is not started again */
    item_leave_state(it);
    it->state = ITEM_READY;
    if (it->urgent)
        TAILQ_INSERT_HEAD(&q->ready, it, entry);
    else
        TAILQ_INSERT_TAIL(&q->ready, it, entry);
    kube_timer_move(q->loop, &q->pump, 0);
}

static void item_make_waiting(struct queue_item *it, int64_t ms)
{
    item_leave_state(it);
    it->state = ITEM_WAITING;
    kube_timer_move(it->queue->loop, &it->timer, ms > 0 ? ms : 0);
}

static void item_make_active(struct queue_item *it)
{
    struct kube_queue *q = it->queue;

    invariant(it->state == ITEM_READY);
    invariant(q->active < q->o.max_active);
    item_leave_state(it);
    it->state = ITEM_ACTIVE;
    it->again = false;
    q->active++;
}

/* Removal is the end, not a state. */
static void item_remove(struct queue_item *it)
{
    item_leave_state(it);
    (void)map_take(&it->queue->items, it->key);
    free(it);
}

static void item_on_timer(struct timer *t)
{
    struct queue_item *it = CONTAINER_OF(t, struct queue_item, timer);

    invariant(it->state == ITEM_WAITING);
    item_make_ready(it);
}

/* ---- Starts ---- */

static void queue_fill_tokens(struct kube_queue *q)
{
    int64_t most = (int64_t)q->o.burst * TOKEN;
    int64_t more = mono_diff(q->filled_at, loop_now(q->loop)) * q->o.per_second;

    q->filled_at = loop_now(q->loop);
    q->tokens = more > most - q->tokens ? most : q->tokens + more;
}

/* The next item that may be started in this turn; NULL if none may. */
static struct queue_item *queue_next_start(const struct kube_queue *q)
{
    bool has_time = loop_turn_seconds(q->loop) < TURN_SECONDS || q->active == 0;

    if (q->active >= q->o.max_active || q->tokens < TOKEN || !has_time)
        return NULL;
    return TAILQ_FIRST(&q->ready);
}

static void queue_on_pump(struct timer *t)
{
    struct kube_queue *q = CONTAINER_OF(t, struct kube_queue, pump);
    struct queue_item *next;

    queue_fill_tokens(q);
    if (q->o.kube && kube_is_unreachable(q->o.kube))
        return;
    q->is_pumping = true;
    while ((next = queue_next_start(q))) {
        item_make_active(next);
        q->tokens -= TOKEN;
        q->o.work(q->o.arg, next->key);
    }
    q->is_pumping = false;
    if (!TAILQ_EMPTY(&q->ready) && q->active < q->o.max_active)
        kube_timer_move(q->loop, t, (TOKEN - q->tokens) / q->o.per_second + 1);
}

/* All that waited for the server is spread over the next seconds, and its failures are forgotten. */
static void queue_on_return(struct kube_waiter *w)
{
    struct kube_queue *q = CONTAINER_OF(w, struct kube_queue, waiter);
    struct queue_item *it;
    size_t at = 0;

    while ((it = map_next(&q->items, &at))) {
        bool waits = it->state == ITEM_READY || (it->state == ITEM_WAITING && it->failures);

        it->failures = 0;
        if (waits)
            item_make_waiting(it, kube_return_ms());
    }
}

/* ---- The queue ---- */

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
    struct queue_item *it;
    size_t at = 0;

    if (!q)
        return NULL;
    invariant(!q->is_pumping); /* `work` would return into what is gone */
    if (q->o.kube)
        LIST_REMOVE(&q->waiter, entry);
    while ((it = map_next(&q->items, &at))) {
        item_leave_state(it);
        free(it);
    }
    invariant(q->active == 0 && TAILQ_EMPTY(&q->ready));
    map_done(&q->items);
    loop_timer_clear(q->loop, &q->pump);
    free(q);
    return NULL;
}

static struct queue_item *item_new(struct kube_queue *q, const char *key)
{
    size_t n = strlen(key);
    struct queue_item *it = xcalloc(1, sizeof(*it) + n + 1);

    memcpy(it->key, key, n);
    it->queue = q;
    it->timer.fn = item_on_timer;
    map_set(&q->items, it->key, it);
    return it;
}

/* An active item is repeated, at the earliest of the times asked for. */
static void item_repeat(struct queue_item *it, mono_ms at)
{
    if (!it->again || mono_before(at, it->again_at))
        it->again_at = at;
    it->again = true;
    it->forgotten = false;
}

/* An item that waits for a time, not for the end of a back-off, is moved forward. */
static void item_bring_forward(struct queue_item *it, int64_t ms)
{
    mono_ms at = mono_add(loop_now(it->queue->loop), ms);

    if (ms <= 0)
        item_make_ready(it);
    else if (it->state == ITEM_NEW || mono_before(at, it->timer.at))
        item_make_waiting(it, ms);
}

static void queue_add(struct kube_queue *q, const char *key, bool urgent, int64_t ms)
{
    struct queue_item *it = map_get(&q->items, key) ?: item_new(q, key);
    bool becomes_urgent = urgent && !it->urgent;

    it->urgent = it->urgent || urgent;
    switch (it->state) {
    case ITEM_ACTIVE:
        item_repeat(it, mono_add(loop_now(q->loop), ms));
        break;
    case ITEM_READY:
        if (becomes_urgent)
            item_make_ready(it);
        break;
    case ITEM_WAITING:
    case ITEM_NEW:
        if (it->failures == 0)
            item_bring_forward(it, ms);
        break;
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
    struct queue_item *it = map_get(&q->items, key);

    if (!it || it->state != ITEM_ACTIVE)
        return;
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
    struct queue_item *it = map_get(&q->items, key);

    if (it && it->state != ITEM_ACTIVE) {
        item_remove(it);
    } else if (it) {
        it->forgotten = true;
        it->again = false;
    }
}

bool kube_queue_has(const struct kube_queue *q, const char *key)
{
    return map_get(&q->items, key);
}

size_t kube_queue_length(const struct kube_queue *q)
{
    return q->items.n;
}
