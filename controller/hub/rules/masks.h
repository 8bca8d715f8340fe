/* The masks of the DynamicScoringConfig: which clusters leave out which scores. `*` matches any
 * characters, `?` one; all others match themselves. */
#ifndef DS_HUB_MASKS_H
#define DS_HUB_MASKS_H

#include "controller/kube/json.h"

enum { MASK_FAR = 4 };

struct mask {
    const char *cluster, *score;
};

struct masks {
    json_t *owner;
    struct mask *list;
    size_t n;
};

/* Parses spec.masks and its alias spec.mask. object: the whole DynamicScoringConfig, of which a reference
 * is kept. -EINVAL with the first error in `why` ("spec.masks[2].scoreName: expected ..."); -ENOMEM. */
MUST_USE int masks_read(struct masks *ret, json_t *object, char why[256]);
void masks_done(struct masks *m);
/* Whether `name` may be what someone meant who wrote `text`, and is nearer than *best edits, which starts at
 * MASK_FAR. Then sets *best. Case does not count, nor which of `-`, `_` and `.` separates words. */
bool mask_name_is_nearer(const char *text, const char *name, unsigned *best);

#endif
