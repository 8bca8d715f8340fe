/* Counts clusters, in all and for each scorer: one pass over the fleet, however much has changed. */
#ifndef DS_HUB_TALLY_H
#define DS_HUB_TALLY_H

#include "controller/hub/state/state.h"

/* Brings h->totals and each scorer's tally up to date, if hub_schedule_tally() was called since the last
 * time. */
void hub_tally(struct hub *h);
/* Has tallies point into the cluster's new report instead of the one that it replaced. Counts follow with
 * the next hub_tally(). */
void hub_tally_renew(struct hub *h, const struct hub_cluster *c);
/* Drops a cluster that is about to be freed. */
void hub_tally_forget(struct hub *h, const struct hub_cluster *c);

#endif
