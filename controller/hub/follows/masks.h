/* What the masks of the plan match. Pure; loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "exporter/base/buf.h"

/* Whether the counts of the plan's masks are those of the newest masks. */
bool masks_are_counted(const struct fleet *f);
/* Appends why mask i matches nothing; nothing when it matches: "no cluster matches clusterName "c"". */
void mask_warning(struct buf *b, const struct plan *plan, size_t i);
/* Whether mask i matches nothing. */
bool mask_is_idle(const struct plan *plan, size_t i);
