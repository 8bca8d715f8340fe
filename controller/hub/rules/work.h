/* Looking at a cluster's ManifestWork: whether it is what work_text.h would write, what the work agent made of it, and what the cluster's agent
 * reports through it. Pure. */
#ifndef DS_HUB_WORK_H
#define DS_HUB_WORK_H

#include "controller/hub/rules/work_text.h"
#include "controller/kube/cut.h"
#include "controller/kube/json.h"

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
/* What to ask API servers for ManifestWorks with: of the summaries the hash is enough. */
extern const struct kube_cut work_cut;
/* Looks at a ManifestWork as the API server gives it, cut or whole. */
void work_look(struct work_found *ret, const json_t *object, const char *agent_namespace);
/* The text of the agent's report in the work's status feedback; p is NULL without. Points into object. */
struct str work_feedback(const json_t *object);

#endif
