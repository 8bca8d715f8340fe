/* How requests reach an endpoint, and what to do about the response. Over HTTP (transport.c), except in
 * tests, which put a fake in its place. Endpoint's thread; transport_verdict() and transport_note_body() are
 * pure. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/http/http.h"
#include "remotewrite/config.h"

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
