/* Adjustments: what the hub adds to a cluster's scores, or sets them to, for a time and for a reason. The
 * entries of `spec.adjustments` of the DynamicScoringConfig that a cluster matches come in its ConfigMap,
 * in their order:
 *
 *     [{"name":"maintenance","scoreName":"*-load","add":-30,"until":"2026-12-01T06:00:00Z","reason":"disk"},
 *      {"name":"out-of-rotation","scoreName":"*","set":-100}]
 *
 * Pure; any thread. */
#pragma once

#include "controller/kube/list_error.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <jansson.h>

enum adjust_how { ADJUST_ADD, ADJUST_SET };
enum {
    ADJUST_MAX = 100,            /* entries */
    ADJUST_NAME_MAX = 63,        /* bytes */
    ADJUST_REASON_MAX = 4 * 256, /* bytes: 256 characters */
    ADJUST_TEXT_BYTES = 4096     /* of adjust_put() */
};

struct adjustment {
    const char *name;  /* unique in the list */
    const char *score; /* score names: `*` matches any characters, `?` one */
    enum adjust_how how;
    int value;          /* to add: -200..200; to set: -100..100 */
    unix_ms until;      /* by the clock of the hub's API server; 0: without an end */
    const char *reason; /* for people; "" for none */
};

struct adjustments {
    json_t *owner; /* a reference: the strings are its */
    struct adjustment *list;
    size_t n;
};

/* Reads the members that an entry has in the spec and in the ConfigMap. -EINVAL with the first error in
 * `why`: "spec.adjustments[2].add: expected ...". */
MUST_USE int adjustment_read(struct adjustment *ret, const struct list_place *at, const json_t *entry,
                             struct buf *why);
/* Reads a ConfigMap's list; an empty text is an empty list. -EINVAL, and *ret is untouched. */
MUST_USE int adjustments_parse(struct adjustments *ret, struct str text, struct buf *why);
void adjustments_done(struct adjustments *a);

/* The entries that a cluster has, at a time. */
struct adjuster {
    const struct adjustments *all; /* NULL: none */
    unix_ms now;                   /* by the clock of the hub's API server */
};

/* Whether it is in force for the score at that time. */
bool adjustment_applies(const struct adjustment *a, const char *score, unix_ms now);
/* Whether one that applies sets the value, so that what it was before does not matter. */
bool adjust_sets(const struct adjuster *a, const char *score);
/* The value after all that apply, in their order; not clamped. */
double adjust_value(const struct adjuster *a, const char *score, double value);
/* When the next of those in force ends; 0: none does. */
unix_ms adjustments_next_end(const struct adjustments *a, unix_ms now);
/* Appends those that apply, for people: `"maintenance" adds -30: new disk; "out-of-rotation" sets -100`;
 * nothing if none does. Beyond ADJUST_TEXT_BYTES, only how many more there are. */
void adjust_put(const struct adjuster *a, const char *score, struct buf *into);
/* Of all that apply; 0 if none does. */
uint64_t adjust_hash(const struct adjuster *a, const char *score);
