/* A scorer on any cluster, as pages and JSON show it. Nothing of it is kept. */
#ifndef DS_HUB_STATUS_VIEW_PAIR_H
#define DS_HUB_STATUS_VIEW_PAIR_H

#include "controller/hub/state/hub_pair.h"

struct view_pair {
    enum pair_state cell;
    bool scores;                 /* also while the cluster is behind */
    char why[PAIR_REASON_BYTES]; /* one line; empty for states without a reason */
};

void view_pair_of(struct view_pair *ret, const struct hub_scorer *s, const struct hub_cluster *c);

/* Whether the pair's state has a reason. */
bool view_pair_troubled(const struct hub_scorer *s, const struct hub_cluster *c);

/* The scorer in the cluster's report; NULL when it is not there, or not selected. */
const struct report_cell *view_report(const struct hub_scorer *s, const struct hub_cluster *c);

#endif
