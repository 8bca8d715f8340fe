/* Owns its items, one for each key that waits or is active; each is in one of three states, and only the
 * ready ones are in the list of starts. On the loop: called by watches, timers and whoever wants something
 * written. No key is worked on twice at once, and no work starts while the API server is away. */
#include "controller/kube/queue.h"

#include "controller/kube/client.h"
#include "controller/kube/reach.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
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

bool kube_queue_has(const struct kube_queue *q, const char *key)
{
    return map_get(&q->items, key);
}

size_t kube_queue_length(const struct kube_queue *q)
{
    return q->items.n;
}
