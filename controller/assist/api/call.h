/* One call of an operation: what REST requests and assistants' tool calls have in common. */
#ifndef DS_ASSIST_API_CALL_H
#define DS_ASSIST_API_CALL_H

#include "controller/assist/api/operation.h"
#include "exporter/base/buf.h"

enum { CALL_RETRY_AFTER_S = 5 }; /* what errors of 503 and 504 advise */

/* Embedded in its owner. */
struct call {
    json_t *input;    /* owned; keeps the operation's schema */
    size_t max_bytes; /* of the answer; SIZE_MAX: no limit */
    /* Once, on the loop; within call_run() or later. May free the call. */
    void (*ended)(struct call *c);
    unsigned status; /* 200, or that of the error */
    json_t *answer;  /* owned; of an error: {"detail": ...}; NULL: out of memory */
    /* As call_items_later() has them; item is NULL without. */
    struct {
        json_t *(*item)(void *arg, size_t i);
        void (*free_items)(void *arg);
        void *arg;
        size_t n;
    } later;
};

/* A new call without input; `ended` and `input` are to be set. */
void call_run(struct call *c, const struct operation *o, void *arg);
/* Writes the answer. -ENOMEM, -EFBIG. */
MUST_USE int call_print(const struct call *c, struct buf *into);
/* On any thread: frees input and answer. */
void call_clear(struct call *c);
/* On the loop: frees the rest. */
void call_end(struct call *c);

#endif
