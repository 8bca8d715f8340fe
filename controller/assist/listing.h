/* An answer that is a list, and may have to be cut:
 *
 * {"items": [...], "total": 20000, "shown": 12, "next": 12, "note": "...", "notes": [...]} and members
 * before the items. `next` and `note`, which says how to get the rest, are there if something was cut. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct call;

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
/* Fills in the answer of a call that has read the hub, by its operation. On a worker's thread. */
void listing_fill(struct call *c);
