/* The objects of one kind, sorted by namespace and name. It owns neither names nor values. */
#ifndef DS_ASSIST_STATE_WORLD_SHELF_H
#define DS_ASSIST_STATE_WORLD_SHELF_H

#include "exporter/base/def.h"

struct world_slot {
    const char *namespace, *name; /* live as long as the value */
    void *value;
    unsigned round; /* of the list or watch that last reported it */
};

struct world_shelf {
    struct world_slot *slots;
    size_t n, cap;
};

/* Frees the table, not the values. */
void world_shelf_done(struct world_shelf *s);
/* The first slot that is not before the key; s->n without one. */
size_t world_shelf_at(const struct world_shelf *s, const char *namespace, const char *name);
/* NULL without. */
struct world_slot *world_shelf_get(const struct world_shelf *s, const char *namespace, const char *name);
/* Inserts or replaces; *ret_old is the value replaced, or NULL. -ENOMEM: the table is unchanged. */
MUST_USE int world_shelf_put(struct world_shelf *s, const struct world_slot *slot, void **ret_old);
/* Removes a slot of the table and returns its value. */
void *world_shelf_take(struct world_shelf *s, struct world_slot *slot);
/* The next slot of a namespace (NULL: all): start with *at = 0; NULL after the last. */
const struct world_slot *world_shelf_next(const struct world_shelf *s, const char *namespace, size_t *at);

#endif
