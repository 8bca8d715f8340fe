/* The ManifestWork that carries a cluster's summaries, as JSON text: printed as it goes, for a fleet's summaries are many times what anything
 * else takes.
 *
 * It has two manifests: ConfigMap dynamic-scoring-config with the summaries, and, ReadOnly with a feedback rule, the agent's ConfigMap
 * dynamic-scoring-status. Labels, finalizers and all other fields belong to others: a patch leaves them. */
#ifndef DS_HUB_WORK_TEXT_H
#define DS_HUB_WORK_TEXT_H

#include "exporter/base/buf.h"

#define WORK_NAME        "dynamic-scoring-config-manifestwork"
#define WORK_LABEL       "dynamic-scoring.open-cluster-management.io/managed-by"
#define WORK_LABEL_VALUE "controller"
#define WORK_CONFIGMAP   "dynamic-scoring-config"
#define WORK_STATUS      "dynamic-scoring-status"
/* The work webhook refuses manifests of more than 500 KiB in all; the rest is for everything that is not the summaries. */
enum { WORK_MAX_BYTES = 500 * 1024, WORK_FRAME_BYTES = 4096 };

/* The whole object, to create it in the cluster's namespace: JSON text. summaries: the ConfigMap's key, a JSON array as text.
 * -ENOMEM, -EFBIG. */
MUST_USE int work_object(struct buf *into, const char *cluster, const char *agent_namespace,
                         struct str summaries);
/* A merge patch that makes of any work of this name what work_object() would have made, but for what is others'. */
MUST_USE int work_patch(struct buf *into, const char *agent_namespace, struct str summaries);

#endif
