#include "controller/hub/rules/work.h"

#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work_text.h"
#include "controller/kube/condition.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"

#include <errno.h>

const struct kube_cut work_cut = {.name = "summaries", .hash = plan_hash};

/* The ManifestWork's manifest of the summaries. */
static json_t *configmap_of(const json_t *object)
{
    return json_array_get(kube_list(object, "spec", "workload", "manifests", NULL), 0);
}

/* Whether all that `want` says is so in `have`, which may say more, though not in lists. No deeper than `want` is. */
static bool covers(const json_t *have, const json_t *want)
{
    const char *name;
    json_t *value;
    size_t i;

    if (json_is_object(want)) {
        json_object_foreach((json_t *)(uintptr_t)want, name, value)
        {
            if (!covers(json_object_get(have, name), value))
                return false;
        }
        return json_is_object(have);
    }
    if (json_is_array(want)) {
        json_array_foreach(want, i, value)
        {
            if (!covers(json_array_get(have, i), value))
                return false;
        }
        return json_array_size(have) == json_array_size(want);
    }
    return json_equal(have, want);
}

/* What a patch would write, without the summaries; NULL when memory is out. */
static json_t *frame_wanted(const char *agent_namespace)
{
    BUF_AUTO(text, WORK_FRAME_BYTES);
    json_t *want = NULL;

    if (work_patch(&text, agent_namespace, STR("")) < 0 || kube_json_parse(&want, buf_str(&text), NULL) < 0)
        return NULL;
    if (json_object_del(configmap_of(want), "data") == 0)
        return want;
    json_decref(want);
    return NULL;
}

static bool frame_is(const json_t *object, const char *agent_namespace)
{
    json_auto_t *want = frame_wanted(agent_namespace);
    const json_t *data = kube_map(configmap_of(object), "data", NULL);

    return want && covers(object, want) && json_object_size(data) == 1 &&
           kube_text(data, "summaries", NULL).p;
}

/* Whether the condition has the status, and that of this generation; `unsaid`: when it names none. */
static bool condition_is(const json_t *c, const char *status, int64_t generation, int64_t unsaid)
{
    int64_t observed = unsaid;

    (void)kube_int(c, &observed, "observedGeneration", NULL);
    return kube_condition_is(c, status) && observed >= generation;
}

/* What the work agent says of the ConfigMap of that name. */
static const json_t *manifest_status(const json_t *object, const char *name)
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

static void say_why(struct work_found *f, const json_t *c)
{
    text_line(f->why, sizeof(f->why), kube_text(c, "message", NULL));
    if (!f->why[0])
        text_line(f->why, sizeof(f->why), kube_text(c, "reason", NULL));
}

static void look_at_status(struct work_found *f, const json_t *object)
{
    const json_t *status = kube_get(object, "status", NULL);
    const json_t *applied = kube_condition(status, "Applied");
    const json_t *one = kube_condition(manifest_status(object, WORK_CONFIGMAP), "Applied");
    int64_t generation = 0;

    (void)kube_int(object, &generation, "metadata", "generation", NULL);
    f->applied = condition_is(applied, "True", generation, 0);
    f->available = condition_is(kube_condition(status, "Available"), "True", generation, 0);
    if (f->applied)
        return;
    /* A manifest's condition need not name a generation. */
    if (condition_is(one, "False", generation, generation))
        say_why(f, one);
    else if (condition_is(applied, "False", generation, 0))
        say_why(f, applied);
}

void work_look(struct work_found *ret, const json_t *object, const char *agent_namespace)
{
    struct str summaries = kube_text(configmap_of(object), "data", "summaries", NULL);
    const char *label = kube_label(object, WORK_LABEL);

    *ret = (struct work_found){0};
    if (!json_is_object(object))
        return;
    ret->exists = true;
    ret->deleting = kube_get(object, "metadata", "deletionTimestamp", NULL);
    ret->ours = label && strcmp(label, WORK_LABEL_VALUE) == 0;
    ret->frame = frame_is(object, agent_namespace);
    if (!kube_cut_read(summaries, &ret->hash))
        ret->hash = summaries.p ? plan_hash(summaries) : 0;
    look_at_status(ret, object);
}

struct str work_feedback(const json_t *object)
{
    const json_t *values = kube_list(manifest_status(object, WORK_STATUS), "statusFeedback", "values", NULL);
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
