/* A scorer on a cluster, any of both, as the pages and the JSON show it: what pair.h says of a cluster that is to have the scorer, and why
 * another is not to. Nothing of it is kept. */
#ifndef DS_HUB_STATUS_VIEW_PAIR_H
#define DS_HUB_STATUS_VIEW_PAIR_H

#include "controller/hub/state/hub_internal.h"

/* In the order in which people are shown them: what fails, what does not score, what does. */
enum view_cell {
    CELL_NOT_WRITTEN,
    CELL_NOT_APPLIED,
    CELL_REFUSED,
    CELL_FAILING,
    CELL_STALE,
    CELL_NOT_PLACED, /* scores, but its AddOnPlacementScore cannot be written */
    CELL_AWAY,
    CELL_OLD,
    CELL_CUT,
    CELL_SILENT,
    CELL_BEHIND, /* the newest summary is still on its way */
    CELL_WAITING,
    CELL_NO_ROOM,
    CELL_MASKED,
    CELL_NOT_SENT, /* the scorer is in no summary, or the cluster is to have none */
    CELL_OUTDATED,
    CELL_EMPTY, /* scores, and had nothing to score */
    CELL_OK,
    CELLS
};

struct view_pair {
    enum view_cell cell;
    const char *word; /* for programs: pair_word(), or "behind", "noRoom", "masked", "notSent" */
    bool scores;
    char why[PAIR_WHY_BYTES]; /* one line; empty where there is no trouble, or nobody to tell of it */
};

void view_pair_of(struct view_pair *ret, const struct hub_scorer *s, const struct hub_cluster *c);

/* Whether there is a trouble with it that statuses name. */
bool view_pair_troubled(const struct hub_scorer *s, const struct hub_cluster *c);

/* What the cluster's agent says of the scorer; NULL for nothing, and where it is not to have it. */
const struct report_cell *view_report(const struct hub_scorer *s, const struct hub_cluster *c);

#endif
