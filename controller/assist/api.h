/* Serves operations over HTTP: as REST requests, as tools of the Model Context Protocol at /mcp, and
 * described in /openapi.json. All on the loop; answers that do not come at once are printed on a worker. */
#pragma once

#include "controller/assist/api_error.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- Calls ---- */

enum { CALL_RETRY_AFTER_S = 5 }; /* what errors of 503 and 504 advise */

struct listing;
struct snapshot;
struct call;

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

/* ---- Lists that may have to be cut ----
 *
 * {"items": [...], "total": 20000, "shown": 12, "next": 12, "note": "...", "notes": [...]} and members before
 * the items. `next` and `note`, which says how to get the rest, are there if something was cut. */

struct listing {
    struct call *call;
    json_t *head; /* for members before the items */
    json_t *notes;
    size_t total, shown, from, limit;
    bool is_full;
};

/* Starts the answer to a call. Of its input it reads `offset` (from `next`) and `limit`. */
void listing_init(struct listing *l, struct call *c);
/* Bytes that are left for members, notes and items; SIZE_MAX: no limit. */
size_t listing_room(const struct listing *l);
/* Whether the answer is for an assistant, and may have so many bytes. */
bool listing_is_short(const struct listing *l);
/* n for an assistant; no limit otherwise. */
size_t listing_at_most(const struct listing *l, size_t n);
/* Counts one more element; true if the next thing to do is listing_add() for it. */
bool listing_wants(struct listing *l);
/* Adds the element, taken, if it fits; later ones are only counted otherwise. */
void listing_add(struct listing *l, json_t *item);
/* listing_wants() and listing_add() for each item. */
void listing_add_all(struct listing *l, const json_t *items);
/* Ends the call, unless it has ended with an error. */
void listing_end(struct listing *l);

/* Adds a sentence to a list. */
void list_note(json_t *list, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The first element whose member `key` is that text; NULL if there is none. */
const json_t *list_find(const json_t *list, const char *key, const char *text);
/* A new list of the first elements, at most n. */
json_t *list_head(const json_t *list, size_t n);

/* ---- The API ---- */

/* The files of controller/assist/schemas as one object: {"<name>": schema, ..., "operations": [...]}. */
extern const char assist_schemas[];

struct api_options {
    struct loop *loop;
    struct metrics *metrics;
    /* A JSON text like assist_schemas. Of its operations: {name, title, description}; `input` and
     * `output`, the names of schemas (see schema.h; objects); `method` ("GET": arguments are query
     * parameters; "POST": a JSON body) and `path`, without which it is a tool only; `writes`, if it
     * replaces or deletes objects on the cluster, which those with an argument `dryRun` can do without;
     * `whenWritable`, the end of the description where assistants may write. Besides: `openapi`, the
     * document without paths; `openapi_responses`, of each operation; `mcp`: {"versions", "instructions",
     * "whenWritable", "whenReadOnly", "plansOnly", "maxBytes"}. */
    const char *schemas;
    const struct operation *operations; /* by name; must outlive the API */
    size_t n_operations;
    void *arg;         /* of operations */
    bool allow_writes; /* assistants may call operations that write */
    bool needs_token;  /* for /openapi.json */
};

struct api_operation {
    struct api *api;
    const struct operation *o;
    const json_t *described;      /* in the schemas */
    const char *method, *path;    /* NULL: a tool only */
    const json_t *input, *output; /* the schemas */
    bool writes;
    json_t *tool_input; /* the schema with maxBytes; NULL: not offered as a tool */
};

struct api {
    struct api_options o;
    struct worker *worker;
    json_t *schemas;
    json_t *instructions;     /* a string: what assistants read first */
    atomic_size_t held_bytes; /* of memory for the arguments of requests under way; loop and worker */
    bool is_ending;
    struct buf openapi; /* the document */
    json_t *tools;      /* the array that tools/list answers */
    size_t n;
    struct api_operation operations[];
};

/* -EAGAIN without a thread; -EINVAL for an operation that is missing (the log says which). */
MUST_USE int api_new(struct api **ret, const struct api_options *o);
/* After the operations under way have ended, before the server is stopped: answers that are being printed are
 * finished. Takes NULL. */
void api_end(struct api *a);
/* After the server was stopped, whose threads read the routes until then. Takes NULL, returns NULL. */
struct api *api_free(struct api *a);
DEFINE_CLEANUP(struct api, api_free)

/* Routes of the API besides one for each operation. */
enum { API_OWN_ROUTES = 2 };

/* Sets the routes, at most those of the operations and API_OWN_ROUTES; returns their number. */
size_t api_routes(struct api *a, struct httpd_route *to);
/* Sends the answer, which is taken, later: it is printed on the worker. */
void api_answer(struct api *a, struct httpd_reply *reply, json_t *answer);

/* A message of the Model Context Protocol (https://modelcontextprotocol.io/specification/2026-07-28), as
 * it came. */
struct mcp_message {
    struct api *api;
    struct httpd_reply *reply;
    const char *header_version, *header_method, *header_name; /* of the headers; NULL: absent */
    struct str body;
};

/* Answers the message, now or later. Headers and body must be valid until then. */
void mcp_handle(const struct mcp_message *m);
