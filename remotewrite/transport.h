/* How a request reaches an endpoint: HTTP, or a test's own. */
#ifndef DS_REMOTEWRITE_TRANSPORT_H
#define DS_REMOTEWRITE_TRANSPORT_H

#include "exporter/base/http.h"
#include "remotewrite/config.h"

enum { TRANSPORT_MAX_ANSWER = 4096 };

struct transport_answer {
    enum http_error error;
    long status;
    int64_t retry_after_ms; /* -1: none */
    bool written;           /* a 2.0 receiver said how much it has written */
    double seconds;
    char text[512]; /* why there is no answer, or the beginning of an error's body: one line */
};

typedef void (*transport_done_fn)(void *arg, const struct transport_answer *a);

struct transport {
    /* Starts a request; `done` is called later, once. The body must live until then. A failure that leaves nothing to wait
     * for is negative: -ENOMEM, or -EINVAL with a sentence in `why`. */
    int (*start)(struct transport *t, enum rw_form form, struct str body, transport_done_fn done, void *arg,
                 char why[256]);
    void (*cancel)(struct transport *t);
};

/* Notes whether this header of the answer says that a 2.0 receiver has written something. */
void transport_note_header(struct transport_answer *a, struct str name);
/* Writes "status 400: what the receiver says" to a->text: one line of at most 511 bytes of well-formed UTF-8, without what a
 * terminal would obey. Nothing for 2xx. */
void transport_note_body(struct transport_answer *a, struct str body);

/* Over HTTP. Neither argument is owned. -ENOMEM. */
MUST_USE int transport_http_new(struct transport **ret, struct http *http,
                                const struct rw_endpoint_config *c);
struct transport *transport_http_free(struct transport *t);
DEFINE_CLEANUP(struct transport, transport_http_free)

#endif
