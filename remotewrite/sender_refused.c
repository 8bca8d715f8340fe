/* What the receiver rejects: a wire format, the size of a request, or some of its series. */
#include "remotewrite/sender_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"

#include <errno.h>

enum {
    SEARCHES_MAX = FOUND_SERIES, /* rejected requests in SEARCHES_MS that are halved */
    SEARCHES_MS = 600 * 1000,
    HOPELESS_MS = 600 * 1000,
    MAX_SERIES_MS = 3600 * 1000,
    VM_PROBE_MS = 24 * 3600 * 1000,
};

/* From the preferred form down to the one that every receiver supports. */
static const enum rw_form ladders[][RW_FORMS] = {
    [RW_PROTOCOL_V1] = {RW_FORM_V1},
    [RW_PROTOCOL_VM] = {RW_FORM_VM, RW_FORM_V1},
    [RW_PROTOCOL_V2] = {RW_FORM_V2, RW_FORM_V1},
    [RW_PROTOCOL_AUTO] = {RW_FORM_V2, RW_FORM_VM, RW_FORM_V1},
};

/* `auto` uses VictoriaMetrics' own protocol only where the receiver is known to be VictoriaMetrics: others
 * reject it with an error in their log. */
enum rw_form sender_form(const struct sender *s)
{
    const enum rw_form *form = ladders[s->o.config->protocol];
    bool vm = s->victoria || s->o.config->protocol != RW_PROTOCOL_AUTO;
    mono_ms now = loop_now(s->o.loop);

    while (*form != RW_FORM_V1 && (mono_before(now, s->refused_until[*form]) || (*form == RW_FORM_VM && !vm)))
        form++;
    return *form;
}

void sender_refuse_form(struct sender *s, enum rw_form form, const char *why)
{
    int64_t ms = form == RW_FORM_VM ? VM_PROBE_MS : SENDER_PROBE_MS;

    s->refused_until[form] = mono_add(loop_now(s->o.loop), ms);
    log_info("protocol not supported by the endpoint, falling back", L_STR("remote_name", s->o.config->name),
             L_STR("protocol", rw_form_words[form]), L_STR("to", rw_form_words[sender_form(s)]),
             L_STR("err", why));
}

uint32_t sender_piece_samples(const struct sender *s, struct piece p)
{
    uint32_t n = p.to - p.from;

    for (uint32_t i = p.from; s->skip && i < p.to; i++)
        n -= s->skip[i];
    return n;
}

/* The current record's series; `message` holds them. -EBADMSG, -ENOMEM. */
static int record_series(struct sender *s, struct buf *message, struct str **ret)
{
    size_t n;
    int r = body_unpack(s->payload, message) ?: body_series(buf_str(message), ret, &n);

    return r == 0 && n < s->record->samples ? -EBADMSG : r;
}

void sender_skip_rejected(struct sender *s)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    mono_ms now = loop_now(s->o.loop);

    if (rejects_empty(&s->rejects, now) || record_series(s, &message, &series) < 0)
        return;
    s->skip = calloc(s->record->samples, sizeof(*s->skip));
    for (uint32_t i = 0; s->skip && i < s->record->samples; i++)
        s->skip[i] = rejects_has(&s->rejects, body_series_hash(series[i]), now);
    sender_reject(s, s->record->samples - sender_piece_samples(s, s->pieces[0]),
                  "series rejected before are left out");
}

void sender_remember_rejected(struct sender *s)
{
    for (size_t i = 0; s->accepted && i < s->n_found; i++)
        rejects_add(&s->rejects, s->found[i], loop_now(s->o.loop));
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
                 L_SL("series", buf_str(&shown)), L_INT("timestamp_ms", s->record->last_ms),
                 L_STR("err", text));
}

void sender_give_up_piece(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[--s->n_pieces];

    s->refusals++;
    sender_reject(s, sender_piece_samples(s, p), a->text);
}

static unsigned halving_levels(uint32_t samples)
{
    return 32 - (unsigned)__builtin_clz(samples | 1);
}

/* Whether halving still pays: a receiver that rejects everything is not asked about each series. */
static bool search_pays(struct sender *s)
{
    mono_ms now = loop_now(s->o.loop);

    if (!mono_before(now, mono_add(s->searches_from, SEARCHES_MS))) {
        s->searches_from = now;
        s->searches = 0;
    }
    if (s->accepted == 0 && mono_before(now, s->hopeless_until))
        return false;
    if (s->accepted == 0 && s->refusals > 2 * halving_levels(s->record->samples) + 2) {
        s->hopeless_until = mono_add(now, HOPELESS_MS);
        return false;
    }
    return s->searches++ < SEARCHES_MAX;
}

void sender_note_accepted(struct sender *s)
{
    mono_ms now = loop_now(s->o.loop);

    s->hopeless_until = (mono_ms){0};
    if (s->max_series == 0 || mono_before(now, s->max_series_until))
        return;
    s->max_series *= 2;
    s->max_series_until = mono_add(now, MAX_SERIES_MS);
    if (s->max_series >= s->o.config->max_samples_per_send)
        s->max_series = 0;
}

/* Splits the top piece into [from, middle) and the rest. */
static void split_piece(struct sender *s, uint32_t middle)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    s->pieces[s->n_pieces - 1] = (struct piece){middle, p.to};
    s->pieces[s->n_pieces++] = (struct piece){p.from, middle};
}

void sender_halve(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];
    uint32_t n = sender_piece_samples(s, p);

    s->refusals++;
    if (n == 1)
        note_rejected_series(s, p, a->text);
    if (n == 1 || s->n_pieces == MAX_PIECES || !search_pays(s)) {
        s->n_pieces--;
        sender_reject(s, n, a->text);
    } else {
        split_piece(s, p.from + (p.to - p.from) / 2);
    }
}

void sender_note_too_large(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    if (p.to - p.from < 2)
        return;
    s->max_series = (p.to - p.from) / 2;
    s->max_series_until = mono_add(loop_now(s->o.loop), MAX_SERIES_MS);
    log_warn("request too large for the endpoint, sending smaller ones",
             L_STR("remote_name", s->o.config->name), L_INT("samples", s->max_series), L_STR("err", a->text));
}

void sender_shrink(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    if (sender_piece_samples(s, p) == 1) {
        /* Not the size of the request: something in this series. */
        s->max_series = 0;
        sender_halve(s, a);
        return;
    }
    s->refusals++;
    sender_note_too_large(s, a);
}

void sender_limit_piece(struct sender *s)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    if (s->max_series && p.to - p.from > s->max_series && s->n_pieces < MAX_PIECES)
        split_piece(s, p.from + s->max_series);
}
