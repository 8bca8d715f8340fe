/* What operations work with: a call with its arguments, the ways to end it, and lists that may have to be
 * cut. */
#ifndef DS_ASSIST_API_OPERATION_H
#define DS_ASSIST_API_OPERATION_H

#include "exporter/base/buf.h"
#include "exporter/base/def.h"

#include <jansson.h>
#include <stdbool.h>

/* ---- Why a request cannot be served ---- */

struct objection {
    unsigned status;   /* of HTTP; 0: no objection */
    char field[192];   /* of the request: "clusters[1].name"; empty: none in particular */
    char detail[1024]; /* a sentence for people, one line */
};

/* Sets the field that objections from now on are about. */
void objection_at(struct objection *ob, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Returns -EINVAL. */
int objection_set(struct objection *ob, unsigned status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- Calls ---- */

struct listing;
struct snapshot;

/* One call of an operation, embedded in its owner. */
struct call {
    json_t *input;    /* owned: the arguments, an object that keeps the input schema */
    size_t max_bytes; /* of JSON of the answer: lists are cut, see below; SIZE_MAX: no limit */
    const char *note; /* what the answer's notes have to say, too; NULL: nothing */
    /* Once, on the loop; within the operation or later. May free the call. */
    void (*ended)(struct call *c);
    unsigned status;  /* 200, or that of the error */
    json_t *answer;   /* owned; of an error: {"detail": ...} */
    struct buf items; /* the elements of the answer's list `items`, as text with commas between them */
    bool has_items;
    /* Set before ended(), to have the answer made on a worker's thread: make() uses call_done() or
     * call_fail(). free_arg() is called on the loop when the call has ended. */
    void (*make)(struct call *c, void *arg);
    void (*free_arg)(void *arg);
    void *arg;
    void (*fill)(struct listing *l, const struct snapshot *hub); /* of reader_answer() */
};

struct operation {
    const char *name;
    /* On the loop; `arg` is that of the API. Ends with one of the functions below, now or, within a deadline
     * of its own, later. */
    void (*run)(void *arg, struct call *c);
};

/* A string of the arguments; NULL if it is absent or empty. */
const char *call_text(const struct call *c, const char *name);
/* Reads a duration such as "5s", if there is one. False after a refusal. */
bool call_duration(struct call *c, const char *name, int64_t min_ms, int64_t max_ms, int64_t *ret_ms);
/* Ends the call with the answer, whose reference is taken. Within run(), the answer must be small. */
void call_done(struct call *c, json_t *answer);
/* Ends the call with an error: an HTTP status of 4xx or 5xx, the argument that it is about or NULL, and a
 * sentence for people. 503 and 504 say when to try again. */
void call_fail(struct call *c, unsigned status, const char *field, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same. `more` (taken, may be NULL) has members that stand beside "detail" in the answer. */
void call_refuse(struct call *c, const struct objection *ob, json_t *more);

/* ---- Arguments ---- */

/* Whether the value keeps a JSON Schema (2020-12); otherwise *ret is the first objection: "clusters[1].name:
 * must be a string". `whole` is what the value itself is called: "body". Checked are type, properties,
 * required, additionalProperties (false), items, minimum, maximum, minLength, maxLength, minItems and
 * maxItems. */
bool schema_accepts(const json_t *schema, const json_t *value, const char *whole, struct objection *ret);

/* ---- Lists that may have to be cut ----
 *
 * {"items": [...], "total": 20000, "shown": 12, "next": 12, "note": "...", "notes": [...]} and members before
 * the items. `next` and `note`, which says how to get the rest, are there if something was cut. */

struct listing {
    struct call *call;
    json_t *head, *notes;
    size_t room; /* bytes that are left for members and items; SIZE_MAX: no limit */
    size_t total, shown, from, limit;
    bool is_full;
};

/* Starts the answer to a call. Of its input it reads `offset` (from `next`) and `limit`. */
void listing_init(struct listing *l, struct call *c);
/* Whether the answer is for an assistant, and may have so many bytes. */
bool listing_is_short(const struct listing *l);
/* Adds a member before the items; its value is taken. */
void listing_put(struct listing *l, const char *name, json_t *value);
/* Adds the member if it takes at most half of the room; otherwise a note with this advice. */
void listing_put_if_short(struct listing *l, const char *name, json_t *value, const char *advice);
void listing_note(struct listing *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Counts one more element; true if the next thing to do is listing_add() for it. */
bool listing_wants(struct listing *l);
/* Adds the element, taken, if it fits; later ones are only counted otherwise. */
void listing_add(struct listing *l, json_t *item);
/* Ends the call, unless it has ended with an error. */
void listing_end(struct listing *l);

/* Adds a sentence to a list. */
void list_note(json_t *list, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A new list of the first elements, at most n. */
json_t *list_head(const json_t *list, size_t n);

#endif
