/* An AddOnPlacementScore in few bytes: 1,000 clusters with 20 scores of 100 items have two million items. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/str.h"

#include <jansson.h>
#include <stdbool.h>

/* An item of an AddOnPlacementScore. */
struct score_item {
    struct str name;
    int32_t value;
};

struct score {
    const char *cluster, *name;
    unix_ms valid_until;      /* 0: without an end */
    bool is_expired;          /* when it was read */
    json_t *object;           /* without status.scores */
    struct score_item *items; /* ascending by name */
    size_t n_items;
};

/* From the object, whose reference is kept. now: when it was read. */
struct score *score_new(json_t *object, unix_ms now);
/* Takes NULL, returns NULL. */
struct score *score_free(struct score *s);
/* validUntil as a text; NULL without an end. A new reference. */
json_t *score_valid_until_value(const struct score *s);
