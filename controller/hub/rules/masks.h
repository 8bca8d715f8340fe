/* DynamicScoringConfig's masks: which scores a cluster is not to compute. `*` stands for any run of characters, `?` for one; all else is
 * compared byte by byte. */
#ifndef DS_HUB_MASKS_H
#define DS_HUB_MASKS_H

#include "controller/kube/json.h"

struct mask {
    const char *cluster, *score;
};

struct masks {
    json_t *owner;
    struct mask *list;
    size_t n;
};

/* Reads spec.masks and spec.mask (both count) of the object, of which a reference is kept. -EINVAL with a sentence that names the first bad
 * entry ("spec.masks[2].scoreName: expected a string"); -ENOMEM. */
MUST_USE int masks_read(struct masks *ret, json_t *object, char why[256]);
void masks_done(struct masks *m);
/* Whether the cluster is to leave the score out. */
bool masks_match(const struct masks *m, const char *cluster, const char *score);
/* Linear in the text for each star; never exponential. */
bool glob_match(const char *pattern, const char *text);

#endif
