/* Owns the thread. What the agent's loop calls is here, what the thread runs in endpoint_thread.c. */
#include "remotewrite/endpoint.h"

#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/metric/version.h"
#include "remotewrite/config.h"
#include "remotewrite/endpoint_internal.h"
#include "remotewrite/transport.h"

#include <errno.h>
#include <stdio.h>

enum {
    INBOX_MAX_BYTES = 64 << 20,
    INBOX_MAX_ITEMS = 4096,
    METRICS_BYTES = 1 << 20, /* what a copy of the own metrics counts as */
    FLUSH_DEFAULT_MS = 1000,
};

void endpoint_item_free(struct endpoint_item *i)
{
    (void)batch_unref(i->batch);
    free(i->withdraw);
    (void)metrics_free(i->metrics);
    free(i);
}

static int endpoint_make_parts(struct endpoint *e, const struct endpoint_options *o)
{
    int r;

    if (o->storage_path && asprintf(&e->dir, "%s/remote-write/%s", o->storage_path, o->config->name) < 0) {
        e->dir = NULL;
        return -ENOMEM;
    }
    r = loop_new(&e->loop, &clock_system)
            ?: http_new(&e->http, e->loop, ds_user_agent)
            ?: transport_http_new(&e->transport, e->http, e->config);
    return r < 0 ? r : transport_http_new(&e->metadata_transport, e->http, e->config);
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
    e->flush_ms = FLUSH_DEFAULT_MS;
    e->drain = e->draining = o->drain;
    endpoint_thread_init(e);
    r = endpoint_make_parts(e, o) ?: thread_start(&e->thread, endpoint_thread_run, e);
    if (r < 0)
        return r;
    e->started = true;
    *ret = TAKE_PTR(e);
    return 0;
}

/* Lock held. True if the caller must post the wake-up. */
static bool inbox_must_wake(struct endpoint *e)
{
    bool wake = !e->woken;

    e->woken = true;
    return wake;
}

void endpoint_stop(struct endpoint *e, int64_t flush_ms)
{
    bool wake;

    (void)pthread_mutex_lock(&e->lock);
    wake = !e->stop && inbox_must_wake(e);
    e->stop = true;
    e->flush_ms = flush_ms;
    (void)pthread_mutex_unlock(&e->lock);
    if (wake)
        loop_post(e->loop, &e->wake);
}

static bool endpoint_set_drain(struct endpoint *e, bool drain)
{
    bool ended, wake;

    (void)pthread_mutex_lock(&e->lock);
    e->drain = drain;
    ended = e->ended;
    wake = inbox_must_wake(e);
    (void)pthread_mutex_unlock(&e->lock);
    if (wake)
        loop_post(e->loop, &e->wake);
    return !ended;
}

void endpoint_drain(struct endpoint *e)
{
    (void)endpoint_set_drain(e, true);
}

bool endpoint_resume(struct endpoint *e)
{
    return endpoint_set_drain(e, false);
}

bool endpoint_ended(struct endpoint *e)
{
    bool ended;

    (void)pthread_mutex_lock(&e->lock);
    ended = e->ended;
    (void)pthread_mutex_unlock(&e->lock);
    return ended;
}

void endpoint_join(struct endpoint *e)
{
    bool stopped;

    if (!e->started)
        return;
    (void)pthread_mutex_lock(&e->lock);
    stopped = e->stop;
    (void)pthread_mutex_unlock(&e->lock);
    if (!stopped)
        endpoint_stop(e, FLUSH_DEFAULT_MS);
    (void)pthread_join(e->thread, NULL);
    e->started = false;
}

struct endpoint *endpoint_free(struct endpoint *e)
{
    struct endpoint_item *next;

    if (!e)
        return NULL;
    endpoint_join(e);
    (void)transport_http_free(e->transport);
    (void)transport_http_free(e->metadata_transport);
    (void)http_free(e->http);
    (void)loop_free(e->loop);
    for (struct endpoint_item *i = e->inbox; i; i = next) {
        next = i->next;
        endpoint_item_free(i);
    }
    (void)pthread_mutex_destroy(&e->lock);
    (void)rw_endpoint_config_unref(e->config);
    free(e->dir);
    free(e);
    return NULL;
}

/* Agent's loop. Takes ownership of the item. */
static void inbox_put(struct endpoint *e, struct endpoint_item *i)
{
    size_t samples = i->batch ? series_count(i->batch->set) : 0;
    bool full, wake = false;

    (void)pthread_mutex_lock(&e->lock);
    /* A withdrawal is always accepted: it is small, and without it the series would stay active. */
    full = !i->withdraw &&
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
        wake = inbox_must_wake(e);
    }
    (void)pthread_mutex_unlock(&e->lock);
    if (full)
        endpoint_item_free(i);
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
    struct endpoint_item *i = calloc(1, sizeof(*i));

    if (!i) {
        count_busy(e, series_count(b->set));
        return;
    }
    i->batch = batch_ref(b);
    i->at = b->at;
    i->bytes = sizeof(*i) + series_count(b->set) * sizeof(double);
    inbox_put(e, i);
}

void endpoint_withdraw(struct endpoint *e, const char *score_name, unix_ms at)
{
    struct endpoint_item *i = calloc(1, sizeof(*i));

    if (i)
        i->withdraw = strdup(score_name);
    if (!i || !i->withdraw) {
        free(i);
        log_error("stale markers not queued: out of memory", L_STR("score_name", score_name));
        return;
    }
    i->at = at;
    inbox_put(e, i);
}

void endpoint_metrics(struct endpoint *e, const struct metrics *m, unix_ms at)
{
    struct endpoint_item *i = calloc(1, sizeof(*i));

    if (!i || metrics_copy(&i->metrics, m) < 0) {
        free(i);
        log_warn("own metrics not queued: out of memory", L_STR("remote_name", e->config->name));
        return;
    }
    i->at = at;
    i->bytes = METRICS_BYTES;
    inbox_put(e, i);
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
