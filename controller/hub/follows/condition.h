/* A condition of a status that is being made: a metav1.Condition without its times. A message contains
 * nothing that changes all the time, such as latencies: each change is a write. Loop thread. */
#pragma once

#include "controller/hub/follows/reason.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

enum truth { TRUTH_UNKNOWN, TRUTH_TRUE, TRUTH_FALSE };

enum { CONDITION_MESSAGE_BYTES = 1024 };

struct condition {
    const char *type;
    enum truth status;
    char reason[64], message[CONDITION_MESSAGE_BYTES];
    unix_ms since; /* of its status, if that begins with this status; 0: now */
};

/* Sets the condition; the message becomes one line of well-formed UTF-8, and is cut. */
void condition_set(struct condition *c, enum truth status, enum hub_reason reason, const char *message);
/* Likewise, with a message whose parts are always all there. Others are made by sentences.h. */
void PRINTF_LIKE(4, 5)
    condition_format(struct condition *c, enum truth status, enum hub_reason reason, const char *fmt, ...);
/* Likewise, of a sentence of sentences.h. */
void condition_say(struct condition *c, enum truth status, enum hub_reason reason,
                   const struct buf *sentence);
/* With the reason of a probe or of another condition, in words. */
void condition_say_as(struct condition *c, enum truth status, const char *reason, const struct buf *sentence);
void condition_set_as(struct condition *c, enum truth status, const char *reason, const char *message);
/* Status, reason and message are those of the other one. */
void condition_copy(struct condition *c, const struct condition *from);
/* Takes the condition from the object's status; false when that is of another generation. */
bool condition_resume(struct condition *c, const json_t *object);

/* The list as JSON, a new reference. lastTransitionTime comes from the object's status while the
 * condition's status stays the same, or from the last status sent where a CRD has pruned it; NULL: none
 * was sent. */
json_t *conditions_value(const struct condition *list, size_t n, const json_t *object, const json_t *sent,
                         unix_ms now);

/* The condition of an object that another writer keeps changing, while it does. */
#define HUB_CONTESTED "Contested"

/* Who keeps undoing the writes of a status, as written/statuses.c knows it. */
struct contest {
    char *text;    /* on the heap; NULL: nobody does */
    size_t others; /* objects of which that is true, too */
};

/* Sets the condition, unless nobody contests. */
bool condition_set_contested(struct condition *c, const struct contest *contest);
