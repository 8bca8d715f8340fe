/* Collects what the hub knows about a scorer on a cluster, for pair.h to decide. */
#ifndef DS_HUB_STATE_PAIR_H
#define DS_HUB_STATE_PAIR_H

#include "controller/hub/rules/pair.h"
#include "controller/hub/state/state.h"

/* Whether the cluster's summaries should contain the scorer. */
bool hub_pair_is_selected(const struct hub_scorer *s, const struct hub_cluster *c);
/* cell: of the cluster's report, NULL when it does not name the scorer. in_sync: the ManifestWork is up to
 * date. */
enum pair_state hub_pair_state(const struct hub_scorer *s, const struct hub_cluster *c,
                               const struct report_cell *cell, bool in_sync);
/* One line; empty for states without a reason. */
void hub_pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state state, const struct hub_cluster *c,
                     const struct report_cell *cell);

#endif
