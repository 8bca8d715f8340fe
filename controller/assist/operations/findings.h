/* Why a scorer has no score on a cluster: sentences in the order in which scores come about, from the
 * DynamicScorer to the AddOnPlacementScore, so that the first is the cause. */
#ifndef DS_ASSIST_OPERATIONS_FINDINGS_H
#define DS_ASSIST_OPERATIONS_FINDINGS_H

#include "controller/assist/state/world.h"

struct findings {
    const struct world *world;
    const char *cluster;
    const json_t *scorer;
    const json_t *work;       /* the cluster's ManifestWork; NULL: there is none, or see work_trouble */
    const char *work_trouble; /* why it could not be read; NULL: it could */
    json_t *list;             /* [{"about", "finding", "quote", "untrusted"}]; NULL once out of memory */
    const struct world_score *score; /* set by findings_make(): the object; NULL without */
    bool has_score;                  /* likewise: it has values that have not expired */
};

/* Fills `list`, an empty array. */
void findings_make(struct findings *f);

#endif
