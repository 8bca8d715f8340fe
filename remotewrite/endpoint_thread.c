/* The thread of an endpoint: takes items from the inbox into the queue and runs the sender. */
#include "remotewrite/endpoint_internal.h"

#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "remotewrite/queue.h"
#include "remotewrite/spool.h"

#include <errno.h>

enum {
    TICK_MS = 1000,
    DROP_LOG_MS = 60 * 1000,
};

/* Whether others should look again. Should padding differ, they look in vain. */
static bool state_differs(const struct endpoint_state *s, const struct queue_stats *queue,
                          const struct spool_stats *spool, const struct endpoint *e)
{
    return !s->ready || s->spool_error != e->spool_error || s->queue.disk_error != queue->disk_error ||
           memcmp(&s->queue, queue, offsetof(struct queue_stats, disk_error)) != 0 ||
           memcmp(&s->spool, spool, sizeof(*spool)) != 0 ||
           memcmp(&s->sender, sender_stats(e->sender), offsetof(struct sender_stats, durations)) != 0 ||
           memcmp(&s->metadata, &e->metadata.stats, sizeof(s->metadata)) != 0;
}

/* Lock held. Durations not yet fetched stay in front of the new ones; those that do not fit are lost. */
static void copy_sender_stats(struct sender_stats *to, struct sender_stats *from)
{
    struct sender_stats copy = *from;
    size_t old = to->n_durations, more = size_min(from->n_durations, SENDER_DURATIONS - old);

    memcpy(copy.durations, to->durations, old * sizeof(copy.durations[0]));
    memcpy(copy.durations + old, from->durations, more * sizeof(copy.durations[0]));
    copy.n_durations = old + more;
    from->n_durations = 0;
    *to = copy;
}

static void thread_publish_state(struct endpoint *e)
{
    struct endpoint_state *to = &e->state;
    struct spool_stats spool = {0};
    struct queue_stats queue;
    bool news;

    if (e->spool)
        spool_stats(e->spool, &spool);
    (void)pthread_mutex_lock(&e->lock);
    queue_count_drop(e->queue, DROP_BUSY, e->busy);
    e->busy = 0;
    queue_stats(e->queue, &queue);
    news = state_differs(to, &queue, &spool, e);
    copy_sender_stats(&to->sender, sender_stats(e->sender));
    to->metadata = e->metadata.stats;
    to->queue = queue;
    to->spool = spool;
    to->spool_error = e->spool_error;
    to->series = intake_series(e->intake);
    to->has_spool = e->spool != NULL;
    to->ready = true;
    (void)pthread_mutex_unlock(&e->lock);
    if (news && e->changed)
        e->changed(e->arg);
}

/* One line for a burst of drops, and one a minute while they continue. */
static void log_drops(struct endpoint *e)
{
    struct queue_stats s;
    uint64_t total = 0;
    mono_ms now = loop_now(e->loop);
    const char *why = "";

    queue_stats(e->queue, &s);
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
    log_error("samples dropped", L_STR("remote_name", e->config->name), L_STR("reason", why),
              L_INT("samples", total - e->drops_logged));
    e->drops_logged = total;
    e->drops_logged_at = now;
}

/* All is sent, or the leader wants the spool. Asked under the lock that endpoint_resume() takes. */
static void thread_end_drained(struct endpoint *e)
{
    bool may_end = e->draining && (sender_done(e->sender) || endpoint_spool_is_wanted(e));
    struct queue_stats s;

    if (!may_end)
        return;
    queue_stats(e->queue, &s);
    may_end = s.samples == 0 || endpoint_spool_is_wanted(e);
    (void)pthread_mutex_lock(&e->lock);
    e->ended = may_end && e->drain && !e->inbox;
    may_end = e->ended;
    (void)pthread_mutex_unlock(&e->lock);
    if (!may_end)
        return;
    loop_stop(e->loop);
    if (e->changed)
        e->changed(e->arg);
}

static void thread_on_sender_changed(void *arg)
{
    struct endpoint *e = arg;

    thread_publish_state(e);
    thread_end_drained(e);
    if (e->stopping && sender_done(e->sender))
        loop_stop(e->loop);
}

static void thread_take_item(struct endpoint *e, struct endpoint_item *i)
{
    int64_t now = loop_wall(e->loop).ms;
    int r;

    if (i->batch)
        r = intake_publish(e->intake, i->batch, now);
    else if (i->withdraw)
        r = intake_withdraw(e->intake, str_of(i->withdraw), i->at.ms, now);
    else
        r = intake_metrics(e->intake, i->metrics, i->at.ms, now);
    if (r < 0)
        log_error("samples not queued", L_STR("remote_name", e->config->name), L_ERR(r));
}

static void thread_on_flush_end(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct endpoint, flush)->loop);
}

static void thread_begin_stop(struct endpoint *e, int64_t flush_ms)
{
    e->stopping = true;
    if (!e->draining)
        intake_stop(e->intake, loop_wall(e->loop).ms);
    if (loop_timer_set(e->loop, &e->flush, mono_add(loop_now(e->loop), flush_ms)) < 0)
        loop_stop(e->loop);
    sender_hurry(e->sender, flush_ms);
}

static void thread_on_wake(struct post *p)
{
    struct endpoint *e = CONTAINER_OF(p, struct endpoint, wake);
    struct endpoint_item *list, *next;
    bool stop;
    int64_t flush_ms;

    (void)pthread_mutex_lock(&e->lock);
    list = e->inbox;
    e->inbox = NULL;
    e->inbox_end = &e->inbox;
    e->inbox_bytes = e->inbox_items = 0;
    e->woken = false;
    e->draining = e->drain;
    stop = e->stop;
    flush_ms = e->flush_ms;
    (void)pthread_mutex_unlock(&e->lock);
    for (; list; list = next) {
        next = list->next;
        thread_take_item(e, list);
        endpoint_item_free(list);
    }
    if (stop && !e->stopping)
        thread_begin_stop(e, flush_ms);
    endpoint_spool_log(e);
    log_drops(e);
    sender_kick(e->sender);
    thread_end_drained(e);
}

/* Not before samples were accepted, because the form is known only then. */
static void thread_send_metadata(struct endpoint *e)
{
    const struct sender_stats *s = sender_stats(e->sender);

    if (s->samples && s->failures == 0 && !e->stopping)
        metadata_tick(&e->metadata, s->form);
}

static void thread_on_tick(struct timer *t)
{
    struct endpoint *e = CONTAINER_OF(t, struct endpoint, tick);
    int64_t now = loop_wall(e->loop).ms;

    if (!e->draining)
        intake_grace(e->intake, now);
    queue_expire(e->queue, now);
    endpoint_spool_tick(e);
    queue_save_position(e->queue, true);
    log_drops(e);
    thread_send_metadata(e);
    sender_kick(e->sender);
    if (loop_timer_set(e->loop, t, mono_add(loop_now(e->loop), TICK_MS)) < 0)
        log_error("endpoint timer not set: out of memory", L_STR("remote_name", e->config->name));
    thread_end_drained(e);
}

static int thread_open(struct endpoint *e)
{
    struct sender_options o = {.config = e->config,
                               .loop = e->loop,
                               .transport = e->transport,
                               .changed = thread_on_sender_changed,
                               .arg = e};
    int r = endpoint_spool_open(e);

    if (r < 0)
        return r;
    o.queue = e->queue;
    o.families = intake_families(e->intake);
    e->metadata = (struct metadata){
        .config = e->config, .loop = e->loop, .transport = e->metadata_transport, .families = o.families};
    return sender_new(&e->sender, &o);
}

static void thread_close(struct endpoint *e)
{
    e->sender = sender_free(e->sender);
    metadata_done(&e->metadata);
    endpoint_spool_close(e);
}

void *endpoint_thread_run(void *arg)
{
    struct endpoint *e = arg;
    int r = thread_open(e);

    if (r == 0) {
        thread_on_tick(&e->tick);
        r = endpoint_ended(e) ? 0 : loop_run(e->loop);
    }
    if (r < 0)
        log_error("endpoint failed", L_STR("remote_name", e->config->name), L_ERR(r));
    thread_close(e);
    return NULL;
}

void endpoint_thread_init(struct endpoint *e)
{
    e->wake.fn = thread_on_wake;
    e->tick.fn = thread_on_tick;
    e->flush.fn = thread_on_flush_end;
}
