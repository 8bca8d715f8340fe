/* A list in an answer that may have to be cut: {"items": [...], "total": 20000, "shown": 12, "next": 12,
 * "note": "..."}. `next` and `note`, which says how to get the rest, are there if something was cut. */
#ifndef DS_ASSIST_API_LISTING_H
#define DS_ASSIST_API_LISTING_H

#include "controller/assist/api/operation.h"

/* Of schemas: the last properties of an input and of an output, with the braces that end both. */
/* clang-format off */
#define LISTING_INPUT(what) SCHEMA( \
    "offset": {"type": "integer", "minimum": 0, "description": ) "\"" what \
    " to skip: next of an answer that was cut.\"" SCHEMA( \
    }, "limit": {"type": "integer", "minimum": 0}}})
#define LISTING_OUTPUT SCHEMA( \
    "total": {"type": "integer"}, "shown": {"type": "integer"}, "next": {"type": "integer"}, \
    "note": {"type": "string"}, "notes": {"type": "array", "items": {"type": "string"}}}})
/* clang-format on */

struct listing {
    json_t *items; /* NULL once out of memory */
    size_t max_bytes, bytes;
    size_t total, from, limit;
    bool is_full;
};

/* Starts a list for a call. Of its input it reads `offset` (from `next`) and
 * `limit`. */
MUST_USE int listing_init(struct listing *l, const struct call *c);
/* Counts one more element; true if the next thing to do is listing_add() for it. */
bool listing_wants(struct listing *l);
/* Adds the element, taken, if it fits; later ones are only counted otherwise. */
void listing_add(struct listing *l, json_t *item);
/* The object; the list needs no more. NULL when out of memory. */
json_t *listing_end(struct listing *l);

#endif
