#include "controller/assist/operations/placement_match.h"

#include "controller/assist/state/world.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/str.h"

#include <stdio.h>

#define SET_LABEL "cluster.open-cluster-management.io/clusterset"

/* One of matchExpressions. */
static bool match_expression(const json_t *e, const json_t *labels, const char *what,
                             char why[PLACEMENT_WHY_BYTES])
{
    const char *key = cstr(kube_str(e, "key", NULL)), *op = cstr(kube_str(e, "operator", NULL));
    const char *value = kube_str(labels, key, NULL);
    const json_t *values = kube_list(e, "values", NULL);
    bool has = value && kube_list_has(values, value), ok = false;

    if (strcmp(op, "In") == 0)
        ok = has;
    else if (strcmp(op, "NotIn") == 0)
        ok = !has;
    else if (strcmp(op, "Exists") == 0)
        ok = value != NULL;
    else if (strcmp(op, "DoesNotExist") == 0)
        ok = !value;
    if (ok)
        return true;
    (void)snprintf(why, PLACEMENT_WHY_BYTES, "%s %.80s is %s%.60s%s, which fails %.20s %.60s%s", what, key,
                   value ? "\"" : "absent", cstr(value), value ? "\"" : "", op,
                   cstr(json_string_value(json_array_get(values, 0))),
                   json_array_size(values) > 1 ? ", ..." : "");
    return false;
}

bool placement_selects(const json_t *selector, const json_t *labels, const char *what,
                       char ret_why[PLACEMENT_WHY_BYTES])
{
    const char *key;
    json_t *want;
    size_t i;

    json_object_foreach(kube_map(selector, "matchLabels", NULL), key, want)
    {
        const char *value = kube_str(labels, key, NULL), *wanted = cstr(json_string_value(want));

        if (value && strcmp(value, wanted) == 0)
            continue;
        (void)snprintf(ret_why, PLACEMENT_WHY_BYTES, "%s %.80s is %s%.60s%s, not \"%.60s\"", what, key,
                       value ? "\"" : "absent", cstr(value), value ? "\"" : "", wanted);
        return false;
    }
    json_array_foreach(kube_list(selector, "matchExpressions", NULL), i, want)
    {
        if (!match_expression(want, labels, what, ret_why))
            return false;
    }
    return true;
}

static bool match_is_in_set(const json_t *set, const json_t *cluster)
{
    const char *type = kube_str(set, "spec", "clusterSelector", "selectorType", NULL);
    char why[PLACEMENT_WHY_BYTES];

    if (type && strcmp(type, "LabelSelector") == 0)
        return placement_selects(kube_map(set, "spec", "clusterSelector", "labelSelector", NULL),
                                 kube_map(cluster, "metadata", "labels", NULL), "label", why);
    return strcmp(cstr(kube_label(cluster, SET_LABEL)), kube_name(set)) == 0;
}

bool placement_reaches(const struct world *w, const json_t *placement, const json_t *cluster,
                       char ret_why[PLACEMENT_WHY_BYTES])
{
    const char *namespace = kube_namespace(placement);
    const json_t *wanted = kube_list(placement, "spec", "clusterSets", NULL), *binding;
    size_t at = 0, eligible = 0;

    while ((binding = world_next(w, WORLD_SET_BINDINGS, namespace, &at))) {
        const json_t *set = world_get(w, WORLD_SETS, "", kube_name(binding));

        if (!set || (json_array_size(wanted) && !kube_list_has(wanted, kube_name(set))))
            continue;
        eligible++;
        if (match_is_in_set(set, cluster))
            return kube_get(cluster, "metadata", "deletionTimestamp", NULL) == NULL;
    }
    if (eligible)
        (void)snprintf(ret_why, PLACEMENT_WHY_BYTES,
                       "it is in none of the cluster sets bound to namespace %.64s", namespace);
    else
        (void)snprintf(ret_why, PLACEMENT_WHY_BYTES,
                       "no cluster set is bound to namespace %.64s: a ManagedClusterSetBinding is missing",
                       namespace);
    return false;
}

/* The claims as a map, like labels. NULL when out of memory. */
static json_t *match_claims(const json_t *cluster)
{
    json_auto_t *claims = json_object();
    const json_t *one;
    size_t i;

    json_array_foreach(kube_list(cluster, "status", "clusterClaims", NULL), i, one)
    {
        json_t *value = json_object_get(one, "value");

        if (value && json_object_set(claims, cstr(kube_str(one, "name", NULL)), value) < 0)
            return NULL;
    }
    return TAKE_PTR(claims);
}

/* True if the expression is the comparison with a name that plans write; sets whether it holds. */
static bool match_cel_name(const char *expression, const char *name, bool *ret)
{
    struct str rest = str_trim(str_of(expression));
    static const struct str prefix = {"managedCluster.metadata.name", 28};

    if (!str_starts(rest, prefix))
        return false;
    rest = str_trim((struct str){rest.p + prefix.n, rest.n - prefix.n});
    if (!str_starts(rest, STR("==")))
        return false;
    rest = str_trim((struct str){rest.p + 2, rest.n - 2});
    if (rest.n < 2 || (rest.p[0] != '"' && rest.p[0] != '\'') || rest.p[rest.n - 1] != rest.p[0] ||
        memchr(rest.p + 1, '\\', rest.n - 2) || memchr(rest.p + 1, rest.p[0], rest.n - 2))
        return false;
    *ret = str_eq((struct str){rest.p + 1, rest.n - 2}, str_of(name));
    return true;
}

static bool match_cel(const json_t *selector, const json_t *cluster, bool *ret_unknown,
                      char why[PLACEMENT_WHY_BYTES])
{
    const json_t *one;
    size_t i;
    bool ok;

    json_array_foreach(kube_list(selector, "celSelector", "celExpressions", NULL), i, one)
    {
        if (!match_cel_name(cstr(json_string_value(one)), kube_name(cluster), &ok))
            *ret_unknown = true;
        else if (!ok) {
            (void)snprintf(why, PLACEMENT_WHY_BYTES, "it fails the CEL expression %.150s",
                           json_string_value(one));
            return false;
        }
    }
    return true;
}

bool placement_requires(const json_t *placement, const json_t *cluster, bool *ret_unknown,
                        char ret_why[PLACEMENT_WHY_BYTES])
{
    const json_t *predicates = kube_list(placement, "spec", "predicates", NULL), *one;
    json_auto_t *claims = match_claims(cluster);
    size_t i;

    json_array_foreach(predicates, i, one)
    {
        const json_t *selector = kube_map(one, "requiredClusterSelector", NULL);
        bool unknown = false;

        if (placement_selects(kube_map(selector, "labelSelector", NULL),
                              kube_map(cluster, "metadata", "labels", NULL), "label", ret_why) &&
            placement_selects(kube_map(selector, "claimSelector", NULL), claims, "claim", ret_why) &&
            match_cel(selector, cluster, &unknown, ret_why)) {
            *ret_unknown |= unknown;
            return true;
        }
    }
    return json_array_size(predicates) == 0;
}

static bool match_toleration(const json_t *taint, const json_t *toleration, unix_ms now)
{
    const char *effect = kube_str(toleration, "effect", NULL), *key = kube_str(toleration, "key", NULL);
    const char *op = kube_str(toleration, "operator", NULL);
    bool exists = op && strcmp(op, "Exists") == 0;
    int64_t seconds;

    if (effect && *effect && strcmp(effect, cstr(kube_str(taint, "effect", NULL))) != 0)
        return false;
    if (key && *key && strcmp(key, cstr(kube_str(taint, "key", NULL))) != 0)
        return false;
    if (!exists &&
        strcmp(cstr(kube_str(toleration, "value", NULL)), cstr(kube_str(taint, "value", NULL))) != 0)
        return false;
    if (!kube_int(toleration, &seconds, "tolerationSeconds", NULL))
        return true;
    return now.ms < kube_time_parse(kube_str(taint, "timeAdded", NULL)).ms + seconds * 1000;
}

bool placement_tolerates(const json_t *placement, const json_t *cluster, bool is_selected, unix_ms now,
                         char ret_why[PLACEMENT_WHY_BYTES])
{
    const json_t *tolerations = kube_list(placement, "spec", "tolerations", NULL), *taint, *one;
    size_t i, k;

    json_array_foreach(kube_list(cluster, "spec", "taints", NULL), i, taint)
    {
        const char *effect = cstr(kube_str(taint, "effect", NULL));
        bool ok =
            strcmp(effect, "PreferNoSelect") == 0 || (strcmp(effect, "NoSelectIfNew") == 0 && is_selected);

        json_array_foreach(tolerations, k, one)
        {
            ok |= match_toleration(taint, one, now);
        }
        if (ok)
            continue;
        (void)snprintf(ret_why, PLACEMENT_WHY_BYTES, "its taint %.80s (%.20s) is not tolerated",
                       cstr(kube_str(taint, "key", NULL)), effect);
        return false;
    }
    return true;
}
