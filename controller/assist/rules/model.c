#include "controller/assist/rules/model.h"

#include "controller/assist/rules/model_internal.h"
#include "controller/assist/rules/quantity.h"
#include "controller/kube/json.h"
#include "exporter/base/arena.h"

#include <errno.h>
#include <stdio.h>

enum { ARENA_BYTES = 64 << 10 };

#define REQUEST_AMOUNT "resource-request-amount"

const char *input_placement_name(const json_t *workload)
{
    return kube_str(json_array_get(kube_list(workload, "spec", "placementRefs", NULL), 0), "name", NULL);
}

void *model_alloc(struct model *m, size_t n, size_t size)
{
    void *p = arena_alloc(&m->arena, n * size);

    if (p)
        memset(p, 0, n * size);
    return p;
}

int model_id(struct map *ids, const char ***names, size_t *n, struct model *m, const char *name,
             uint32_t *ret)
{
    uintptr_t known = (uintptr_t)map_get(ids, name);
    const char **all;

    if (known) {
        *ret = (uint32_t)(known - 1);
        return 0;
    }
    if ((*n & (*n - 1)) == 0) { /* a power of two: full */
        all = model_alloc(m, *n ? *n * 2 : 1, sizeof(char *));
        if (!all)
            return -ENOMEM;
        if (*n)
            memcpy(all, *names, *n * sizeof(char *));
        *names = all;
    }
    if (map_set(ids, name, (void *)(uintptr_t)(*n + 1)) < 0)
        return -ENOMEM;
    (*names)[*n] = name;
    *ret = (uint32_t)(*n)++;
    return 0;
}

int model_label(const json_t *object, const char *kind, const char *label, const char *field,
                const char **ret, struct objection *ob)
{
    const char *s = kube_label(object, label);

    if (!s || !*s)
        return objection_set(ob, 422, field, "%s %s has no label %s", kind, kube_name(object), label);
    *ret = s;
    return 0;
}

int model_amount(const json_t *object, const char *kind, const char *label, const char *field, int64_t *ret,
                 struct objection *ob)
{
    const char *s;
    int r = model_label(object, kind, label, field, &s, ob);

    if (r < 0)
        return r;
    if (!quantity_parse(str_of(s), ret))
        return objection_set(ob, 422, field,
                             "%s %s: label %s is \"%s\", expected an amount such as 2, 500m or 2Gi", kind,
                             kube_name(object), label, s);
    return 0;
}

/* The resources that its labels name beside the main one. */
static int model_note_extras(struct model *m, json_t *labels, const char *field, struct objection *ob)
{
    static const struct str prefix = {REQUEST_AMOUNT ".", sizeof(REQUEST_AMOUNT ".") - 1};
    const char *key;
    json_t *v;

    json_object_foreach(labels, key, v)
    {
        size_t i = 0;

        if (!str_starts(str_of(key), prefix))
            continue;
        while (i < m->n_extra && strcmp(m->extra[i], key + prefix.n) != 0)
            i++;
        if (i == MODEL_MAX_RESOURCES - 1)
            return objection_set(ob, 422, field, "workloads request more than %d kinds of resources",
                                 MODEL_MAX_RESOURCES);
        m->extra[i] = key + prefix.n;
        m->n_extra = size_max(m->n_extra, i + 1);
    }
    return 0;
}

static int model_read_requests(struct model *m, size_t w, int64_t *into, struct objection *ob)
{
    const struct model_workload *one = &m->workloads[w];
    const json_t *o = m->in->workloads[one->request];
    char field[64], label[320];
    int r;

    (void)snprintf(field, sizeof(field), "targetWorkloads[%zu].name", one->request);
    r = model_amount(o, "ManifestWorkReplicaSet", REQUEST_AMOUNT, field, &into[0], ob);
    for (size_t i = 0; i < m->n_extra && r == 0; i++) {
        (void)snprintf(label, sizeof(label), REQUEST_AMOUNT ".%s", m->extra[i]);
        if (kube_label(o, label))
            r = model_amount(o, "ManifestWorkReplicaSet", label, field, &into[i + 1], ob);
    }
    return r;
}

static int model_read_workload(struct model *m, struct model_workload *w, size_t i, struct objection *ob)
{
    const json_t *o = m->in->workloads[i];
    const char *kind, *name = m->in->request->workloads[i].name;
    char field[64];
    int r;

    *w = (struct model_workload){.name = name, .request = i};
    (void)snprintf(field, sizeof(field), "targetWorkloads[%zu].name", i);
    if (!o)
        return objection_set(ob, 404, field, "there is no ManifestWorkReplicaSet %s in namespace %s", name,
                             m->in->request->namespace);
    r = model_label(o, "ManifestWorkReplicaSet", "app", field, &w->app, ob);
    r = r ?: model_label(o, "ManifestWorkReplicaSet", "resource-request-kind", field, &kind, ob);
    r = r ?: model_id(&m->app_ids, &m->apps, &m->n_apps, m, w->app, &w->app_id);
    r = r ?: model_id(&m->kind_ids, &m->kinds, &m->n_kinds, m, kind, &w->kind_id);
    r = r ?: model_note_extras(m, kube_map(o, "metadata", "labels", NULL), field, ob);
    w->placement = input_placement_name(o);
    if (r == 0 && !w->placement)
        return objection_set(ob, 422, field, "ManifestWorkReplicaSet %s has no spec.placementRefs", name);
    return r;
}

static int workload_by_name(const void *a, const void *b)
{
    return strcmp(((const struct model_workload *)a)->name, ((const struct model_workload *)b)->name);
}

/* No two workloads may want to write the same Placement. */
static int model_check_placements(const struct model *m, struct objection *ob)
{
    struct map seen = {0};
    int r = 0;

    for (size_t i = 0; i < m->problem.n_workloads && r == 0; i++) {
        const struct model_workload *w = &m->workloads[i], *other = map_get(&seen, w->placement);
        char field[64];

        (void)snprintf(field, sizeof(field), "targetWorkloads[%zu].name", w->request);
        r = other ? objection_set(ob, 422, field,
                                  "ManifestWorkReplicaSets %s and %s refer to the same Placement %s",
                                  other->name, w->name, w->placement)
                  : map_set(&seen, w->placement, (void *)(uintptr_t)w);
    }
    map_done(&seen);
    return r;
}

int model_read_workloads(struct model *m, struct objection *ob)
{
    size_t n = m->in->request->n_workloads;
    uint32_t *replicas = model_alloc(m, n, sizeof(uint32_t));
    int64_t *requests;
    int r = 0;

    m->workloads = model_alloc(m, n, sizeof(*m->workloads));
    if (!replicas || !m->workloads)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        r = model_read_workload(m, &m->workloads[i], i, ob);
    if (r < 0)
        return r;
    qsort(m->workloads, n, sizeof(*m->workloads), workload_by_name);
    m->problem.n_workloads = n;
    m->problem.n_resources = 1 + m->n_extra;
    requests = model_alloc(m, n * m->problem.n_resources, sizeof(int64_t));
    if (!requests)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        replicas[i] = m->in->request->workloads[m->workloads[i].request].replicas;
        r = model_read_requests(m, i, &requests[i * m->problem.n_resources], ob);
    }
    m->problem.replicas = replicas;
    m->problem.requests = requests;
    return r ?: model_check_placements(m, ob);
}

int model_new(struct model **ret, const struct inputs *in, struct objection *ob)
{
    CLEANUP(cleanup_model_free) struct model *m = calloc(1, sizeof(*m));
    int r;

    if (!m)
        return -ENOMEM;
    m->in = in;
    m->arena.chunk_bytes = ARENA_BYTES;
    m->problem.max_moves = in->request->max_moves;
    r = model_read_workloads(m, ob);
    r = r ?: model_read_sites(m, ob);
    r = r ?: model_read_running(m);
    r = r ?: model_read_scores(m, ob);
    r = r ?: model_apply_rules(m, ob);
    r = r ?: model_read_limits(m, ob);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}

struct model *model_free(struct model *m)
{
    if (!m)
        return NULL;
    map_done(&m->kind_ids);
    map_done(&m->app_ids);
    arena_done(&m->arena);
    free(m);
    return NULL;
}
