/* One call of POST /scoring, from its body to its reply. */
#ifndef DS_MODELS_CALL_H
#define DS_MODELS_CALL_H

#include "exporter/base/httpd.h"
#include "exporter/base/worker.h"
#include "exporter/models/model.h"

#include <sys/queue.h>
#include <sys/uio.h>

enum { CALL_MAX_BODY_BYTES = 64 << 20 };

struct call {
    struct job job;
    const struct model *model;
    void *state;
    struct scoring scoring;
    struct buf body; /* decoded, if it came compressed */
    struct buf answer, shown;
    struct iovec part;
    const struct httpd_request *rq;
    struct httpd_reply *reply;
    double began; /* seconds of CLOCK_MONOTONIC */
    bool ran;
    int result;                   /* 0 or a negative errno */
    unsigned status;              /* of the reply, once it is known */
    void (*done)(struct call *c); /* on the loop: the answer, or the error, is there */
    void *owner;
    LIST_ENTRY(call) entry;
};

/* NULL when out of memory. The request and the reply must stay as long as the call. */
struct call *call_new(const struct model *m, void *state, size_t endpoint, const struct httpd_request *rq,
                      struct httpd_reply *reply);
/* Reads, scores and calls done(), perhaps at once. A large body is for the worker, which may be NULL. */
void call_start(struct call *c, struct worker *w);
/* Fills the reply, which frees the call once it has been sent. */
void call_reply(struct call *c);
/* Takes NULL, returns NULL. */
struct call *call_free(struct call *c);
/* Time since call_new(). */
double call_seconds(const struct call *c);

#endif
