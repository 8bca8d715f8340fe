/* The reasons of conditions that the hub writes: each one's word, and whether it comes and goes without
 * anyone's doing, so that no Event tells of it. Those of probes are in probe_reason.h. Pure; any thread. */
#pragma once

#include <stdbool.h>

enum hub_reason {
    REASON_NONE,
    /* These pass. */
    REASON_PROGRESSING,
    REASON_NOT_SELECTED,
    REASON_NOT_NEEDED,
    REASON_DELETING,
    REASON_SUSPENDED,
    REASON_LAST_PASSING = REASON_SUSPENDED,
    /* These stay until someone or something changes. */
    REASON_ADD_ON_MISSING,
    REASON_ADJUSTMENTS_IGNORED,
    REASON_ADJUSTMENTS_MATCH_NOTHING,
    REASON_AGENTS_OUTDATED,
    REASON_CLUSTER_IGNORED,
    REASON_CLUSTERS_FAILING,
    REASON_CONFIG_DELETING,
    REASON_DISTRIBUTED,
    REASON_DUPLICATE_SCORE_NAME,
    REASON_EMPTY,
    REASON_HEALTHY,
    REASON_INCOMPLETE,
    REASON_INVALID_ADJUSTMENTS,
    REASON_INVALID_MASKS,
    REASON_INVALID_SPEC,
    REASON_ITEMS_IGNORED,
    REASON_MASKED,
    REASON_MASKS_MATCH_NOTHING,
    REASON_NO_CLUSTER_SELECTED,
    REASON_NO_CLUSTERS,
    REASON_NO_CONFIG,
    REASON_NO_ITEMS,
    REASON_NO_SET_BINDING,
    REASON_NO_REPORTS,
    REASON_NO_ROOM,
    REASON_NO_SCORE_NAME,
    REASON_NOT_ASKED,
    REASON_NOT_CHECKED,
    REASON_NOT_PROBED,
    REASON_NOT_USED,
    REASON_OBJECTS_UNREADABLE,
    REASON_PLACEMENT_NOT_FOUND,
    REASON_PLACEMENTS_UNREADABLE,
    REASON_READY,
    REASON_RECOVERING,
    REASON_SCORING,
    REASON_SILENT,
    REASON_SYNCED,
    REASON_TOKEN_HOST_NOT_ALLOWED,
    REASON_TOLERANCE_IGNORED,
    REASON_UNHEALTHY_ON_CLUSTERS,
    REASON_UNIQUE,
    REASON_UNKNOWN_PLACEHOLDER,
    REASON_VALID,
    REASON_WAITING,
    REASON_WRITE_CONFLICT,
    HUB_REASONS
};

/* "Progressing", "NoRoom", ... */
const char *hub_reason_word(enum hub_reason reason);
/* Of a reason in a status, perhaps one that an earlier process or another program has written. */
bool hub_reason_passes(const char *word);
