#include "controller/hub/rules/work_text.h"

#include "exporter/base/json.h"

/* Literal JSON, followed by a string to be quoted and escaped; p is NULL for none. */
struct work_part {
    const char *json;
    struct str string;
};

#define WORK_LABELS                                      \
    "\"labels\":{\"" WORK_LABEL "\":\"" WORK_LABEL_VALUE \
    "\",\"app.kubernetes.io/managed-by\":\"dynamic-scoring\"}"
#define CONFIGMAP(name) \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\",\"namespace\":"

static int work_put_parts(struct buf *into, const struct work_part *parts, size_t n)
{
    size_t mark = into->n;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        r = buf_puts(into, parts[i].json);
        if (r == 0 && parts[i].string.p)
            r = buf_put_json(into, parts[i].string);
    }
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

/* From "spec" to the end of the object. */
static int work_put_spec(struct buf *into, const char *agent_namespace, struct str summaries)
{
    const struct str namespace = str_of(agent_namespace);
    const struct work_part parts[] = {
        {"\"spec\":{\"workload\":{\"manifests\":[" CONFIGMAP(WORK_CONFIGMAP), namespace},
        {",\"labels\":{\"app.kubernetes.io/managed-by\":\"dynamic-scoring\"}},\"data\":{\"summaries\":",
         {cstr(summaries.p), summaries.n}},
        {"}}," CONFIGMAP(WORK_STATUS), namespace},
        {"}}]},\"manifestConfigs\":[{\"resourceIdentifier\":{\"group\":\"\",\"resource\":\"configmaps\","
         "\"name\":"
         "\"" WORK_STATUS "\",\"namespace\":",
         namespace},
        {"},\"updateStrategy\":{\"type\":\"ReadOnly\"},\"feedbackRules\":[{\"type\":\"JSONPaths\","
         "\"jsonPaths\":"
         "[{\"name\":\"status\",\"path\":\".data.status\"}]}]}]}}",
         {0}},
    };

    return work_put_parts(into, parts, ARRAY_SIZE(parts));
}

static int work_put(struct buf *into, const struct work_part *head, size_t n, const char *agent_namespace,
                    struct str summaries)
{
    size_t mark = into->n;
    int r = work_put_parts(into, head, n);

    if (r == 0)
        r = work_put_spec(into, agent_namespace, summaries);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

int work_object(struct buf *into, const char *cluster, const char *agent_namespace, struct str summaries)
{
    const struct work_part head[] = {
        {"{\"apiVersion\":\"work.open-cluster-management.io/v1\",\"kind\":\"ManifestWork\",\"metadata\":{"
         "\"name\":\"" WORK_NAME "\",\"namespace\":",
         str_of(cluster)},
        {"," WORK_LABELS "},", {0}},
    };

    return work_put(into, head, ARRAY_SIZE(head), agent_namespace, summaries);
}

int work_patch(struct buf *into, const char *agent_namespace, struct str summaries)
{
    const struct work_part head[] = {{"{\"metadata\":{" WORK_LABELS "},", {0}}};

    return work_put(into, head, ARRAY_SIZE(head), agent_namespace, summaries);
}
