/* Owns the current record and the timer of the next attempt. */
#include "remotewrite/sender_internal.h"

#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/series.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/verdict.h"

#include <errno.h>
#include <stdio.h>

enum { COMPLAIN_MS = 60 * 1000, NO_MEMORY_MS = 1000, RETRY_AFTER_MAX_MS = 3600 * 1000, TYPE_GAUGE = 2 };

static void sender_step(struct sender *s);
static void sender_on_timer(struct timer *t);

static const char *sender_name(const struct sender *s)
{
    return s->o.config->name;
}

int sender_new(struct sender **ret, const struct sender_options *o)
{
    struct sender *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->o = *o;
    s->timer.fn = sender_on_timer;
    buf_init(&s->body, BODY_MAX);
    s->stats.form = sender_form(s);
    *ret = s;
    return 0;
}

struct sender *sender_free(struct sender *s)
{
    if (!s)
        return NULL;
    loop_timer_clear(s->o.loop, &s->timer);
    s->o.transport->cancel(s->o.transport);
    if (s->record)
        queue_put_back(s->o.queue, s->record);
    buf_done(&s->body);
    free(s);
    return NULL;
}

struct sender_stats *sender_stats(struct sender *s)
{
    return &s->stats;
}

static void sender_changed(struct sender *s)
{
    if (s->o.changed)
        s->o.changed(s->o.arg);
}

/* Logs the first failure and then one a minute. */
static void sender_complain(struct sender *s, const char *text)
{
    mono_ms now = loop_now(s->o.loop);

    if (s->complaining && mono_before(now, mono_add(s->complained_at, COMPLAIN_MS)))
        return;
    s->complaining = true;
    s->complained_at = now;
    log_warn("sending samples failed, retrying", L_STR("remote_name", sender_name(s)),
             L_STR("url", s->o.config->url_shown), L_INT("failures", s->stats.failures), L_STR("err", text));
}

static void sender_note_error(struct sender *s, const char *text)
{
    (void)snprintf(s->stats.error, sizeof(s->stats.error), "%s", text);
    s->stats.error_at_ms = loop_wall(s->o.loop).ms;
}

static void sender_wait(struct sender *s, int64_t ms)
{
    s->waiting = true;
    s->stats.state = SENDER_BACKING_OFF;
    s->stats.retry_at_ms = loop_wall(s->o.loop).ms + ms;
    if (loop_timer_set(s->o.loop, &s->timer, mono_add(loop_now(s->o.loop), ms)) < 0)
        s->waiting = false; /* the next sender_kick() tries again */
}

static void sender_finish_record(struct sender *s, enum queue_drop why)
{
    queue_finish(s->o.queue, s->record, why, s->rejected);
    queue_save_position(s->o.queue, false);
    s->record = NULL;
    s->plain = s->doubting = false;
}

/* The rest of the current record has exceeded the age limit. */
static void sender_drop_old(struct sender *s)
{
    while (s->n_pieces) {
        struct piece p = s->pieces[--s->n_pieces];

        queue_count_drop(s->o.queue, DROP_TOO_OLD, p.to - p.from);
    }
    sender_finish_record(s, DROP_REJECTED);
}

static void sender_on_timer(struct timer *t)
{
    struct sender *s = CONTAINER_OF(t, struct sender, timer);
    int64_t limit = s->o.config->sample_age_limit_ms;

    s->waiting = false;
    if (s->record && limit && s->record->last_ms < loop_wall(s->o.loop).ms - limit)
        sender_drop_old(s);
    sender_step(s);
}

static void sender_back_off(struct sender *s, const char *text, int64_t retry_after_ms)
{
    const struct rw_endpoint_config *c = s->o.config;
    struct backoff backoff = {c->min_backoff_ms, c->max_backoff_ms, RETRY_AFTER_MAX_MS};

    s->stats.failures++;
    sender_note_error(s, text);
    if (s->hurried) {
        s->gave_up = true;
        return;
    }
    sender_complain(s, text);
    sender_wait(s, backoff_ms(&backoff, s->stats.failures, retry_after_ms));
}

static void sender_end_piece(struct sender *s)
{
    if (s->n_pieces == 0)
        sender_finish_record(s, DROP_REJECTED);
}

static void sender_note_recovery(struct sender *s)
{
    if (s->complaining)
        log_info("sending samples works again", L_STR("remote_name", sender_name(s)),
                 L_INT("failures", s->stats.failures));
    s->complaining = false;
    s->stats.failures = 0;
    /* A rejection of this record stays visible. */
    if (s->refusals == 0)
        s->stats.error[0] = '\0';
}

static void sender_on_accepted(struct sender *s)
{
    struct piece p = s->pieces[--s->n_pieces];
    struct sender_stats *st = &s->stats;

    if (s->doubting)
        sender_refuse_form(s, s->doubted, "rejected in this protocol, accepted in a simpler one");
    s->doubting = false;
    s->accepted += p.to - p.from;
    st->samples += p.to - p.from;
    st->last_sent_at_ms = loop_wall(s->o.loop).ms;
    if (s->record->last_ms > st->highest_sent_ms)
        st->highest_sent_ms = s->record->last_ms;
    sender_note_recovery(s);
    sender_end_piece(s);
}

/* A 400 to a higher form may be about the form rather than the samples. */
static bool sender_doubt_form(struct sender *s, const struct transport_answer *a)
{
    if (a->status != 400 || s->doubting || s->form == RW_FORM_V1)
        return false;
    s->doubting = true;
    s->doubted = s->form;
    return true;
}

static enum rw_verdict sender_verdict(const struct sender *s, const struct transport_answer *a)
{
    enum rw_verdict v = verdict_of(a->error, a->status);

    /* A 1.0 receiver decodes a 2.0 request as empty and answers 2xx. */
    if (v == VERDICT_SENT && s->form == RW_FORM_V2 && !a->written)
        v = VERDICT_STEP_DOWN;
    if (v == VERDICT_STEP_DOWN && s->form == RW_FORM_V1)
        v = VERDICT_DROP;
    return v;
}

static void sender_act(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    switch (sender_verdict(s, a)) {
    case VERDICT_SENT:
        sender_on_accepted(s);
        return;
    case VERDICT_STEP_DOWN:
        sender_refuse_form(s, s->form, *a->text ? a->text : "response lacks the Written headers of 2.0");
        return;
    case VERDICT_HALVE:
        if (sender_doubt_form(s, a))
            return;
        s->plain = s->plain || s->doubting;
        s->doubting = false;
        sender_note_error(s, a->text);
        sender_halve(s, a);
        sender_end_piece(s);
        return;
    case VERDICT_DROP:
        sender_note_error(s, a->text);
        sender_give_up_piece(s, a);
        sender_end_piece(s);
        return;
    default:
        s->stats.retried += p.to - p.from;
        sender_back_off(s, a->text, a->retry_after_ms);
    }
}

static void sender_note_duration(struct sender *s, double seconds)
{
    if (s->stats.n_durations < SENDER_DURATIONS)
        s->stats.durations[s->stats.n_durations++] = (float)seconds;
}

static void sender_on_answer(void *arg, const struct transport_answer *a)
{
    struct sender *s = arg;

    s->in_flight = false;
    s->stats.state = SENDER_IDLE;
    s->stats.requests++;
    sender_note_duration(s, a->seconds);
    buf_done(&s->body);
    if (s->metadata_in_flight) {
        bool good = verdict_of(a->error, a->status) == VERDICT_SENT;

        s->metadata_in_flight = false;
        s->stats.metadata += good;
        s->stats.metadata_failed += !good;
    } else {
        sender_act(s, a);
    }
    sender_step(s);
    sender_changed(s);
}

static void sender_start(struct sender *s, struct str body)
{
    char why[256] = "";
    int r = s->o.transport->start(s->o.transport, s->form, body, sender_on_answer, s, why);

    if (r < 0) {
        sender_back_off(s, why, -1);
        return;
    }
    s->in_flight = true;
    s->stats.state = SENDER_SENDING;
    s->stats.form = s->form;
    s->stats.bytes += body.n;
}

/* Sends type and help in a request of their own where the form has no place for them beside the samples;
 * not before samples were accepted, because the form is known only then. */
static bool sender_start_metadata(struct sender *s)
{
    static const struct body_family families[] = {{SCORE_METRIC, SCORE_HELP, TYPE_GAUGE}};
    const struct rw_endpoint_config *c = s->o.config;
    mono_ms now = loop_now(s->o.loop);

    if (!c->metadata_send || s->hurried || s->stats.samples == 0 ||
        (s->metadata_sent && mono_before(now, s->metadata_at)))
        return false;
    s->form = sender_form(s);
    if (s->form == RW_FORM_V2 || body_metadata(s->form, families, ARRAY_SIZE(families), &s->body) < 0)
        return false;
    s->metadata_sent = true;
    s->metadata_at = mono_add(now, c->metadata_interval_ms);
    s->metadata_in_flight = true;
    sender_start(s, buf_str(&s->body));
    s->metadata_in_flight = s->in_flight;
    return true;
}

/* Makes the next record the current one. False if there is none to send now. */
static bool sender_take_record(struct sender *s)
{
    struct record *r = queue_pick(s->o.queue, loop_wall(s->o.loop).ms);
    int error;

    if (!r)
        return false;
    s->record = r;
    s->n_pieces = 1;
    s->pieces[0] = (struct piece){0, r->samples};
    s->accepted = s->rejected = s->refusals = s->named = 0;
    error = queue_payload(s->o.queue, r, &s->payload);
    if (error == 0)
        return true;
    if (error == -ESTALE) { /* it waits in the spool until it can be read */
        s->record = NULL;
    } else if (error == -EBADMSG) {
        log_error("damaged record in the spool dropped", L_STR("remote_name", sender_name(s)),
                  L_INT("samples", r->samples));
        s->rejected = r->samples;
        sender_finish_record(s, DROP_DAMAGED);
    } else {
        queue_put_back(s->o.queue, r);
        s->record = NULL;
        sender_note_error(s, strerror(-error));
        sender_wait(s, NO_MEMORY_MS);
    }
    return true;
}

static void sender_start_piece(struct sender *s)
{
    struct piece p = s->pieces[s->n_pieces - 1];
    struct str body = s->payload;
    int r = 0;

    s->form = s->plain || s->doubting ? RW_FORM_V1 : sender_form(s);
    if (s->form != RW_FORM_V1 || p.from > 0 || p.to < s->record->samples) {
        r = body_make(s->form, s->payload, p.from, p.to, &s->body);
        body = buf_str(&s->body);
    }
    if (r == 0) {
        sender_start(s, body);
        return;
    }
    buf_done(&s->body);
    if (r == -ENOMEM) {
        sender_note_error(s, "out of memory");
        sender_wait(s, NO_MEMORY_MS);
        return;
    }
    s->rejected += p.to - p.from;
    s->n_pieces = 0;
    sender_finish_record(s, DROP_DAMAGED);
}

static void sender_step(struct sender *s)
{
    while (!s->in_flight && !s->waiting && !s->gave_up) {
        if (!s->record && sender_start_metadata(s))
            continue;
        if (!s->record && !sender_take_record(s))
            return;
        if (s->record)
            sender_start_piece(s);
    }
}

void sender_kick(struct sender *s)
{
    sender_step(s);
    sender_changed(s);
}

void sender_hurry(struct sender *s)
{
    s->hurried = true;
    if (s->waiting) {
        loop_timer_clear(s->o.loop, &s->timer);
        s->waiting = false;
    }
    sender_kick(s);
}

bool sender_done(const struct sender *s)
{
    return s->gave_up || (!s->in_flight && !s->waiting && !s->record);
}
