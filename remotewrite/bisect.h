/* Finds the series that a receiver refuses, when it refuses a request and does not say which. The series of
 * the samples in flight are a stack of pieces, each a request; a refused one is split until the refused
 * series are alone.
 *
 *     sent     response    pieces left, the next one first
 *     [0, 8)   refused     [0, 4) [4, 8)
 *     [0, 4)   accepted    [4, 8)
 *     [4, 8)   refused     [4, 6) [6, 8)
 *     [4, 6)   accepted    [6, 8)
 *     [6, 8)   refused     [6, 7) [7, 8)
 *     [6, 7)   refused     [7, 8)             series 6 is a suspect
 *     [7, 8)   accepted
 *
 * The cause may pass, such as a sample out of order, so nothing is withheld: suspects travel in a piece of
 * their own, which is split once a minute, until it is accepted. They are known for an hour after that: one
 * that is refused now and then need not be searched for each time.
 *
 * Endpoint's thread; called by sender.c, which sends the pieces. It knows neither requests nor the queue. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

enum {
    BISECT_REFUSALS_MAX = 400,       /* refused requests that are split, */
    BISECT_REFUSALS_MS = 600 * 1000, /* in this time */
    BISECT_SUSPECTS_MS = 60 * 1000,  /* between two splits of the suspects */
    BISECT_KNOWN_MS = 3600 * 1000,
    BISECT_PIECES = 64, /* one for each level, and there are fewer than 2^32 series */
    REJECTS = 16384,
};

/* Series [from, to) of the samples in flight. */
struct piece {
    uint32_t from, to;
};

static inline uint32_t piece_samples(struct piece p)
{
    return p.to - p.from;
}

enum reject_state { REJECT_KNOWN, REJECT_SUSPECT };

/* A series that was refused, by the hash of its labels. */
struct reject {
    uint64_t hash;
    mono_ms at; /* when it was found, or its piece was last split */
    enum reject_state state;
};

struct bisect {
    /* The samples in flight. */
    struct str payload; /* borrowed */
    uint32_t samples;
    struct buf message; /* the payload unpacked, */
    struct str *series; /* and its series, once they are needed: those not known, the known, the suspects */
    uint32_t known, suspects; /* where these begin */
    bool may_split_suspects;
    struct piece pieces[BISECT_PIECES]; /* the next one is on top */
    size_t n_pieces;
    unsigned refusals_in_a_row;
    /* What was found out. */
    struct reject rejects[REJECTS];
    mono_ms rejected_at; /* the newest of them */
    unsigned refusals;   /* that were split, since */
    mono_ms refusals_from;
};

void bisect_init(struct bisect *b);
/* Frees what is unpacked; what was found out stays. */
void bisect_end(struct bisect *b);

/* Begins with the samples of a payload, which lives until bisect_end(). */
void bisect_begin(struct bisect *b, struct str payload, uint32_t samples, mono_ms now);
static inline bool bisect_is_over(const struct bisect *b)
{
    return b->n_pieces == 0;
}
/* The piece that is to be sent, or in flight. */
struct piece bisect_piece(const struct bisect *b);
/* What becomes of its samples is decided. */
void bisect_pop(struct bisect *b);
/* Gives all pieces up. How many samples they have. */
uint32_t bisect_abandon(struct bisect *b);
static inline bool bisect_is_full(const struct bisect *b)
{
    return b->n_pieces == BISECT_PIECES;
}
/* Splits the piece into [from, middle), which is next, and the rest. */
void bisect_split(struct bisect *b, uint32_t middle);
/* Where to split it for the search. */
uint32_t bisect_middle(const struct bisect *b);

/* Reads the series of the samples in flight, once. -EBADMSG. */
MUST_USE int bisect_unpack(struct bisect *b);

/* The piece was refused. */
void bisect_note_refusal(struct bisect *b);
/* Whether another split of a refused piece still pays: a receiver that refuses everything is not asked about
 * each series. Counts the split. */
bool bisect_pays(struct bisect *b, mono_ms now);
/* The series of the piece are refused: suspects from now on. True if it is one series, and not known yet. */
bool bisect_suspect(struct bisect *b, mono_ms now);
/* The piece was accepted: its series are no suspects any more. */
void bisect_trust(struct bisect *b, struct piece p, mono_ms now);

/* Whether the piece is that of the suspects. */
bool bisect_is_of_suspects(const struct bisect *b, struct piece p);
/* Whether the samples in flight have a series that is known or a suspect. */
bool bisect_has_known(const struct bisect *b);
/* Whether series were refused in the last hour. */
bool bisect_has_rejects(const struct bisect *b, mono_ms now);
