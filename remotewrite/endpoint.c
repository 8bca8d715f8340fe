/* Owns the thread, and all that it uses: queue, spool, intake, sender. */
#include "remotewrite/endpoint.h"

#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "remotewrite/config.h"
#include "remotewrite/sender.h"
#include "remotewrite/timestamp.h"
#include "remotewrite/transport.h"

#include <errno.h>
#include <stdio.h>

enum {
    INBOX_MAX_BYTES = 64 << 20,
    INBOX_MAX_ITEMS = 4096,
    INBOX_SERIES_BYTES = 48, /* of a set beside the names: labels, places, slots */
    METRICS_BYTES = 1 << 20, /* what a copy of the own metrics counts as */
    FLUSH_DEFAULT_MS = 1000,
    TICK_MS = 1000,
    FORGET_MS = 60 * 1000,
    DROP_LOG_MS = 60 * 1000,
    MEMORY_BYTES = 8 << 20,
    MEMORY_ONLY_BYTES = 64 << 20,
    SEGMENT_MAX = 16 << 20,
    SEGMENT_MIN = 64 << 10,
};

static const struct backoff spool_backoff = {1000, 60 * 1000, 60 * 1000};

/* What the agent's loop hands over. */
enum endpoint_item_kind {
    ITEM_BATCH,
    ITEM_RENEW,    /* the current batch, to compare */
    ITEM_WITHDRAW, /* a scorer's series, by its name */
    ITEM_METRICS,  /* the program's own */
    ITEM_CONFIG,
    ITEM_LEAD, /* the agent leads again */
};

struct endpoint_item {
    struct endpoint_item *next;
    enum endpoint_item_kind kind;
    struct batch *batch;
    char *withdraw;
    struct metrics *metrics;
    struct rw_endpoint_config *config;
    unix_ms at;
    size_t bytes;
};

struct endpoint {
    struct rw_endpoint_config *config; /* the agent's loop's */
    char *dir;                         /* of the spool; NULL: memory only */
    void (*changed)(void *arg);
    void *arg;
    pthread_t thread;
    bool started;
    struct lock lock;
    /* Guarded by the lock. */
    struct endpoint_item *inbox, **inbox_end;
    size_t inbox_bytes, inbox_items;
    uint64_t busy; /* samples dropped because the inbox was full, not yet counted by the thread */
    bool woken, drain;
    int64_t flush_ms; /* of a stop, the shortest; -1: not asked for */
    struct endpoint_state state;
    /* The thread's own, except that loop_post() is for any thread. */
    struct rw_endpoint_config *used; /* the configuration, as the thread last saw it */
    struct loop *loop;
    struct http *http;
    struct transport transport, metadata_transport;
    struct spool *spool;
    struct queue *queue;
    struct intake *intake;
    struct sender *sender;
    int spool_error;             /* of the last try to open it */
    struct spool_stats unopened; /* what was found then */
    unsigned spool_failures;
    mono_ms spool_retry_at;
    struct post wake;
    struct timer tick, flush;
    mono_ms forget_at; /* lanes */
    bool stopping;
    mono_ms flush_ends; /* while stopping */
    bool draining;      /* `drain`, as the thread last saw it */
    uint64_t drops_logged;
    mono_ms drops_logged_at;
    bool disk_failing;
};

static void endpoint_set_timer(struct endpoint *e, struct timer *t, int64_t ms)
{
    loop_timer_set(e->loop, t, mono_add(loop_now(e->loop), ms));
}

static void endpoint_enter(struct endpoint *e, enum endpoint_phase phase)
{
    invariant(lock_is_held(&e->lock));
    invariant(phase >= e->state.phase);
    e->state.phase = phase;
}

/* ---- The spool: opened at start or as soon as that is possible, and watched while it is open ---- */

static void spool_retry_later(struct endpoint *e)
{
    e->spool_retry_at = mono_add(loop_now(e->loop), backoff_ms(&spool_backoff, ++e->spool_failures, -1));
}

/* Notes why the spool is not open; logs it once until it is. */
static void spool_note_failure(struct endpoint *e, const struct spool *spool, int error)
{
    const char *text;

    if (e->draining) /* the leader has it; there is nothing to send here */
        return;
    if (error == -EBUSY)
        spool_ask_for(e->dir);
    e->unopened = spool_stats(spool);
    text = error == -EBUSY        ? "spool is in use by another process, keeping samples in memory"
           : e->unopened.unread.n ? "cannot read a spool segment, keeping samples in memory"
                                  : "cannot open the spool, keeping samples in memory";
    if (e->spool_error == 0)
        log_error(text, L_STR("remote_name", e->used->name), L_STR("dir", e->dir),
                  L_STR("err", e->unopened.unread.n ? e->unopened.error : strerror(-error)));
    e->spool_error = error;
    spool_retry_later(e);
}

static void spool_log_recovery(const struct endpoint *e, uint64_t lost)
{
    struct spool_stats found = spool_stats(e->spool);
    struct queue_stats s = queue_stats(e->queue);

    if (s.records || found.damaged_places || found.torn_bytes)
        LOG_AT(found.damaged_places || lost ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "spool read",
               L_STR("remote_name", e->used->name), L_INT("samples", s.samples), L_INT("records", s.records),
               L_INT("samples_lost", lost), L_INT("damaged_bytes", found.damaged_bytes),
               L_INT("torn_bytes", found.torn_bytes));
}

static size_t spool_segment_bytes(const struct endpoint *e)
{
    return size_max(SEGMENT_MIN, size_min(SEGMENT_MAX, e->used->max_spool_bytes / 8));
}

static void spool_open(struct endpoint *e)
{
    CLEANUP(cleanup_spool_free) struct spool *spool = NULL;
    uint64_t lost = queue_stats(e->queue).dropped[DROP_DAMAGED];
    int r = spool_new(&spool, e->dir, spool_segment_bytes(e)) ?: queue_attach(e->queue, spool);

    if (r < 0) {
        spool_note_failure(e, spool, r);
        return;
    }
    e->spool = TAKE_PTR(spool);
    if (e->spool_error < 0)
        log_info("spool opened", L_STR("remote_name", e->used->name), L_STR("dir", e->dir));
    e->spool_error = 0;
    e->spool_failures = 0;
    e->unopened = (struct spool_stats){0};
    spool_log_recovery(e, queue_stats(e->queue).dropped[DROP_DAMAGED] - lost);
    intake_attach(e->intake, e->spool);
}

static void spool_close(struct endpoint *e)
{
    intake_detach(e->intake);
    e->spool = spool_free(e->spool);
}

static void spool_retry_now(struct endpoint *e)
{
    e->spool_retry_at = loop_now(e->loop);
}

/* What failed is tried again with back-off. */
static void spool_watch(struct endpoint *e)
{
    bool due;

    if (!e->dir)
        return;
    if (e->spool && e->spool->read_error < 0) { /* the queue has left it */
        spool_note_failure(e, e->spool, e->spool->read_error);
        spool_close(e);
    } else if (e->spool && !spool_is_there(e->spool)) {
        uint64_t lost = queue_detach(e->queue);

        e->spool_error = -ENOENT;
        log_error("spool folder was removed, making it anew", L_STR("remote_name", e->used->name),
                  L_STR("dir", e->dir), L_INT("samples_lost", lost));
        spool_close(e);
        spool_retry_now(e);
    } else if (e->spool) {
        spool_trim(e->spool);
    }
    due = !mono_before(loop_now(e->loop), e->spool_retry_at);
    if (!e->spool) {
        if (due)
            spool_open(e);
        return;
    }
    if (due || queue_stats(e->queue).disk_error == 0)
        queue_store_waiting(e->queue);
    if (queue_stats(e->queue).disk_error == 0)
        e->spool_failures = 0;
    else if (due)
        spool_retry_later(e);
}

static void spool_log_writes(struct endpoint *e)
{
    int error = queue_stats(e->queue).disk_error;

    if (error < 0 && !e->disk_failing)
        log_error("cannot write the spool, keeping samples in memory", L_STR("remote_name", e->used->name),
                  L_STR("dir", e->dir), L_ERR(error));
    else if (error == 0 && e->disk_failing)
        log_info("spool is writable again", L_STR("remote_name", e->used->name), L_STR("dir", e->dir));
    e->disk_failing = error < 0;
}

/* What fdatasync() has confirmed waits for the next start; the rest is lost. */
static void spool_last_words(struct endpoint *e)
{
    struct queue_stats s = queue_stats(e->queue);
    int error = e->spool_error < 0 ? e->spool_error : s.disk_error;

    if (s.samples > s.unsaved || e->unopened.unread.n)
        log_info(e->draining ? "samples remain in the spool for the leader"
                             : "samples remain in the spool for the next start",
                 L_STR("remote_name", e->used->name), L_INT("samples", s.samples - s.unsaved),
                 L_INT("unread_bytes", e->unopened.unread.bytes));
    if (s.unsaved == 0)
        return;
    queue_count_drop(e->queue, DROP_UNSAVED, s.unsaved);
    if (error < 0)
        log_warn("samples lost: not stored in the spool", L_STR("remote_name", e->used->name),
                 L_INT("samples", s.unsaved), L_ERR(error));
    else
        log_warn(e->dir ? "samples lost: not stored in the spool" : "samples lost: no spool",
                 L_STR("remote_name", e->used->name), L_INT("samples", s.unsaved));
}

/* ---- The thread ---- */

static void thread_publish_state(struct endpoint *e)
{
    struct endpoint_state now, *to = &e->state;
    bool news;

    memset(&now, 0, sizeof(now));
    now.sender = *sender_stats(e->sender);
    now.spool = e->spool ? spool_stats(e->spool) : e->unopened;
    now.spool_error = e->spool_error;
    now.series = intake_series(e->intake);
    now.has_spool = e->spool != NULL;
    now.ready = true;
    lock_take(&e->lock);
    queue_count_drop(e->queue, DROP_BUSY, e->busy);
    e->busy = 0;
    now.queue = queue_stats(e->queue);
    /* Should padding differ, others look in vain. */
    news = memcmp(to, &now, offsetof(struct endpoint_state, phase)) != 0;
    if (to->sender.requests != now.sender.requests && to->n_durations < ENDPOINT_DURATIONS)
        to->durations[to->n_durations++] = (float)now.sender.seconds;
    memcpy(to, &now, offsetof(struct endpoint_state, phase));
    lock_release(&e->lock);
    if (news && e->changed)
        e->changed(e->arg);
}

/* One line for a burst of drops, and one a minute while they continue. */
static void log_drops(struct endpoint *e)
{
    struct queue_stats s = queue_stats(e->queue);
    uint64_t total = 0;
    mono_ms now = loop_now(e->loop);
    const char *why = "";

    for (unsigned i = 0; i < DROPS; i++) {
        /* Logged where they happen. */
        if (i == DROP_REJECTED || i == DROP_INVALID || i == DROP_DAMAGED || i == DROP_UNSAVED)
            continue;
        total += s.dropped[i];
        why = s.dropped[i] ? queue_drop_words[i] : why;
    }
    if (total == e->drops_logged ||
        (e->drops_logged && mono_before(now, mono_add(e->drops_logged_at, DROP_LOG_MS))))
        return;
    log_error("samples dropped", L_STR("remote_name", e->used->name), L_STR("reason", why),
              L_INT("samples", total - e->drops_logged));
    e->drops_logged = total;
    e->drops_logged_at = now;
}

/* All is sent, or the leader wants the spool. Asked under the lock that endpoint_drain() takes. */
static bool thread_has_drained(struct endpoint *e)
{
    bool wanted = e->draining && e->spool && spool_is_asked_for(e->spool), drained;

    if (!e->draining || !(wanted || (sender_done(e->sender) && queue_stats(e->queue).samples == 0)))
        return false;
    lock_take(&e->lock);
    drained = e->drain && !e->inbox;
    if (drained)
        endpoint_enter(e, ENDPOINT_ENDING);
    lock_release(&e->lock);
    return drained;
}

static void thread_on_turn(void *arg, double seconds)
{
    struct endpoint *e = arg;

    (void)seconds;
    thread_publish_state(e);
    if (thread_has_drained(e) || (e->stopping && sender_done(e->sender)))
        loop_stop(e->loop);
}

static void thread_on_flush_end(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct endpoint, flush)->loop);
}

static void items_free(struct endpoint_item *i)
{
    for (struct endpoint_item *next; i; i = next) {
        next = i->next;
        (void)batch_unref(i->batch);
        free(i->withdraw);
        (void)metrics_free(i->metrics);
        (void)rw_endpoint_config_unref(i->config);
        free(i);
    }
}

static struct queue_options thread_queue_options(const struct endpoint *e)
{
    const struct rw_endpoint_config *c = e->used;
    struct queue_options o = {
        .max_bytes = !e->dir && !c->max_spool_given ? MEMORY_ONLY_BYTES : c->max_spool_bytes,
        .policy = c->full_policy,
        .age_limit_ms = c->sample_age_limit_ms,
        .memory_bytes = MEMORY_BYTES,
    };

    o.max_memory = e->dir && o.max_bytes > MEMORY_ONLY_BYTES ? MEMORY_ONLY_BYTES : o.max_bytes;
    return o;
}

/* Everything goes on with another configuration of the same place. */
static void thread_configure(struct endpoint *e, struct rw_endpoint_config *c)
{
    struct rw_endpoint_config *was = e->used;
    struct queue_options o;

    e->used = rw_endpoint_config_ref(c);
    o = thread_queue_options(e);
    queue_configure(e->queue, &o);
    if (e->spool)
        e->spool->segment_bytes = spool_segment_bytes(e);
    intake_configure(e->intake, c);
    e->transport.config = e->metadata_transport.config = c;
    sender_configure(e->sender, c);
    (void)rw_endpoint_config_unref(was);
}

static void thread_take(struct endpoint *e, const struct endpoint_item *i)
{
    switch (i->kind) {
    case ITEM_BATCH:
        intake_publish(e->intake, i->batch);
        return;
    case ITEM_RENEW:
        intake_renew(e->intake, i->batch, i->at.ms);
        return;
    case ITEM_WITHDRAW:
        intake_withdraw(e->intake, str_of(i->withdraw), i->at.ms);
        return;
    case ITEM_METRICS:
        intake_metrics(e->intake, i->metrics, i->at.ms);
        return;
    case ITEM_CONFIG:
        thread_configure(e, i->config);
        return;
    case ITEM_LEAD:
        intake_resume(e->intake);
    }
}

/* Queues stale markers, unless another agent continues the series, and gives the sender its time; a later
 * call may shorten it. */
static void thread_flush(struct endpoint *e, int64_t flush_ms)
{
    mono_ms ends = mono_add(loop_now(e->loop), flush_ms);

    if (e->stopping && !mono_before(ends, e->flush_ends))
        return;
    if (!e->stopping && !e->draining)
        intake_stop(e->intake, loop_wall(e->loop).ms);
    e->stopping = true;
    e->flush_ends = ends;
    loop_timer_set(e->loop, &e->flush, ends);
    sender_begin_flush(e->sender, flush_ms);
}

static void thread_on_wake(struct post *p)
{
    struct endpoint *e = CONTAINER_OF(p, struct endpoint, wake);
    struct endpoint_item *list;
    int64_t flush_ms;

    lock_take(&e->lock);
    list = TAKE_PTR(e->inbox);
    e->inbox_end = &e->inbox;
    e->inbox_bytes = e->inbox_items = 0;
    e->woken = false;
    e->draining = e->drain;
    flush_ms = e->flush_ms;
    lock_release(&e->lock);
    for (const struct endpoint_item *i = list; i; i = i->next)
        thread_take(e, i);
    intake_commit(e->intake);
    items_free(list);
    if (flush_ms >= 0)
        thread_flush(e, flush_ms);
    spool_log_writes(e);
    log_drops(e);
    sender_kick(e->sender);
}

static void thread_on_tick(struct timer *t)
{
    struct endpoint *e = CONTAINER_OF(t, struct endpoint, tick);
    int64_t now = loop_wall(e->loop).ms;

    if (!e->draining)
        intake_grace(e->intake, loop_now(e->loop), now);
    queue_expire(e->queue, now);
    if (!mono_before(loop_now(e->loop), e->forget_at)) {
        intake_forget(e->intake, loop_now(e->loop), now);
        e->forget_at = mono_add(loop_now(e->loop), FORGET_MS);
    }
    spool_watch(e);
    spool_log_writes(e);
    queue_sync_position(e->queue);
    log_drops(e);
    sender_tick(e->sender);
    sender_kick(e->sender);
    endpoint_set_timer(e, t, TICK_MS);
}

static void thread_open(struct endpoint *e)
{
    const struct rw_endpoint_config *c = e->used;
    struct queue_options qo = thread_queue_options(e);
    struct sender_options so = {.config = c,
                                .loop = e->loop,
                                .transport = &e->transport,
                                .metadata_transport = &e->metadata_transport};

    so.queue = e->queue = queue_new(&qo);
    e->intake = intake_new(c, e->queue);
    if (e->dir)
        spool_open(e);
    else
        log_warn("no storage path: pending samples are kept in memory and lost at a restart",
                 L_STR("remote_name", c->name));
    so.families = intake_families(e->intake);
    e->sender = sender_new(&so);
}

/* Stores what waits and tells what is lost. From then on another endpoint may open the folder. */
static void thread_close(struct endpoint *e)
{
    struct queue_stats left;

    e->sender = sender_free(e->sender);
    spool_retry_now(e);
    spool_watch(e);
    queue_sync_position(e->queue);
    spool_last_words(e);
    left = queue_stats(e->queue);
    e->intake = intake_free(e->intake);
    e->queue = queue_free(e->queue);
    e->spool = spool_free(e->spool);
    lock_take(&e->lock);
    e->state.queue = left;
    endpoint_enter(e, ENDPOINT_ENDED);
    lock_release(&e->lock);
    if (e->changed)
        e->changed(e->arg);
}

static void *thread_run(void *arg)
{
    struct endpoint *e = arg;
    int r;

    (void)pthread_setname_np(pthread_self(), "remote write");
    thread_open(e);
    loop_on_turn(e->loop, thread_on_turn, e);
    endpoint_set_timer(e, &e->tick, 0);
    r = loop_run(e->loop);
    if (r < 0)
        log_error("endpoint failed", L_STR("remote_name", e->used->name), L_ERR(r));
    thread_close(e);
    return NULL;
}

DEFINE_CLEANUP(struct endpoint, endpoint_free)

/* ---- What the agent's loop calls ---- */

int endpoint_new(struct endpoint **ret, struct rw_endpoint_config *c, const char *storage_path, bool drain,
                 void (*changed)(void *arg), void *arg)
{
    CLEANUP(cleanup_endpoint_free) struct endpoint *e = xcalloc(1, sizeof(*e));
    int r;

    lock_init(&e->lock);
    e->config = rw_endpoint_config_ref(c);
    e->used = rw_endpoint_config_ref(c);
    e->changed = changed;
    e->arg = arg;
    e->inbox_end = &e->inbox;
    e->flush_ms = -1;
    e->drain = e->draining = drain;
    e->wake.fn = thread_on_wake;
    e->tick.fn = thread_on_tick;
    e->flush.fn = thread_on_flush_end;
    if (storage_path)
        e->dir = xasprintf("%s/remote-write/%s", storage_path, c->name);
    r = loop_new(&e->loop, &clock_system);
    if (r < 0)
        return r;
    e->http = http_new(e->loop, ds_user_agent);
    transport_init(&e->transport, e->http, e->used);
    transport_init(&e->metadata_transport, e->http, e->used);
    r = thread_start(&e->thread, thread_run, e);
    if (r < 0)
        return r;
    e->started = true;
    *ret = TAKE_PTR(e);
    return 0;
}

/* Releases the lock. The thread looks at what was changed under it. */
static void endpoint_unlock_and_wake(struct endpoint *e)
{
    bool wake = !e->woken;

    invariant(lock_is_held(&e->lock));
    e->woken = true;
    lock_release(&e->lock);
    if (wake)
        loop_post(e->loop, &e->wake);
}

void endpoint_stop(struct endpoint *e, int64_t flush_ms)
{
    lock_take(&e->lock);
    if (e->flush_ms < 0 || flush_ms < e->flush_ms)
        e->flush_ms = flush_ms;
    if (e->state.phase == ENDPOINT_RUNNING)
        endpoint_enter(e, ENDPOINT_ENDING);
    endpoint_unlock_and_wake(e);
}

void endpoint_join(struct endpoint *e)
{
    if (!e->started)
        return;
    if (e->flush_ms < 0) /* which no other thread sets */
        endpoint_stop(e, FLUSH_DEFAULT_MS);
    (void)pthread_join(e->thread, NULL);
    e->started = false;
}

struct endpoint *endpoint_free(struct endpoint *e)
{
    if (!e)
        return NULL;
    endpoint_join(e);
    (void)http_free(e->http);
    (void)loop_free(e->loop);
    items_free(e->inbox);
    lock_done(&e->lock);
    (void)rw_endpoint_config_unref(e->config);
    (void)rw_endpoint_config_unref(e->used);
    free(e->dir);
    free(e);
    return NULL;
}

/* Takes ownership of what the item holds. */
static void inbox_put(struct endpoint *e, struct endpoint_item item)
{
    struct endpoint_item *i = xmalloc(sizeof(*i));
    size_t samples = item.batch ? series_count(item.batch->set) : 0;

    *i = item;
    lock_take(&e->lock);
    /* Small items are always accepted: a lost withdrawal would leave its series active. */
    if (i->bytes && e->inbox_items &&
        (e->inbox_items >= INBOX_MAX_ITEMS || e->inbox_bytes + i->bytes > INBOX_MAX_BYTES)) {
        e->busy += samples;
        lock_release(&e->lock);
        items_free(i);
        return;
    }
    *e->inbox_end = i;
    e->inbox_end = &i->next;
    e->inbox_items++;
    e->inbox_bytes += i->bytes;
    if (i->kind == ITEM_BATCH)
        e->state.newest_in_ms = last_ms_after(e->state.newest_in_ms, i->at.ms);
    endpoint_unlock_and_wake(e);
}

void endpoint_publish(struct endpoint *e, struct batch *b)
{
    size_t n = series_count(b->set), bytes = sizeof(*b) + n * (sizeof(b->values[0]) + sizeof(b->order[0]));

    /* A set that others have as well costs nothing. */
    if (b->new_set)
        bytes += series_names_bytes(b->set) + n * INBOX_SERIES_BYTES;
    inbox_put(e,
              (struct endpoint_item){.kind = ITEM_BATCH, .batch = batch_ref(b), .at = b->at, .bytes = bytes});
}

void endpoint_configure(struct endpoint *e, struct rw_endpoint_config *c)
{
    struct rw_endpoint_config *was = e->config;

    e->config = rw_endpoint_config_ref(c);
    inbox_put(e, (struct endpoint_item){.kind = ITEM_CONFIG, .config = rw_endpoint_config_ref(c)});
    (void)rw_endpoint_config_unref(was);
}

/* Always accepted: scorers hold these batches anyway. */
void endpoint_renew(struct endpoint *e, struct batch *b, unix_ms at)
{
    inbox_put(e, (struct endpoint_item){.kind = ITEM_RENEW, .batch = batch_ref(b), .at = at});
}

void endpoint_withdraw(struct endpoint *e, const char *score_name, unix_ms at)
{
    inbox_put(e, (struct endpoint_item){.kind = ITEM_WITHDRAW, .withdraw = xstrdup(score_name), .at = at});
}

void endpoint_metrics(struct endpoint *e, const struct metrics *m, unix_ms at)
{
    inbox_put(e, (struct endpoint_item){
                     .kind = ITEM_METRICS, .metrics = metrics_copy(m), .at = at, .bytes = METRICS_BYTES});
}

bool endpoint_drain(struct endpoint *e, bool drain)
{
    bool runs;

    if (e->drain && !drain) /* which no other thread sets */
        inbox_put(e, (struct endpoint_item){.kind = ITEM_LEAD});
    lock_take(&e->lock);
    e->drain = drain;
    runs = e->state.phase == ENDPOINT_RUNNING;
    endpoint_unlock_and_wake(e);
    return runs;
}

void endpoint_state(struct endpoint *e, struct endpoint_state *ret)
{
    lock_take(&e->lock);
    *ret = e->state;
    e->state.n_durations = 0;
    lock_release(&e->lock);
}

const struct rw_endpoint_config *endpoint_config(const struct endpoint *e)
{
    return e->config;
}
