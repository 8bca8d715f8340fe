/* What a cluster's ManifestWork should be, and whether it has become that. Pure; loop thread. */
#pragma once

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/rules/plan.h"

enum hub_target { TARGET_UNCHANGED, TARGET_WORK, TARGET_NO_WORK };

/* plan: NULL: nothing to distribute. */
enum hub_target cluster_target(const struct observed *seen, const struct plan *plan,
                               const struct hub_cluster *c);
bool cluster_is_in_sync(const struct observed *seen, const struct plan *plan, const struct hub_cluster *c);

/* Why the cluster's ManifestWork is not as it should be, or does not stay so; NULL: it is and does. */
const char *cluster_write_error(const struct hub_cluster *c);
/* Whether its ManifestWork is as it should be, and stays so: what another writer keeps undoing is written
 * only for the moment. */
bool cluster_is_up_to_date(const struct hub_cluster *c);
/* The agent runs there, so that it gets a ManifestWork. */
bool cluster_is_served(const struct hub_cluster *c);
