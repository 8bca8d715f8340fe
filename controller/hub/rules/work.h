/* The ManifestWork with a cluster's summaries.
 *
 * It has two manifests: the ConfigMap dynamic-scoring-config with the summaries, and the agent's ConfigMap
 * dynamic-scoring-status, ReadOnly with a feedback rule. It is written directly as JSON text, as the
 * summaries of a fleet dominate the hub's memory. Pure; any thread. */
#pragma once

#include "controller/kube/cut.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"

#define WORK_NAME        "dynamic-scoring-config-manifestwork"
#define WORK_LABEL       "dynamic-scoring.open-cluster-management.io/managed-by"
#define WORK_LABEL_VALUE "controller"
#define WORK_CONFIGMAP   "dynamic-scoring-config"
#define WORK_STATUS      "dynamic-scoring-status"
/* The webhook rejects manifests of more than 500 KiB in total. WORK_FRAME_BYTES: all but the summaries. */
enum { WORK_MAX_BYTES = 500 * 1024, WORK_FRAME_BYTES = 4096 };

/* How a merge patch begins that turns any ManifestWork of this name into ours, apart from fields of others;
 * and how a new one does, whose namespace is the request's. */
#define WORK_PATCH STR("{\"metadata\":{")
#define WORK_NEW                                                                            \
    STR("{\"apiVersion\":\"work.open-cluster-management.io/v1\",\"kind\":\"ManifestWork\"," \
        "\"metadata\":{\"name\":\"" WORK_NAME "\",")
/* The lists of the ConfigMap, JSON arrays; empty ones but the first get no key. */
struct work_lists {
    struct str summaries, suspended, adjustments;
};

/* Appends the rest of either. -EFBIG. */
MUST_USE int work_text(struct buf *into, const char *agent_namespace, const struct work_lists *lists);

struct work_found {
    bool exists, deleting;
    bool ours;     /* has the label */
    bool frame;    /* all but the summaries is as work_text() writes it, apart from additions of servers */
    uint64_t hash; /* plan_hash_lists(); 0 without summaries */
    bool applied;  /* by the work agent, for the newest generation */
};
enum { WORK_WHY_BYTES = 256 };
/* For reading ManifestWorks from the API server: replaces the summaries by their hash. */
extern struct kube_cut work_cut;
/* The text of the suspended scorers, or of the others; borrowed, cut or whole; p is NULL without it. */
struct str work_list(const json_t *object, bool suspended);
/* The report_score() of each scorer in such a text, which is whole: their number. *ret is on the heap, or
 * NULL. Stops at the first error. */
size_t work_scores(struct str list, uint64_t **ret);
/* Our ManifestWork without its data, to compare others with; a new reference, NULL if it is too long. */
json_t *work_frame(const char *agent_namespace);
/* object: from the API server, cut or whole. frame: of work_frame(); NULL: ret->frame is false. ret_why: the
 * work agent's error when it could not apply the ConfigMap; else empty. */
void work_look(struct work_found *ret, const json_t *object, const json_t *frame,
               char ret_why[WORK_WHY_BYTES]);
bool work_found_same(const struct work_found *a, const struct work_found *b);
/* The agent's report in the status feedback, borrowed from object; p is NULL when there is none. */
struct str work_feedback(const json_t *object);
