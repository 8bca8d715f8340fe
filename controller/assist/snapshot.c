/* Owns the objects that it lists. Filled on the loop while a request reads the hub, then handed to the
 * worker with the job that it is for, which frees it. A list is sorted before anybody looks something up. */
#include "controller/assist/snapshot.h"

#include "controller/assist/list.h"
#include "controller/assist/score.h"
#include "controller/kube/json.h"
#include "exporter/base/alloc.h"

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
            void *value = s->lists[kind].slots[i].value;

            if (kind == KIND_SCORES)
                (void)score_free(value);
            else
                json_decref(value);
        }
        free(s->lists[kind].slots);
    }
    json_decref(s->work);
    free(s->work_error);
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

DEFINE_ORDER(slot_compare, struct snapshot_slot,
             strcmp(a->namespace, b->namespace) ?: strcmp(a->name, b->name))

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
