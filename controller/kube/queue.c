/* Owns its items: one for each key that waits or is under way. Their timers, and the queue's own, are set as long as they
 * live, so that kube_queue_done() cannot fail for want of memory. */
#include "controller/kube/queue.h"

#include "controller/kube/client_internal.h"
#include "exporter/base/hash.h"
#include "exporter/base/rand.h"

#include <errno.h>

enum {
    BUCKETS = 256,
    DEFAULT_ACTIVE = 8,
    DEFAULT_MIN_RETRY_MS = 1000,
    DEFAULT_MAX_RETRY_MS = 5 * 60 * 1000,
    DEFAULT_PER_SECOND = 20,
    DEFAULT_BURST = 50,
    TOKEN = 1000, /* tokens are counted in thousandths */
};

enum state { WAITING, READY, ACTIVE };

struct item {
    struct kube_queue *queue;
    struct item *next_in_bucket;
    struct item *prev, *next; /* READY: in the order of work */
    struct timer timer;       /* WAITING: until when */
    enum state state;
    bool again; /* ACTIVE: wanted once more, at again_at */
    mono_ms again_at;
    bool forgotten;
    unsigned failures;
    char key[];
};

struct kube_queue {
    struct loop *loop;
    struct kube_queue_options o;
    uint64_t seed;
    struct item *buckets[BUCKETS];
    struct item *first, *last; /* READY */
    size_t n, active;
    int64_t tokens;
    mono_ms filled_at;
    struct timer pump;
    bool *gone; /* while `work` runs: set when it freed the queue */
};

static struct item **slot_of(const struct kube_queue *q, const char *key)
{
    struct item *const *at = &q->buckets[hash_bytes(str_of(key), q->seed) % BUCKETS];

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next_in_bucket;
    return (struct item **)(uintptr_t)at;
}

static void pump_soon(struct kube_queue *q)
{
    kube_timer_move(q->loop, &q->pump, 0);
}

static void leave_ready(struct item *it)
{
    struct kube_queue *q = it->queue;

    *(it->prev ? &it->prev->next : &q->first) = it->next;
    *(it->next ? &it->next->prev : &q->last) = it->prev;
    it->prev = it->next = NULL;
}

static void make_ready(struct item *it)
{
    struct kube_queue *q = it->queue;

    it->state = READY;
    kube_timer_move(q->loop, &it->timer, KUBE_FAR_MS);
    it->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = it;
    q->last = it;
    pump_soon(q);
}

static void make_waiting(struct item *it, int64_t ms)
{
    it->state = WAITING;
    kube_timer_move(it->queue->loop, &it->timer, ms > 0 ? ms : 0);
}

static void remove_item(struct item *it)
{
    struct kube_queue *q = it->queue;

    if (it->state == READY)
        leave_ready(it);
    *slot_of(q, it->key) = it->next_in_bucket;
    loop_timer_clear(q->loop, &it->timer);
    q->n--;
    free(it);
}

static void on_item_timer(struct timer *t)
{
    struct item *it = CONTAINER_OF(t, struct item, timer);

    if (it->state == WAITING)
        make_ready(it);
    else
        kube_timer_move(it->queue->loop, t, KUBE_FAR_MS);
}

static void fill_tokens(struct kube_queue *q)
{
    mono_ms now = loop_now(q->loop);
    int64_t most = (int64_t)q->o.burst * TOKEN;
    int64_t more = mono_diff(q->filled_at, now) * q->o.per_second;

    q->filled_at = now;
    q->tokens = more > most - q->tokens ? most : q->tokens + more;
}

/* False when `work` freed the queue. */
static bool start_work(struct kube_queue *q, struct item *it)
{
    bool gone = false;

    leave_ready(it);
    it->state = ACTIVE;
    it->again = false;
    q->active++;
    q->tokens -= TOKEN;
    q->gone = &gone;
    q->o.work(q->o.arg, it->key);
    if (!gone)
        q->gone = NULL;
    return !gone;
}

static void on_pump(struct timer *t)
{
    struct kube_queue *q = CONTAINER_OF(t, struct kube_queue, pump);

    kube_timer_move(q->loop, t, KUBE_FAR_MS);
    fill_tokens(q);
    while (q->first && q->active < q->o.max_active && q->tokens >= TOKEN)
        if (!start_work(q, q->first))
            return;
    if (q->first && q->active < q->o.max_active)
        kube_timer_move(q->loop, t, (TOKEN - q->tokens) / q->o.per_second + 1);
}

int kube_queue_new(struct kube_queue **ret, struct loop *loop, const struct kube_queue_options *o)
{
    struct kube_queue *q = calloc(1, sizeof(*q));

    if (!q)
        return -ENOMEM;
    q->loop = loop;
    q->o = *o;
    q->o.max_active = o->max_active ? o->max_active : DEFAULT_ACTIVE;
    q->o.min_retry_ms = o->min_retry_ms ? o->min_retry_ms : DEFAULT_MIN_RETRY_MS;
    q->o.max_retry_ms = o->max_retry_ms ? o->max_retry_ms : DEFAULT_MAX_RETRY_MS;
    q->o.per_second = o->per_second ? o->per_second : DEFAULT_PER_SECOND;
    q->o.burst = o->burst ? o->burst : DEFAULT_BURST;
    q->seed = rand_u64();
    q->tokens = (int64_t)q->o.burst * TOKEN;
    q->filled_at = loop_now(loop);
    q->pump.fn = on_pump;
    if (loop_timer_set(loop, &q->pump, mono_add(loop_now(loop), KUBE_FAR_MS)) < 0) {
        free(q);
        return -ENOMEM;
    }
    *ret = q;
    return 0;
}

struct kube_queue *kube_queue_free(struct kube_queue *q)
{
    if (!q)
        return NULL;
    if (q->gone)
        *q->gone = true;
    for (size_t i = 0; i < BUCKETS; i++)
        while (q->buckets[i])
            remove_item(q->buckets[i]);
    loop_timer_clear(q->loop, &q->pump);
    free(q);
    return NULL;
}

static int item_new(struct kube_queue *q, struct item **slot, const char *key, int64_t ms)
{
    size_t n = strlen(key);
    struct item *it = calloc(1, sizeof(*it) + n + 1);

    if (!it)
        return -ENOMEM;
    memcpy(it->key, key, n);
    it->queue = q;
    it->timer.fn = on_item_timer;
    if (loop_timer_set(q->loop, &it->timer, mono_add(loop_now(q->loop), ms)) < 0) {
        free(it);
        return -ENOMEM;
    }
    *slot = it;
    q->n++;
    if (ms <= 0)
        make_ready(it);
    return 0;
}

static void want_again(struct item *it, int64_t ms)
{
    mono_ms at = mono_add(loop_now(it->queue->loop), ms);

    if (!it->again || mono_before(at, it->again_at))
        it->again_at = at;
    it->again = true;
    it->forgotten = false;
}

int kube_queue_add_after(struct kube_queue *q, const char *key, int64_t ms)
{
    struct item **slot = slot_of(q, key), *it = *slot;

    if (!it)
        return item_new(q, slot, key, ms);
    if (it->state == ACTIVE)
        want_again(it, ms);
    else if (it->state == WAITING && it->failures == 0 && ms <= 0)
        make_ready(it);
    else if (it->state == WAITING && it->failures == 0 && mono_diff(loop_now(q->loop), it->timer.at) > ms)
        make_waiting(it, ms);
    return 0;
}

int kube_queue_add(struct kube_queue *q, const char *key)
{
    return kube_queue_add_after(q, key, 0);
}

void kube_queue_done(struct kube_queue *q, const char *key, bool ok, int64_t retry_after_ms)
{
    struct item *it = *slot_of(q, key);

    if (!it || it->state != ACTIVE)
        return;
    q->active--;
    pump_soon(q);
    if (it->forgotten || (ok && !it->again)) {
        remove_item(it);
    } else if (ok) {
        it->failures = 0;
        make_waiting(it, mono_diff(loop_now(q->loop), it->again_at));
    } else {
        it->failures++;
        make_waiting(it, kube_backoff_ms(it->failures, q->o.min_retry_ms, q->o.max_retry_ms, retry_after_ms));
    }
}

void kube_queue_forget(struct kube_queue *q, const char *key)
{
    struct item *it = *slot_of(q, key);

    if (!it)
        return;
    if (it->state != ACTIVE) {
        remove_item(it);
        return;
    }
    it->forgotten = true;
    it->again = false;
}

size_t kube_queue_length(const struct kube_queue *q)
{
    return q->n;
}

unsigned kube_queue_failures(const struct kube_queue *q, const char *key)
{
    const struct item *it = *slot_of(q, key);

    return it ? it->failures : 0;
}
