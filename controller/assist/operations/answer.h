/* Answers of the operations that list what is on the hub: a list that may have to be cut, members before it,
 * and notes about what the hub does not have. */
#ifndef DS_ASSIST_OPERATIONS_ANSWER_H
#define DS_ASSIST_OPERATIONS_ANSWER_H

#include "controller/assist/api/operation.h"
#include "controller/assist/state/reader.h"

struct assist;

struct answer {
    struct call *call;
    const struct snapshot *hub;
    struct listing listing;
    json_t *head, *notes;
    bool has_failed;
};

/* Reads from the hub, has the answer filled, and ends the call. A failure to read ends it, too. */
void answer_from_hub(struct assist *a, struct call *c, const struct reader_query *q,
                     void (*fill)(struct answer *a));
/* Within fill(): ends the call with an error about an argument, in place of the answer. */
void answer_fail(struct answer *a, unsigned status, const char *field, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Whether the answer is for an assistant, and may have so many bytes. */
bool answer_is_short(const struct answer *a);
/* How many bytes are left for more members and items. SIZE_MAX: no limit. */
size_t answer_room(const struct answer *a);
/* Adds a member before the items; its value is taken. */
void answer_put(struct answer *a, const char *name, json_t *value);
/* Adds the member if it takes at most half of the room; otherwise a note with this advice. */
void answer_put_if_short(struct answer *a, const char *name, json_t *value, const char *advice);
void answer_note(struct answer *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A string of at most so many bytes, cut with "..." if it is longer; SIZE_MAX: whole. */
json_t *answer_text(const char *text, size_t max);

#endif
