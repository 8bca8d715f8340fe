/* Owns the thread, its loop, and everything that only the thread touches; the inbox and the copy of the state are behind
 * `lock`. */
#include "remotewrite/endpoint.h"

#include "exporter/metric/version.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum {
    INBOX_MAX_BYTES = 64 << 20,
    INBOX_MAX_ITEMS = 4096,
    TICK_MS = 1000,
    FLUSH_DEFAULT_MS = 1000,
    MEMORY_BYTES = 8 << 20,
    SEGMENT_MAX = 16 << 20,
    SEGMENT_MIN = 64 << 10,
    NO_SPOOL_BYTES = 64 << 20,
    DROP_LOG_MS = 60 * 1000,
};

/* What the agent's loop hands over: a batch, a name to withdraw, or text. */
struct item {
    struct item *next;
    struct batch *batch;
    char *withdraw;
    struct buf text;
    unix_ms at;
    size_t bytes;
};

struct endpoint {
    struct rw_endpoint_config *config;
    char *dir; /* of the spool; NULL: memory only */
    void (*changed)(void *arg);
    void *arg;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    /* Behind the lock. */
    struct item *inbox, **inbox_end;
    size_t inbox_bytes, inbox_items;
    uint64_t busy; /* samples refused because the inbox was full */
    uint64_t samples_in;
    int64_t newest_in_ms;
    bool woken, stop, markers;
    int64_t flush_ms;
    struct endpoint_state state;
    /* The thread's own; the loop's post queue apart. */
    struct loop *loop;
    struct http *http;
    struct transport *transport;
    struct spool *spool;
    struct queue *queue;
    struct intake *intake;
    struct sender *sender;
    struct spool_found found;
    struct post wake;
    struct timer tick, flush;
    bool stopping;
    uint64_t dropped_logged;
    mono_ms drop_logged_at;
    bool disk_complained;
};

static void item_free(struct item *i)
{
    (void)batch_unref(i->batch);
    free(i->withdraw);
    buf_done(&i->text);
    free(i);
}

/* Lock held. Durations that nobody has fetched yet stay in front of the new ones, as many as there is room for. */
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

/* Sender thread. */
static void publish_state(struct endpoint *e)
{
    struct endpoint_state *to = &e->state;
    struct queue_stats queue;
    bool news;

    (void)pthread_mutex_lock(&e->lock);
    queue_count_drop(e->queue, DROP_BUSY, e->busy);
    e->busy = 0;
    queue_stats(e->queue, &queue);
    news = !to->ready || memcmp(&queue, &to->queue, sizeof(queue)) != 0 ||
           memcmp(&to->sender, sender_stats(e->sender), offsetof(struct sender_stats, durations)) != 0;
    copy_sender_stats(&to->sender, sender_stats(e->sender));
    to->queue = queue;
    to->found = e->found;
    to->spool_bytes = e->spool ? spool_bytes(e->spool) : 0;
    to->series = intake_series(e->intake);
    to->has_spool = e->spool != NULL;
    to->ready = true;
    (void)pthread_mutex_unlock(&e->lock);
    if (news && e->changed)
        e->changed(e->arg);
}

/* A burst of drops is one line, and a long one a line a minute. */
static void log_drops(struct endpoint *e)
{
    struct queue_stats s;
    uint64_t total = 0;
    mono_ms now = loop_now(e->loop);
    const char *why = "";

    queue_stats(e->queue, &s);
    for (unsigned i = 0; i < DROPS; i++) {
        if (i == DROP_REJECTED || i == DROP_INVALID) /* these have lines of their own */
            continue;
        total += s.dropped[i];
        why = s.dropped[i] ? queue_drop_words[i] : why;
    }
    if (total == e->dropped_logged ||
        (e->dropped_logged && mono_before(now, mono_add(e->drop_logged_at, DROP_LOG_MS))))
        return;
    log_error("samples dropped", L_STR("remote_name", e->config->name), L_STR("reason", why),
              L_INT("samples", total - e->dropped_logged));
    e->dropped_logged = total;
    e->drop_logged_at = now;
}

static void log_disk(struct endpoint *e)
{
    struct queue_stats s;

    queue_stats(e->queue, &s);
    if (s.disk_error < 0 && !e->disk_complained)
        log_error("the spool cannot be written, samples stay in memory only",
                  L_STR("remote_name", e->config->name), L_STR("dir", e->dir), L_ERR(s.disk_error));
    else if (s.disk_error == 0 && e->disk_complained)
        log_info("the spool can be written again", L_STR("remote_name", e->config->name),
                 L_STR("dir", e->dir));
    e->disk_complained = s.disk_error < 0;
}

static void on_sender_changed(void *arg)
{
    struct endpoint *e = arg;

    publish_state(e);
    if (e->stopping && sender_done(e->sender))
        loop_stop(e->loop);
}

static void take_item(struct endpoint *e, struct item *i)
{
    int64_t now = loop_wall(e->loop).ms;
    int r;

    if (i->batch)
        r = intake_publish(e->intake, i->batch, now);
    else if (i->withdraw)
        r = intake_withdraw(e->intake, str_of(i->withdraw), i->at.ms, now);
    else
        r = intake_text(e->intake, buf_str(&i->text), i->at.ms, now);
    if (r < 0)
        log_error("samples not queued", L_STR("remote_name", e->config->name), L_ERR(r));
}

static void on_flush_over(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct endpoint, flush)->loop);
}

static void begin_stop(struct endpoint *e, int64_t flush_ms, bool markers)
{
    e->stopping = true;
    if (markers)
        intake_stop(e->intake, loop_wall(e->loop).ms);
    if (loop_timer_set(e->loop, &e->flush, mono_add(loop_now(e->loop), flush_ms)) < 0)
        loop_stop(e->loop);
    sender_hurry(e->sender);
}

/* Everything that came since the last time. */
static void on_wake(struct post *p)
{
    struct endpoint *e = CONTAINER_OF(p, struct endpoint, wake);
    struct item *list, *next;
    bool stop, markers;
    int64_t flush_ms;

    (void)pthread_mutex_lock(&e->lock);
    list = e->inbox;
    e->inbox = NULL;
    e->inbox_end = &e->inbox;
    e->inbox_bytes = e->inbox_items = 0;
    e->woken = false;
    stop = e->stop;
    markers = e->markers;
    flush_ms = e->flush_ms;
    (void)pthread_mutex_unlock(&e->lock);
    for (; list; list = next) {
        next = list->next;
        take_item(e, list);
        item_free(list);
    }
    if (stop && !e->stopping)
        begin_stop(e, flush_ms, markers);
    log_disk(e);
    log_drops(e);
    sender_kick(e->sender);
}

static void on_tick(struct timer *t)
{
    struct endpoint *e = CONTAINER_OF(t, struct endpoint, tick);
    int64_t now = loop_wall(e->loop).ms;

    intake_grace(e->intake, now);
    queue_expire(e->queue, now);
    queue_save_position(e->queue, true);
    log_drops(e);
    sender_kick(e->sender);
    if (loop_timer_set(e->loop, t, mono_add(loop_now(e->loop), TICK_MS)) < 0)
        log_error("out of memory for a timer", L_STR("remote_name", e->config->name));
}

static size_t segment_bytes(uint64_t max_bytes)
{
    uint64_t n = max_bytes / 8;

    return n > SEGMENT_MAX ? SEGMENT_MAX : n < SEGMENT_MIN ? SEGMENT_MIN : (size_t)n;
}

static void open_spool(struct endpoint *e)
{
    int r = e->dir ? spool_new(&e->spool, e->dir, segment_bytes(e->config->max_spool_bytes)) : 0;

    if (!e->dir)
        log_warn("no storage path: what waits for this endpoint is kept in memory only and lost at a restart",
                 L_STR("remote_name", e->config->name));
    else if (r < 0)
        log_error(r == -EBUSY ? "the spool is in use by another process, going on in memory only"
                              : "the spool cannot be opened, going on in memory only",
                  L_STR("remote_name", e->config->name), L_STR("dir", e->dir), L_ERR(r));
}

static int open_queue(struct endpoint *e)
{
    const struct rw_endpoint_config *c = e->config;
    struct queue_options o = {
        .spool = e->spool,
        .max_bytes = !e->spool && !c->max_spool_given ? NO_SPOOL_BYTES : c->max_spool_bytes,
        .policy = c->full_policy,
        .age_limit_ms = c->sample_age_limit_ms,
        .memory_bytes = MEMORY_BYTES,
    };
    struct queue_stats s;
    int r = queue_new(&e->queue, &o, &e->found);

    if (r < 0)
        return r;
    queue_stats(e->queue, &s);
    if (s.records || e->found.damaged_places || e->found.torn_bytes)
        log_info("spool read", L_STR("remote_name", c->name), L_INT("samples", s.samples),
                 L_INT("records", s.records), L_INT("damaged_bytes", e->found.damaged_bytes),
                 L_INT("torn_bytes", e->found.torn_bytes));
    return intake_new(&e->intake, c, e->queue, e->spool);
}

static int open_all(struct endpoint *e)
{
    struct sender_options o = {.config = e->config,
                               .loop = e->loop,
                               .transport = e->transport,
                               .changed = on_sender_changed,
                               .arg = e};
    int r;

    open_spool(e);
    r = open_queue(e);
    if (r < 0 && e->spool && r != -ENOMEM) {
        log_error("the spool cannot be read, going on in memory only", L_STR("remote_name", e->config->name),
                  L_STR("dir", e->dir), L_ERR(r));
        e->spool = spool_free(e->spool);
        r = open_queue(e);
    }
    o.queue = e->queue;
    return r < 0 ? r : sender_new(&e->sender, &o);
}

static void close_all(struct endpoint *e)
{
    struct queue_stats s;

    e->sender = sender_free(e->sender);
    if (e->queue) {
        queue_stats(e->queue, &s);
        queue_save_position(e->queue, true);
        if (s.samples)
            LOG_AT(e->spool ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
                   e->spool ? "samples wait in the spool for the next start"
                            : "samples lost: there is no spool",
                   L_STR("remote_name", e->config->name), L_INT("samples", s.samples));
    }
    e->intake = intake_free(e->intake);
    e->queue = queue_free(e->queue);
    e->spool = spool_free(e->spool);
}

static void *run(void *arg)
{
    struct endpoint *e = arg;
    int r = open_all(e);

    if (r == 0) {
        on_tick(&e->tick);
        r = loop_run(e->loop);
    }
    if (r < 0)
        log_error("endpoint cannot work", L_STR("remote_name", e->config->name), L_ERR(r));
    close_all(e);
    return NULL;
}

static int make_parts(struct endpoint *e, const struct endpoint_options *o)
{
    int r;

    if (o->storage_path && asprintf(&e->dir, "%s/remote-write/%s", o->storage_path, o->config->name) < 0) {
        e->dir = NULL;
        return -ENOMEM;
    }
    r = loop_new(&e->loop, &clock_system);
    if (r == 0)
        r = http_new(&e->http, e->loop, ds_user_agent);
    return r < 0 ? r : transport_http_new(&e->transport, e->http, e->config);
}

int endpoint_new(struct endpoint **ret, const struct endpoint_options *o)
{
    CLEANUP(cleanup_endpoint_free) struct endpoint *e = calloc(1, sizeof(*e));
    int r;

    if (!e)
        return -ENOMEM;
    (void)pthread_mutex_init(&e->lock, NULL);
    e->config = rw_endpoint_config_ref(o->config);
    e->changed = o->changed;
    e->arg = o->arg;
    e->inbox_end = &e->inbox;
    e->wake.fn = on_wake;
    e->tick.fn = on_tick;
    e->flush.fn = on_flush_over;
    e->flush_ms = FLUSH_DEFAULT_MS;
    r = make_parts(e, o);
    if (r < 0)
        return r;
    r = -pthread_create(&e->thread, NULL, run, e);
    if (r < 0)
        return r;
    e->started = true;
    *ret = TAKE_PTR(e);
    return 0;
}

/* Any thread, lock held. */
static bool must_wake(struct endpoint *e)
{
    bool wake = !e->woken;

    e->woken = true;
    return wake;
}

void endpoint_stop(struct endpoint *e, int64_t flush_ms, bool markers)
{
    bool wake;

    (void)pthread_mutex_lock(&e->lock);
    wake = !e->stop && must_wake(e);
    e->stop = true;
    e->markers = markers;
    e->flush_ms = flush_ms;
    (void)pthread_mutex_unlock(&e->lock);
    if (wake)
        loop_post(e->loop, &e->wake);
}

struct endpoint *endpoint_free(struct endpoint *e)
{
    struct item *next;

    if (!e)
        return NULL;
    if (e->started) {
        bool stopped;

        (void)pthread_mutex_lock(&e->lock);
        stopped = e->stop;
        (void)pthread_mutex_unlock(&e->lock);
        if (!stopped)
            endpoint_stop(e, FLUSH_DEFAULT_MS, false);
        (void)pthread_join(e->thread, NULL);
    }
    (void)transport_http_free(e->transport);
    (void)http_free(e->http);
    (void)loop_free(e->loop);
    for (struct item *i = e->inbox; i; i = next) {
        next = i->next;
        item_free(i);
    }
    (void)pthread_mutex_destroy(&e->lock);
    (void)rw_endpoint_config_unref(e->config);
    free(e->dir);
    free(e);
    return NULL;
}

/* Agent's loop. Takes the item over. */
static void put_item(struct endpoint *e, struct item *i)
{
    size_t samples = i->batch ? series_count(i->batch->set) : 0;
    bool full, wake = false;

    (void)pthread_mutex_lock(&e->lock);
    /* What is withdrawn is always let in: it is small, and the series would otherwise live on. */
    full = (i->batch || i->text.n) &&
           (e->inbox_items >= INBOX_MAX_ITEMS || e->inbox_bytes + i->bytes > INBOX_MAX_BYTES) &&
           e->inbox_items;
    if (full) {
        e->busy += samples;
    } else {
        *e->inbox_end = i;
        e->inbox_end = &i->next;
        e->inbox_items++;
        e->inbox_bytes += i->bytes;
        e->samples_in += samples;
        if (i->batch && i->at.ms > e->newest_in_ms)
            e->newest_in_ms = i->at.ms;
        wake = must_wake(e);
    }
    (void)pthread_mutex_unlock(&e->lock);
    if (full)
        item_free(i);
    if (wake)
        loop_post(e->loop, &e->wake);
}

static void count_busy(struct endpoint *e, uint64_t samples)
{
    (void)pthread_mutex_lock(&e->lock);
    e->busy += samples;
    (void)pthread_mutex_unlock(&e->lock);
}

void endpoint_publish(struct endpoint *e, struct batch *b)
{
    struct item *i = calloc(1, sizeof(*i));

    if (!i) {
        count_busy(e, series_count(b->set));
        return;
    }
    i->batch = batch_ref(b);
    i->at = b->at;
    i->bytes = sizeof(*i) + series_count(b->set) * sizeof(double);
    put_item(e, i);
}

void endpoint_withdraw(struct endpoint *e, const char *score_name, unix_ms at)
{
    struct item *i = calloc(1, sizeof(*i));

    if (i)
        i->withdraw = strdup(score_name);
    if (!i || !i->withdraw) {
        free(i);
        log_error("stale markers not queued: out of memory", L_STR("score_name", score_name));
        return;
    }
    i->at = at;
    put_item(e, i);
}

void endpoint_text(struct endpoint *e, struct str text, unix_ms at)
{
    struct item *i = calloc(1, sizeof(*i));

    if (!i)
        return;
    buf_init(&i->text, text.n);
    if (buf_put_str(&i->text, text) < 0) {
        item_free(i);
        return;
    }
    i->at = at;
    i->bytes = sizeof(*i) + text.n;
    put_item(e, i);
}

void endpoint_state(struct endpoint *e, struct endpoint_state *ret)
{
    (void)pthread_mutex_lock(&e->lock);
    *ret = e->state;
    ret->samples_in = e->samples_in;
    ret->newest_in_ms = e->newest_in_ms;
    e->state.sender.n_durations = 0;
    (void)pthread_mutex_unlock(&e->lock);
}

const struct rw_endpoint_config *endpoint_config(const struct endpoint *e)
{
    return e->config;
}
