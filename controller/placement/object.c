/* Slots as Kubernetes objects, and back. */
#include "controller/placement/slot.h"

#include <time.h>

const char *condition_word(enum condition_type t)
{
    static const char *const words[] = {
        [CONDITION_SCORED] = "Scored", [CONDITION_CLAMPED] = "Clamped", [CONDITION_TRUNCATED] = "Truncated"};

    return words[t];
}

/* Whole seconds, as metav1.Time is written: "2026-11-21T06:23:01Z". */
static json_t *time_value(int64_t ms)
{
    char text[32];

    unix_ms_format((unix_ms){ms}, text);
    memcpy(text + 19, "Z", 2);
    return json_string(text);
}

static int64_t time_of(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    return end ? (int64_t)timegm(&tm) * 1000 : 0;
}

json_t *slot_create_body(const struct slot *s, const struct placement_options *o)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:{s:s, s:s}}}", "apiVersion",
                     "cluster.open-cluster-management.io/v1alpha1", "kind", "AddOnPlacementScore", "metadata",
                     "name", s->object, "namespace", o->cluster_name, "labels", PLACEMENT_LABEL,
                     PLACEMENT_LABEL_VALUE, "annotations", PLACEMENT_OWNER, o->owner, PLACEMENT_SCORE_NAME,
                     s->score_name);
}

static json_t *condition_value(enum condition_type type, const struct condition *c)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "type", condition_word(type), "status",
                     c->on ? "True" : "False", "reason", c->reason, "message", c->message,
                     "lastTransitionTime", time_value(c->since_ms));
}

static json_t *conditions_value(const struct slot *s)
{
    json_t *list = json_array();

    for (enum condition_type i = 0; list && i < CONDITIONS; i++)
        if (json_array_append_new(list, condition_value(i, &s->conditions[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *slot_status_body(const struct slot *s, const struct placement_options *o)
{
    struct items items = {0};
    json_t *scores = NULL;

    if (s->keeps_found)
        return json_pack("{s:{s:o}}", "status", "conditions", conditions_value(s));
    if (slot_items(s, o->cluster_name, &items) < 0)
        return NULL;
    if (kube_json_parse(&scores, buf_str(&items.json), NULL) < 0)
        scores = NULL;
    items_done(&items);
    return json_pack("{s:{s:o, s:o, s:o}}", "status", "scores", scores, "validUntil",
                     s->valid_until_ms ? time_value(s->valid_until_ms) : json_null(), "conditions",
                     conditions_value(s));
}

static void learn_condition(struct slot *s, const json_t *value)
{
    const char *type = kube_str(value, "type", NULL), *status = kube_str(value, "status", NULL);

    for (enum condition_type i = 0; type && status && i < CONDITIONS; i++) {
        struct condition *c = &s->conditions[i];

        bool on = strcmp(status, "True") == 0;
        if (strcmp(type, condition_word(i)) != 0 || (c->known && c->on != on))
            continue;
        c->known = true;
        c->on = on;
        c->since_ms = time_of(kube_str(value, "lastTransitionTime", NULL));
    }
}

void slot_learn(struct slot *s, const json_t *object)
{
    const json_t *scores = kube_list(object, "status", "scores", NULL), *value;
    size_t i;

    json_array_foreach(kube_list(object, "status", "conditions", NULL), i, value) learn_condition(s, value);
    if (!scores || s->batch)
        return;
    s->found.n = 0;
    s->found_until_ms = time_of(kube_str(object, "status", "validUntil", NULL));
    if (kube_json_print(scores, &s->found) < 0)
        s->found.n = 0; /* then the fallback begins without them */
}
