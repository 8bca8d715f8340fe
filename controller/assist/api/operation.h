/* What the optimizer can be asked for: a table of operations, each served as a REST request, described in
 * /openapi.json, and offered to assistants as a tool of the Model Context Protocol. */
#ifndef DS_ASSIST_API_OPERATION_H
#define DS_ASSIST_API_OPERATION_H

#include "exporter/base/def.h"

#include <jansson.h>
#include <stdbool.h>

/* One call of an operation, embedded in its owner. */
struct call {
    json_t *input;    /* owned: the arguments, an object that keeps the input schema */
    size_t max_bytes; /* of JSON of the answer: lists are cut, see below; SIZE_MAX: no limit */
    /* Once, on the loop; within run() or later. May free the call. */
    void (*ended)(struct call *c);
    unsigned status; /* 200, or that of the error */
    json_t *answer;  /* owned; of an error: {"detail": ...} */
    /* As call_items_later() has them; item is NULL without. */
    struct {
        json_t *(*item)(void *arg, size_t i);
        void (*free_items)(void *arg);
        void *arg;
        size_t n;
    } later;
};

enum operation_effect {
    OPERATION_READS,
    OPERATION_DESTROYS, /* replaces or deletes objects on the cluster */
};

struct operation {
    const char *name;   /* operationId, and name of the tool */
    const char *method; /* "GET": arguments are query parameters; "POST": a JSON body. NULL: a tool only */
    const char *path;   /* "/optimize" */
    const char *title, *description;
    const char *input;  /* JSON Schema 2020-12 of the arguments: an object */
    const char *output; /* of a successful answer: an object */
    enum operation_effect effect;
    bool is_tool;     /* offered to assistants */
    bool has_dry_run; /* of an effect: without it, the input's `dryRun` being true */
    /* On the loop; `arg` is the owner's of the table. Ends with call_done() or call_fail(), now or, within a
     * deadline of its own, later. */
    void (*run)(void *arg, struct call *c);
};

struct operations {
    const struct operation *const *table;
    size_t n;
    void *arg; /* of run() */
};

/* ---- Within run() ---- */

/* A string of the arguments; NULL if it is absent or empty. */
const char *call_text(const struct call *c, const char *name);
/* Ends the call with the answer, whose reference is taken. */
void call_done(struct call *c, json_t *answer);
/* The elements of an answer's member "items" are made while the answer is written, one after the other, since
 * all of them at once would not fit in memory: item(arg, i) returns a new element on a worker's thread.
 * free_items(arg) is called on the loop when the call has ended, whichever way. Before call_done(). */
void call_items_later(struct call *c, json_t *(*item)(void *arg, size_t i), size_t n,
                      void (*free_items)(void *arg), void *arg);
/* Ends the call with an error: an HTTP status of 4xx or 5xx, and a sentence for people. `more` (taken, may be
 * NULL) has members that stand beside "detail" in the answer. 503 and 504 say when to try again. */
void call_fail(struct call *c, unsigned status, json_t *more, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* ---- Lists that may have to be cut ----
 *
 * {"items": [...], "total": 20000, "shown": 12, "next": 12, "note": "..."}. `next` and `note`, which says
 * how to get the rest, are there if something was cut. */

struct listing {
    json_t *items;
    size_t max_bytes, bytes;
    size_t total, from, limit;
    bool is_full;
};

/* Starts a list for a call. Of its input it reads `offset` (from `next`) and `limit`. */
void listing_init(struct listing *l, const struct call *c);
/* Counts one more element; true if the next thing to do is listing_add() for it. */
bool listing_wants(struct listing *l);
/* Adds the element, taken, if it fits; later ones are only counted otherwise. */
void listing_add(struct listing *l, json_t *item);
/* The object; the list needs no more. */
json_t *listing_end(struct listing *l);

/* Adds a sentence to a list. */
void list_note(json_t *list, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A new list of the first elements, at most n. */
json_t *list_head(const json_t *list, size_t n);

#endif
