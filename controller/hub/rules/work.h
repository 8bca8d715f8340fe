/* Reads a cluster's ManifestWork: whether it is what work_text.h would write, whether the work agent
 * applied it, and the report of the cluster's agent in its feedback. Pure. */
#ifndef DS_HUB_WORK_H
#define DS_HUB_WORK_H

#include "controller/kube/cut.h"
#include "controller/kube/json.h"

struct work_found {
    bool exists, deleting;
    bool ours;     /* has the label */
    bool frame;    /* all but the summaries is as work_object() writes it, apart from additions of servers */
    uint64_t hash; /* plan_hash() of the summaries; 0 without */
    bool applied, available; /* conditions of the work agent for the newest generation */
    char why[256];           /* the work agent's error when it could not apply the ConfigMap; else empty */
};
/* For reading ManifestWorks from the API server: replaces the summaries by their hash. */
extern const struct kube_cut work_cut;
/* object: from the API server, cut or whole. */
void work_look(struct work_found *ret, const json_t *object, const char *agent_namespace);
bool work_found_same(const struct work_found *a, const struct work_found *b);
/* The agent's report in the status feedback, borrowed from object; p is NULL when there is none. */
struct str work_feedback(const json_t *object);

#endif
