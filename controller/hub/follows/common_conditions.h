/* What conditions of DynamicScorers and of the DynamicScoringConfig have in common. Pure; loop thread. */
#pragma once

#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/cluster.h"
#include "exporter/score/feature.h"

/* "<what> 2 of 300 clusters: c1: no such namespace". first: NULL: none is named; why: NULL or "": not
 * known. */
void condition_clusters(struct condition *c, enum hub_reason reason, const char *what, size_t n, size_t of,
                        const struct hub_cluster *first, const char *why);
/* The work agents of n clusters have yet to apply the newest ManifestWork. */
void condition_unconfirmed(struct condition *c, size_t n, size_t of, const struct hub_cluster *first);
/* Why the cluster has not applied its up-to-date ManifestWork. */
const char *cluster_unconfirmed_reason(const struct hub_cluster *c);
void condition_distributed(struct condition *c, size_t n);
/* No cluster can get anything: none is accepted, or none has the add-on. False: some can. */
bool condition_no_clusters(const struct fleet *f, struct condition *c);
/* The API server refuses to show a kind of objects without which nothing is distributed: what was last known
 * of them stays active. False: it shows all of these. */
bool condition_unreadable(const struct fleet *f, struct condition *c);
/* Adds that it refuses to show add-ons, if it does: all accepted clusters are served then. */
void condition_add_unreadable_addons(const struct fleet *f, struct condition *c);
/* Adds how many clusters are left out because they lack the agent's add-on, and the name of the first. */
void condition_add_without_addon(const struct fleet *f, struct condition *c, size_t n, const char *first);
/* Adds the clusters whose agents are too old for a part of a scorer, or for adjustments, and what they do
 * instead; nothing if there are none. of: clusters that it is meant for. */
void condition_add_outdated(struct condition *c, enum feature feature, const struct named_clusters *clusters,
                            size_t of);
/* Adds a sentence's end. A condition that is true gets the reason, as it is no longer the whole truth. */
void condition_add(struct condition *c, enum hub_reason reason, const struct buf *end);
