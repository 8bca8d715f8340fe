/* What the hub's JSON shows of scorers, clusters and pairs of both, with the words for it. */
#ifndef DS_HUB_VIEW_H
#define DS_HUB_VIEW_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/state/state.h"
#include "exporter/ui/list.h"

/* Has the hub count within a second if anything has changed: counting 10,000 clusters here would delay the
 * loop. */
void view_refresh_counts(struct hub *h);

/* A state as programs and people read it. severity: "error", "warning", "pending", "none" or "ok". */
struct view_words {
    const char *word, *label, *severity;
};

/* ---- Scorers ---- */

enum view_scorer_state { VIEW_NOT_READY, VIEW_UNKNOWN, VIEW_DEGRADED, VIEW_READY };
extern const struct view_words view_scorer_words[VIEW_READY + 1];

struct view_scorer {
    const struct hub_scorer *s;
    const struct probe_status *probe; /* never NULL */
    json_t *status;                   /* a reference; on a standby, as the leader wrote it */
    const char *ready;                /* of its condition Ready: "True", "False" or "Unknown" */
    const char *health;               /* status.healthStatus */
    enum view_scorer_state state;     /* by Ready; VIEW_DEGRADED when ready, but something about it fails */
};

/* All scorers whose names match the query. */
struct view_scorers {
    struct view_scorer *all;
    size_t n;
    struct list list; /* of struct view_scorer */
};

/* -ENOMEM. */
MUST_USE int view_scorer_make(struct view_scorer *ret, const struct hub_scorer *s);
void view_scorer_done(struct view_scorer *s);
MUST_USE int view_scorers_make(struct view_scorers *ret, struct hub *h, const struct list_query *q);
void view_scorers_done(struct view_scorers *v);

/* ---- Clusters ---- */

enum view_cluster_state {
    CLUSTER_NOT_WRITTEN,
    CLUSTER_NOT_APPLIED,
    CLUSTER_UNAVAILABLE,
    CLUSTER_FAILING, /* at least one scorer fails */
    CLUSTER_AGENT_TROUBLE,
    CLUSTER_BEHIND,
    CLUSTER_OK
};
extern const struct view_words view_cluster_words[CLUSTER_OK + 1];

/* The worst that is wrong with a cluster. */
enum view_cluster_state view_cluster_state(const struct hub_cluster *c);
/* The number of scorers that fail there, by its agent's report. */
size_t view_cluster_failing(const struct hub_cluster *c);
/* All clusters that match the query, as struct hub_cluster. managed_only: those that get a ManifestWork.
 * -ENOMEM. */
MUST_USE int view_clusters(struct list *ret, struct hub *h, bool managed_only);

/* ---- Pairs ---- */

/* The scorer in the cluster's report; NULL when it is not there, or not selected. */
const struct report_cell *view_report(const struct hub_scorer *s, const struct hub_cluster *c);
enum pair_state view_pair(const struct hub_scorer *s, const struct hub_cluster *c);
/* Writes the members of a state, and of one pair. */
void view_state_members(struct out *o, enum pair_state p);
void view_pair_members(struct out *o, const struct hub_scorer *s, const struct hub_cluster *c);

#endif
