/* The ManifestWork with a cluster's summaries. Pure.
 *
 * It has two manifests: the ConfigMap dynamic-scoring-config with the summaries, and the agent's ConfigMap
 * dynamic-scoring-status, ReadOnly with a feedback rule. */
#ifndef DS_HUB_WORK_H
#define DS_HUB_WORK_H

#include "controller/kube/json.h"
#include "exporter/base/buf.h"

#define WORK_NAME        "dynamic-scoring-config-manifestwork"
#define WORK_LABEL       "dynamic-scoring.open-cluster-management.io/managed-by"
#define WORK_LABEL_VALUE "controller"
#define WORK_CONFIGMAP   "dynamic-scoring-config"
#define WORK_STATUS      "dynamic-scoring-status"
/* The webhook of ManifestWorks rejects manifests of more than 500 KiB in total. WORK_FRAME_BYTES: for all
 * but the summaries. */
enum { WORK_MAX_BYTES = 500 * 1024, WORK_FRAME_BYTES = 4096 };

/* ---- Writing it, directly as JSON text, as the summaries of a fleet dominate the hub's memory ---- */

/* Appends the whole object, for creation in the cluster's namespace; without a cluster (NULL) the merge patch
 * that turns any ManifestWork of this name into that object, apart from fields of others. summaries: a JSON
 * array, as text. -EFBIG. */
MUST_USE int work_text(struct buf *into, const char *cluster, const char *agent_namespace,
                       struct str summaries);

/* ---- Reading it: whether it is what is written and applied, and what the agent reports ---- */

struct work_found {
    bool exists, deleting;
    bool ours;     /* has the label */
    bool frame;    /* all but the summaries is as work_text() writes it, apart from additions of servers */
    uint64_t hash; /* plan_hash() of the summaries; 0 without */
    bool applied;  /* by the work agent, for the newest generation */
    char why[256]; /* the work agent's error when it could not apply the ConfigMap; else empty */
};
/* For reading ManifestWorks from the API server: replaces the summaries by their hash. */
extern const struct kube_cut work_cut;
/* object: from the API server, cut or whole. */
void work_look(struct work_found *ret, const json_t *object, const char *agent_namespace);
bool work_found_same(const struct work_found *a, const struct work_found *b);
/* The agent's report in the status feedback, borrowed from object; p is NULL when there is none. */
struct str work_feedback(const json_t *object);

#endif
