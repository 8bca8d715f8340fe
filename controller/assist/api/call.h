/* One call of an operation: what REST requests and assistants' tool calls have in common. */
#ifndef DS_ASSIST_API_CALL_H
#define DS_ASSIST_API_CALL_H

#include "controller/assist/api/operation.h"

/* Embedded in its owner. */
struct call {
    json_t *input;    /* owned; keeps the operation's schema */
    size_t max_bytes; /* of the answer; SIZE_MAX: no limit */
    /* Once, on the loop; within call_run() or later. May free the call. */
    void (*ended)(struct call *c);
    unsigned status; /* 200, or that of the error */
    json_t *answer;  /* owned; of an error: {"detail": ...}; NULL: out of memory */
};

/* A new call without input; `ended` and `input` are to be set. */
void call_run(struct call *c, const struct operation *o, void *arg);
void call_clear(struct call *c);

#endif
