/* Owns the thread, and all that it uses: loop, queue, intake, sender, transports. Functions called thread_
 * run on that thread, the public ones and inbox_put() on the agent's loop; what both touch is guarded by
 * the lock, whose holder never blocks. Nothing but endpoint_join() and endpoint_free() waits for the
 * thread. */
#include "remotewrite/endpoint.h"

#include "exporter/base/alloc.h"
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
    struct queue *queue;
    struct intake *intake;
    struct sender *sender;
    struct post wake;
    struct timer tick, flush;
    mono_ms forget_at; /* lanes */
    bool stopping;
    mono_ms flush_ends; /* while stopping */
    bool draining;      /* `drain`, as the thread last saw it */
    /* What was logged last, so that it is logged once. */
    uint64_t drops_logged;
    mono_ms drops_logged_at;
    bool closed_logged; /* the spool is not open, or was not when it was logged */
    bool writes_logged; /* the spool cannot be written */
};

static void thread_set_timer(struct endpoint *e, struct timer *t, int64_t ms)
{
    loop_timer_set(e->loop, t, mono_add(loop_now(e->loop), ms));
}

static void endpoint_enter(struct endpoint *e, enum endpoint_phase phase)
{
    invariant(lock_is_held(&e->lock));
    invariant(phase >= e->state.phase);
    e->state.phase = phase;
}

/* ---- The spool, of which the queue knows how it is, and the log tells when that changes ---- */

/* Logs why the spool is not open, once until it is. */
static void thread_log_closed(struct endpoint *e, const struct queue_stats *now)
{
    const char *text = "cannot open the spool, keeping samples in memory";
    const char *why = strerror(-now->spool_error);

    if (now->spool_error == 0 || e->closed_logged)
        return;
    if (now->spool_error == -EBUSY) {
        text = "spool is in use by another process, keeping samples in memory";
    } else if (now->spool.unread.n) {
        text = "cannot read a spool segment, keeping samples in memory";
        why = now->spool.error;
    }
    log_error(text, L_STR("remote_name", e->used->name), L_STR("dir", e->dir), L_STR("err", why));
    e->closed_logged = true;
}

static void thread_log_removed(struct endpoint *e, uint64_t lost)
{
    log_error("spool folder was removed, making it anew", L_STR("remote_name", e->used->name),
              L_STR("dir", e->dir), L_INT("samples_lost", lost));
    e->closed_logged = true;
}

static void thread_log_opened(struct endpoint *e, uint64_t lost)
{
    struct queue_stats now = queue_stats(e->queue);
    const struct spool_stats *found = &now.spool;
    bool is_damaged = found->damaged_places || lost;

    if (e->closed_logged)
        log_info("spool opened", L_STR("remote_name", e->used->name), L_STR("dir", e->dir));
    e->closed_logged = false;
    if (now.records || found->damaged_places || found->torn_bytes)
        LOG_AT(is_damaged ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "spool read",
               L_STR("remote_name", e->used->name), L_INT("samples", now.samples),
               L_INT("records", now.records), L_INT("samples_lost", lost),
               L_INT("damaged_bytes", found->damaged_bytes), L_INT("torn_bytes", found->torn_bytes));
}

static void thread_log_writes(struct endpoint *e)
{
    int error = queue_stats(e->queue).disk_error;

    if (error < 0 && !e->writes_logged)
        log_error("cannot write the spool, keeping samples in memory", L_STR("remote_name", e->used->name),
                  L_STR("dir", e->dir), L_ERR(error));
    else if (error == 0 && e->writes_logged)
        log_info("spool is writable again", L_STR("remote_name", e->used->name), L_STR("dir", e->dir));
    e->writes_logged = error < 0;
}

/* What fdatasync() has confirmed waits for the next start. */
static void thread_log_remaining(const struct endpoint *e, const struct queue_stats *left)
{
    const char *text = "samples remain in the spool for the next start";

    if (e->draining)
        text = "samples remain in the spool for the leader";
    if (left->samples > left->unsaved || left->spool.unread.n)
        log_info(text, L_STR("remote_name", e->used->name), L_INT("samples", left->samples - left->unsaved),
                 L_INT("unread_bytes", left->spool.unread.bytes));
}

/* The rest is lost. */
static void thread_log_lost(const struct endpoint *e, const struct queue_stats *left)
{
    int error = left->spool_error < 0 ? left->spool_error : left->disk_error;
    const char *text = e->dir ? "samples lost: not stored in the spool" : "samples lost: no spool";

    if (left->unsaved == 0)
        return;
    if (error < 0)
        log_warn("samples lost: not stored in the spool", L_STR("remote_name", e->used->name),
                 L_INT("samples", left->unsaved), L_ERR(error));
    else
        log_warn(text, L_STR("remote_name", e->used->name), L_INT("samples", left->unsaved));
}

/* Samples so far of which the disk has lost the only copy. */
static uint64_t thread_samples_lost(const struct endpoint *e)
{
    return queue_stats(e->queue).dropped[DROP_DAMAGED];
}

static void thread_open_spool(struct endpoint *e)
{
    uint64_t before = thread_samples_lost(e);
    struct queue_stats now;

    if (queue_open(e->queue, loop_now(e->loop))) {
        thread_log_opened(e, thread_samples_lost(e) - before);
        if (e->draining)
            intake_attach_standby(e->intake);
        else
            intake_attach(e->intake, loop_wall(e->loop).ms);
        return;
    }
    now = queue_stats(e->queue);
    thread_log_closed(e, &now);
}

/* What has failed is tried again. */
static void thread_watch_spool(struct endpoint *e)
{
    uint64_t before = thread_samples_lost(e);

    if (!e->dir)
        return;
    if (!queue_watch(e->queue, loop_now(e->loop)))
        thread_log_removed(e, thread_samples_lost(e) - before);
    thread_open_spool(e);
}

/* ---- The thread ---- */

static void thread_publish_state(struct endpoint *e)
{
    struct endpoint_state now, *to = &e->state;
    bool news;

    memset(&now, 0, sizeof(now));
    now.sender = *sender_stats(e->sender);
    now.series = intake_series(e->intake);
    now.ready = true;
    lock_take(&e->lock);
    queue_count_drop(e->queue, DROP_BUSY, e->busy);
    e->busy = 0;
    now.queue = queue_stats(e->queue);
    /* Differing padding only causes a spurious wake-up. */
    news = memcmp(to, &now, offsetof(struct endpoint_state, phase)) != 0;
    if (to->sender.requests != now.sender.requests && to->n_durations < ENDPOINT_DURATIONS)
        to->durations[to->n_durations++] = (float)now.sender.seconds;
    memcpy(to, &now, offsetof(struct endpoint_state, phase));
    lock_release(&e->lock);
    if (news && e->changed)
        e->changed(e->arg);
}

/* These are logged where they happen. */
static bool drop_is_logged(enum queue_drop why)
{
    return why == DROP_REJECTED || why == DROP_INVALID || why == DROP_DAMAGED || why == DROP_UNSAVED;
}

/* One line for a burst of drops, and one a minute while they continue. */
static void thread_log_drops(struct endpoint *e)
{
    struct queue_stats s = queue_stats(e->queue);
    mono_ms now = loop_now(e->loop);
    const char *reason = "";
    uint64_t total = 0;

    for (unsigned i = 0; i < DROPS; i++) {
        if (drop_is_logged((enum queue_drop)i) || s.dropped[i] == 0)
            continue;
        total += s.dropped[i];
        reason = queue_drop_words[i];
    }
    if (total == e->drops_logged)
        return;
    if (e->drops_logged && mono_before(now, mono_add(e->drops_logged_at, DROP_LOG_MS)))
        return;
    log_error("samples dropped", L_STR("remote_name", e->used->name), L_STR("reason", reason),
              L_INT("samples", total - e->drops_logged));
    e->drops_logged = total;
    e->drops_logged_at = now;
}

/* Nothing is left to send, or the leader wants the spool. */
static bool thread_may_end_drain(const struct endpoint *e)
{
    if (queue_is_wanted(e->queue))
        return true;
    return sender_done(e->sender) && queue_stats(e->queue).samples == 0;
}

/* Asked under the lock that endpoint_drain() and endpoint_lead() take. */
static bool thread_has_drained(struct endpoint *e)
{
    bool has_drained;

    if (!e->draining || !thread_may_end_drain(e))
        return false;
    lock_take(&e->lock);
    has_drained = e->drain && !e->inbox;
    if (has_drained)
        endpoint_enter(e, ENDPOINT_ENDING);
    lock_release(&e->lock);
    return has_drained;
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

static void inbox_free_items(struct endpoint_item *i)
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
        .dir = e->dir,
        .segment_bytes = size_max(SEGMENT_MIN, size_min(SEGMENT_MAX, c->max_spool_bytes / 8)),
        .is_standby = e->draining,
        .max_bytes = !e->dir && !c->max_spool_given ? MEMORY_ONLY_BYTES : c->max_spool_bytes,
        .policy = c->full_policy,
        .age_limit_ms = c->sample_age_limit_ms,
        .memory_bytes = MEMORY_BYTES,
    };

    o.max_memory = e->dir && o.max_bytes > MEMORY_ONLY_BYTES ? MEMORY_ONLY_BYTES : o.max_bytes;
    return o;
}

static void thread_configure_queue(struct endpoint *e)
{
    struct queue_options o = thread_queue_options(e);

    queue_configure(e->queue, &o);
}

/* Everything goes on with another configuration of the same place. */
static void thread_configure(struct endpoint *e, struct rw_endpoint_config *c)
{
    struct rw_endpoint_config *was = e->used;

    e->used = rw_endpoint_config_ref(c);
    thread_configure_queue(e);
    intake_configure(e->intake, c);
    e->transport.config = e->metadata_transport.config = c;
    sender_configure(e->sender, c);
    (void)rw_endpoint_config_unref(was);
}

static void thread_take(struct endpoint *e, const struct endpoint_item *i)
{
    switch (i->kind) {
    case ITEM_BATCH:
        intake_publish(e->intake, i->batch, i->at.ms);
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
    thread_configure_queue(e);
    for (const struct endpoint_item *i = list; i; i = i->next)
        thread_take(e, i);
    intake_commit(e->intake);
    inbox_free_items(list);
    if (flush_ms >= 0)
        thread_flush(e, flush_ms);
    thread_log_writes(e);
    thread_log_drops(e);
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
    thread_watch_spool(e);
    thread_log_writes(e);
    queue_sync_position(e->queue);
    thread_log_drops(e);
    sender_tick(e->sender);
    sender_kick(e->sender);
    thread_set_timer(e, t, TICK_MS);
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
        thread_open_spool(e);
    else
        log_warn("no storage path: pending samples are kept in memory and lost at a restart",
                 L_STR("remote_name", c->name));
    so.families = intake_families(e->intake);
    e->sender = sender_new(&so);
}

/* Stores what waits and logs what is lost. From then on another endpoint may open the folder. */
static void thread_close(struct endpoint *e)
{
    struct queue_stats left;

    e->sender = sender_free(e->sender);
    queue_retry_now(e->queue, loop_now(e->loop));
    thread_watch_spool(e);
    queue_close(e->queue);
    left = queue_stats(e->queue);
    thread_log_remaining(e, &left);
    thread_log_lost(e, &left);
    left.dropped[DROP_UNSAVED] += left.unsaved;
    e->intake = intake_free(e->intake);
    e->queue = queue_free(e->queue);
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
    thread_set_timer(e, &e->tick, 0);
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
    inbox_free_items(e->inbox);
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
        inbox_free_items(i);
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

void endpoint_publish(struct endpoint *e, struct batch *b, unix_ms at)
{
    size_t n = series_count(b->set), bytes = sizeof(*b) + n * (sizeof(b->values[0]) + sizeof(b->order[0]));

    /* A set that others have as well costs nothing. */
    if (b->new_set)
        bytes += series_names_bytes(b->set) + n * INBOX_SERIES_BYTES;
    inbox_put(e, (struct endpoint_item){.kind = ITEM_BATCH, .batch = batch_ref(b), .at = at, .bytes = bytes});
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

void endpoint_drain(struct endpoint *e)
{
    lock_take(&e->lock);
    e->drain = true;
    endpoint_unlock_and_wake(e);
}

bool endpoint_lead(struct endpoint *e)
{
    bool runs;

    if (e->drain) /* which no other thread sets */
        inbox_put(e, (struct endpoint_item){.kind = ITEM_LEAD});
    lock_take(&e->lock);
    e->drain = false;
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
