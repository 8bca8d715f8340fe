/* Owns the request in flight: which records it holds, its form, the timer of the next attempt, and what the
 * receiver has taught about forms and sizes. Which series it refuses is found out by bisect.c. Called by the
 * endpoint, on the endpoint's thread. One request of samples is in flight at a time, and its records end only
 * when its response has decided about each of their samples. */
#include "remotewrite/sender.h"

#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "remotewrite/bisect.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/timestamp.h"

#include <errno.h>
#include <stdio.h>

/* What is sent with a record: any more would save little. */
enum { MORE_RECORDS = 255, MORE_BYTES = 1 << 20 };
enum {
    RETRY_AFTER_MAX_MS = 3600 * 1000,
    ALONE_MS = 60 * 1000, /* after a refused request of several records */
    LOG_MS = 60 * 1000,
    MAX_SERIES_MS = 3600 * 1000,
    VM_PROBE_MS = 24 * 3600 * 1000,
    NAMED_SERIES = 5, /* of a record, in the log */
    SERIES_NAME_MAX = 16 << 10,
};

/* A stop has a time in which to send: the first failure in it is the end. */
enum sender_life { SENDER_STAYS, SENDER_FLUSHES, SENDER_GAVE_UP };

struct sender {
    struct sender_options o;
    struct sender_stats stats;
    struct timer timer; /* the next attempt */
    enum sender_life life;
    mono_ms not_before; /* the receiver's Retry-After */
    /* The current record or NULL, and what is sent with it as if they were one. */
    struct record *record;
    size_t n_more;      /* companions */
    uint32_t samples;   /* of all these */
    int64_t last_ms;    /* their newest timestamp */
    struct str payload; /* of the record, or of all of them, in `joined` */
    struct buf joined;
    mono_ms alone_until;
    struct bisect bisect;
    uint32_t rejected, accepted; /* samples of the record */
    unsigned refusals;           /* requests */
    unsigned named;              /* series, in the log */
    struct buf body;             /* of the request, unless it is the payload itself */
    enum rw_form form;           /* of the request in flight */
    bool plain;                  /* send the rest of this record in the simplest form */
    /* A 400 may have been about this form: the same samples are tried in the simplest one, RW_FORM_V1, which
     * is never in doubt. */
    enum rw_form suspect_form;
    mono_ms refused_until[RW_FORMS];
    bool victoria;            /* the receiver has shown that it is VictoriaMetrics */
    uint32_t max_series;      /* in a request, after a 413; 0: no limit */
    mono_ms max_series_until; /* when to try more */
    /* When lines were logged last, 0 for never: a receiver that fails every other second costs one a
     * minute. */
    mono_ms failure_logged_at, drop_logged_at;
    bool failing_logged;
    uint64_t dropped_unlogged; /* samples */
    /* Metadata for 1.0 and vm: neither waits for samples nor holds them up. */
    struct buf metadata;        /* of the request in flight; empty without one */
    unsigned metadata_failures; /* consecutive */
    mono_ms metadata_at;        /* the next request */
};

/* ---- Log lines ---- */

/* Counts samples that the endpoint rejected, and logs them. */
static void sender_reject(struct sender *s, uint32_t samples, const char *why)
{
    mono_ms now = loop_now(s->o.loop);

    s->rejected += samples;
    s->stats.failed += samples;
    s->dropped_unlogged += samples;
    if (s->dropped_unlogged == 0 || mono_within(now, s->drop_logged_at, LOG_MS))
        return;
    log_error("samples rejected by the endpoint, dropped", L_STR("remote_name", s->o.config->name),
              L_INT("samples", s->dropped_unlogged), L_INT("timestamp_ms", s->last_ms), L_STR("err", why));
    s->drop_logged_at = now;
    s->dropped_unlogged = 0;
}

/* ---- Forms ---- */

/* The best form that the receiver may support. `auto` uses VictoriaMetrics' own protocol only where the
 * receiver is known to be VictoriaMetrics: others reject it with an error in their log. */
static enum rw_form sender_form(const struct sender *s)
{
    enum rw_protocol protocol = s->o.config->protocol;
    bool v2 = protocol == RW_PROTOCOL_V2 || protocol == RW_PROTOCOL_AUTO;
    bool vm = protocol == RW_PROTOCOL_VM || (protocol == RW_PROTOCOL_AUTO && s->victoria);
    mono_ms now = loop_now(s->o.loop);

    if (v2 && !mono_before(now, s->refused_until[RW_FORM_V2]))
        return RW_FORM_V2;
    return vm && !mono_before(now, s->refused_until[RW_FORM_VM]) ? RW_FORM_VM : RW_FORM_V1;
}

/* The receiver does not support this form: avoid it for an hour. */
static void sender_refuse_form(struct sender *s, enum rw_form form, const char *why)
{
    int64_t ms = form == RW_FORM_VM ? VM_PROBE_MS : SENDER_PROBE_MS;

    s->refused_until[form] = mono_add(loop_now(s->o.loop), ms);
    log_info("protocol not supported by the endpoint, falling back", L_STR("remote_name", s->o.config->name),
             L_STR("protocol", rw_protocol_words[form]), L_STR("to", rw_protocol_words[sender_form(s)]),
             L_STR("err", why));
}

/* ---- The current record ---- */

static void sender_forget_payload(struct sender *s)
{
    bisect_end(&s->bisect);
    buf_done(&s->joined);
}

/* The queue has exactly the records in flight that the request has. */
static void sender_check_flight(const struct sender *s)
{
    invariant(s->record && queue_in_flight(s->o.queue) == 1 + s->n_more);
}

/* Sends only the current one of several records, and for a while each alone. */
static void sender_go_alone(struct sender *s)
{
    mono_ms now = loop_now(s->o.loop);

    s->alone_until = mono_add(now, ALONE_MS);
    s->n_more = 0;
    queue_send_alone(s->o.queue);
    s->samples = s->record->head.samples;
    s->last_ms = s->record->head.last_ms;
    s->payload = (struct str){s->record->payload, s->record->payload_n};
    sender_forget_payload(s);
    bisect_begin(&s->bisect, s->payload, s->samples, now);
}

/* The series of the current piece are suspects from now on; the first new ones of a record are logged by
 * name. */
static void sender_suspect(struct sender *s, const char *text)
{
    uint32_t first = bisect_piece(&s->bisect).from;
    BUF_AUTO(shown, SERIES_NAME_MAX);

    if (!bisect_suspect(&s->bisect, loop_now(s->o.loop)) || s->named++ >= NAMED_SERIES)
        return;
    if (body_series_name(s->bisect.series[first], &shown) == 0)
        log_warn("series rejected by the endpoint", L_STR("remote_name", s->o.config->name),
                 L_SL("series", buf_str(&shown)), L_INT("timestamp_ms", s->last_ms), L_STR("err", text));
}

/* The current piece is too large for the receiver: sends at most half as much for an hour. */
static void sender_note_too_large(struct sender *s, const struct transport_answer *a)
{
    uint32_t n = piece_samples(bisect_piece(&s->bisect));

    if (n < 2)
        return;
    s->max_series = n / 2;
    s->max_series_until = mono_add(loop_now(s->o.loop), MAX_SERIES_MS);
    log_warn("request too large for the endpoint, sending smaller ones",
             L_STR("remote_name", s->o.config->name), L_INT("samples", s->max_series), L_STR("err", a->text));
}

/* ---- Delivery ---- */

const struct sender_stats *sender_stats(const struct sender *s)
{
    return &s->stats;
}

static void sender_note_error(struct sender *s, const char *text)
{
    (void)snprintf(s->stats.error, sizeof(s->stats.error), "%s", text);
    s->stats.error_at_ms = loop_wall(s->o.loop).ms;
}

/* A request, and a wait, begins when the sender is idle, and ends before anything else does. */
static void sender_enter(struct sender *s, enum sender_state state)
{
    invariant((s->stats.state == SENDER_IDLE) == (state != SENDER_IDLE));
    invariant(state != SENDER_SENDING || !bisect_is_over(&s->bisect));
    if (state != SENDER_IDLE && s->record)
        sender_check_flight(s);
    s->stats.state = state;
}

/* A retry waits: at once, it would find the receiver as it was. */
static void sender_wait(struct sender *s, int64_t ms)
{
    invariant(ms > 0);
    sender_enter(s, SENDER_BACKING_OFF);
    s->stats.retry_at_ms = loop_wall(s->o.loop).ms + ms;
    loop_timer_set(s->o.loop, &s->timer, mono_add(loop_now(s->o.loop), ms));
}

static void sender_finish_record(struct sender *s, enum queue_drop why)
{
    invariant(s->record && s->stats.state == SENDER_IDLE);
    if (why == DROP_REJECTED && s->rejected > 0 && s->accepted == 0)
        s->stats.refused = true;
    sender_check_flight(s);
    queue_count_drop(s->o.queue, why, s->rejected);
    queue_finish(s->o.queue, s->record);
    queue_save_position(s->o.queue);
    s->record = NULL;
    s->plain = false;
    s->suspect_form = RW_FORM_V1;
    sender_forget_payload(s);
}

static void sender_on_timer(struct timer *t)
{
    struct sender *s = CONTAINER_OF(t, struct sender, timer);
    int64_t limit = s->o.config->sample_age_limit_ms;

    sender_enter(s, SENDER_IDLE);
    if (s->record && limit && s->last_ms < loop_wall(s->o.loop).ms - limit)
        queue_count_drop(s->o.queue, DROP_TOO_OLD, bisect_abandon(&s->bisect));
    sender_kick(s);
}

static void sender_back_off(struct sender *s, const char *text, int64_t retry_after_ms)
{
    const struct rw_endpoint_config *c = s->o.config;
    struct backoff backoff = {c->min_backoff_ms, c->max_backoff_ms, RETRY_AFTER_MAX_MS};
    mono_ms now = loop_now(s->o.loop);

    s->stats.failures++;
    sender_note_error(s, text);
    if (s->life != SENDER_STAYS) {
        s->life = SENDER_GAVE_UP;
        return;
    }
    if (!mono_within(now, s->failure_logged_at, LOG_MS)) {
        log_warn("sending samples failed, retrying", L_STR("remote_name", c->name),
                 L_STR("url", c->url_shown), L_INT("failures", s->stats.failures), L_STR("err", text));
        s->failing_logged = true;
        s->failure_logged_at = now;
    }
    if (retry_after_ms > RETRY_AFTER_MAX_MS)
        retry_after_ms = RETRY_AFTER_MAX_MS;
    s->not_before = mono_add(now, retry_after_ms > 0 ? retry_after_ms : 0);
    sender_wait(s, backoff_ms(&backoff, s->stats.failures, retry_after_ms));
}

/* What is later than all that was queued came of a clock that has been corrected since. */
static void sender_note_sent(struct sender *s)
{
    struct sender_stats *st = &s->stats;

    if (st->highest_sent_ms > queue_newest_ms(s->o.queue))
        st->highest_sent_ms = s->last_ms;
    else
        st->highest_sent_ms = later_ms(st->highest_sent_ms, s->last_ms);
    st->last_sent_at_ms = loop_wall(s->o.loop).ms;
}

/* A receiver of 2.0 has written less than it got, and says so by a number. */
static void sender_note_unwritten(struct sender *s, uint32_t written, uint32_t sent, const char *text)
{
    struct sender_stats *st = &s->stats;
    BUF_AUTO(error, sizeof(st->error));

    buf_printf(&error, "%u of %u samples written", written, sent);
    if (*text)
        buf_printf(&error, ": %.400s", text);
    buf_putc(&error, '\0');
    if (buf_failed(&error) == 0)
        memcpy(st->error, error.p, error.n);
    st->error_at_ms = loop_wall(s->o.loop).ms;
    sender_reject(s, sent - written, st->error);
}

/* Samples of the piece were written. */
static void sender_note_written(struct sender *s, struct piece p, uint32_t written)
{
    mono_ms now = loop_now(s->o.loop);

    s->accepted += written;
    s->stats.refused = false;
    sender_note_sent(s);
    if (s->max_series && !mono_before(now, s->max_series_until))
        s->max_series = 0;
    bisect_trust(&s->bisect, p, now);
}

/* The receiver has the samples of the current piece; in 2.0, as many as it says. */
static void sender_on_accepted(struct sender *s, const struct transport_answer *a)
{
    struct piece p = bisect_piece(&s->bisect);
    uint32_t n = piece_samples(p), written = n;
    struct sender_stats *st = &s->stats;

    bisect_pop(&s->bisect);
    if (s->form == RW_FORM_V2 && a->samples_written < n)
        written = (uint32_t)a->samples_written;
    st->samples += written;
    if (written)
        sender_note_written(s, p, written);
    if (s->failing_logged)
        log_info("sending samples works again", L_STR("remote_name", s->o.config->name),
                 L_INT("failures", st->failures));
    s->failing_logged = false;
    st->failures = 0;
    /* A rejection of this record stays visible. */
    if (s->refusals == 0 && bisect_is_over(&s->bisect))
        st->error[0] = '\0';
    if (written < n)
        sender_note_unwritten(s, written, n, a->text);
}

/* A 400 to a higher form may be about the form, unless there are samples that it is known for. */
static bool sender_may_be_form(const struct sender *s, const struct transport_answer *a)
{
    return a->status == 400 && s->form != RW_FORM_V1 && !bisect_has_known(&s->bisect);
}

/* The current piece was rejected because of its size, or of what is in it: splits it, or removes and logs
 * it. */
static void sender_on_rejected(struct sender *s, const struct transport_answer *a, enum rw_verdict v)
{
    struct bisect *b = &s->bisect;
    struct piece p = bisect_piece(b);
    uint32_t n = piece_samples(p);

    if (s->n_more && v != VERDICT_DROP) {
        if (v == VERDICT_SHRINK)
            sender_note_too_large(s, a);
        sender_go_alone(s);
        return;
    }
    if (sender_may_be_form(s, a)) {
        s->suspect_form = s->form;
        return;
    }
    s->plain = s->plain || s->suspect_form != RW_FORM_V1 || a->status == 400;
    s->suspect_form = RW_FORM_V1;
    s->refusals++;
    bisect_note_refusal(b);
    sender_note_error(s, a->text);
    if (v == VERDICT_SHRINK && n > 1 && !bisect_is_of_suspects(b, p)) {
        sender_note_too_large(s, a);
        return;
    }
    if (v == VERDICT_SHRINK) /* not the size of the request: something in this series */
        s->max_series = 0;
    if (v != VERDICT_DROP && n > 1 && !bisect_is_full(b) && bisect_pays(b, loop_now(s->o.loop))) {
        bisect_split(b, bisect_middle(b));
        return;
    }
    if (v != VERDICT_DROP)
        sender_suspect(s, a->text);
    bisect_pop(b);
    sender_reject(s, n, a->text);
}

static void sender_act(struct sender *s, const struct transport_answer *a)
{
    enum rw_verdict v = transport_verdict(a, s->form);

    s->victoria = s->victoria || a->victoria;
    switch (v) {
    case VERDICT_SENT:
        if (s->suspect_form != RW_FORM_V1)
            sender_refuse_form(s, s->suspect_form, "rejected in this protocol, accepted in a simpler one");
        s->suspect_form = RW_FORM_V1;
        sender_on_accepted(s, a);
        return;
    case VERDICT_PARTIAL:
        s->refusals++;
        if (a->status == 413)
            sender_note_too_large(s, a);
        sender_on_accepted(s, a);
        return;
    case VERDICT_STEP_DOWN:
        sender_refuse_form(s, s->form, *a->text ? a->text : "response lacks the Written headers of 2.0");
        return;
    case VERDICT_RETRY:
        s->stats.retried += piece_samples(bisect_piece(&s->bisect));
        sender_back_off(s, a->text, a->retry_after_ms);
        return;
    default:
        sender_on_rejected(s, a, v);
    }
}

static void sender_on_answer(void *arg, const struct transport_answer *a)
{
    struct sender *s = arg;

    invariant(s->stats.state == SENDER_SENDING && !bisect_is_over(&s->bisect));
    sender_check_flight(s);
    sender_enter(s, SENDER_IDLE);
    s->stats.requests++;
    s->stats.seconds = a->seconds;
    buf_done(&s->body);
    sender_act(s, a);
    sender_kick(s);
}

static void sender_log_damaged(const struct sender *s, uint32_t samples)
{
    log_error("damaged record in the spool dropped", L_STR("remote_name", s->o.config->name),
              L_INT("samples", samples));
}

/* Adds small records that wait to the current one: a request costs both sides more than a hundred samples do,
 * and a round trip. Not where some are rejected, which is found out for each alone. -ESTALE: as for
 * queue_payload(). */
static int sender_take_more(struct sender *s)
{
    struct record *more[MORE_RECORDS];
    struct str blocks[MORE_RECORDS + 1] = {s->payload};
    mono_ms now = loop_now(s->o.loop);
    uint32_t most = (uint32_t)s->o.config->max_samples_per_send;
    size_t n, bytes = s->payload.n;

    if (s->max_series && s->max_series < most)
        most = s->max_series;
    if (s->samples >= most || mono_before(now, s->alone_until) || bisect_has_rejects(&s->bisect, now))
        return 0;
    n = queue_pick_more(s->o.queue, most - s->samples, more, MORE_RECORDS);
    for (size_t i = 0; i < n && bytes < MORE_BYTES; i++) {
        const struct record_head *h = &more[i]->head;
        int r = queue_payload(s->o.queue, more[i], &blocks[s->n_more + 1]);

        if (r == -ESTALE)
            return r;
        if (r < 0) {
            sender_log_damaged(s, h->samples);
            queue_drop(s->o.queue, more[i], DROP_DAMAGED);
            continue;
        }
        queue_take_along(s->o.queue, more[i]);
        s->n_more++;
        s->samples += h->samples;
        s->last_ms = later_ms(s->last_ms, h->last_ms);
        bytes += blocks[s->n_more].n;
    }
    if (s->n_more && body_join(blocks, s->n_more + 1, &s->joined) < 0)
        sender_go_alone(s);
    else if (s->n_more)
        s->payload = buf_str(&s->joined);
    return 0;
}

/* Makes the next records the current ones. False if there is none to send now. */
static bool sender_take_record(struct sender *s)
{
    struct record *r = queue_pick(s->o.queue, loop_wall(s->o.loop).ms);
    int error;

    if (!r)
        return false;
    s->record = r;
    s->rejected = s->accepted = s->refusals = s->named = 0;
    s->n_more = 0;
    s->samples = r->head.samples;
    s->last_ms = r->head.last_ms;
    error = queue_payload(s->o.queue, r, &s->payload) ?: sender_take_more(s);
    if (error == -ESTALE) { /* it waits in the spool, which is closed until it can be read */
        s->record = NULL;
    } else if (error < 0) {
        sender_log_damaged(s, s->samples);
        s->rejected = s->samples;
        sender_finish_record(s, DROP_DAMAGED);
    } else {
        bisect_begin(&s->bisect, s->payload, s->samples, loop_now(s->o.loop));
    }
    return true;
}

/* The form of the current piece: the simplest for what may be refused. */
static enum rw_form sender_piece_form(const struct sender *s)
{
    bool is_plain = s->plain || s->suspect_form != RW_FORM_V1;

    if (is_plain || bisect_is_of_suspects(&s->bisect, bisect_piece(&s->bisect)))
        return RW_FORM_V1;
    return sender_form(s);
}

/* The body of the current piece. The payload is one already, of all its series in 1.0. */
static int sender_make_body(struct sender *s, struct str *ret)
{
    const struct families *own = s->record->head.lane.n == 0 ? s->o.families : NULL;
    struct piece p = bisect_piece(&s->bisect);
    int r;

    *ret = s->payload;
    if (s->form == RW_FORM_V1 && piece_samples(p) == s->samples)
        return 0;
    r = bisect_unpack(&s->bisect);
    if (r == 0)
        r = body_make(s->form, s->bisect.series + p.from, piece_samples(p), own, &s->body);
    *ret = buf_str(&s->body);
    return r;
}

static void sender_start_piece(struct sender *s)
{
    struct piece p = bisect_piece(&s->bisect);
    struct str body;
    char why[256] = "";
    int r;

    if (s->max_series && piece_samples(p) > s->max_series && !bisect_is_full(&s->bisect))
        bisect_split(&s->bisect, p.from + s->max_series);
    s->form = sender_piece_form(s);
    r = sender_make_body(s, &body);
    if (r < 0 && s->n_more) {
        buf_done(&s->body);
        sender_go_alone(s);
    } else if (r < 0) {
        buf_done(&s->body);
        s->rejected += bisect_abandon(&s->bisect);
        sender_finish_record(s, DROP_DAMAGED);
    } else if (s->o.transport->start(s->o.transport, s->form, body, sender_on_answer, s, why) < 0) {
        sender_back_off(s, why, -1);
    } else {
        sender_enter(s, SENDER_SENDING);
        s->stats.form = sender_form(s);
        s->stats.bytes += body.n;
    }
}

void sender_kick(struct sender *s)
{
    while (s->stats.state == SENDER_IDLE && s->life != SENDER_GAVE_UP) {
        if (s->record && bisect_is_over(&s->bisect))
            sender_finish_record(s, DROP_REJECTED);
        else if (s->record)
            sender_start_piece(s);
        else if (!sender_take_record(s))
            return;
    }
}

void sender_configure(struct sender *s, const struct rw_endpoint_config *c)
{
    s->o.config = c;
    memset(s->refused_until, 0, sizeof(s->refused_until));
    s->max_series = 0;
    s->metadata_at = (mono_ms){0};
    s->stats.form = sender_form(s);
    if (s->stats.state == SENDER_BACKING_OFF && !mono_before(loop_now(s->o.loop), s->not_before)) {
        loop_timer_clear(s->o.loop, &s->timer);
        sender_enter(s, SENDER_IDLE);
    }
    sender_kick(s);
}

void sender_begin_flush(struct sender *s, int64_t ms)
{
    mono_ms now = loop_now(s->o.loop);

    if (s->life == SENDER_STAYS)
        s->life = SENDER_FLUSHES;
    if (s->stats.state == SENDER_BACKING_OFF) {
        loop_timer_clear(s->o.loop, &s->timer);
        sender_enter(s, SENDER_IDLE);
        if (mono_before(mono_add(now, ms), s->not_before))
            s->life = SENDER_GAVE_UP;
        else if (mono_before(now, s->not_before))
            sender_wait(s, s->not_before.ms - now.ms);
    }
    sender_kick(s);
}

struct sender *sender_new(const struct sender_options *o)
{
    struct sender *s = xcalloc(1, sizeof(*s));

    s->o = *o;
    s->timer.fn = sender_on_timer;
    buf_init(&s->body, BODY_MAX);
    bisect_init(&s->bisect);
    buf_init(&s->joined, BODY_MAX);
    buf_init(&s->metadata, BODY_MAX);
    s->stats.form = sender_form(s);
    return s;
}

struct sender *sender_free(struct sender *s)
{
    if (!s)
        return NULL;
    loop_timer_clear(s->o.loop, &s->timer);
    s->o.transport->cancel(s->o.transport);
    if (s->metadata.n)
        s->o.metadata_transport->cancel(s->o.metadata_transport);
    buf_done(&s->metadata);
    if (s->record)
        queue_put_back(s->o.queue);
    buf_done(&s->body);
    sender_forget_payload(s);
    free(s);
    return NULL;
}

/* ---- Metadata ---- */

static void metadata_log_failure(const struct sender *s, const char *what, const struct transport_answer *a)
{
    if (s->metadata_failures == 1)
        log_warn(what, L_STR("remote_name", s->o.config->name), L_STR("err", a->text));
}

/* The specification asks for no more than for samples: 5xx, 429 and no response are retried. */
static void metadata_on_answer(void *arg, const struct transport_answer *a)
{
    const struct backoff backoff = {1000, 60 * 1000, RETRY_AFTER_MAX_MS};
    struct sender *s = arg;
    enum rw_verdict v = transport_verdict(a, RW_FORM_V1);
    int64_t wait_ms = s->o.config->metadata_interval_ms;

    buf_done(&s->metadata);
    s->metadata_failures = v == VERDICT_SENT ? 0 : s->metadata_failures + 1;
    if (v == VERDICT_SENT) {
        s->stats.metadata_sent++;
    } else if (v == VERDICT_RETRY) {
        metadata_log_failure(s, "sending metadata failed, retrying", a);
        s->stats.metadata_retried++;
        wait_ms = backoff_ms(&backoff, s->metadata_failures, a->retry_after_ms);
    } else {
        metadata_log_failure(s, "metadata rejected by the endpoint", a);
        s->stats.metadata_failed++;
    }
    s->metadata_at = mono_add(loop_now(s->o.loop), wait_ms);
}

/* Not before samples were delivered, because the form is known only then; 2.0 needs none. */
static bool metadata_is_due(const struct sender *s, mono_ms now)
{
    const struct sender_stats *st = &s->stats;

    if (!s->o.config->metadata_send || s->life != SENDER_STAYS || s->metadata.n)
        return false;
    if (st->samples == 0 || st->failures || st->form == RW_FORM_V2)
        return false;
    return !mono_before(now, s->metadata_at);
}

void sender_tick(struct sender *s)
{
    struct transport *t = s->o.metadata_transport;
    enum rw_form form = s->stats.form;
    mono_ms now = loop_now(s->o.loop);
    char why[256] = "";
    int r;

    if (!metadata_is_due(s, now))
        return;
    s->metadata_at = mono_add(now, s->o.config->metadata_interval_ms);
    r = metadata_body(form, s->o.families, &s->metadata);
    if (r == 0 && s->metadata.n)
        r = t->start(t, form, buf_str(&s->metadata), metadata_on_answer, s, why);
    if (r < 0)
        buf_done(&s->metadata);
}

bool sender_done(const struct sender *s)
{
    return s->life == SENDER_GAVE_UP || (s->stats.state == SENDER_IDLE && !s->record);
}
