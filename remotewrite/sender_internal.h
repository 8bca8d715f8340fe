/* What the files of the sender share; nothing else includes it. */
#ifndef DS_REMOTEWRITE_SENDER_INTERNAL_H
#define DS_REMOTEWRITE_SENDER_INTERNAL_H

#include "remotewrite/sender.h"

/* Series [from, to) of the record under way. */
struct piece {
    uint32_t from, to;
};

/* Halving keeps one piece for each level, and a record has at most 2^32 series. */
enum { MAX_PIECES = 64, NAMED_SERIES = 5, MAX_HALVINGS = 400 };

struct sender {
    struct sender_options o;
    struct sender_stats stats;
    struct timer timer; /* the next try */
    bool waiting, under_way, metadata_under_way, hurried, gave_up;
    /* The record being delivered; NULL: none. What is left of it is on the stack, the first part on top. */
    struct record *record;
    struct str payload;
    struct piece pieces[MAX_PIECES];
    size_t n_pieces;
    uint32_t accepted, rejected; /* samples of it */
    unsigned refusals, named;
    struct buf body;   /* of the request, where it is not the payload itself */
    enum rw_form form; /* of the request under way */
    bool plain;        /* the rest of this record goes in the simplest form */
    bool
        doubting; /* a 400 may have been about the form `doubted`: the same samples are tried in the simplest */
    enum rw_form doubted;
    mono_ms refused_until[RW_FORMS];
    mono_ms metadata_at, complained_at;
    bool metadata_sent, complained;
};

/* The form for the next request. */
enum rw_form sender_form(const struct sender *s);
/* The receiver does not take this form: not before an hour. */
void sender_refuse_form(struct sender *s, enum rw_form form, const char *why);
/* The top piece was refused for what is in it: splits it, or takes it off the stack and names it. */
void sender_halve(struct sender *s, const struct transport_answer *a);
/* The top piece is refused for good. */
void sender_give_up_piece(struct sender *s, const struct transport_answer *a);

#endif
