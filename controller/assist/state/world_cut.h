/* Removes from an object what the optimiser does not need: a ManifestWorkReplicaSet may carry half a
 * megabyte. */
#ifndef DS_ASSIST_STATE_WORLD_CUT_H
#define DS_ASSIST_STATE_WORLD_CUT_H

#include "controller/assist/state/world.h"

/* In place; never fails. */
void world_cut(enum world_kind kind, json_t *object);

#endif
