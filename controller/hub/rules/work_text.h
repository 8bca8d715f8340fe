/* Writes the ManifestWork with a cluster's summaries, directly as JSON text, as the summaries of a fleet
 * dominate the hub's memory.
 *
 * It has two manifests: the ConfigMap dynamic-scoring-config with the summaries, and the agent's ConfigMap
 * dynamic-scoring-status, ReadOnly with a feedback rule. A patch leaves other labels, finalizers and
 * fields alone. */
#ifndef DS_HUB_WORK_TEXT_H
#define DS_HUB_WORK_TEXT_H

#include "exporter/base/buf.h"

#define WORK_NAME        "dynamic-scoring-config-manifestwork"
#define WORK_LABEL       "dynamic-scoring.open-cluster-management.io/managed-by"
#define WORK_LABEL_VALUE "controller"
#define WORK_CONFIGMAP   "dynamic-scoring-config"
#define WORK_STATUS      "dynamic-scoring-status"
/* The webhook of ManifestWorks rejects manifests of more than 500 KiB in total. WORK_FRAME_BYTES: for all
 * but the summaries. */
enum { WORK_MAX_BYTES = 500 * 1024, WORK_FRAME_BYTES = 4096 };

/* Appends the whole object, for creation in the cluster's namespace. summaries: a JSON array, as text.
 * -ENOMEM, -EFBIG. */
MUST_USE int work_object(struct buf *into, const char *cluster, const char *agent_namespace,
                         struct str summaries);
/* Appends the merge patch that turns any ManifestWork of this name into that object, apart from fields of
 * others. -ENOMEM, -EFBIG. */
MUST_USE int work_patch(struct buf *into, const char *agent_namespace, struct str summaries);

#endif
