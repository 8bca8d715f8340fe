#include "controller/assist/rules/snapshot.h"

#include "controller/assist/api/operation.h"
#include "controller/kube/json.h"

const struct kind_info kind_info[KINDS] = {
    [KIND_CLUSTERS] = {&kube_managedclusters, "ManagedClusters"},
    [KIND_POLICIES] = {&kube_policies, "Policies",
                       .label_selector = "!policy.open-cluster-management.io/root-policy",
                       .is_optional = true},
    [KIND_WORKLOADS] = {&kube_manifestworkreplicasets, "ManifestWorkReplicaSets", .is_optional = true},
    [KIND_SCORERS] = {&kube_dynamicscorers, "DynamicScorers"},
    [KIND_PLACEMENTS] = {&kube_placements, "Placements"},
    [KIND_DECISIONS] = {&kube_placementdecisions, "PlacementDecisions"},
    [KIND_BINDINGS] = {&kube_placementbindings, "PlacementBindings", .is_optional = true},
    [KIND_SET_BINDINGS] = {&kube_managedclustersetbindings, "ManagedClusterSetBindings"},
    [KIND_SCORES] = {&kube_addonplacementscores, "AddOnPlacementScores"},
};

/* A ManifestWorkReplicaSet may have half a megabyte of manifests. */
static void snapshot_cut(json_t *object)
{
    static const char *const members[][2] = {
        {"metadata", "managedFields"},
        {"metadata", "resourceVersion"},
        {"metadata", "generation"},
        {"metadata", "creationTimestamp"},
        {"spec", "manifestWorkTemplate"},
        {"spec", "policy-templates"},
        {"status", "scores"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        (void)json_object_del(json_object_get(object, members[i][0]), members[i][1]);
    (void)json_object_del(kube_map(object, "metadata", "annotations", NULL),
                          "kubectl.kubernetes.io/last-applied-configuration");
}

/* ---- Scores ---- */

static int score_compare_items(const void *a, const void *b)
{
    const struct score_item *x = a, *y = b;

    return str_cmp(x->name, y->name);
}

/* Items with a name and an integer, their names copied to `text`; returns their number. */
static size_t score_read_items(const json_t *list, struct score_item *items, char *text)
{
    const json_t *one;
    size_t i, n = 0;

    json_array_foreach(list, i, one)
    {
        struct str name = kube_text(one, "name", NULL);
        int64_t value;

        if (!name.p || !kube_int(one, &value, "value", NULL) || value < INT32_MIN || value > INT32_MAX)
            continue;
        memcpy(text, name.p, name.n);
        items[n++] = (struct score_item){{text, name.n}, (int32_t)value};
        text += name.n;
    }
    qsort(items, n, sizeof(*items), score_compare_items);
    return n;
}

/* Items and their names are one piece of memory with it. */
static struct score *score_new(json_t *object, unix_ms now)
{
    const json_t *list = kube_list(object, "status", "scores", NULL), *one;
    size_t bytes = sizeof(struct score_item) * json_array_size(list), text = 0, i;
    struct score_item *items;
    struct score *s;

    json_array_foreach(list, i, one) text += kube_text(one, "name", NULL).n;
    s = xmalloc(sizeof(*s) + bytes + text);
    items = (void *)(s + 1);
    *s = (struct score){.cluster = kube_namespace(object),
                        .name = kube_name(object),
                        .valid_until = kube_time_parse(kube_str(object, "status", "validUntil", NULL)),
                        .object = json_incref(object),
                        .items = items};
    s->n_items = score_read_items(list, items, (char *)items + bytes);
    /* As Placement judges it: at the very second it still counts. */
    s->is_expired = s->valid_until.ms && now.ms > s->valid_until.ms;
    return s;
}

/* ---- The lists ---- */

struct snapshot *snapshot_new(unix_ms now)
{
    struct snapshot *s = xcalloc(1, sizeof(*s));

    s->now = now;
    return s;
}

struct snapshot *snapshot_free(struct snapshot *s)
{
    if (!s)
        return NULL;
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < s->lists[kind].n; i++) {
            struct score *score = kind == KIND_SCORES ? s->lists[kind].slots[i].value : NULL;

            json_decref(score ? score->object : s->lists[kind].slots[i].value);
            free(score);
        }
        free(s->lists[kind].slots);
    }
    json_decref(s->work);
    free(s->work_trouble);
    free(s);
    return NULL;
}

void snapshot_add(struct snapshot *s, enum kind kind, json_t *object)
{
    struct snapshot_list *list = &s->lists[kind];
    void *value;

    if (list->n == list->cap) {
        list->cap = size_max(16, list->cap * 2);
        list->slots = xrealloc(list->slots, list->cap * sizeof(*list->slots));
    }
    value = kind == KIND_SCORES ? (void *)score_new(object, s->now) : json_incref(object);
    snapshot_cut(object);
    list->slots[list->n++] = (struct snapshot_slot){kube_namespace(object), kube_name(object), value};
}

static int slot_compare(const void *a, const void *b)
{
    const struct snapshot_slot *x = a, *y = b;
    int r = strcmp(x->namespace, y->namespace);

    return r ?: strcmp(x->name, y->name);
}

void snapshot_sort(struct snapshot *s, enum kind kind)
{
    if (s->lists[kind].n)
        qsort(s->lists[kind].slots, s->lists[kind].n, sizeof(struct snapshot_slot), slot_compare);
}

void *snapshot_get(const struct snapshot *s, enum kind kind, const char *namespace, const char *name)
{
    const struct snapshot_slot wanted = {.namespace = namespace, .name = name}, *found = NULL;
    const struct snapshot_list *list = &s->lists[kind];

    if (list->n)
        found = bsearch(&wanted, list->slots, list->n, sizeof(wanted), slot_compare);
    return found ? found->value : NULL;
}

void *snapshot_next(const struct snapshot *s, enum kind kind, size_t *at)
{
    return *at < s->lists[kind].n ? s->lists[kind].slots[(*at)++].value : NULL;
}

void snapshot_note_missing_kinds(const struct snapshot *s, json_t *notes)
{
    for (size_t i = 0; i < KINDS; i++)
        if (s->lists[i].lacks_kind)
            list_note(notes, "%s are not installed on the hub.", kind_info[i].plural);
}
