/* What the adjustments of the plan change at a time: what statuses, pages, metrics and Events tell of
 * them. Pure; loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

/* Whether the plan was made with the newest adjustments. */
bool adjustments_are_counted(const struct fleet *f);
/* Whether the time of adjustment i of the plan has passed. */
bool adjustment_has_ended(const struct fleet *f, size_t i);
/* Whether adjustment i of the plan changes nothing: its time has passed, or it matches nothing. */
bool adjustment_is_idle(const struct fleet *f, size_t i);
/* Appends why it is idle; nothing when it is not: `no score matches scoreName "x"`. */
void adjustment_warning(struct buf *b, const struct fleet *f, size_t i);
/* Scores that it changes on some cluster. */
size_t adjustment_scores(const struct plan *plan, size_t i);
/* What the status told of adjustments so far: the one last written or, after a restart, the one found.
 * Borrowed; NULL: nothing. */
json_t *adjustments_told(const struct hub_config *c);
/* Since when it changes something, by what the status told; now, if that has none. */
unix_ms adjustment_since(const struct fleet *f, const struct hub_config *c, size_t i);
/* Appends what begins with it, for an Event: `"slow" adds -30 to 1 score on 2 clusters: new kernel`. */
void adjustment_describe(struct buf *b, const struct plan *plan, size_t i);
