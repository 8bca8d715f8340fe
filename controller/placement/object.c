/* Slots as Kubernetes objects, and back. */
#include "controller/kube/json.h"
#include "controller/placement/items.h"
#include "controller/placement/slot.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include "controller/kube/condition.h"
#include "controller/kube/time.h"

WORD_TABLE(
    condition_word, enum condition_type, CONDITIONS,
    {[CONDITION_SCORED] = "Scored", [CONDITION_CLAMPED] = "Clamped", [CONDITION_TRUNCATED] = "Truncated"});

json_t *slot_create_body(const struct slot *s, const struct placement_options *o)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:{s:s, s:s}}}", "apiVersion",
                     "cluster.open-cluster-management.io/v1alpha1", "kind", "AddOnPlacementScore", "metadata",
                     "name", s->object, "namespace", o->cluster_name, "labels", PLACEMENT_LABEL,
                     PLACEMENT_LABEL_VALUE, "annotations", PLACEMENT_OWNER, o->owner, PLACEMENT_SCORE_NAME,
                     s->score_name);
}

json_t *slot_claim_body(const struct slot *s, const struct placement_options *o, const char *version)
{
    return json_pack("{s:{s:s*, s:{s:s}, s:{s:s, s:s}}}", "metadata", "resourceVersion", version, "labels",
                     PLACEMENT_LABEL, PLACEMENT_LABEL_VALUE, "annotations", PLACEMENT_OWNER, o->owner,
                     PLACEMENT_SCORE_NAME, s->score_name);
}

static json_t *object_conditions(const struct slot *s)
{
    json_auto_t *list = json_array();

    for (enum condition_type i = 0; list && i < CONDITIONS; i++) {
        const struct condition *c = &s->conditions[i];
        const struct kube_condition value = {.type = condition_word(i),
                                             .status = c->on ? "True" : "False",
                                             .reason = c->reason,
                                             .message = c->message};

        if (json_array_append_new(list, kube_condition_value(&value, NULL, (unix_ms){c->since_ms})) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static json_t *object_valid_until(const struct slot *s)
{
    char text[KUBE_TIME_BYTES];

    if (s->valid_until_ms % 1000)
        unix_ms_format((unix_ms){s->valid_until_ms}, text);
    else
        kube_time_format((unix_ms){s->valid_until_ms}, text);
    return s->valid_until_ms ? json_string(text) : json_null();
}

json_t *slot_status_body(const struct slot *s, const struct placement_options *o)
{
    struct items items = {0};
    json_t *scores = NULL;

    if (s->items == ITEMS_FOUND)
        return json_pack("{s:{s:o}}", "status", "conditions", object_conditions(s));
    if (slot_items(s, o->cluster_name, &items) < 0)
        return NULL;
    if (kube_json_parse(&scores, buf_str(&items.json), NULL) < 0)
        scores = NULL;
    items_done(&items);
    return json_pack("{s:{s:o, s:o, s:o}}", "status", "scores", scores, "validUntil", object_valid_until(s),
                     "conditions", object_conditions(s));
}

static void object_learn_condition(struct slot *s, enum condition_type type, const json_t *status)
{
    const json_t *value = kube_condition(status, condition_word(type));
    struct condition *c = &s->conditions[type];
    bool on = kube_condition_is(value, "True");

    if (!value || (c->known && c->on != on))
        return;
    c->known = true;
    c->on = on;
    c->since_ms = kube_time_parse(kube_str(value, "lastTransitionTime", NULL)).ms;
}

void slot_learn(struct slot *s, const json_t *object)
{
    const json_t *status = kube_get(object, "status", NULL), *scores = kube_list(status, "scores", NULL);

    for (enum condition_type i = 0; i < CONDITIONS; i++)
        object_learn_condition(s, i, status);
    if (!scores || s->last)
        return;
    s->found.n = 0;
    s->found_until_ms = kube_time_parse(kube_str(status, "validUntil", NULL)).ms;
    if (kube_json_print(scores, &s->found) < 0)
        s->found.n = 0; /* then a fallback has no names to use */
}

/* By the second: a program that writes an object back may drop the fraction. */
static bool object_valid_until_is(const json_t *status, int64_t ms)
{
    return kube_time_parse(kube_str(status, "validUntil", NULL)).ms / 1000 == ms / 1000;
}

bool slot_matches(const struct slot *s, const struct placement_options *o, const json_t *object)
{
    json_auto_t *body = s->hash == s->written_hash ? slot_status_body(s, o) : NULL;
    const json_t *wanted = kube_get(body, "status", NULL), *scores = kube_list(wanted, "scores", NULL),
                 *status = kube_get(object, "status", NULL);

    if (!wanted)
        return true;
    for (enum condition_type i = 0; i < CONDITIONS; i++)
        if (!json_equal(kube_condition(wanted, condition_word(i)), kube_condition(status, condition_word(i))))
            return false;
    return !scores || (json_equal(scores, kube_list(status, "scores", NULL)) &&
                       object_valid_until_is(status, s->written_until_ms));
}
