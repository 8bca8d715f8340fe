/* What is wrong with a list in an object, or with one of its entries, as whoever edits the object reads it:
 *
 *     spec.adjustments: expected a list of at most 100 entries
 *     spec.adjustments[2].add: expected a whole number from -200 to 200
 *
 * Pure; any thread. */
#pragma once

#include "exporter/base/buf.h"

enum { LIST_ERROR_BYTES = 256 /* the ceiling of `why`, into which all of these fit */ };

/* An entry of a list. */
struct list_place {
    const char *list; /* its path: "spec.adjustments" */
    size_t i;         /* from 0 */
};

/* All of them put the sentence in place of what `why` has, and return -EINVAL. problem: "expected ...". */

int list_error(struct buf *why, const char *list, const char *problem);
int list_entry_error(struct buf *why, const struct list_place *at, const char *problem);
/* key: of the entry, "add"; of an object in it, "clusterSelector.labelSelector". */
int list_member_error(struct buf *why, const struct list_place *at, const char *key, const char *problem);
