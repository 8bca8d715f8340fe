/* The ManifestWork that carries a cluster's summaries, and the agent's report back: building it, and looking at one that is there. Pure.
 *
 * It has two manifests: ConfigMap dynamic-scoring-config with the summaries, and, ReadOnly with a feedback rule, the agent's ConfigMap
 * dynamic-scoring-status. Labels, finalizers and all other fields belong to others: a patch leaves them. */
#ifndef DS_HUB_WORK_H
#define DS_HUB_WORK_H

#include "controller/hub/report.h"
#include "controller/kube/json.h"

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

/* What is there. */
struct work_found {
    bool exists, deleting;
    bool ours; /* has the label */
    bool
        frame; /* all is as work_object() has it, but for the summaries themselves; members that a server filled in do not count */
    uint64_t hash;           /* plan_hash() of the summaries; 0 without */
    bool applied, available; /* the work agent's conditions of its newest generation */
    char why[256]; /* the work agent's words when the ConfigMap could not be applied; empty otherwise */
};
/* Looks at a ManifestWork as the API server gives it. */
void work_look(struct work_found *ret, const json_t *object, const char *agent_namespace);
/* The text of the agent's report in the work's status feedback; p is NULL without. Points into object. */
struct str work_feedback(const json_t *object);

#endif
