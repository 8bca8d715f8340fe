/* What the files of the fleet share: its names, and what users and schedulers do. */
#pragma once

#include "test/universe/world.h"

#include "controller/hub/hub.h"
#include "controller/hub/rules/work.h"

#include <jansson.h>

#define HUB_NAMESPACE    "open-cluster-management"
#define AGENT_NAMESPACE  "dynamic-scoring"
#define ADDON_NAME       "dynamic-scoring-framework"
#define SCORERS_OF_HUB   "dynamic-scoring.open-cluster-management.io/dynamicscorers"
#define CONFIGS_OF_HUB   "dynamic-scoring.open-cluster-management.io/dynamicscoringconfigs"
#define SCORES           "cluster.open-cluster-management.io/addonplacementscores"
#define MANAGED_CLUSTERS "cluster.open-cluster-management.io/managedclusters"
#define DECISIONS        "cluster.open-cluster-management.io/placementdecisions"
#define ADDONS           "addon.open-cluster-management.io/managedclusteraddons"
#define WORKS            "work.open-cluster-management.io/manifestworks"
#define LEASES           "coordination.k8s.io/leases"
#define CONFIGMAPS       "v1/configmaps"

enum {
    PLACED = 0,        /* the scorer whose clusters a Placement chooses, in seeds with Placements */
    WITH_FALLBACK = 1, /* the scorer that has a fallbackScore */
    FOREIGN = 2,       /* the scorer whose object on cluster 0 belongs to another */
};

/* ---- fleet.c ---- */

const char *cluster_name(int i);
const char *scorer_name(unsigned i);
bool fleet_is_foreign(const json_t *object);
/* The work agent applies the cluster's ManifestWork now. */
void fleet_apply_work(int cluster);
/* Deleted, and applied at once. False if it is not there. */
bool fleet_make_scorer_anew(unsigned scorer);
bool fleet_make_cluster_anew(int cluster);
/* For a while the report, or the list, is as an older agent, or hub, writes it. */
void fleet_speak_old_words(void);
/* Nobody has changed the cluster and the configuration for so long, and the scorer for four times as long:
 * the hub may learn of one that was made anew only when it notices a stream that died, and distributes none
 * that it has not probed. Nor has a scoring API failed. */
bool fleet_is_settled(int cluster, unsigned scorer, int64_t ms);

/* ---- past.c ---- */

void past_set_up(void);
void past_tick(void);
void past_heal(void);
/* The hub's store went back in time. */
void past_restored(void);
void past_put_addon(int cluster);
/* A Lease was deleted that one of those who elect by it has never seen. */
bool past_lease_was_unknown(int server);
/* The cluster's agent counts as gone. */
bool past_lacks_addon(int cluster);
/* The cluster's ConfigMap has been written or deleted. */
void past_note_configmap(int cluster);
void past_check_scores_deleted(const struct sim_node *from, const char *name);
/* A write of the hub to a ManifestWork; after: NULL for a delete. */
void past_check_work(const char *namespace, const json_t *before, const json_t *after);
