/* What the receiver rejects: a wire format, or the content of a request. */
#include "remotewrite/sender_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"

/* From the preferred form down to the one that every receiver supports. */
static const enum rw_form ladders[][RW_FORMS] = {
    [RW_PROTOCOL_V1] = {RW_FORM_V1},
    [RW_PROTOCOL_VM] = {RW_FORM_VM, RW_FORM_V1},
    [RW_PROTOCOL_V2] = {RW_FORM_V2, RW_FORM_V1},
    [RW_PROTOCOL_AUTO] = {RW_FORM_VM, RW_FORM_V2, RW_FORM_V1},
};

enum rw_form sender_form(const struct sender *s)
{
    const enum rw_form *form = ladders[s->o.config->protocol];
    mono_ms now = loop_now(s->o.loop);

    while (*form != RW_FORM_V1 && mono_before(now, s->refused_until[*form]))
        form++;
    return *form;
}

void sender_refuse_form(struct sender *s, enum rw_form form, const char *why)
{
    s->refused_until[form] = mono_add(loop_now(s->o.loop), SENDER_PROBE_MS);
    log_info("protocol not supported by the endpoint, falling back", L_STR("remote_name", s->o.config->name),
             L_STR("protocol", rw_form_words[form]), L_STR("to", rw_form_words[sender_form(s)]),
             L_STR("err", why));
}

/* Logs the first few rejected series by name. */
static void log_rejected_series(struct sender *s, uint32_t place, const char *text)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    BUF_AUTO(shown, 16 << 10);
    size_t n;

    if (s->named++ >= NAMED_SERIES || body_unpack(s->payload, &message) < 0 ||
        body_series(buf_str(&message), &series, &n) < 0 || place >= n ||
        body_series_name(series[place], &shown) < 0)
        return;
    log_warn("series rejected by the endpoint", L_STR("remote_name", s->o.config->name),
             L_SL("series", buf_str(&shown)), L_INT("timestamp_ms", s->record->last_ms), L_STR("err", text));
}

static void drop_piece(struct sender *s)
{
    struct piece p = s->pieces[--s->n_pieces];

    s->rejected += p.to - p.from;
    s->stats.failed += p.to - p.from;
}

static void log_and_drop_piece(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];

    log_error("samples rejected by the endpoint, dropped", L_STR("remote_name", s->o.config->name),
              L_INT("samples", p.to - p.from), L_INT("timestamp_ms", s->record->last_ms),
              L_STR("err", a->text));
    drop_piece(s);
}

void sender_give_up_piece(struct sender *s, const struct transport_answer *a)
{
    s->refusals++;
    log_and_drop_piece(s, a);
}

static unsigned halving_levels(uint32_t samples)
{
    return 32 - (unsigned)__builtin_clz(samples | 1);
}

/* A receiver that rejects everything is not asked about each series. */
static bool is_hopeless(const struct sender *s)
{
    return (s->accepted == 0 && s->refusals > 2 * halving_levels(s->record->samples) + 2) ||
           s->refusals > MAX_HALVINGS;
}

void sender_halve(struct sender *s, const struct transport_answer *a)
{
    struct piece p = s->pieces[s->n_pieces - 1];
    uint32_t middle = p.from + (p.to - p.from) / 2;

    s->refusals++;
    if (is_hopeless(s)) {
        log_and_drop_piece(s, a);
    } else if (p.to - p.from <= 1 || s->n_pieces == MAX_PIECES) {
        log_rejected_series(s, p.from, a->text);
        drop_piece(s);
    } else {
        s->pieces[s->n_pieces - 1] = (struct piece){middle, p.to};
        s->pieces[s->n_pieces++] = (struct piece){p.from, middle};
    }
}
