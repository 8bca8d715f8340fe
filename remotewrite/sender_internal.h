/* Private to sender*.c. */
#ifndef DS_REMOTEWRITE_SENDER_INTERNAL_H
#define DS_REMOTEWRITE_SENDER_INTERNAL_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "remotewrite/config.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"
#include "remotewrite/transport.h"

/* Series [from, to) of the current record. */
struct piece {
    uint32_t from, to;
};

/* Halving keeps one piece per level, and a record has fewer than 2^32 series. */
enum { MAX_PIECES = 64, NAMED_SERIES = 5, MAX_HALVINGS = 400 };

struct sender {
    struct sender_options o;
    struct sender_stats stats;
    struct timer timer; /* the next attempt */
    bool waiting, in_flight, metadata_in_flight, hurried, gave_up;
    /* The current record or NULL. Its remaining pieces are a stack with the first piece on top. */
    struct record *record;
    struct str payload;
    struct piece pieces[MAX_PIECES];
    size_t n_pieces;
    uint32_t accepted, rejected; /* samples of the record */
    unsigned refusals, named;
    struct buf body;   /* of the request, unless it is the payload itself */
    enum rw_form form; /* of the request in flight */
    bool plain;        /* send the rest of this record in the simplest form */
    /* A 400 may have been about the form `doubted`: the same samples are tried in the simplest form. */
    bool doubting;
    enum rw_form doubted;
    mono_ms refused_until[RW_FORMS];
    mono_ms metadata_at, complained_at;
    bool metadata_sent, complaining;
};

/* The form of the next request. */
enum rw_form sender_form(const struct sender *s);
/* The receiver does not support this form: avoid it for an hour. */
void sender_refuse_form(struct sender *s, enum rw_form form, const char *why);
/* The content of the top piece was rejected: splits it, or removes and logs it. */
void sender_halve(struct sender *s, const struct transport_answer *a);
/* The top piece was rejected for good: removes and logs it. */
void sender_give_up_piece(struct sender *s, const struct transport_answer *a);

#endif
