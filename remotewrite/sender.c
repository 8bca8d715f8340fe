/* Owns the current record and the timer of the next attempt. */
#include "remotewrite/sender.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"

#include <errno.h>
#include <stdio.h>

/* Halving keeps one piece per level, and a record has fewer than 2^32 series. */
enum { MAX_PIECES = 64, NAMED_SERIES = 5, FOUND_SERIES = 400 };
enum {
    RETRY_AFTER_MAX_MS = 3600 * 1000,
    LOG_MS = 60 * 1000,
    SEARCHES_MAX = FOUND_SERIES, /* rejected requests in SEARCHES_MS that are halved */
    SEARCHES_MS = 600 * 1000,
    HOPELESS_MS = 600 * 1000,
    MAX_SERIES_MS = 3600 * 1000,
    VM_PROBE_MS = 24 * 3600 * 1000,
    REJECTS = 1024,
    REJECT_WAYS = 8, /* places that an entry may have */
};

/* Series [from, to) of the current record, without those to be skipped. */
struct piece {
    uint32_t from, to;
};

/* A series that the endpoint rejected, by hash. It is left out of later requests for five minutes, so that it
 * is not searched for again; no longer, because a cause such as a sample out of order passes. */
struct reject {
    uint64_t hash;
    mono_ms until;
};

struct sender {
    struct sender_options o;
    struct sender_stats stats;
    struct timer timer; /* the next attempt */
    bool waiting, in_flight, hurried, gave_up;
    mono_ms not_before; /* the receiver's Retry-After */
    /* The current record or NULL. Its remaining pieces are a stack with the first piece on top. */
    struct record *record;
    struct str payload;
    struct piece pieces[MAX_PIECES];
    size_t n_pieces;
    bool *skip;                  /* by series: rejected before; NULL: none */
    uint32_t accepted, rejected; /* samples of the record */
    unsigned refusals, named;
    uint64_t found[FOUND_SERIES]; /* hashes of the rejected series of the record */
    size_t n_found;
    struct buf body;   /* of the request, unless it is the payload itself */
    enum rw_form form; /* of the request in flight */
    bool plain;        /* send the rest of this record in the simplest form */
    /* A 400 may have been about the form `doubted`: the same samples are tried in the simplest form. */
    bool doubting;
    enum rw_form doubted;
    mono_ms refused_until[RW_FORMS];
    bool victoria; /* the receiver has shown that it is VictoriaMetrics */
    /* What rejections have taught. */
    struct reject rejects[REJECTS];
    mono_ms rejects_until;    /* no series is left out after it */
    uint32_t max_series;      /* in a request, after a 413; 0: no limit */
    mono_ms max_series_until; /* when to try more */
    mono_ms hopeless_until;   /* everything is rejected: do not search until then */
    unsigned searches;        /* rejected requests since searches_from */
    mono_ms searches_from;
    /* When lines were logged last, 0 for never: a receiver that fails every other second costs one a
     * minute. */
    mono_ms failure_logged_at, drop_logged_at;
    bool failing_logged;
    uint64_t dropped_unlogged; /* samples */
    /* Metadata for 1.0 and vm: neither waits for samples nor holds them up. */
    struct buf metadata;
    bool metadata_in_flight;
    unsigned metadata_failures; /* consecutive */
    mono_ms metadata_at;        /* the next request */
};

/* ---- Log lines ---- */

static bool within(mono_ms now, mono_ms since, int64_t ms)
{
    return since.ms && mono_before(now, mono_add(since, ms));
}

/* A request failed and is retried: logs the first failure, then one a minute. */
static void sender_log_failure(struct sender *s, const char *text)
{
    mono_ms now = loop_now(s->o.loop);

    if (within(now, s->failure_logged_at, LOG_MS))
        return;
    s->failing_logged = true;
    s->failure_logged_at = now;
    log_warn("sending samples failed, retrying", L_STR("remote_name", s->o.config->name),
             L_STR("url", s->o.config->url_shown), L_INT("failures", s->stats.failures), L_STR("err", text));
}

/* Logs the end of a failure that was logged. */
static void sender_log_success(struct sender *s)
{
    if (!s->failing_logged)
        return;
    s->failing_logged = false;
    log_info("sending samples works again", L_STR("remote_name", s->o.config->name),
             L_INT("failures", s->stats.failures));
}

/* Counts samples that the endpoint rejected, and logs them. */
static void sender_reject(struct sender *s, uint32_t samples, const char *why)
{
    mono_ms now = loop_now(s->o.loop);

    s->rejected += samples;
    s->stats.failed += samples;
    s->dropped_unlogged += samples;
    if (s->dropped_unlogged == 0 || within(now, s->drop_logged_at, LOG_MS))
        return;
    log_error("samples rejected by the endpoint, dropped", L_STR("remote_name", s->o.config->name),
              L_INT("samples", s->dropped_unlogged), L_INT("timestamp_ms", s->record->head.last_ms),
              L_STR("err", why));
    s->drop_logged_at = now;
    s->dropped_unlogged = 0;
}

/* ---- Series that were rejected ---- */

/* The entry of the hash, or one of its places that is free. */
static struct reject *reject_find(struct sender *s, uint64_t hash)
{
    struct reject *place = NULL;

    for (size_t i = 0; i < REJECT_WAYS; i++) {
        struct reject *e = &s->rejects[(hash + i) % REJECTS];

        if (e->hash == hash)
            return e;
        if (!place || !mono_before(loop_now(s->o.loop), e->until))
            place = e;
    }
    return place;
}

static void reject_add(struct sender *s, uint64_t hash)
{
    s->rejects_until = mono_add(loop_now(s->o.loop), SENDER_REJECT_MS);
    *reject_find(s, hash) = (struct reject){hash, s->rejects_until};
}

static bool reject_has(struct sender *s, uint64_t hash)
{
    const struct reject *e = reject_find(s, hash);

    return e->hash == hash && mono_before(loop_now(s->o.loop), e->until);
}

/* ---- Forms ---- */

/* From the preferred form down to the one that every receiver supports. */
static const enum rw_form ladders[][RW_FORMS] = {
    [RW_PROTOCOL_V1] = {RW_FORM_V1},
    [RW_PROTOCOL_VM] = {RW_FORM_VM, RW_FORM_V1},
    [RW_PROTOCOL_V2] = {RW_FORM_V2, RW_FORM_V1},
    [RW_PROTOCOL_AUTO] = {RW_FORM_V2, RW_FORM_VM, RW_FORM_V1},
};

/* `auto` uses VictoriaMetrics' own protocol only where the receiver is known to be VictoriaMetrics: others
 * reject it with an error in their log. */
static enum rw_form sender_form(const struct sender *s)
{
    const enum rw_form *form = ladders[s->o.config->protocol];
    bool vm = s->victoria || s->o.config->protocol != RW_PROTOCOL_AUTO;
    mono_ms now = loop_now(s->o.loop);

    while (*form != RW_FORM_V1 && (mono_before(now, s->refused_until[*form]) || (*form == RW_FORM_VM && !vm)))
        form++;
    return *form;
}

/* The receiver does not support this form: avoid it for an hour. */
static void sender_refuse_form(struct sender *s, enum rw_form form, const char *why)
{
    int64_t ms = form == RW_FORM_VM ? VM_PROBE_MS : SENDER_PROBE_MS;

    s->refused_until[form] = mono_add(loop_now(s->o.loop), ms);
    log_info("protocol not supported by the endpoint, falling back", L_STR("remote_name", s->o.config->name),
             L_STR("protocol", rw_form_words[form]), L_STR("to", rw_form_words[sender_form(s)]),
             L_STR("err", why));
}

/* ---- Pieces of the current record ---- */

/* Samples of a piece that are sent. */
static uint32_t sender_piece_samples(const struct sender *s, struct piece p)
{
    uint32_t n = p.to - p.from;

    for (uint32_t i = p.from; s->skip && i < p.to; i++)
        n -= s->skip[i];
    return n;
}

/* The current record's series; `message` holds them. -EBADMSG. */
static int record_series(struct sender *s, struct buf *message, struct str **ret)
{
    size_t n;
    int r = body_unpack(s->payload, message) ?: body_series(buf_str(message), ret, &n);

    return r == 0 && n < s->record->head.samples ? -EBADMSG : r;
}

/* Marks the series of the current record that were rejected before. */
static void sender_skip_rejected(struct sender *s)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);

    if (!mono_before(loop_now(s->o.loop), s->rejects_until) || record_series(s, &message, &series) < 0)
        return;
    s->skip = xcalloc(s->record->head.samples, sizeof(*s->skip));
    for (uint32_t i = 0; i < s->record->head.samples; i++)
        s->skip[i] = reject_has(s, body_series_hash(series[i]));
    sender_reject(s, s->record->head.samples - sender_piece_samples(s, s->pieces[0]),
                  "series rejected before are left out");
}

/* Notes the only series of a piece; the first few of a record are logged by name. */
static void note_rejected_series(struct sender *s, struct piece p, const char *text)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    BUF_AUTO(shown, 16 << 10);

    while (s->skip && p.from + 1 < p.to && s->skip[p.from])
        p.from++;
    if (record_series(s, &message, &series) < 0)
        return;
    if (s->n_found < FOUND_SERIES)
        s->found[s->n_found++] = body_series_hash(series[p.from]);
    if (s->named++ < NAMED_SERIES && body_series_name(series[p.from], &shown) == 0)
        log_warn("series rejected by the endpoint", L_STR("remote_name", s->o.config->name),
                 L_SL("series", buf_str(&shown)), L_INT("timestamp_ms", s->record->head.last_ms),
                 L_STR("err", text));
}

/* Whether halving still pays: a receiver that rejects everything is not asked about each series. */
static bool search_pays(struct sender *s)
{
    mono_ms now = loop_now(s->o.loop);
    unsigned levels = 32 - (unsigned)__builtin_clz(s->record->head.samples | 1);

    if (!mono_before(now, mono_add(s->searches_from, SEARCHES_MS))) {
        s->searches_from = now;
        s->searches = 0;
    }
    if (s->accepted == 0 && mono_before(now, s->hopeless_until))
        return false;
    if (s->accepted == 0 && s->refusals > 2 * levels + 2) {
        s->hopeless_until = mono_add(now, HOPELESS_MS);
        return false;
    }
    return s->searches++ < SEARCHES_MAX;
}

/* Some samples were accepted. */
static void sender_note_accepted(struct sender *s)
{
    mono_ms now = loop_now(s->o.loop);

    s->hopeless_until = (mono_ms){0};
    if (s->max_series && !mono_before(now, s->max_series_until))
        s->max_series = 0;
}

/* Splits the top piece into [from, middle) and the rest. */
static void split_piece(struct sender *s, uint32_t middle)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    s->pieces[s->n_pieces - 1] = (struct piece){middle, p.to};
    s->pieces[s->n_pieces++] = (struct piece){p.from, middle};
}

/* The top piece is too large for the receiver: sends at most half as much for an hour. */
static void sender_note_too_large(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    if (p.to - p.from < 2)
        return;
    s->max_series = (p.to - p.from) / 2;
    s->max_series_until = mono_add(loop_now(s->o.loop), MAX_SERIES_MS);
    log_warn("request too large for the endpoint, sending smaller ones",
             L_STR("remote_name", s->o.config->name), L_INT("samples", s->max_series), L_STR("err", a->text));
}

/* ---- Delivery ---- */

static void sender_on_timer(struct timer *t);

struct sender *sender_new(const struct sender_options *o)
{
    struct sender *s = xcalloc(1, sizeof(*s));

    s->o = *o;
    s->timer.fn = sender_on_timer;
    buf_init(&s->body, BODY_MAX);
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
    if (s->metadata_in_flight)
        s->o.metadata_transport->cancel(s->o.metadata_transport);
    buf_done(&s->metadata);
    if (s->record)
        queue_put_back(s->o.queue);
    buf_done(&s->body);
    free(s->skip);
    free(s);
    return NULL;
}

const struct sender_stats *sender_stats(const struct sender *s)
{
    return &s->stats;
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
    loop_timer_set(s->o.loop, &s->timer, mono_add(loop_now(s->o.loop), ms));
}

static void sender_finish_record(struct sender *s, enum queue_drop why)
{
    /* Series that were rejected while others were accepted. */
    for (size_t i = 0; s->accepted && i < s->n_found; i++)
        reject_add(s, s->found[i]);
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
}

static void sender_on_timer(struct timer *t)
{
    struct sender *s = CONTAINER_OF(t, struct sender, timer);
    int64_t limit = s->o.config->sample_age_limit_ms;

    s->waiting = false;
    if (s->record && limit && s->record->head.last_ms < loop_wall(s->o.loop).ms - limit)
        sender_drop_old(s);
    sender_kick(s);
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
        if (s->record->head.last_ms > st->highest_sent_ms)
            st->highest_sent_ms = s->record->head.last_ms;
        sender_note_accepted(s);
    }
    sender_log_success(s);
    st->failures = 0;
    /* A rejection of this record stays visible. */
    if (s->refusals == 0 && !s->skip)
        st->error[0] = '\0';
    if (written == n)
        return;
    (void)snprintf(st->error, sizeof(st->error), "%u of %u samples written%s%.400s", written, n,
                   *a->text ? ": " : "", a->text);
    st->error_at_ms = loop_wall(s->o.loop).ms;
    sender_reject(s, n - written, st->error);
}

static enum rw_verdict sender_verdict(const struct sender *s, const struct transport_answer *a)
{
    enum rw_verdict v = transport_verdict(a);

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

/* The top piece was rejected because of its size, or of what is in it: splits it, or removes and logs it. */
static void sender_on_rejected(struct sender *s, const struct transport_answer *a, enum rw_verdict v)
{
    struct piece p = s->pieces[s->n_pieces - 1];
    uint32_t n = sender_piece_samples(s, p);

    /* A 400 to a higher form may be about the form rather than the samples. */
    if (a->status == 400 && !s->doubting && s->form != RW_FORM_V1) {
        s->doubting = true;
        s->doubted = s->form;
        return;
    }
    s->plain = s->plain || s->doubting;
    s->doubting = false;
    s->refusals++;
    sender_note_error(s, a->text);
    if (v == VERDICT_SHRINK && n > 1) {
        sender_note_too_large(s, a);
        return;
    }
    if (v == VERDICT_SHRINK) /* not the size of the request: something in this series */
        s->max_series = 0;
    if (v != VERDICT_DROP && n == 1)
        note_rejected_series(s, p, a->text);
    if (v != VERDICT_DROP && n > 1 && s->n_pieces < MAX_PIECES && search_pays(s)) {
        split_piece(s, p.from + (p.to - p.from) / 2);
        return;
    }
    s->n_pieces--;
    sender_reject(s, n, a->text);
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
        s->stats.retried += sender_piece_samples(s, s->pieces[s->n_pieces - 1]);
        sender_back_off(s, a->text, a->retry_after_ms);
        return;
    default:
        sender_on_rejected(s, a, v);
    }
}

static void sender_on_answer(void *arg, const struct transport_answer *a)
{
    struct sender *s = arg;

    s->in_flight = false;
    s->stats.state = SENDER_IDLE;
    s->stats.requests++;
    s->stats.seconds = a->seconds;
    buf_done(&s->body);
    sender_act(s, a);
    sender_kick(s);
}

static void sender_start(struct sender *s, struct str body)
{
    char why[256] = "";

    if (s->o.transport->start(s->o.transport, s->form, body, sender_on_answer, s, why) < 0) {
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
    s->pieces[0] = (struct piece){0, r->head.samples};
    s->accepted = s->rejected = s->refusals = s->named = 0;
    s->n_found = 0;
    error = queue_payload(s->o.queue, r, &s->payload);
    if (error == -ESTALE) { /* it waits in the spool, which is closed until it can be read */
        s->record = NULL;
    } else if (error < 0) {
        log_error("damaged record in the spool dropped", L_STR("remote_name", s->o.config->name),
                  L_INT("samples", r->head.samples));
        s->rejected = r->head.samples;
        sender_finish_record(s, DROP_DAMAGED);
    } else {
        sender_skip_rejected(s);
    }
    return true;
}

static void sender_start_piece(struct sender *s)
{
    struct piece p = s->pieces[s->n_pieces - 1];
    struct str body = s->payload;
    int r = 0;

    if (s->max_series && p.to - p.from > s->max_series && s->n_pieces < MAX_PIECES) {
        split_piece(s, p.from + s->max_series);
        p.to = p.from + s->max_series;
    }
    if (sender_piece_samples(s, p) == 0) {
        s->n_pieces--;
        return;
    }
    s->form = s->plain || s->doubting ? RW_FORM_V1 : sender_form(s);
    if (s->form != RW_FORM_V1 || s->skip || p.from > 0 || p.to < s->record->head.samples) {
        bool own = s->record->head.lane.n == 0;
        const struct body_part part = {
            .from = p.from, .to = p.to, .skip = s->skip, .own = own ? s->o.families : NULL};

        r = body_make(s->form, s->payload, &part, &s->body);
        body = buf_str(&s->body);
    }
    if (r == 0) {
        sender_start(s, body);
        return;
    }
    buf_done(&s->body);
    s->rejected += sender_piece_samples(s, p);
    s->n_pieces = 0;
    sender_finish_record(s, DROP_DAMAGED);
}

void sender_kick(struct sender *s)
{
    while (!s->in_flight && !s->waiting && !s->gave_up)
        if (s->record && s->n_pieces == 0)
            sender_finish_record(s, DROP_REJECTED);
        else if (s->record)
            sender_start_piece(s);
        else if (!sender_take_record(s))
            return;
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

/* ---- Metadata ---- */

/* The specification asks for no more than for samples: 5xx, 429 and no response are retried. */
static void metadata_on_answer(void *arg, const struct transport_answer *a)
{
    const struct backoff backoff = {1000, 60 * 1000, RETRY_AFTER_MAX_MS};
    struct sender *s = arg;
    enum rw_verdict v = transport_verdict(a);
    int64_t wait_ms = s->o.config->metadata_interval_ms;

    s->metadata_in_flight = false;
    buf_done(&s->metadata);
    s->metadata_failures = v == VERDICT_SENT ? 0 : s->metadata_failures + 1;
    if (s->metadata_failures == 1)
        log_warn(v == VERDICT_RETRY ? "sending metadata failed, retrying"
                                    : "metadata rejected by the endpoint",
                 L_STR("remote_name", s->o.config->name), L_STR("err", a->text));
    s->stats.metadata_sent += v == VERDICT_SENT;
    s->stats.metadata_retried += v == VERDICT_RETRY;
    s->stats.metadata_failed += v != VERDICT_SENT && v != VERDICT_RETRY;
    if (v == VERDICT_RETRY)
        wait_ms = backoff_ms(&backoff, s->metadata_failures, a->retry_after_ms);
    s->metadata_at = mono_add(loop_now(s->o.loop), wait_ms);
}

/* Not before samples were accepted, because the form is known only then. */
void sender_tick(struct sender *s)
{
    const struct sender_stats *st = &s->stats;
    mono_ms now = loop_now(s->o.loop);
    char why[256] = "";

    if (!s->o.config->metadata_send || st->samples == 0 || st->failures || s->hurried ||
        st->form == RW_FORM_V2 || s->metadata_in_flight || mono_before(now, s->metadata_at))
        return;
    s->metadata_at = mono_add(now, s->o.config->metadata_interval_ms);
    s->metadata_in_flight =
        metadata_body(st->form, s->o.families, &s->metadata) == 0 && s->metadata.n &&
        s->o.metadata_transport->start(s->o.metadata_transport, st->form, buf_str(&s->metadata),
                                       metadata_on_answer, s, why) == 0;
    if (!s->metadata_in_flight)
        buf_done(&s->metadata);
}

bool sender_done(const struct sender *s)
{
    return s->gave_up || (!s->in_flight && !s->waiting && !s->record);
}
