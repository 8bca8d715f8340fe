#include "controller/assist/rules/model.h"

#include "controller/kube/json.h"
#include "exporter/base/arena.h"
#include "exporter/base/def.h"

#include <stdio.h>

/* ---- Quantities ---- */

enum { MAX_DIGITS = 18 };

static const struct {
    const char *suffix;
    int tens;  /* power of ten */
    int shift; /* power of two */
} units[] = {
    {"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
    {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

static bool is_decimal(char c)
{
    return c >= '0' && c <= '9';
}

/* "e3", "E-2" */
static bool exponent_parse(struct str s, int *ret)
{
    uint64_t n;
    bool is_negative;

    if (s.n < 2 || (s.p[0] != 'e' && s.p[0] != 'E'))
        return false;
    is_negative = s.p[1] == '-';
    if (is_negative || s.p[1] == '+')
        s = (struct str){s.p + 1, s.n - 1};
    if (!str_to_u64((struct str){s.p + 1, s.n - 1}, &n) || n > 99)
        return false;
    *ret = is_negative ? -(int)n : (int)n;
    return true;
}

static bool unit_parse(struct str s, int *ret_tens, int *ret_shift)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (str_eq(s, str_of(units[i].suffix))) {
            *ret_tens = units[i].tens;
            *ret_shift = units[i].shift;
            return true;
        }
    *ret_shift = 0;
    return exponent_parse(s, ret_tens);
}

bool quantity_parse(struct str text, int64_t *ret)
{
    unsigned __int128 v = 0;
    size_t at = text.n > 0 && text.p[0] == '+' ? 1 : 0, digits = 0;
    int tens, shift, decimals = 0;
    bool has_point = false;

    for (; at < text.n && (is_decimal(text.p[at]) || (text.p[at] == '.' && !has_point)); at++) {
        if (text.p[at] == '.') {
            has_point = true;
            continue;
        }
        v = v * 10 + (unsigned)(text.p[at] - '0');
        decimals += has_point;
        if (++digits > MAX_DIGITS)
            return false;
    }
    if (digits == 0 || !unit_parse((struct str){text.p + at, text.n - at}, &tens, &shift))
        return false;
    /* At most 60 bits by 60 bits here, and by ten while it is within the bound. */
    v <<= shift;
    for (tens += 3 - decimals; tens > 0 && v > 0 && v <= QUANTITY_MAX; tens--)
        v *= 10;
    for (; tens < 0 && v > 0; tens++)
        v = (v + 9) / 10;
    if (v > QUANTITY_MAX)
        return false;
    *ret = (int64_t)v;
    return true;
}

/* ---- Workloads ---- */

enum { ARENA_BYTES = 64 << 10 };

#define REQUEST_AMOUNT "resource-request-amount"

const char *input_placement_name(const json_t *workload)
{
    return kube_str(json_array_get(kube_list(workload, "spec", "placementRefs", NULL), 0), "name", NULL);
}

static uint32_t model_id(struct map *ids, const char ***names, size_t *n, struct model *m, const char *name)
{
    uintptr_t known = (uintptr_t)map_get(ids, name);

    if (known)
        return (uint32_t)(known - 1);
    if ((*n & (*n - 1)) == 0) { /* a power of two: full */
        const char **all = model_alloc(m, *n ? *n * 2 : 1, sizeof(char *));

        if (*n)
            memcpy(all, *names, *n * sizeof(char *));
        *names = all;
    }
    map_set(ids, name, (void *)(uintptr_t)(*n + 1));
    (*names)[*n] = name;
    return (uint32_t)(*n)++;
}

static int model_label(const json_t *object, const char *kind, const char *label, const char *field,
                       const char **ret, struct objection *ob)
{
    const char *s = kube_label(object, label);

    if (!s || !*s)
        return objection_set(ob, 422, field, "%s %s has no label %s", kind, kube_name(object), label);
    *ret = s;
    return 0;
}

static int model_amount(const json_t *object, const char *kind, const char *label, const char *field,
                        int64_t *ret, struct objection *ob)
{
    const char *s = NULL;
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

/* [resource]: of the labels <prefix> and <prefix>.<kind>. */
static int model_amounts(const struct model *m, const json_t *object, const char *kind, const char *prefix,
                         const char *field, int64_t *into, struct objection *ob)
{
    int r = model_amount(object, kind, prefix, field, &into[0], ob);

    for (size_t i = 0; i < m->n_extra && r == 0; i++) {
        char label[320];

        (void)snprintf(label, sizeof(label), "%s.%s", prefix, m->extra[i]);
        if (kube_label(object, label))
            r = model_amount(object, kind, label, field, &into[i + 1], ob);
    }
    return r;
}

static int model_read_workload(struct model *m, struct model_workload *w, size_t i, struct objection *ob)
{
    const json_t *o = m->in->workloads[i];
    const char *kind = NULL, *name = m->in->request->workloads[i].name;
    char field[64];
    int r;

    *w = (struct model_workload){.name = name, .request = i};
    (void)snprintf(field, sizeof(field), "targetWorkloads[%zu].name", i);
    if (!o)
        return objection_set(ob, 404, field, "there is no ManifestWorkReplicaSet %s in namespace %s", name,
                             m->in->request->namespace);
    r = model_label(o, "ManifestWorkReplicaSet", "app", field, &w->app, ob);
    r = r ?: model_label(o, "ManifestWorkReplicaSet", "resource-request-kind", field, &kind, ob);
    r = r ?: model_note_extras(m, kube_map(o, "metadata", "labels", NULL), field, ob);
    if (r < 0)
        return r;
    w->app_id = model_id(&m->app_ids, &m->apps, &m->n_apps, m, w->app);
    w->kind_id = model_id(&m->kind_ids, &m->kinds, &m->n_kinds, m, kind);
    w->placement = input_placement_name(o);
    if (!w->placement)
        return objection_set(ob, 422, field, "ManifestWorkReplicaSet %s has no spec.placementRefs", name);
    return 0;
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
        if (other)
            r = objection_set(ob, 422, field,
                              "ManifestWorkReplicaSets %s and %s refer to the same Placement %s", other->name,
                              w->name, w->placement);
        else
            map_set(&seen, w->placement, (void *)(uintptr_t)w);
    }
    map_done(&seen);
    return r;
}

static int model_read_workloads(struct model *m, struct objection *ob)
{
    size_t n = m->in->request->n_workloads;
    uint32_t *replicas = model_alloc(m, n, sizeof(uint32_t));
    int64_t *requests;
    int r = 0;

    m->workloads = model_alloc(m, n, sizeof(*m->workloads));
    for (size_t i = 0; i < n && r == 0; i++)
        r = model_read_workload(m, &m->workloads[i], i, ob);
    if (r < 0)
        return r;
    qsort(m->workloads, n, sizeof(*m->workloads), workload_by_name);
    m->problem.n_workloads = n;
    m->problem.n_resources = 1 + m->n_extra;
    requests = model_alloc(m, n * m->problem.n_resources, sizeof(int64_t));
    for (size_t i = 0; i < n && r == 0; i++) {
        size_t at = m->workloads[i].request;
        char field[64];

        replicas[i] = m->in->request->workloads[at].replicas;
        (void)snprintf(field, sizeof(field), "targetWorkloads[%zu].name", at);
        r = model_amounts(m, m->in->workloads[at], "ManifestWorkReplicaSet", REQUEST_AMOUNT, field,
                          &requests[i * m->problem.n_resources], ob);
    }
    m->problem.replicas = replicas;
    m->problem.requests = requests;
    return r ?: model_check_placements(m, ob);
}

/* ---- Sites ---- */

/* A policy of a cluster, before it has its place. */
struct offer {
    size_t cluster, input;
    const char *cluster_name, *policy, *device, *kind;
    uint32_t kind_id;
};

static int offer_compare(const void *pa, const void *pb)
{
    const struct offer *a = pa, *b = pb;
    int r = strcmp(a->cluster_name, b->cluster_name);

    r = r ?: strcmp(a->kind, b->kind);
    return r ?: strcmp(a->device, b->device);
}

static int offer_read(struct model *m, struct offer *o, size_t c, size_t i, struct objection *ob)
{
    const struct request_cluster *cluster = &m->in->request->clusters[c];
    const json_t *policy = m->in->policies[cluster->first_policy + i];
    char field[80];
    int r;

    *o = (struct offer){.cluster = c,
                        .input = cluster->first_policy + i,
                        .cluster_name = cluster->name,
                        .policy = cluster->policies.names[i]};
    (void)snprintf(field, sizeof(field), "clusters[%zu].availablePolicies[%zu].name", c, i);
    if (!policy)
        return objection_set(ob, 404, field, "there is no Policy %s in namespace %s", o->policy,
                             m->in->request->namespace);
    r = model_label(policy, "Policy", "resource-supply-kind", field, &o->kind, ob);
    r = r ?: model_label(policy, "Policy", "resource-supply-device", field, &o->device, ob);
    if (r == 0)
        o->kind_id = model_id(&m->kind_ids, &m->kinds, &m->n_kinds, m, o->kind);
    return r;
}

static int model_read_offers(struct model *m, struct offer *offers, struct objection *ob)
{
    const struct plan_request *rq = m->in->request;

    for (size_t c = 0; c < rq->n_clusters; c++) {
        char field[64];

        (void)snprintf(field, sizeof(field), "clusters[%zu].name", c);
        if (!m->in->clusters[c])
            return objection_set(ob, 404, field, "there is no ManagedCluster %s", rq->clusters[c].name);
        for (size_t i = 0; i < rq->clusters[c].policies.n; i++) {
            int r = offer_read(m, &offers[rq->clusters[c].first_policy + i], c, i, ob);

            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* Offers are in order: those of a cluster and a kind are one site. */
static int model_add_settings(struct model *m, const struct offer *offers, size_t n, struct objection *ob)
{
    struct problem *p = &m->problem;
    int64_t *supplies = model_alloc(m, (n + 1) * p->n_resources, sizeof(int64_t));
    uint32_t *first = model_alloc(m, n + 1, sizeof(uint32_t));
    int r = 0;

    m->settings = model_alloc(m, n + 1, sizeof(*m->settings));
    m->sites = model_alloc(m, n + 1, sizeof(*m->sites));
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct offer *o = &offers[i], *last = i ? &offers[i - 1] : NULL;
        bool same = last && last->cluster == o->cluster && last->kind_id == o->kind_id;
        char field[80];

        if (same && strcmp(last->device, o->device) == 0)
            return objection_set(ob, 422, "clusters", "cluster %s: Policies %s and %s both supply device %s",
                                 o->cluster_name, last->policy, o->policy, o->device);
        if (!same) {
            first[p->n_sites] = (uint32_t)i;
            m->sites[p->n_sites++] = (struct model_site){o->cluster, o->cluster_name, o->kind_id};
        }
        m->settings[i] = (struct model_setting){(uint32_t)p->n_sites - 1, o->policy, o->device, o->input};
        (void)snprintf(field, sizeof(field), "clusters[%zu].availablePolicies[%zu].name", o->cluster,
                       o->input - m->in->request->clusters[o->cluster].first_policy);
        r = model_amounts(m, m->in->policies[o->input], "Policy", "resource-supply-amount", field,
                          &supplies[i * p->n_resources], ob);
    }
    first[p->n_sites] = (uint32_t)n;
    p->n_settings = n;
    p->first_setting = first;
    p->supplies = supplies;
    return r;
}

static void model_note_kinds(struct model *m)
{
    CLEANUP(cleanup_free) bool *is_supplied = xcalloc(m->n_kinds + 1, sizeof(bool));

    for (size_t s = 0; s < m->problem.n_sites; s++)
        is_supplied[m->sites[s].kind_id] = true;
    for (size_t w = 0; w < m->problem.n_workloads; w++)
        m->workloads[w].has_kind = is_supplied[m->workloads[w].kind_id];
}

/* Sites and their settings. */
static int model_read_sites(struct model *m, struct objection *ob)
{
    size_t n = m->in->request->n_policies;
    CLEANUP(cleanup_free) struct offer *offers = xcalloc(n + 1, sizeof(*offers));
    int r = model_read_offers(m, offers, ob);

    if (r < 0)
        return r;
    qsort(offers, n, sizeof(*offers), offer_compare);
    r = model_add_settings(m, offers, n, ob);
    if (r == 0)
        model_note_kinds(m);
    return r;
}

/* ---- Where workloads run ---- */

struct run {
    const char *cluster;
    uint32_t workload, kind_id;
};

static int site_order(const struct model_site *s, const char *cluster, const char *kind,
                      const struct model *m)
{
    int r = strcmp(s->cluster_name, cluster);

    return r ?: strcmp(m->kinds[s->kind_id], kind);
}

/* The site, or n_sites. */
static size_t site_find(const struct model *m, const char *cluster, uint32_t kind_id)
{
    size_t low = 0, high = m->problem.n_sites;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int r = site_order(&m->sites[mid], cluster, m->kinds[kind_id], m);

        if (r == 0)
            return mid;
        if (r < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return m->problem.n_sites;
}

static size_t decisions_of(const json_t *decision, json_t **ret)
{
    *ret = kube_list(decision, "status", "decisions", NULL);
    return json_array_size(*ret);
}

/* Those of the targets' Placements. */
static size_t runs_read(const struct model *m, const struct map *by_placement, struct run *into)
{
    size_t n = 0;

    for (size_t i = 0; i < m->in->n_decisions; i++) {
        const char *placement = kube_label(m->in->decisions[i], PLACEMENT_LABEL);
        const struct model_workload *w = placement ? map_get(by_placement, placement) : NULL;
        json_t *list;
        size_t count = w ? decisions_of(m->in->decisions[i], &list) : 0;

        for (size_t j = 0; j < count; j++) {
            const char *cluster = kube_str(json_array_get(list, j), "clusterName", NULL);

            if (cluster && *cluster && into)
                into[n] = (struct run){cluster, (uint32_t)(w - m->workloads), w->kind_id};
            n += cluster && *cluster;
        }
    }
    return n;
}

static int run_compare(const void *pa, const void *pb)
{
    const struct run *a = pa, *b = pb;
    int r = strcmp(a->cluster, b->cluster);

    return r ?: (a->kind_id > b->kind_id) - (a->kind_id < b->kind_id);
}

/* A workload may run where nothing is offered: such a cluster becomes a site without settings. */
static void model_add_running(struct model *m, const struct run *runs, size_t n)
{
    struct problem *p = &m->problem;
    struct problem_pair *pairs = model_alloc(m, n, sizeof(*pairs));
    struct model_site *sites = model_alloc(m, p->n_sites + n, sizeof(*sites));
    uint32_t *first = model_alloc(m, p->n_sites + n + 1, sizeof(uint32_t));
    size_t n_sites = p->n_sites;

    memcpy(sites, m->sites, n_sites * sizeof(*sites));
    memcpy(first, p->first_setting, n_sites * sizeof(*first));
    for (size_t i = 0; i < n; i++) {
        size_t site = site_find(m, runs[i].cluster, runs[i].kind_id);

        if (site == p->n_sites) {
            if (i == 0 || run_compare(&runs[i], &runs[i - 1]) != 0) {
                sites[n_sites] = (struct model_site){SIZE_MAX, runs[i].cluster, runs[i].kind_id};
                first[n_sites++] = (uint32_t)p->n_settings;
            }
            site = n_sites - 1;
        }
        pairs[i] = (struct problem_pair){runs[i].workload, (uint32_t)site};
    }
    qsort(pairs, n, sizeof(*pairs), problem_pair_compare);
    for (size_t i = 0; i < n; i++)
        if (p->n_running == 0 || problem_pair_compare(&pairs[i], &pairs[p->n_running - 1]) != 0)
            pairs[p->n_running++] = pairs[i];
    first[n_sites] = (uint32_t)p->n_settings;
    m->sites = sites;
    p->first_setting = first;
    p->n_sites = n_sites;
    p->running = pairs;
}

static void model_read_running(struct model *m)
{
    struct map by_placement = {0};
    CLEANUP(cleanup_free) struct run *runs = NULL;
    size_t n;

    for (size_t w = 0; w < m->problem.n_workloads; w++)
        map_set(&by_placement, m->workloads[w].placement, &m->workloads[w]);
    n = runs_read(m, &by_placement, NULL);
    runs = n ? xcalloc(n, sizeof(*runs)) : NULL;
    if (n) {
        (void)runs_read(m, &by_placement, runs);
        qsort(runs, n, sizeof(*runs), run_compare);
        model_add_running(m, runs, n);
    }
    map_done(&by_placement);
}

/* ---- The model ---- */

int model_new(struct model **ret, const struct inputs *in, struct objection *ob)
{
    CLEANUP(cleanup_model_free) struct model *m = xcalloc(1, sizeof(*m));
    int r;

    m->in = in;
    m->arena.chunk_bytes = ARENA_BYTES;
    m->problem.max_moves = in->request->max_moves;
    r = model_read_workloads(m, ob);
    r = r ?: model_read_sites(m, ob);
    if (r == 0)
        model_read_running(m);
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
