/* Private to sender*.c. */
#ifndef DS_REMOTEWRITE_SENDER_INTERNAL_H
#define DS_REMOTEWRITE_SENDER_INTERNAL_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "remotewrite/config.h"
#include "remotewrite/queue.h"
#include "remotewrite/rejects.h"
#include "remotewrite/sender.h"
#include "remotewrite/transport.h"

/* Series [from, to) of the current record, without those to be skipped. */
struct piece {
    uint32_t from, to;
};

/* Halving keeps one piece per level, and a record has fewer than 2^32 series. */
enum { MAX_PIECES = 64, NAMED_SERIES = 5, FOUND_SERIES = 400 };

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
    /* What rejections have taught (sender_refused.c). */
    struct rejects rejects;
    uint32_t max_series;      /* in a request, after a 413; 0: no limit */
    mono_ms max_series_until; /* when to try more */
    mono_ms hopeless_until;   /* everything is rejected: do not search until then */
    unsigned searches;        /* rejected requests since searches_from */
    mono_ms searches_from;
    /* Log lines (sender_log.c). */
    bool failing, failing_logged;
    mono_ms failed_at, failing_logged_at, recovered_logged_at, dropped_logged_at;
    bool recovered_logged, dropped_logged;
    uint64_t dropped_unlogged; /* samples */
};

/* Samples of a piece that are sent. */
uint32_t sender_piece_samples(const struct sender *s, struct piece p);

/* The form of the next request. */
enum rw_form sender_form(const struct sender *s);
/* The receiver does not support this form: avoid it for an hour. */
void sender_refuse_form(struct sender *s, enum rw_form form, const char *why);
/* At the end of a record: remembers the series that were rejected while others were accepted. */
void sender_remember_rejected(struct sender *s);
/* Marks the series of the current record that were rejected before. */
void sender_skip_rejected(struct sender *s);
/* Splits the top piece if it has more series than the receiver takes. */
void sender_limit_piece(struct sender *s);
/* The content of the top piece was rejected: splits it, or removes and logs it. */
void sender_halve(struct sender *s, const struct transport_answer *a);
/* The top piece is too large for the receiver: sends at most half as much for an hour. */
void sender_note_too_large(struct sender *s, const struct transport_answer *a);
/* Likewise, and splits the piece. */
void sender_shrink(struct sender *s, const struct transport_answer *a);
/* The top piece was rejected for good: removes and logs it. */
void sender_give_up_piece(struct sender *s, const struct transport_answer *a);
/* Some samples were accepted. */
void sender_note_accepted(struct sender *s);
/* Counts samples that the endpoint rejected, and logs them. */
void sender_reject(struct sender *s, uint32_t samples, const char *why);

/* A request failed and is retried: logs the first failure, then one a minute. */
void sender_log_failure(struct sender *s, const char *text);
/* A request succeeded. */
void sender_log_success(struct sender *s);

#endif
