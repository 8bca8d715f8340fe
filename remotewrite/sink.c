/* Owns the endpoints: one for each entry of the configuration, in a slot, and those that are ending because
 * their entry has gone or names another place now. Nothing waits for the latter: each flushes on its thread
 * and says when it has ended. Only then do endpoints start that an entry lacks, so that two never have one
 * folder, and what is new at a receiver follows the stale markers of what was there.
 * Everything runs on the agent's loop, except rw_on_changed(), and nothing before rw_sink_stop() waits for an
 * endpoint's thread. */
#include "remotewrite/sink.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/sink.h"
#include "exporter/ui/member.h"
#include "remotewrite/endpoint.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"
#include "remotewrite/spool.h"
#include "remotewrite/timestamp.h"

#include <stdatomic.h>

enum {
    TICK_MS = 15 * 1000, /* between two copies of the own metrics */
    /* After which scores are sent again. TSDBs show a series for five minutes after its last sample; a tick
     * and the way there take their part of them. */
    AGAIN_MS = 4 * 60 * 1000,
    REPLACED_FLUSH_MS = 3000,
};

/* An entry of the configuration in force. */
struct rw_slot {
    struct rw_endpoint_config *config;
    struct endpoint *endpoint; /* NULL: none runs */
    bool is_due;               /* one is to start once no other is ending */
};

struct rw_sink {
    struct sink sink;
    struct agent *agent;
    char *storage_path;                     /* NULL: none */
    struct rw_slot slots[RW_MAX_ENDPOINTS]; /* in the order of the configuration */
    struct endpoint *ending[RW_MAX_ENDPOINTS];
    size_t n, n_ending;
    struct post post;
    atomic_bool posted;
    struct timer tick;
    unix_ms ticked_at;
    int64_t newest_ms; /* of endpoints that have ended: no stale marker of theirs is later */
};

static void rw_publish(struct rw_sink *s, struct batch *b, unix_ms at)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->slots[i].endpoint)
            endpoint_publish(s->slots[i].endpoint, b, at);
}

static void rw_on_round(struct sink *sink, const char *score_name, const struct round_outcome *o)
{
    struct rw_sink *s = CONTAINER_OF(sink, struct rw_sink, sink);

    (void)score_name;
    if (o->batch && agent_leads(s->agent))
        rw_publish(s, o->batch, o->batch->at);
}

static void rw_on_withdrawn(struct sink *sink, const char *score_name, unix_ms at)
{
    struct rw_sink *s = CONTAINER_OF(sink, struct rw_sink, sink);

    if (!agent_leads(s->agent))
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->slots[i].endpoint)
            endpoint_withdraw(s->slots[i].endpoint, score_name, at);
}

static const struct sink_ops ops = {.round_ended = rw_on_round, .withdrawn = rw_on_withdrawn};

/* The endpoints' threads. Coalesces changes until the loop has seen them. */
static void rw_on_changed(void *arg)
{
    struct rw_sink *s = arg;

    if (!atomic_exchange(&s->posted, true))
        loop_post(agent_state(s->agent)->loop, &s->post);
}

/* Frees an endpoint that has ended, and forgets its metrics, but not the samples that it lost just now. */
static struct endpoint *rw_reap(struct rw_sink *s, struct endpoint *e)
{
    struct metrics *m = agent_state(s->agent)->metrics;
    const struct rw_endpoint_config *c = endpoint_config(e);
    struct endpoint_state st;

    endpoint_join(e);
    endpoint_state(e, &st);
    invariant(st.phase == ENDPOINT_ENDED);
    s->newest_ms = last_ms_after(s->newest_ms, st.queue.last_ms);
    metrics_forget(m, "remote_name", c->name);
    if (st.queue.dropped[DROP_UNSAVED])
        metric_add(m, METRIC_RW_DROPPED, LV(queue_drop_words[DROP_UNSAVED], c->name, c->url_shown),
                   (double)st.queue.dropped[DROP_UNSAVED]);
    return endpoint_free(e);
}

/* The last timestamp that was taken: of what the spool has held, or of what came after it. */
static int64_t rw_newest_ms(const struct endpoint_state *st)
{
    return st->newest_in_ms ? last_ms_after(st->queue.last_ms, st->newest_in_ms) : st->queue.last_ms;
}

static void rw_set_spool_gauges(struct metrics *m, const char *const *labels, const struct queue_stats *q,
                                const struct rw_endpoint_config *c)
{
    const struct spool_stats *spool = &q->spool;

    metric_set(m, METRIC_RW_SPOOL_BYTES, labels, (double)spool->bytes);
    metric_set(m, METRIC_RW_SPOOL_IDLE, LV(labels[0], "unread", labels[1]), (double)spool->unread.bytes);
    metric_set(m, METRIC_RW_SPOOL_IDLE, LV(labels[0], "damaged", labels[1]), (double)spool->damaged.bytes);
    metric_set(m, METRIC_RW_SPOOL_IDLE, LV(labels[0], "unknown", labels[1]), (double)spool->unknown.bytes);
    if (q->has_spool || q->spool_error < 0) {
        metric_set(m, METRIC_RW_SPOOL_UP, labels, q->has_spool && q->disk_error == 0);
        metric_set(m, METRIC_RW_SPOOL_LIMIT, labels, (double)c->max_spool_bytes);
    }
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
    metric_set(m, METRIC_RW_SERIES, labels, (double)st->series);
    metric_set(m, METRIC_RW_UP, labels, !sender_is_failing(&st->sender));
}

static void rw_set_counters(struct metrics *m, const char *const *labels, const struct endpoint_state *st)
{
    const struct spool_stats *spool = &st->queue.spool;

    metric_set(m, METRIC_RW_SAMPLES, labels, (double)st->sender.samples);
    metric_set(m, METRIC_RW_FAILED, labels, (double)st->sender.failed);
    metric_set(m, METRIC_RW_RETRIED, labels, (double)st->sender.retried);
    metric_set(m, METRIC_RW_BYTES, labels, (double)st->sender.bytes);
    metric_set(m, METRIC_RW_METADATA, labels, (double)st->sender.metadata_sent);
    metric_set(m, METRIC_RW_METADATA_FAILED, labels, (double)st->sender.metadata_failed);
    metric_set(m, METRIC_RW_METADATA_RETRIED, labels, (double)st->sender.metadata_retried);
    metric_set(m, METRIC_RW_DAMAGED, labels, (double)(spool->damaged_bytes + spool->torn_bytes));
    for (unsigned i = 0; i < DROPS; i++) {
        const char *const *with_reason = LV(queue_drop_words[i], labels[0], labels[1]);

        /* Known only when the endpoint ends: see rw_reap(). */
        if (i == DROP_UNSAVED)
            metric_add(m, METRIC_RW_DROPPED, with_reason, 0);
        else
            metric_set(m, METRIC_RW_DROPPED, with_reason, (double)st->queue.dropped[i]);
    }
    for (size_t i = 0; i < st->n_durations; i++)
        metric_observe(m, METRIC_RW_DURATION, labels, (double)st->durations[i]);
}

/* What is wrong with the spool; null if nothing is. */
static void rw_spool_error(struct buf *o, const struct queue_stats *q)
{
    BUF_AUTO(text, SPOOL_ERROR_BYTES);

    if (*q->spool.error) {
        member_text(o, "spoolError", q->spool.error);
        return;
    }
    if (q->spool_error < 0) {
        buf_puts(&text, "cannot open the spool, keeping samples in memory: ");
        buf_puts(&text, strerror(-q->spool_error));
    } else if (q->disk_error < 0) {
        buf_puts(&text, "cannot write the spool, keeping samples in memory: ");
        buf_puts(&text, strerror(-q->disk_error));
    }
    buf_putc(&text, '\0');
    member_words(o, "spoolError", buf_failed(&text) < 0 ? NULL : text.p);
}

static void rw_json_files(struct buf *o, const char *key, size_t files, uint64_t bytes)
{
    member_object(o, key);
    member_count(o, "files", files);
    member_count(o, "bytes", bytes);
    buf_puts(o, "}");
}

static const char *rw_state_word(const struct endpoint_state *st)
{
    if (st->phase != ENDPOINT_RUNNING)
        return "ending";
    if (!st->ready)
        return "starting";
    if (sender_is_failing(&st->sender))
        return "failing";
    return st->queue.samples ? "sending" : "ok";
}

static void rw_json(struct buf *o, const struct endpoint_state *st, const struct rw_endpoint_config *c)
{
    const struct queue_stats *q = &st->queue;
    const struct sender_stats *sent = &st->sender;
    const struct spool_stats *spool = &q->spool;
    bool backs_off = sent->state == SENDER_BACKING_OFF;
    int64_t behind_ms = q->samples ? rw_newest_ms(st) - q->oldest_ms : 0;
    uint64_t dropped = 0;

    for (unsigned i = 0; i < DROPS; i++)
        dropped += q->dropped[i];
    member_item(o);
    buf_puts(o, "{");
    member_text(o, "name", c->name);
    member_text(o, "url", c->url_shown);
    member_text(o, "state", rw_state_word(st));
    member_text(o, "protocol", rw_protocol_words[sent->form]);
    member_number(o, "behindSeconds", (double)later_ms(behind_ms, 0) / 1000);
    member_count(o, "samplesSent", sent->samples);
    member_count(o, "samplesPending", q->samples);
    member_count(o, "samplesDropped", dropped);
    member_bool(o, "spool", q->has_spool);
    member_count(o, "spoolBytes", spool->bytes);
    member_count(o, "samplesUnsaved", q->unsaved);
    rw_json_files(o, "spoolUnread", spool->unread.n, spool->unread.bytes);
    rw_json_files(o, "spoolSetAside", spool->damaged.n + spool->unknown.n,
                  spool->damaged.bytes + spool->unknown.bytes);
    rw_spool_error(o, q);
    member_time(o, "sentAt", sent->last_sent_at_ms);
    member_time(o, "retryAt", backs_off ? sent->retry_at_ms : 0);
    member_words(o, "error", sent->error);
    member_time(o, "errorAt", sent->error_at_ms);
    buf_puts(o, "}");
}

/* Brings the metrics of an endpoint up to date; *ret is its state. */
static void rw_refresh(struct rw_sink *s, struct endpoint *e, struct endpoint_state *ret)
{
    struct metrics *m = agent_state(s->agent)->metrics;
    const struct rw_endpoint_config *c = endpoint_config(e);

    endpoint_state(e, ret);
    rw_set_gauges(m, LV(c->name, c->url_shown), ret, c);
    rw_set_spool_gauges(m, LV(c->name, c->url_shown), &ret->queue, c);
    rw_set_counters(m, LV(c->name, c->url_shown), ret);
}

/* ---- Starting and ending ---- */

/* The endpoint gets the current scores of all scorers: those that it lacks, or under other labels. */
static void rw_renew(struct rw_sink *s, struct endpoint *e)
{
    unix_ms now = loop_wall(agent_state(s->agent)->loop);
    struct batch *b;

    if (is_behind(s->newest_ms, now.ms))
        now.ms = s->newest_ms + 1;
    for (size_t at = 0; (b = agent_next_batch(s->agent, &at));)
        endpoint_renew(e, b, now);
}

static void rw_start(struct rw_sink *s, struct rw_slot *slot)
{
    bool leading = agent_state(s->agent)->leading;
    int r;

    /* What an earlier run has left in the spool is sent by a standby, too. */
    if (!leading && !s->storage_path)
        return;
    r = endpoint_new(&slot->endpoint, slot->config, s->storage_path, !leading, rw_on_changed, s);
    if (r < 0)
        log_error("cannot start endpoint", L_STR("remote_name", slot->config->name), L_ERR(r));
    else
        rw_renew(s, slot->endpoint);
}

/* Starts the endpoints that are due, unless one is ending. */
static void rw_start_due(struct rw_sink *s)
{
    for (size_t i = 0; s->n_ending == 0 && i < s->n; i++) {
        struct rw_slot *slot = &s->slots[i];

        invariant(!slot->is_due || !slot->endpoint);
        if (slot->is_due) {
            slot->is_due = false;
            rw_start(s, slot);
        }
    }
}

/* From now on, the endpoint is in no slot. */
static void rw_end(struct rw_sink *s, struct endpoint *e, int64_t flush_ms)
{
    endpoint_stop(e, flush_ms);
    /* None starts meanwhile, so all of them ran when the first began to end. */
    invariant(s->n_ending < RW_MAX_ENDPOINTS);
    s->ending[s->n_ending++] = e;
}

/* Frees the endpoints that have ended: as they were told, or on a standby, with nothing left to send. */
static void rw_reap_ended(struct rw_sink *s)
{
    struct endpoint_state st;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct rw_slot *slot = &s->slots[i];

        if (!slot->endpoint)
            continue;
        rw_refresh(s, slot->endpoint, &st);
        if (st.phase == ENDPOINT_ENDED)
            slot->endpoint = rw_reap(s, slot->endpoint);
    }
    for (size_t i = 0; i < s->n_ending; i++) {
        rw_refresh(s, s->ending[i], &st);
        if (st.phase == ENDPOINT_ENDED)
            (void)rw_reap(s, s->ending[i]);
        else
            s->ending[n++] = s->ending[i];
    }
    s->n_ending = n;
}

/* An endpoint's state has changed. */
static void rw_on_post(struct post *p)
{
    struct rw_sink *s = CONTAINER_OF(p, struct rw_sink, post);

    atomic_store(&s->posted, false);
    rw_reap_ended(s);
    rw_start_due(s);
    agent_touch(s->agent);
}

/* Takes the running endpoint of this name out of its slot; NULL without one. */
static struct endpoint *rw_take(struct rw_sink *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->slots[i].endpoint && strcmp(s->slots[i].config->name, name) == 0)
            return TAKE_PTR(s->slots[i].endpoint);
    return NULL;
}

/* The running endpoint that goes on under this entry of a new configuration; NULL if none does. One that is
 * another place now ends, and with it its series there. */
static struct endpoint *rw_keep(struct rw_sink *s, struct rw_endpoint_config *now)
{
    bool leading = agent_state(s->agent)->leading;
    struct endpoint *e = rw_take(s, now->name);

    if (!e)
        return NULL;
    if (endpoint_config(e)->fingerprint != now->fingerprint) {
        log_info("endpoint changed", L_STR("remote_name", now->name));
        if (!rw_endpoint_config_same_place(endpoint_config(e), now)) {
            rw_end(s, e, REPLACED_FLUSH_MS);
            return NULL;
        }
        endpoint_configure(e, now);
        rw_renew(s, e);
    }
    if (!leading) {
        endpoint_drain(e);
        return e;
    }
    /* One that had nothing left to send while the agent stood by has no way back. */
    if (!endpoint_lead(e)) {
        rw_end(s, e, 0);
        return NULL;
    }
    return e;
}

/* Those that no entry of the new configuration has kept. */
static void rw_end_removed(struct rw_sink *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->slots[i].endpoint) {
            log_info("endpoint removed", L_STR("remote_name", s->slots[i].config->name));
            rw_end(s, s->slots[i].endpoint, REPLACED_FLUSH_MS);
        }
        (void)rw_endpoint_config_unref(s->slots[i].config);
    }
}

void rw_sink_apply(struct rw_sink *s, const struct rw_config *c, const char *storage_path)
{
    struct rw_slot slots[RW_MAX_ENDPOINTS];
    size_t n = 0;

    free(s->storage_path);
    s->storage_path = storage_path ? xstrdup(storage_path) : NULL;
    for (; c && n < c->n; n++) {
        slots[n].config = rw_endpoint_config_ref(c->list[n]);
        slots[n].endpoint = rw_keep(s, c->list[n]);
        slots[n].is_due = !slots[n].endpoint;
    }
    rw_end_removed(s);
    memcpy(s->slots, slots, n * sizeof(slots[0]));
    s->n = n;
    rw_reap_ended(s);
    rw_start_due(s);
    agent_touch(s->agent);
}

/* ---- What others ask for ---- */

/* The i-th of all endpoints: those of the slots, some of which have none (NULL), and then those that are
 * ending. */
static struct endpoint *rw_endpoint_at(const struct rw_sink *s, size_t i)
{
    return i < s->n ? s->slots[i].endpoint : s->ending[i - s->n];
}

void rw_sink_refresh(struct rw_sink *s)
{
    struct endpoint_state st;

    for (size_t i = 0; i < s->n + s->n_ending; i++) {
        struct endpoint *e = rw_endpoint_at(s, i);

        if (e)
            rw_refresh(s, e, &st);
    }
}

void rw_sink_json(struct rw_sink *s, struct buf *o)
{
    struct endpoint_state st;

    for (size_t i = 0; i < s->n + s->n_ending; i++) {
        struct endpoint *e = rw_endpoint_at(s, i);

        if (!e)
            continue;
        rw_refresh(s, e, &st);
        rw_json(o, &st, endpoint_config(e));
    }
}

static void rw_send_metrics(struct rw_sink *s, unix_ms now)
{
    for (size_t i = 0; i < s->n; i++) {
        struct rw_slot *slot = &s->slots[i];

        if (slot->endpoint && slot->config->send_health_metrics)
            endpoint_metrics(slot->endpoint, agent_state(s->agent)->metrics, now);
    }
}

/* Scores of a scorer whose interval is long, or whose rounds fail, stay in force, so they must not seem gone
 * where they are read: each is sent again by the tick at which its age passes a multiple of AGAIN_MS. */
static void rw_send_again(struct rw_sink *s, unix_ms now)
{
    struct batch *b;

    for (size_t at = 0; (b = agent_next_batch(s->agent, &at));) {
        int64_t age_ms = now.ms - b->at.ms, before_ms = s->ticked_at.ms - b->at.ms;

        if (age_ms >= AGAIN_MS && age_ms / AGAIN_MS != before_ms / AGAIN_MS)
            rw_publish(s, b, now);
    }
}

static void rw_on_tick(struct timer *t)
{
    struct rw_sink *s = CONTAINER_OF(t, struct rw_sink, tick);
    struct loop *loop = agent_state(s->agent)->loop;
    unix_ms now = loop_wall(loop);

    if (agent_leads(s->agent)) {
        rw_send_metrics(s, now);
        rw_send_again(s, now);
    }
    s->ticked_at = now;
    loop_timer_set(loop, t, mono_add(loop_now(loop), TICK_MS));
}

struct rw_sink *rw_sink_new(struct agent *a)
{
    struct rw_sink *s = xcalloc(1, sizeof(*s));
    struct loop *loop = agent_state(a)->loop;

    s->sink.ops = &ops;
    s->agent = a;
    s->post.fn = rw_on_post;
    s->tick.fn = rw_on_tick;
    s->ticked_at = loop_wall(loop);
    agent_add_sink(a, &s->sink);
    loop_timer_set(loop, &s->tick, mono_add(loop_now(loop), TICK_MS));
    return s;
}

struct rw_sink *rw_sink_stop(struct rw_sink *s, int64_t flush_ms)
{
    if (!s)
        return NULL;
    loop_timer_clear(agent_state(s->agent)->loop, &s->tick);
    for (size_t i = 0; i < s->n + s->n_ending; i++) {
        struct endpoint *e = rw_endpoint_at(s, i);

        if (e)
            endpoint_stop(e, flush_ms);
    }
    for (size_t i = 0; i < s->n + s->n_ending; i++) {
        struct endpoint *e = rw_endpoint_at(s, i);

        if (e)
            (void)rw_reap(s, e);
    }
    for (size_t i = 0; i < s->n; i++)
        (void)rw_endpoint_config_unref(s->slots[i].config);
    loop_unpost(agent_state(s->agent)->loop, &s->post);
    free(s->storage_path);
    free(s);
    return NULL;
}
