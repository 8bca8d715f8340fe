/* Owns the endpoints. Everything runs on the agent's loop except rw_on_changed(). */
#include "remotewrite/sink.h"

#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/ui/out.h"
#include "remotewrite/endpoint.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"

#include <stdatomic.h>

enum { HEALTH_MS = 15 * 1000, REPLACED_FLUSH_MS = 3000 };

struct rw_sink {
    struct sink sink;
    struct agent *agent;
    struct endpoint *endpoints[RW_MAX_ENDPOINTS];
    size_t n;
    struct post post;
    atomic_bool posted;
    struct timer health;
    int64_t newest_ms; /* of endpoints that have ended: no stale marker of theirs is later */
};

static void rw_publish(struct sink *sink, struct batch *b)
{
    struct rw_sink *s = CONTAINER_OF(sink, struct rw_sink, sink);

    for (size_t i = 0; agent_leads(s->agent) && i < s->n; i++)
        endpoint_publish(s->endpoints[i], b);
}

static void rw_withdraw(struct sink *sink, const char *score_name, unix_ms at)
{
    struct rw_sink *s = CONTAINER_OF(sink, struct rw_sink, sink);

    for (size_t i = 0; agent_leads(s->agent) && i < s->n; i++)
        endpoint_withdraw(s->endpoints[i], score_name, at);
}

static const struct sink_ops ops = {.publish = rw_publish, .withdraw = rw_withdraw};

/* Sender threads. Coalesces changes until the loop has seen them. */
static void rw_on_changed(void *arg)
{
    struct rw_sink *s = arg;

    if (!atomic_exchange(&s->posted, true))
        loop_post(agent_state(s->agent)->loop, &s->post);
}

/* Forgets the metrics of an endpoint that ends, but not the samples that it lost just now. */
static void rw_forget_metrics(struct rw_sink *s, struct endpoint *e)
{
    struct metrics *m = agent_state(s->agent)->metrics;
    const struct rw_endpoint_config *c = endpoint_config(e);
    struct endpoint_state st;

    endpoint_join(e);
    endpoint_state(e, &st);
    s->newest_ms = last_of(s->newest_ms, st.queue.last_ms);
    metrics_forget(m, "remote_name", c->name);
    if (st.queue.dropped[DROP_UNSAVED])
        metric_add(m, METRIC_RW_DROPPED, LV(queue_drop_words[DROP_UNSAVED], c->name, c->url_shown),
                   (double)st.queue.dropped[DROP_UNSAVED]);
}

/* Stops the endpoints in parallel. */
static void rw_stop_endpoints(struct rw_sink *s, struct endpoint **stop, size_t n, int64_t flush_ms)
{
    for (size_t i = 0; i < n; i++)
        if (stop[i])
            endpoint_stop(stop[i], flush_ms);
    for (size_t i = 0; i < n; i++) {
        if (stop[i])
            rw_forget_metrics(s, stop[i]);
        stop[i] = endpoint_free(stop[i]);
    }
}

/* The last timestamp that was taken: of what the spool has held, or of what came after it. */
static int64_t rw_newest_ms(const struct endpoint_state *st)
{
    return st->newest_in_ms ? last_of(st->queue.last_ms, st->newest_in_ms) : st->queue.last_ms;
}

static void rw_set_gauges(struct metrics *m, const char *const *labels, const struct endpoint_state *st,
                          const struct rw_endpoint_config *c)
{
    metric_set(m, METRIC_RW_PENDING, labels, (double)st->queue.samples);
    metric_set(m, METRIC_RW_SHARDS, labels, 1);
    metric_set(m, METRIC_RW_SHARD_CAPACITY, labels, (double)c->max_samples_per_send);
    metric_set(m, METRIC_RW_MAX_SAMPLES, labels, (double)c->max_samples_per_send);
    metric_set(m, METRIC_RW_HIGHEST, labels, (double)rw_newest_ms(st) / 1000);
    metric_set(m, METRIC_RW_HIGHEST_SENT, labels, (double)st->sender.highest_sent_ms / 1000);
    metric_set(m, METRIC_RW_SPOOL_BYTES, labels, (double)st->spool.bytes);
    metric_set(m, METRIC_RW_SPOOL_IDLE, LV(labels[0], "unread", labels[1]), (double)st->spool.unread.bytes);
    metric_set(m, METRIC_RW_SPOOL_IDLE, LV(labels[0], "damaged", labels[1]), (double)st->spool.damaged.bytes);
    metric_set(m, METRIC_RW_SPOOL_IDLE, LV(labels[0], "unknown", labels[1]), (double)st->spool.unknown.bytes);
    if (st->has_spool || st->spool_error < 0) {
        metric_set(m, METRIC_RW_SPOOL_UP, labels, st->has_spool && st->queue.disk_error == 0);
        metric_set(m, METRIC_RW_SPOOL_LIMIT, labels, (double)c->max_spool_bytes);
    }
    metric_set(m, METRIC_RW_SERIES, labels, (double)st->series);
    metric_set(m, METRIC_RW_UP, labels, !sender_is_failing(&st->sender));
}

static void rw_set_counters(struct metrics *m, const char *const *labels, const struct endpoint_state *st)
{
    metric_set(m, METRIC_RW_SAMPLES, labels, (double)st->sender.samples);
    metric_set(m, METRIC_RW_FAILED, labels, (double)st->sender.failed);
    metric_set(m, METRIC_RW_RETRIED, labels, (double)st->sender.retried);
    metric_set(m, METRIC_RW_BYTES, labels, (double)st->sender.bytes);
    metric_set(m, METRIC_RW_METADATA, labels, (double)st->sender.metadata_sent);
    metric_set(m, METRIC_RW_METADATA_FAILED, labels, (double)st->sender.metadata_failed);
    metric_set(m, METRIC_RW_METADATA_RETRIED, labels, (double)st->sender.metadata_retried);
    metric_set(m, METRIC_RW_DAMAGED, labels, (double)(st->spool.damaged_bytes + st->spool.torn_bytes));
    for (unsigned i = 0; i < DROPS; i++) {
        const char *const *with_reason = LV(queue_drop_words[i], labels[0], labels[1]);

        /* Known only when the endpoint ends: see rw_forget_metrics(). */
        if (i == DROP_UNSAVED)
            metric_add(m, METRIC_RW_DROPPED, with_reason, 0);
        else
            metric_set(m, METRIC_RW_DROPPED, with_reason, (double)st->queue.dropped[i]);
    }
    for (size_t i = 0; i < st->n_durations; i++)
        metric_observe(m, METRIC_RW_DURATION, labels, (double)st->durations[i]);
}

/* What is wrong with the spool; empty if nothing is. */
static void rw_spool_error(struct out *o, const struct endpoint_state *st)
{
    int error = st->spool_error < 0 ? st->spool_error : st->queue.disk_error;
    CLEANUP(cleanup_free)
    char *text = error == 0 ? NULL
                            : xasprintf("cannot %s the spool, keeping samples in memory: %s",
                                        st->spool_error < 0 ? "open" : "write", strerror(-error));

    member_words(o, "spoolError", *st->spool.error ? st->spool.error : text);
}

static void rw_json_files(struct out *o, const char *key, size_t files, uint64_t bytes)
{
    member_object(o, key);
    member_count(o, "files", files);
    member_count(o, "bytes", bytes);
    out_puts(o, "}");
}

static void rw_json(struct out *o, const struct endpoint_state *st, const struct rw_endpoint_config *c)
{
    const struct queue_stats *q = &st->queue;
    const struct sender_stats *sent = &st->sender;
    const struct spool_stats *spool = &st->spool;
    bool backs_off = sent->state == SENDER_BACKING_OFF;
    int64_t behind_ms = q->samples ? rw_newest_ms(st) - q->oldest_ms : 0;
    uint64_t dropped = 0;

    for (unsigned i = 0; i < DROPS; i++)
        dropped += q->dropped[i];
    member_item(o);
    out_puts(o, "{");
    member_text(o, "name", c->name);
    member_text(o, "url", c->url_shown);
    member_text(o, "state",
                !st->ready                ? "starting"
                : sender_is_failing(sent) ? "failing"
                : q->samples              ? "sending"
                                          : "ok");
    member_text(o, "protocol", rw_protocol_words[sent->form]);
    member_number(o, "behindSeconds", (double)later_ms(behind_ms, 0) / 1000);
    member_count(o, "samplesSent", sent->samples);
    member_count(o, "samplesPending", q->samples);
    member_count(o, "samplesDropped", dropped);
    member_bool(o, "spool", st->has_spool);
    member_count(o, "spoolBytes", spool->bytes);
    member_count(o, "samplesUnsaved", q->unsaved);
    rw_json_files(o, "spoolUnread", spool->unread.n, spool->unread.bytes);
    rw_json_files(o, "spoolSetAside", spool->damaged.n + spool->unknown.n,
                  spool->damaged.bytes + spool->unknown.bytes);
    rw_spool_error(o, st);
    member_time(o, "sentAt", sent->last_sent_at_ms);
    member_time(o, "retryAt", backs_off ? sent->retry_at_ms : 0);
    member_words(o, "error", sent->error);
    member_time(o, "errorAt", sent->error_at_ms);
    out_puts(o, "}");
}

/* Brings the metrics of an endpoint up to date; *ret is its state. */
static void rw_refresh(struct rw_sink *s, struct endpoint *e, struct endpoint_state *ret)
{
    struct metrics *m = agent_state(s->agent)->metrics;
    const struct rw_endpoint_config *c = endpoint_config(e);

    endpoint_state(e, ret);
    rw_set_gauges(m, LV(c->name, c->url_shown), ret, c);
    rw_set_counters(m, LV(c->name, c->url_shown), ret);
}

/* Removes the endpoints that have drained. */
static void rw_on_post(struct post *p)
{
    struct rw_sink *s = CONTAINER_OF(p, struct rw_sink, post);
    struct endpoint_state st;
    size_t n = 0;

    atomic_store(&s->posted, false);
    for (size_t i = 0; i < s->n; i++) {
        rw_refresh(s, s->endpoints[i], &st);
        if (st.ended)
            rw_stop_endpoints(s, &s->endpoints[i], 1, 0);
        else
            s->endpoints[n++] = s->endpoints[i];
    }
    s->n = n;
    agent_touch(s->agent);
}

void rw_sink_refresh(struct rw_sink *s)
{
    struct endpoint_state st;

    for (size_t i = 0; i < s->n; i++)
        rw_refresh(s, s->endpoints[i], &st);
}

void rw_sink_json(struct rw_sink *s, struct out *o)
{
    struct endpoint_state st;

    for (size_t i = 0; i < s->n; i++) {
        rw_refresh(s, s->endpoints[i], &st);
        rw_json(o, &st, endpoint_config(s->endpoints[i]));
    }
}

static void rw_send_metrics(struct timer *t)
{
    struct rw_sink *s = CONTAINER_OF(t, struct rw_sink, health);
    struct loop *loop = agent_state(s->agent)->loop;

    for (size_t i = 0; agent_leads(s->agent) && i < s->n; i++)
        if (endpoint_config(s->endpoints[i])->send_health_metrics)
            endpoint_metrics(s->endpoints[i], agent_state(s->agent)->metrics, loop_wall(loop));
    loop_timer_set(loop, t, mono_add(loop_now(loop), HEALTH_MS));
}

struct rw_sink *rw_sink_new(struct agent *a)
{
    struct rw_sink *s = xcalloc(1, sizeof(*s));
    struct loop *loop = agent_state(a)->loop;

    s->sink.ops = &ops;
    s->agent = a;
    s->post.fn = rw_on_post;
    s->health.fn = rw_send_metrics;
    agent_add_sink(a, &s->sink);
    loop_timer_set(loop, &s->health, mono_add(loop_now(loop), HEALTH_MS));
    return s;
}

struct rw_sink *rw_sink_stop(struct rw_sink *s, int64_t flush_ms)
{
    if (!s)
        return NULL;
    loop_timer_clear(agent_state(s->agent)->loop, &s->health);
    rw_stop_endpoints(s, s->endpoints, s->n, flush_ms);
    loop_unpost(agent_state(s->agent)->loop, &s->post);
    free(s);
    return NULL;
}

/* Takes the running endpoint with this name out of the list; NULL without one. */
static struct endpoint *rw_take(struct rw_sink *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->endpoints[i] && strcmp(endpoint_config(s->endpoints[i])->name, name) == 0)
            return TAKE_PTR(s->endpoints[i]);
    return NULL;
}

static struct rw_endpoint_config *rw_config_find(const struct rw_config *c, const char *name)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (strcmp(c->list[i]->name, name) == 0)
            return c->list[i];
    return NULL;
}

/* The endpoint gets the current scores of all scorers: those that it lacks, or under other labels. */
static void rw_renew(struct rw_sink *s, struct endpoint *e)
{
    const struct agent_state *a = agent_state(s->agent);
    unix_ms now = loop_wall(a->loop);

    if (is_behind(s->newest_ms, now.ms))
        now.ms = s->newest_ms + 1;
    for (size_t i = 0; a->leading && i < a->n_scorers; i++)
        if (a->scorers[i]->batch)
            endpoint_renew(e, a->scorers[i]->batch, now);
}

/* Stops endpoints that were removed, or are another place now: their series end there. One that is the same
 * place goes on with its new configuration. */
static void rw_stop_changed(struct rw_sink *s, const struct rw_config *c)
{
    struct endpoint *stop[RW_MAX_ENDPOINTS] = {0};

    for (size_t i = 0; i < s->n; i++) {
        const struct rw_endpoint_config *was = endpoint_config(s->endpoints[i]);
        struct rw_endpoint_config *now = rw_config_find(c, was->name);

        if (now && now->fingerprint == was->fingerprint)
            continue;
        log_info(now ? "endpoint changed" : "endpoint removed", L_STR("remote_name", was->name));
        if (now && rw_endpoint_config_same_place(was, now)) {
            endpoint_configure(s->endpoints[i], now);
            rw_renew(s, s->endpoints[i]);
            continue;
        }
        stop[i] = TAKE_PTR(s->endpoints[i]);
    }
    rw_stop_endpoints(s, stop, s->n, REPLACED_FLUSH_MS);
}

static int rw_start(struct rw_sink *s, struct endpoint **ret, struct rw_endpoint_config *c,
                    const char *storage_path)
{
    bool leading = agent_state(s->agent)->leading;
    int r = endpoint_new(ret, c, storage_path, !leading, rw_on_changed, s);

    if (r == 0)
        rw_renew(s, *ret);
    return r;
}

void rw_sink_apply(struct rw_sink *s, const struct rw_config *c, const char *storage_path)
{
    bool leading = agent_state(s->agent)->leading;
    struct endpoint *list[RW_MAX_ENDPOINTS];
    size_t n = 0;

    rw_stop_changed(s, c);
    for (size_t i = 0; c && i < c->n; i++) {
        struct endpoint *e = rw_take(s, c->list[i]->name);
        int r = 0;

        if (e && !endpoint_drain(e, !leading) && leading)
            rw_stop_endpoints(s, &e, 1, 0);
        /* What an earlier run has left in the spool is sent by a standby, too. */
        if (!e && (leading || storage_path))
            r = rw_start(s, &e, c->list[i], storage_path);
        if (r < 0)
            log_error("cannot start endpoint", L_STR("remote_name", c->list[i]->name), L_ERR(r));
        if (e)
            list[n++] = e;
    }
    memcpy(s->endpoints, list, n * sizeof(list[0]));
    s->n = n;
    agent_touch(s->agent);
}
