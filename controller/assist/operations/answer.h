/* Answers of the operations that list what is known: a list that may have to be cut, members before it, and
 * notes about what the answer could not know. Allocation failures are noticed in the end. */
#ifndef DS_ASSIST_OPERATIONS_ANSWER_H
#define DS_ASSIST_OPERATIONS_ANSWER_H

#include "controller/assist/api/listing.h"
#include "controller/assist/state/world.h"

struct answer {
    struct call *call;
    const struct world *world;
    struct listing listing;
    json_t *head, *notes; /* NULL once out of memory */
};

/* Starts the answer with notes about the kinds that it is made of. False if one of them is not known yet, or
 * out of memory: the call has ended then. */
MUST_USE bool answer_begin(struct answer *a, struct call *c, const struct world *w,
                           const enum world_kind *kinds, size_t n_kinds);
/* A string of the input; NULL if it is absent or empty. */
const char *answer_input(const struct answer *a, const char *name);
/* Whether the answer is for an assistant, and may have so many bytes. */
bool answer_is_short(const struct answer *a);
/* How many bytes are left for more members and items. SIZE_MAX: no limit. */
size_t answer_room(const struct answer *a);
/* Adds a member before the items; its value is taken. */
void answer_put(struct answer *a, const char *name, json_t *value);
/* Adds the member if it takes at most half of the room; otherwise a note with this advice. */
void answer_put_if_short(struct answer *a, const char *name, json_t *value, const char *advice);
void answer_note(struct answer *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Ends the call. */
void answer_end(struct answer *a);

/* A string of at most so many bytes, cut with "..." if it is longer; SIZE_MAX: whole. NULL when out of
 * memory. */
json_t *answer_text(const char *text, size_t max);

#endif
