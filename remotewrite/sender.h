/* Delivers the records of one endpoint: one request at a time in queue order, with back-off, falling back to
 * simpler wire formats, and finding out what the receiver rejects. */
#pragma once

#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "remotewrite/config.h"
#include "remotewrite/labels.h"
#include "remotewrite/queue.h"

/* ---- Transports: how requests reach an endpoint, and what to do about the response (transport.c) ---- */

struct transport_answer {
    enum http_error error;
    long status;
    int64_t retry_after_ms; /* -1: none */
    bool written;           /* has a header that says how much a 2.0 receiver has written */
    uint64_t samples_written;
    bool victoria; /* the receiver is VictoriaMetrics */
    bool encoded;  /* the body is encoded: it is not shown */
    double seconds;
    char text[512]; /* why there is no response, or the beginning of an error's body: one line */
};

typedef void (*transport_done_fn)(void *arg, const struct transport_answer *a);

/* One request at a time. */
struct transport {
    /* Starts a request; `done` is called once, later, and the body must live until then. A negative errno
     * with the reason in `why`. Tests put a fake here. */
    int (*start)(struct transport *t, enum rw_form form, struct str body, transport_done_fn done, void *arg,
                 char why[256]);
    void (*cancel)(struct transport *t);
    struct http *http;
    struct rw_endpoint_config *config; /* for the next request; not owned */
    struct rw_endpoint_config *in_use; /* a reference, during a request */
    struct http_oauth2 oauth2;
    struct buf client_secret; /* of the request; terminated */
    struct http_call *call;
    transport_done_fn done;
    void *arg;
    struct transport_answer answer;
};

/* Over HTTP; owns neither argument. */
void transport_init(struct transport *t, struct http *http, struct rw_endpoint_config *c);

enum rw_verdict {
    VERDICT_SENT,
    VERDICT_RETRY,     /* send the same bytes again later */
    VERDICT_BISECT,    /* some of the samples are rejected: find out which */
    VERDICT_SHRINK,    /* the request is too large */
    VERDICT_DROP,      /* never send again */
    VERDICT_STEP_DOWN, /* the format is not supported: send the samples in a simpler one */
    VERDICT_PARTIAL,   /* final: a 2.0 receiver rejected some samples and said how many it has written */
};

/* What to do with a request of this form, by its response. */
enum rw_verdict transport_verdict(const struct transport_answer *a, enum rw_form form);
/* Notes in a struct transport_answer: the Written headers of 2.0, X-Server-Hostname, Content-Encoding. */
void transport_note_header(void *answer, struct str name, struct str value);
/* Writes "status 400: <body>" to a->text, as one line, unless the status is 2xx. */
void transport_note_body(struct transport_answer *a, struct str body);

/* ---- Senders ---- */

struct sender;

enum { SENDER_PROBE_MS = 3600 * 1000, SENDER_HALVE_MS = 60 * 1000 };

struct sender_options {
    const struct rw_endpoint_config *config;
    struct loop *loop;
    struct transport *transport, *metadata_transport;
    struct queue *queue;
    const struct families *families;
};

enum sender_state { SENDER_IDLE, SENDER_SENDING, SENDER_BACKING_OFF };

struct sender_stats {
    enum sender_state state;
    enum rw_form form;
    uint64_t samples, bytes, requests; /* delivered; bytes as compressed */
    uint64_t failed, retried;          /* samples that the endpoint rejected; samples sent again */
    uint64_t metadata_sent, metadata_failed, metadata_retried; /* requests */
    int64_t highest_sent_ms;                                   /* timestamp; 0 for none */
    int64_t last_sent_at_ms;                                   /* wall clock; 0 for never */
    int64_t retry_at_ms; /* wall clock of the next try while backing off */
    unsigned failures;   /* consecutive; what is refused for good is none */
    bool refused;        /* nothing was accepted of a record, nor anything since */
    char error[512];     /* the last failure, in the receiver's words; empty after recovery */
    int64_t error_at_ms;
    double seconds; /* that the last request took */
};

struct sender *sender_new(const struct sender_options *o);
struct sender *sender_free(struct sender *s);
/* From now on, this configuration counts; a request in flight ends as it began. What an earlier one has
 * taught is forgotten, and a wait ends, unless the receiver asked for it. */
void sender_configure(struct sender *s, const struct rw_endpoint_config *c);
/* To be called when something was queued. */
void sender_kick(struct sender *s);
/* To be called about every second: sends the metadata that is due. */
void sender_tick(struct sender *s);
/* For the flush of a stop, which lasts ms: ends a wait, but not before the receiver's Retry-After has passed,
 * and gives up at the first failure from now on. */
void sender_begin_flush(struct sender *s, int64_t ms);
/* True if nothing is in flight or waiting, or if a hurried sender has given up. */
bool sender_done(const struct sender *s);
/* Whether requests fail and are retried, or the endpoint refuses all that it gets. */
static inline bool sender_is_failing(const struct sender_stats *s)
{
    return s->state == SENDER_BACKING_OFF || s->failures > 0 || s->refused;
}
const struct sender_stats *sender_stats(const struct sender *s);
