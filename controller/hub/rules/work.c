/* The text of a ManifestWork, and what is read back from one that others may have changed. Pure. */
#include "controller/hub/rules/work.h"

#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"

#include "controller/kube/condition.h"
#include "controller/kube/cut.h"
#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"

/* ---- Writing ---- */

/* Literal JSON, followed by a string to be quoted and escaped; p is NULL for none. */
struct work_part {
    const char *json;
    struct str string;
};

#define WORK_LABELS                                      \
    "\"labels\":{\"" WORK_LABEL "\":\"" WORK_LABEL_VALUE \
    "\",\"app.kubernetes.io/managed-by\":\"dynamic-scoring\"}"
/* How the work agent learns of new reports. API servers without it drop it, and work agents poll. */
#define SCRAPE "feedbackScrapeType"
#define CONFIGMAP(name) \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\",\"namespace\":"

/* A key of the ConfigMap behind the first, unless its list is empty. */
static struct work_part work_part_if(const char *json, struct str list)
{
    return list.n ? (struct work_part){json, list} : (struct work_part){"", {0}};
}

int work_text(struct buf *into, const char *agent_namespace, const struct work_lists *lists)
{
    const struct str namespace = str_of(agent_namespace);
    const struct work_part parts[] = {
        {WORK_LABELS "},\"spec\":{\"workload\":{\"manifests\":[" CONFIGMAP(WORK_CONFIGMAP), namespace},
        {",\"labels\":{\"app.kubernetes.io/managed-by\":\"dynamic-scoring\"}},\"data\":{\"summaries\":",
         {cstr(lists->summaries.p), lists->summaries.n}},
        work_part_if(",\"suspended\":", lists->suspended),
        work_part_if(",\"adjustments\":", lists->adjustments),
        {"}}," CONFIGMAP(WORK_STATUS), namespace},
        {"}}]},\"manifestConfigs\":[{\"resourceIdentifier\":{\"group\":\"\",\"resource\":\"configmaps\","
         "\"name\":\"" WORK_STATUS "\",\"namespace\":",
         namespace},
        {"},\"updateStrategy\":{\"type\":\"ReadOnly\"},\"" SCRAPE
         "\":\"Watch\",\"feedbackRules\":[{\"type\":\"JSONPaths\","
         "\"jsonPaths\":[{\"name\":\"status\",\"path\":\".data.status\"}]}]}]}}",
         {0}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        buf_puts(into, parts[i].json);
        if (parts[i].string.p)
            buf_put_json(into, parts[i].string);
    }
    return buf_failed(into);
}

/* ---- Reading ---- */

struct kube_cut work_cut = {.name = "summaries", .hash = plan_hash};

/* The manifest with the summaries. */
static json_t *work_configmap(const json_t *object)
{
    return json_array_get(kube_list(object, "spec", "workload", "manifests", NULL), 0);
}

/* What is to be done with the manifest of the agent's report. */
static json_t *work_report_config(const json_t *object)
{
    return json_array_get(kube_list(object, "spec", "manifestConfigs", NULL), 0);
}

/* Whether `have` contains all of `want`, and no more list items. Recurses no deeper than `want`. */
static bool json_covers(const json_t *have, const json_t *want)
{
    const char *name;
    json_t *value;
    size_t i;

    if (json_is_object(want)) {
        json_object_foreach((json_t *)(uintptr_t)want, name, value)
        {
            if (!json_covers(json_object_get(have, name), value))
                return false;
        }
        return json_is_object(have);
    }
    if (json_is_array(want)) {
        json_array_foreach(want, i, value)
        {
            if (!json_covers(json_array_get(have, i), value))
                return false;
        }
        return json_array_size(have) == json_array_size(want);
    }
    return json_equal(have, want);
}

json_t *work_frame(const char *agent_namespace)
{
    BUF_AUTO(text, WORK_FRAME_BYTES);
    json_t *frame = NULL;

    buf_put_str(&text, WORK_PATCH);
    if (work_text(&text, agent_namespace, &(struct work_lists){0}) == 0)
        frame = kube_json_load(buf_str(&text));
    (void)json_object_del(work_configmap(frame), "data");
    (void)json_object_del(work_report_config(frame), SCRAPE);
    return frame;
}

static bool has_frame(const json_t *object, const json_t *frame)
{
    const json_t *data = kube_map(work_configmap(object), "data", NULL);
    const json_t *scrape = json_object_get(work_report_config(object), SCRAPE);
    size_t keys = 1;

    keys += kube_text(data, "suspended", NULL).p != NULL;
    keys += kube_text(data, "adjustments", NULL).p != NULL;
    return json_object_size(data) == keys && kube_text(data, "summaries", NULL).p &&
           (!scrape || strcmp(cstr(json_string_value(scrape)), "Watch") == 0) && json_covers(object, frame);
}

/* Whether it has the status for this generation. No observedGeneration counts as `otherwise`. A later one is
 * of before a restore from a backup. */
static bool is_current(const json_t *c, const char *status, int64_t generation, int64_t otherwise)
{
    int64_t observed = otherwise;

    (void)kube_int(c, &observed, "observedGeneration", NULL);
    return kube_condition_is(c, status) && observed == generation;
}

/* The status of the ConfigMap of that name. */
static const json_t *work_manifest_status(const json_t *object, const char *name)
{
    const json_t *list = kube_list(object, "status", "resourceStatus", "manifests", NULL), *m;
    size_t i;

    json_array_foreach(list, i, m)
    {
        const json_t *meta = kube_map(m, "resourceMeta", NULL);

        if (strcmp(cstr(kube_str(meta, "name", NULL)), name) == 0 &&
            (strcmp(cstr(kube_str(meta, "kind", NULL)), "ConfigMap") == 0 ||
             strcmp(cstr(kube_str(meta, "resource", NULL)), "configmaps") == 0))
            return m;
    }
    return NULL;
}

struct str work_list(const json_t *object, bool suspended)
{
    return kube_text(work_configmap(object), "data", suspended ? "suspended" : "summaries", NULL);
}

static struct str work_adjustments(const json_t *object)
{
    return kube_text(work_configmap(object), "data", "adjustments", NULL);
}

/* The score name of the next summary; p is NULL without one. */
static struct str work_next_score(struct jr *j)
{
    struct str name = {0}, key;

    if (!jr_object(j))
        return name;
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "scoreName") && jr_peek(j) == JR_STRING)
            (void)jr_string(j, &name);
        else
            (void)jr_skip(j, NULL);
    }
    return name;
}

size_t work_scores(struct str list, uint64_t **ret)
{
    CLEANUP(cleanup_free) char *plain = xmalloc(list.n * 3 + 1);
    uint64_t *scores = NULL;
    struct jr j;
    size_t n = 0;

    jr_init(&j, list, JR_STRICT);
    if (!jr_array(&j))
        return 0;
    while (jr_item(&j)) {
        struct str name = work_next_score(&j);

        if (!name.p)
            continue;
        scores = xreallocarray(scores, n + 1, sizeof(*scores));
        scores[n++] = report_score((struct str){plain, jr_unescape(name, plain)});
    }
    *ret = scores;
    return n;
}

void work_look(struct work_found *ret, const json_t *object, const json_t *frame,
               char ret_why[WORK_WHY_BYTES])
{
    struct str summaries = work_list(object, false), suspended = work_list(object, true);
    const char *label = kube_label(object, WORK_LABEL);
    const json_t *applied = kube_condition(kube_get(object, "status", NULL), "Applied");
    const json_t *one = kube_condition(work_manifest_status(object, WORK_CONFIGMAP), "Applied");
    int64_t generation = 0;

    *ret = (struct work_found){0};
    *ret_why = '\0';
    if (!json_is_object(object))
        return;
    ret->exists = true;
    ret->deleting = kube_get(object, "metadata", "deletionTimestamp", NULL);
    ret->ours = label && strcmp(label, WORK_LABEL_VALUE) == 0;
    ret->frame = has_frame(object, frame);
    if (!kube_cut_read(summaries, &ret->hash))
        ret->hash = summaries.p ? plan_hash(summaries) : 0;
    if (ret->hash)
        ret->hash = plan_hash_lists(ret->hash, suspended, work_adjustments(object));
    (void)kube_int(object, &generation, "metadata", "generation", NULL);
    ret->applied = is_current(applied, "True", generation, 0);
    /* A manifest's condition may have no observedGeneration. */
    if (!ret->applied && is_current(one, "False", generation, generation))
        kube_condition_why(one, ret_why, WORK_WHY_BYTES);
    else if (!ret->applied && is_current(applied, "False", generation, 0))
        kube_condition_why(applied, ret_why, WORK_WHY_BYTES);
}

bool work_found_same(const struct work_found *a, const struct work_found *b)
{
    return a->exists == b->exists && a->deleting == b->deleting && a->ours == b->ours &&
           a->frame == b->frame && a->hash == b->hash && a->applied == b->applied;
}

struct str work_feedback(const json_t *object)
{
    const json_t *values =
        kube_list(work_manifest_status(object, WORK_STATUS), "statusFeedback", "values", NULL);
    const json_t *v;
    size_t i;

    json_array_foreach(values, i, v)
    {
        if (strcmp(cstr(kube_str(v, "name", NULL)), "status") == 0 &&
            strcmp(cstr(kube_str(v, "fieldValue", "type", NULL)), "String") == 0)
            return kube_text(v, "fieldValue", "string", NULL);
    }
    return (struct str){0};
}
