/* One word for each reason. */
#include "controller/hub/follows/reason.h"

#include "controller/kube/fight.h"
#include "exporter/base/def.h"

#include <string.h>

WORD_TABLE(hub_reason_word, enum hub_reason, HUB_REASONS,
           {[REASON_NONE] = "None",
            [REASON_PROGRESSING] = "Progressing",
            [REASON_NOT_SELECTED] = "NotSelected",
            [REASON_NOT_NEEDED] = "NotNeeded",
            [REASON_DELETING] = "Deleting",
            [REASON_SUSPENDED] = "Suspended",
            [REASON_ADD_ON_MISSING] = "AddOnMissing",
            [REASON_AGENTS_OUTDATED] = "AgentsOutdated",
            [REASON_CLUSTER_IGNORED] = "ClusterIgnored",
            [REASON_ADJUSTMENTS_IGNORED] = "AdjustmentsIgnored",
            [REASON_ADJUSTMENTS_MATCH_NOTHING] = "AdjustmentsMatchNothing",
            [REASON_CLUSTERS_FAILING] = "ClustersFailing",
            [REASON_CONFIG_DELETING] = "ConfigDeleting",
            [REASON_DISTRIBUTED] = "Distributed",
            [REASON_DUPLICATE_SCORE_NAME] = "DuplicateScoreName",
            [REASON_EMPTY] = "Empty",
            [REASON_HEALTHY] = "Healthy",
            [REASON_INCOMPLETE] = "Incomplete",
            [REASON_INVALID_ADJUSTMENTS] = "InvalidAdjustments",
            [REASON_INVALID_MASKS] = "InvalidMasks",
            [REASON_INVALID_SPEC] = "InvalidSpec",
            [REASON_ITEMS_IGNORED] = "ItemsIgnored",
            [REASON_MASKED] = "Masked",
            [REASON_MASKS_MATCH_NOTHING] = "MasksMatchNothing",
            [REASON_NO_CLUSTER_SELECTED] = "NoClusterSelected",
            [REASON_NO_CLUSTERS] = "NoClusters",
            [REASON_NO_CONFIG] = "NoConfig",
            [REASON_NO_ITEMS] = "NoItems",
            [REASON_NO_SET_BINDING] = "NoManagedClusterSetBinding",
            [REASON_NO_REPORTS] = "NoReports",
            [REASON_NO_ROOM] = "NoRoom",
            [REASON_NO_SCORE_NAME] = "NoScoreName",
            [REASON_NOT_ASKED] = "NotAsked",
            [REASON_NOT_CHECKED] = "NotChecked",
            [REASON_NOT_PROBED] = "NotProbed",
            [REASON_NOT_USED] = "NotUsed",
            [REASON_OBJECTS_UNREADABLE] = "ObjectsUnreadable",
            [REASON_PLACEMENT_NOT_FOUND] = "PlacementNotFound",
            [REASON_PLACEMENTS_UNREADABLE] = "PlacementsUnreadable",
            [REASON_READY] = "Ready",
            [REASON_RECOVERING] = "Recovering",
            [REASON_SCORING] = "Scoring",
            [REASON_SILENT] = "Silent",
            [REASON_SYNCED] = "Synced",
            [REASON_TOKEN_HOST_NOT_ALLOWED] = "TokenHostNotAllowed",
            [REASON_TOLERANCE_IGNORED] = "ToleranceIgnored",
            [REASON_UNHEALTHY_ON_CLUSTERS] = "UnhealthyOnClusters",
            [REASON_UNIQUE] = "Unique",
            [REASON_UNKNOWN_PLACEHOLDER] = "UnknownPlaceholder",
            [REASON_VALID] = "Valid",
            [REASON_WAITING] = "Waiting",
            [REASON_WRITE_CONFLICT] = KUBE_FIGHT_REASON});

bool hub_reason_passes(const char *word)
{
    for (enum hub_reason i = REASON_NONE + 1; i <= REASON_LAST_PASSING; i++)
        if (strcmp(word, hub_reason_word(i)) == 0)
            return true;
    return false;
}
