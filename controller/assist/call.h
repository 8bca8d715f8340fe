/* One call of an operation of the optimizer, whichever way it came: its arguments, and how it ends. */
#pragma once

#include "controller/assist/api_error.h"
#include "exporter/base/buf.h"

#include <jansson.h>
#include <stdbool.h>

enum { CALL_RETRY_AFTER_S = 5 }; /* what errors of 503 and 504 advise */

struct call;
struct listing;
struct snapshot;

struct operation {
    const char *name;
    /* On the loop; `arg` is that of the API. Ends with one of the functions below, now or, within a deadline
     * of its own, later. */
    void (*run)(void *arg, struct call *c);
    /* For assist_list(), which reads the hub: fills in the list on a worker's thread. */
    void (*fill)(struct listing *l, const struct snapshot *hub);
    unsigned kinds;                          /* to read: of KIND_BIT() */
    const char *namespace, *cluster, *score; /* arguments that select what to read; NULL: none does */
};

/* One call of an operation, embedded in its owner. */
struct call {
    const struct operation *operation;
    json_t *input;      /* owned: the arguments, an object that keeps the input schema */
    size_t input_bytes; /* of memory that the input takes at most */
    size_t max_bytes;   /* of JSON of the answer: lists are cut, see below; SIZE_MAX: no limit */
    const char *note;   /* what the answer's notes have to say, too; NULL: nothing */
    /* Once, on the loop; within the operation or later. May free the call. */
    void (*ended)(struct call *c);
    unsigned status;  /* 200, or that of the error */
    json_t *answer;   /* owned; of an error: {"detail": ...} */
    struct buf items; /* the elements of the answer's list `items`, as text with commas between them */
    bool has_items;
    struct snapshot *hub; /* owned; set before ended(): the answer is a list, to be filled from it */
};

/* A string of the arguments; NULL if it is absent or empty, or `name` is NULL. */
const char *call_text(const struct call *c, const char *name);
/* Reads the argument `deadline`, a duration such as "5s", if there is one. False after a refusal. */
bool call_deadline(struct call *c, int64_t *ret_ms);
/* Ends the call with the answer, whose reference is taken. Within run(), the answer must be small. */
void call_done(struct call *c, json_t *answer);
/* Ends the call with an error: an HTTP status of 4xx or 5xx, the argument that it is about or NULL, and a
 * sentence for people. 503 and 504 say when to try again. */
void call_fail(struct call *c, unsigned status, const char *field, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same. `more` (taken, may be NULL) has members that stand beside "detail" in the answer. */
void call_refuse(struct call *c, const struct api_error *error, json_t *more);
