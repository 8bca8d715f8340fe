/* What a scorer comes to on a cluster that is to have it, from all that is known of the two. Pure. */
#ifndef DS_HUB_PAIR_H
#define DS_HUB_PAIR_H

#include "controller/hub/rules/report.h"
#include "exporter/base/clock.h"

struct hub_cluster;

enum pair {
    PAIR_FAILING,     /* in the agent's words */
    PAIR_NOT_WRITTEN, /* its ManifestWork cannot be written */
    PAIR_NOT_APPLIED, /* the work agent cannot apply it */
    PAIR_REFUSED,     /* the agent refuses its configuration, and does not score by an older one */
    PAIR_SCORING,
    PAIR_OUTDATED, /* scores by an older configuration: the agent refuses the newest */
    PAIR_WAITING,  /* no round has ended yet */
    PAIR_SILENT,   /* no agent has reported */
    PAIR_AWAY,     /* the cluster is not available */
    PAIR_OLD,      /* the last success is too long ago for an agent that lives */
    PAIR_CUT,      /* the agent's report has no room for it */
};

enum pair_class { PAIR_SCORES, PAIR_FAILS, PAIR_WAITS, PAIR_IS_SILENT };

enum { PAIR_WHY_BYTES = 640 };

/* in_sync: the cluster's ManifestWork is as it should be. cell: what the agent says, NULL without. interval_ms: the scorer's. */
enum pair pair_look(const struct hub_cluster *c, bool in_sync, const struct report_cell *cell,
                    int64_t interval_ms, unix_ms now);
enum pair_class pair_class(enum pair p);
/* One word, as statuses have it: the agent's own where it fails. */
const char *pair_word(enum pair p, const struct report_cell *cell);
/* Why, one line; empty where there is no trouble, or nobody to tell of it. */
void pair_why(char out[PAIR_WHY_BYTES], const struct hub_cluster *c, enum pair p,
              const struct report_cell *cell);
/* Whether pair_why() has words. */
bool pair_has_why(enum pair p);
/* Whether the work agent says that it cannot apply the ManifestWork, as it is now. */
bool cluster_unapplied(const struct hub_cluster *c, bool in_sync);

#endif
