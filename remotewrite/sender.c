/* Owns the current record and the timer of the next attempt. */
#include "remotewrite/sender_internal.h"

#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/verdict.h"

#include <errno.h>
#include <stdio.h>

enum { NO_MEMORY_MS = 1000, RETRY_AFTER_MAX_MS = 3600 * 1000 };

static void sender_step(struct sender *s);
static void sender_on_timer(struct timer *t);

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
        queue_put_back(s->o.queue);
    buf_done(&s->body);
    free(s->skip);
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
    sender_remember_rejected(s);
    queue_finish(s->o.queue, s->record, why, s->rejected);
    queue_save_position(s->o.queue, false);
    s->record = NULL;
    s->plain = s->doubting = false;
    free(s->skip);
    s->skip = NULL;
}

/* The rest of the current record has exceeded the age limit. */
static void sender_drop_old(struct sender *s)
{
    while (s->n_pieces) {
        struct piece p = s->pieces[--s->n_pieces];

        queue_count_drop(s->o.queue, DROP_TOO_OLD, sender_piece_samples(s, p));
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
    sender_log_failure(s, text);
    if (retry_after_ms > RETRY_AFTER_MAX_MS)
        retry_after_ms = RETRY_AFTER_MAX_MS;
    s->not_before = mono_add(loop_now(s->o.loop), retry_after_ms > 0 ? retry_after_ms : 0);
    sender_wait(s, backoff_ms(&backoff, s->stats.failures, retry_after_ms));
}

static void sender_end_piece(struct sender *s)
{
    if (s->n_pieces == 0)
        sender_finish_record(s, DROP_REJECTED);
}

static void sender_note_recovery(struct sender *s)
{
    sender_log_success(s);
    s->stats.failures = 0;
    /* A rejection of this record stays visible. */
    if (s->refusals == 0 && !s->skip)
        s->stats.error[0] = '\0';
}

/* The receiver has the samples of the top piece, `written` of them by its own count. */
static void sender_on_accepted(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[--s->n_pieces];
    uint32_t n = sender_piece_samples(s, p), written = n;
    struct sender_stats *st = &s->stats;

    if (s->form == RW_FORM_V2 && a->samples_written < n)
        written = (uint32_t)a->samples_written;
    s->accepted += written;
    st->samples += written;
    if (written) {
        st->last_sent_at_ms = loop_wall(s->o.loop).ms;
        if (s->record->last_ms > st->highest_sent_ms)
            st->highest_sent_ms = s->record->last_ms;
        sender_note_accepted(s);
    }
    sender_note_recovery(s);
    if (written == n)
        return;
    (void)snprintf(st->error, sizeof(st->error), "%u of %u samples written%s%.400s", written, n,
                   *a->text ? ": " : "", a->text);
    st->error_at_ms = loop_wall(s->o.loop).ms;
    sender_reject(s, n - written, st->error);
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

    if (s->form == RW_FORM_V2 && v != VERDICT_RETRY) {
        /* A 1.0 receiver decodes a 2.0 request as empty and answers 2xx. */
        if (v == VERDICT_SENT && !a->written)
            return VERDICT_STEP_DOWN;
        /* The Written headers prove that the receiver speaks 2.0 and has read the request. */
        if (v != VERDICT_SENT && a->written)
            return VERDICT_PARTIAL;
    }
    if (v == VERDICT_STEP_DOWN && s->form == RW_FORM_V1)
        v = VERDICT_DROP;
    return v;
}

/* A 4xx that is about the samples. */
static void sender_on_rejected(struct sender *s, const struct transport_answer *a, enum rw_verdict v)
{
    if (v == VERDICT_HALVE && sender_doubt_form(s, a))
        return;
    s->plain = s->plain || s->doubting;
    s->doubting = false;
    sender_note_error(s, a->text);
    if (v == VERDICT_HALVE)
        sender_halve(s, a);
    else if (v == VERDICT_SHRINK)
        sender_shrink(s, a);
    else
        sender_give_up_piece(s, a);
    sender_end_piece(s);
}

static void sender_act(struct sender *s, const struct transport_answer *a)
{
    enum rw_verdict v = sender_verdict(s, a);

    s->victoria = s->victoria || a->victoria;
    switch (v) {
    case VERDICT_SENT:
        if (s->doubting)
            sender_refuse_form(s, s->doubted, "rejected in this protocol, accepted in a simpler one");
        s->doubting = false;
        sender_on_accepted(s, a);
        sender_end_piece(s);
        return;
    case VERDICT_PARTIAL:
        s->refusals++;
        if (a->status == 413)
            sender_note_too_large(s, a);
        sender_on_accepted(s, a);
        sender_end_piece(s);
        return;
    case VERDICT_STEP_DOWN:
        sender_refuse_form(s, s->form, *a->text ? a->text : "response lacks the Written headers of 2.0");
        return;
    case VERDICT_RETRY:
        s->stats.retried += sender_piece_samples(s, s->pieces[s->n_pieces - 1]);
        sender_back_off(s, a->text, a->retry_after_ms);
        return;
    default:
        sender_on_rejected(s, a, v);
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
    sender_act(s, a);
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
    s->n_found = 0;
    error = queue_payload(s->o.queue, r, &s->payload);
    if (error == 0) {
        sender_skip_rejected(s);
        return true;
    }
    if (error == -ESTALE) { /* it waits in the spool until it can be read */
        s->record = NULL;
    } else if (error == -EBADMSG) {
        log_error("damaged record in the spool dropped", L_STR("remote_name", s->o.config->name),
                  L_INT("samples", r->samples));
        s->rejected = r->samples;
        sender_finish_record(s, DROP_DAMAGED);
    } else {
        queue_put_back(s->o.queue);
        s->record = NULL;
        sender_note_error(s, strerror(-error));
        sender_wait(s, NO_MEMORY_MS);
    }
    return true;
}

static void sender_start_piece(struct sender *s)
{
    bool own = queue_record_lane(s->record).n == 0;
    struct body_part part = {.skip = s->skip, .own = own ? s->o.families : NULL};
    struct str body = s->payload;
    struct piece p;
    int r = 0;

    sender_limit_piece(s);
    p = s->pieces[s->n_pieces - 1];
    if (sender_piece_samples(s, p) == 0) {
        s->n_pieces--;
        sender_end_piece(s);
        return;
    }
    part.from = p.from;
    part.to = p.to;
    s->form = s->plain || s->doubting ? RW_FORM_V1 : sender_form(s);
    if (s->form != RW_FORM_V1 || s->skip || p.from > 0 || p.to < s->record->samples) {
        r = body_make(s->form, s->payload, &part, &s->body);
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
    s->rejected += sender_piece_samples(s, p);
    s->n_pieces = 0;
    sender_finish_record(s, DROP_DAMAGED);
}

static void sender_step(struct sender *s)
{
    while (!s->in_flight && !s->waiting && !s->gave_up) {
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

void sender_hurry(struct sender *s, int64_t ms)
{
    mono_ms now = loop_now(s->o.loop);

    s->hurried = true;
    if (s->waiting) {
        loop_timer_clear(s->o.loop, &s->timer);
        s->waiting = false;
        if (mono_before(mono_add(now, ms), s->not_before))
            s->gave_up = true;
        else if (mono_before(now, s->not_before))
            sender_wait(s, s->not_before.ms - now.ms);
    }
    sender_kick(s);
}

bool sender_done(const struct sender *s)
{
    return s->gave_up || (!s->in_flight && !s->waiting && !s->record);
}
