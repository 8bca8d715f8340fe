/* Owns the pieces of the samples in flight, and the table of series that were refused. Endpoint's thread. The
 * table has a fixed size: what does not fit replaces the oldest, and is found again. */
#include "remotewrite/bisect.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/random.h"
#include "remotewrite/body.h"

#include <errno.h>

enum { REJECT_WAYS = 16 /* places that an entry may have */ };

void bisect_init(struct bisect *b)
{
    buf_init(&b->message, BODY_MAX);
}

void bisect_end(struct bisect *b)
{
    buf_done(&b->message);
    free(TAKE_PTR(b->series));
    b->payload = (struct str){0};
    b->samples = 0;
    b->n_pieces = 0;
}

/* ---- The table ---- */

/* The entry of the hash, or else the oldest of its places. */
static struct reject *reject_place(struct bisect *b, uint64_t hash)
{
    struct reject *place = &b->rejects[hash % REJECTS];

    for (size_t i = 0; i < REJECT_WAYS; i++) {
        struct reject *e = &b->rejects[(hash + i) % REJECTS];

        if (e->hash == hash)
            return e;
        if (mono_before(e->at, place->at))
            place = e;
    }
    return place;
}

/* NULL if the series is not known. */
static struct reject *reject_find(struct bisect *b, struct str series, mono_ms now)
{
    uint64_t hash = body_series_hash(series);
    struct reject *e = reject_place(b, hash);

    return e->hash == hash && mono_within(now, e->at, BISECT_KNOWN_MS) ? e : NULL;
}

bool bisect_has_rejects(const struct bisect *b, mono_ms now)
{
    return mono_within(now, b->rejected_at, BISECT_KNOWN_MS);
}

/* ---- The series of the samples in flight ---- */

int bisect_unpack(struct bisect *b)
{
    size_t n;
    int r;

    if (b->series)
        return 0;
    buf_done(&b->message);
    r = body_unpack(b->payload, &b->message) ?: body_series(buf_str(&b->message), &b->series, &n);
    if (r == 0 && n < b->samples) {
        free(TAKE_PTR(b->series));
        r = -EBADMSG;
    }
    return r;
}

/* Of the first series, up to `to`, moves those in this state to the end, where any of them may be the
 * first: a search that is given up then asks for others the next time. Returns where they begin. */
static uint32_t bisect_move_back(struct bisect *b, uint32_t to, enum reject_state state, mono_ms now)
{
    CLEANUP(cleanup_free) struct str *moved = xmalloc((to + 1) * sizeof(*moved));
    uint32_t n = 0, kept = 0, first;

    for (uint32_t i = 0; i < to; i++) {
        const struct reject *e = reject_find(b, b->series[i], now);

        if (e && e->state == state)
            moved[n++] = b->series[i];
        else
            b->series[kept++] = b->series[i];
    }
    first = (uint32_t)rand_below(n);
    for (uint32_t i = 0; i < n; i++)
        b->series[kept + i] = moved[(first + i) % n];
    return kept;
}

/* Once a minute. */
static void bisect_allow_suspects(struct bisect *b, mono_ms now)
{
    const struct reject *first = reject_find(b, b->series[b->suspects], now);

    b->may_split_suspects = !mono_within(now, first->at, BISECT_SUSPECTS_MS);
    if (!b->may_split_suspects)
        return;
    for (uint32_t i = b->suspects; i < b->samples; i++)
        reject_find(b, b->series[i], now)->at = now;
    b->rejected_at = now;
}

/* The suspects come last, in a piece of their own. */
void bisect_begin(struct bisect *b, struct str payload, uint32_t samples, mono_ms now)
{
    bisect_end(b);
    b->payload = payload;
    b->samples = b->known = b->suspects = samples;
    b->refusals_in_a_row = 0;
    b->pieces[0] = (struct piece){0, samples};
    b->n_pieces = 1;
    if (!bisect_has_rejects(b, now) || bisect_unpack(b) < 0)
        return;
    b->suspects = bisect_move_back(b, samples, REJECT_SUSPECT, now);
    b->known = bisect_move_back(b, b->suspects, REJECT_KNOWN, now);
    if (b->suspects == samples)
        return;
    bisect_allow_suspects(b, now);
    b->pieces[0] = (struct piece){b->suspects, samples};
    if (b->suspects)
        b->pieces[b->n_pieces++] = (struct piece){0, b->suspects};
}

bool bisect_is_of_suspects(const struct bisect *b, struct piece p)
{
    return p.from >= b->suspects;
}

bool bisect_has_known(const struct bisect *b)
{
    return b->known < b->samples;
}

/* ---- Pieces ---- */

struct piece bisect_piece(const struct bisect *b)
{
    struct piece p;

    invariant(b->n_pieces > 0);
    p = b->pieces[b->n_pieces - 1];
    invariant(p.from <= p.to && p.to <= b->samples);
    return p;
}

void bisect_pop(struct bisect *b)
{
    invariant(b->n_pieces > 0);
    b->n_pieces--;
}

uint32_t bisect_abandon(struct bisect *b)
{
    uint32_t samples = 0;

    while (!bisect_is_over(b)) {
        samples += piece_samples(bisect_piece(b));
        bisect_pop(b);
    }
    return samples;
}

void bisect_split(struct bisect *b, uint32_t middle)
{
    struct piece p = bisect_piece(b);

    invariant(!bisect_is_full(b));
    invariant(p.from < middle && middle < p.to);
    b->pieces[b->n_pieces - 1] = (struct piece){middle, p.to};
    b->pieces[b->n_pieces++] = (struct piece){p.from, middle};
}

/* Before those that are known, if there are any; else in halves. */
uint32_t bisect_middle(const struct bisect *b)
{
    struct piece p = bisect_piece(b);

    if (p.from < b->known && b->known < p.to)
        return b->known;
    return p.from + piece_samples(p) / 2;
}

/* ---- The search ---- */

void bisect_note_refusal(struct bisect *b)
{
    b->refusals_in_a_row++;
}

bool bisect_pays(struct bisect *b, mono_ms now)
{
    unsigned levels = 32 - (unsigned)__builtin_clz(b->samples | 1);

    if (!mono_within(now, b->refusals_from, BISECT_REFUSALS_MS)) {
        b->refusals_from = now;
        b->refusals = 0;
    }
    if (b->refusals_in_a_row > 2 * levels + 2)
        return false;
    if (bisect_is_of_suspects(b, bisect_piece(b)) && !b->may_split_suspects)
        return false;
    return b->refusals++ < BISECT_REFUSALS_MAX;
}

bool bisect_suspect(struct bisect *b, mono_ms now)
{
    struct piece p = bisect_piece(b);
    bool is_new = false;

    if (bisect_is_of_suspects(b, p) || bisect_unpack(b) < 0)
        return false;
    b->rejected_at = now;
    for (uint32_t i = p.from; i < p.to; i++) {
        uint64_t hash = body_series_hash(b->series[i]);

        is_new = reject_find(b, b->series[i], now) == NULL;
        *reject_place(b, hash) = (struct reject){hash, now, REJECT_SUSPECT};
    }
    return is_new && piece_samples(p) == 1;
}

void bisect_trust(struct bisect *b, struct piece p, mono_ms now)
{
    b->refusals_in_a_row = 0;
    if (!bisect_is_of_suspects(b, p))
        return;
    for (uint32_t i = p.from; i < p.to; i++) {
        struct reject *e = reject_find(b, b->series[i], now);

        if (e)
            e->state = REJECT_KNOWN;
    }
}
