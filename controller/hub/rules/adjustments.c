/* Reads spec.adjustments, and tells which clusters an entry is for. Owns nothing. Called by the hub's loop
 * as it observes a DynamicScoringConfig and makes its plan. An entry whose time has passed is sent like
 * any other: agents judge it, so that no ManifestWork is written because time passes. */
#include "controller/hub/rules/adjustments.h"

#include "controller/kube/json.h"
#include "controller/kube/list_error.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/glob.h"
#include "exporter/base/map.h"
#include "exporter/base/str.h"
#include "exporter/base/text.h"

#include <errno.h>

/* ---- Selectors ---- */

enum selector_operator { OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS, OPERATOR_DOES_NOT_EXIST, OPERATORS };

/* OPERATORS for a word that is none. */
static enum selector_operator operator_of(const json_t *expression)
{
    static const char *const words[OPERATORS] = {[OPERATOR_IN] = "In",
                                                 [OPERATOR_NOT_IN] = "NotIn",
                                                 [OPERATOR_EXISTS] = "Exists",
                                                 [OPERATOR_DOES_NOT_EXIST] = "DoesNotExist"};
    const char *word = cstr(kube_str(expression, "operator", NULL));

    for (enum selector_operator o = 0; o < OPERATORS; o++)
        if (strcmp(word, words[o]) == 0)
            return o;
    return OPERATORS;
}

/* As API servers judge label selectors: In and NotIn need values, the others have none. */
static bool expression_is_valid(const json_t *expression)
{
    const json_t *values = json_object_get(expression, "values"), *value;
    enum selector_operator o = operator_of(expression);
    bool takes_values = o == OPERATOR_IN || o == OPERATOR_NOT_IN;
    size_t i;

    if (o == OPERATORS || !*cstr(kube_str(expression, "key", NULL)) ||
        (json_array_size(values) > 0) != takes_values)
        return false;
    json_array_foreach(values, i, value)
    {
        if (!json_is_string(value))
            return false;
    }
    return true;
}

static bool expression_matches(const json_t *expression, const json_t *have)
{
    const json_t *is = json_object_get(have, kube_str(expression, "key", NULL)), *value;
    const json_t *values = json_object_get(expression, "values");
    bool is_listed = false;
    size_t i;

    json_array_foreach(values, i, value)
    {
        is_listed |= is && json_equal(is, value);
    }
    switch (operator_of(expression)) {
    case OPERATOR_IN:
        return is_listed;
    case OPERATOR_NOT_IN:
        return !is_listed; /* also without the key */
    case OPERATOR_EXISTS:
        return is != NULL;
    case OPERATOR_DOES_NOT_EXIST:
        return is == NULL;
    case OPERATORS:
        break;
    }
    return false;
}

/* selector: labelSelector or claimSelector; NULL matches all. */
static bool selector_matches(const json_t *selector, const json_t *have)
{
    json_t *labels = kube_map(selector, "matchLabels", NULL), *wanted;
    const json_t *expression;
    const char *key;
    size_t i;

    json_object_foreach(labels, key, wanted)
    {
        if (!json_equal(json_object_get(have, key), wanted))
            return false;
    }
    json_array_foreach(kube_list(selector, "matchExpressions", NULL), i, expression)
    {
        if (!expression_matches(expression, have))
            return false;
    }
    return true;
}

static bool selector_is_valid(const json_t *selector)
{
    const json_t *expressions = kube_get(selector, "matchExpressions", NULL), *expression;
    json_t *labels = kube_get(selector, "matchLabels", NULL), *value;
    const char *key;
    size_t i;

    if (selector && !json_object_size(labels) && !json_array_size(expressions)) /* would match all */
        return false;
    if ((selector && !json_is_object(selector)) || (expressions && !json_is_array(expressions)) ||
        (labels && !json_is_object(labels)))
        return false;
    json_object_foreach(labels, key, value)
    {
        if (!json_is_string(value))
            return false;
    }
    json_array_foreach(expressions, i, expression)
    {
        if (!expression_is_valid(expression))
            return false;
    }
    return true;
}

char *cluster_attributes(const json_t *managed_cluster)
{
    const json_t *list = kube_list(managed_cluster, "status", "clusterClaims", NULL), *claim;
    json_auto_t *all = json_object();
    json_t *claims = json_object();
    size_t i;

    json_array_foreach(list, i, claim)
    {
        json_t *value = json_object_get(claim, "value");
        const char *name = kube_str(claim, "name", NULL);

        if (name && json_is_string(value))
            json_object_set(claims, name, value);
    }
    json_object_set_new(all, "claims", claims);
    json_object_set(all, "labels", kube_map(managed_cluster, "metadata", "labels", NULL));
    return json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
}

bool fleet_adjustment_selects(const struct fleet_adjustment *a, const char *cluster, const json_t *attributes)
{
    if (a->cluster)
        return glob_match(a->cluster, cluster);
    return selector_matches(json_object_get(a->selector, "labelSelector"),
                            json_object_get(attributes, "labels")) &&
           selector_matches(json_object_get(a->selector, "claimSelector"),
                            json_object_get(attributes, "claims"));
}

/* ---- Entries ---- */

/* Exactly one of clusterName and clusterSelector. An empty selector would be for all clusters by mistake. */
static int entry_read_clusters(struct fleet_adjustment *a, const struct list_place *at, const json_t *entry,
                               struct buf *why)
{
    const json_t *name = kube_get(entry, "clusterName", NULL);
    const json_t *labels, *claims;

    a->selector = kube_get(entry, "clusterSelector", NULL);
    if (!name == !a->selector)
        return list_entry_error(why, at, "expected exactly one of clusterName and clusterSelector");
    a->cluster = json_string_value(name);
    if (name && !*cstr(a->cluster))
        return list_member_error(why, at, "clusterName", "expected a name or a pattern with * and ?");
    if (name)
        return 0;
    labels = kube_get(a->selector, "labelSelector", NULL);
    claims = kube_get(a->selector, "claimSelector", NULL);
    if (!labels && !claims)
        return list_member_error(why, at, "clusterSelector", "expected labelSelector, claimSelector or both");
    if (!selector_is_valid(labels))
        return list_member_error(why, at, "clusterSelector.labelSelector", "expected a selector of labels");
    if (!selector_is_valid(claims) || kube_get(claims, "matchLabels", NULL))
        return list_member_error(why, at, "clusterSelector.claimSelector",
                                 "expected matchExpressions over claims");
    return 0;
}

int fleet_adjustments_read(struct fleet_adjustments *ret, json_t *object, struct buf *why)
{
    const json_t *list = kube_get(object, "spec", "adjustments", NULL), *entry;
    CLEANUP(fleet_adjustments_done) struct fleet_adjustments a = {.owner = json_incref(object)};
    CLEANUP(map_done) struct map names = {0};
    struct list_place at = {.list = "spec.adjustments"};

    if (list && (!json_is_array(list) || json_array_size(list) > ADJUST_MAX))
        return list_error(why, at.list, "expected a list of at most 100 entries");
    a.list = xcalloc(json_array_size(list) + 1, sizeof(*a.list));
    json_array_foreach(list, at.i, entry)
    {
        struct fleet_adjustment *one = &a.list[a.n++];

        if (adjustment_read(&one->what, &at, entry, why) < 0 || entry_read_clusters(one, &at, entry, why) < 0)
            return -EINVAL;
        if (map_get(&names, one->what.name))
            return list_member_error(why, &at, "name", "already the name of an earlier entry");
        map_set(&names, one->what.name, one);
        a.has_selectors |= one->selector != NULL;
    }
    *ret = a;
    a = (struct fleet_adjustments){0};
    return 0;
}

struct fleet_adjustments fleet_adjustments_copy(const struct fleet_adjustments *a)
{
    struct fleet_adjustments copy = *a;

    json_incref(copy.owner);
    copy.list = xcalloc(a->n + 1, sizeof(*copy.list));
    for (size_t i = 0; i < a->n; i++)
        copy.list[i] = a->list[i];
    return copy;
}

void fleet_adjustments_done(struct fleet_adjustments *a)
{
    json_decref(a->owner);
    free(a->list);
    *a = (struct fleet_adjustments){0};
}

/* As an agent reads it: without the clusters. */
static json_t *entry_value(const struct adjustment *a)
{
    json_t *entry = json_object();
    char until[KUBE_TIME_BYTES];

    json_object_set_new(entry, "name", json_string(a->name));
    json_object_set_new(entry, "scoreName", json_string(a->score));
    json_object_set_new(entry, a->how == ADJUST_SET ? "set" : "add", json_integer(a->value));
    if (a->until.ms) {
        kube_time_format(a->until, until);
        json_object_set_new(entry, "until", json_string(until));
    }
    if (*a->reason)
        json_object_set_new(entry, "reason", json_string(a->reason));
    return entry;
}

void fleet_adjustments_text(const struct fleet_adjustments *a, const uint64_t *set, struct buf *into)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < a->n; i++)
        if (set[i / 64] >> (i % 64) & 1)
            json_array_append_new(list, entry_value(&a->list[i].what));
    if (json_array_size(list))
        kube_json_print(list, into);
}
