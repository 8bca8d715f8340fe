/* The request's options: pins, forbidden places, spreading. */
#include "controller/assist/rules/model_internal.h"
#include "controller/kube/json.h"

#include <errno.h>
#include <stdio.h>

/* 240 MB. */
enum { MAX_LIMITS = 5 * 1000 * 1000 };

static int model_names(struct map *workloads, struct map *clusters, const struct model *m)
{
    const struct plan_request *rq = m->in->request;
    int r = 0;

    for (size_t i = 0; i < m->problem.n_workloads && r == 0; i++)
        r = map_set(workloads, m->workloads[i].name, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < rq->n_clusters && r == 0; i++)
        r = map_set(clusters, rq->clusters[i].name, (void *)(uintptr_t)(i + 1));
    return r;
}

struct rule_reading {
    struct model *m;
    int16_t *scores;
    struct map workloads, clusters; /* name → index + 1 */
    bool *named;                    /* [cluster] of the request */
    struct objection *ob;
};

static int rule_apply(struct rule_reading *rd, const struct request_rule *rule, const char *option, size_t i,
                      bool is_pin)
{
    struct model *m = rd->m;
    size_t w = (uintptr_t)map_get(&rd->workloads, rule->workload);
    char field[64];

    (void)snprintf(field, sizeof(field), "%s[%zu].workload", option, i);
    if (w == 0)
        return objection_set(rd->ob, 422, field, "%s: %s is not among targetWorkloads", field,
                             rule->workload);
    w--;
    memset(rd->named, 0, m->in->request->n_clusters * sizeof(bool));
    for (size_t j = 0; j < rule->clusters.n; j++) {
        size_t c = (uintptr_t)map_get(&rd->clusters, rule->clusters.names[j]);

        (void)snprintf(field, sizeof(field), "%s[%zu].clusters[%zu]", option, i, j);
        if (c == 0)
            return objection_set(rd->ob, 422, field, "%s: %s is not among clusters", field,
                                 rule->clusters.names[j]);
        rd->named[c - 1] = true;
    }
    for (size_t s = 0; s < m->problem.n_settings; s++) {
        int16_t *score = &rd->scores[s * m->problem.n_workloads + w];

        if (rd->named[m->sites[m->settings[s].site].cluster] == is_pin || *score == SCORE_IMPOSSIBLE)
            continue;
        *score = SCORE_IMPOSSIBLE;
        m->workloads[w].lost_to_rules = true;
    }
    return 0;
}

int model_apply_rules(struct model *m, struct objection *ob)
{
    const struct plan_request *rq = m->in->request;
    struct rule_reading rd = {.m = m, .ob = ob, .scores = (int16_t *)(uintptr_t)m->problem.scores};
    int r;

    if (rq->n_pins + rq->n_forbids == 0)
        return 0;
    rd.named = calloc(rq->n_clusters, sizeof(bool));
    r = rd.named ? model_names(&rd.workloads, &rd.clusters, m) : -ENOMEM;
    for (size_t i = 0; i < rq->n_pins && r == 0; i++)
        r = rule_apply(&rd, &rq->pins[i], "pin", i, true);
    for (size_t i = 0; i < rq->n_forbids && r == 0; i++)
        r = rule_apply(&rd, &rq->forbids[i], "forbid", i, false);
    map_done(&rd.workloads);
    map_done(&rd.clusters);
    free(rd.named);
    return r;
}

/* ---- Spreading ---- */

struct value_site {
    const char *value; /* of the cluster's label; "" without it, which is a value as others are */
    uint32_t site;
};

static int value_site_compare(const void *pa, const void *pb)
{
    const struct value_site *a = pa, *b = pb;
    int r = strcmp(a->value, b->value);

    return r ?: (a->site > b->site) - (a->site < b->site);
}

int model_u32_compare(const void *pa, const void *pb)
{
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    return (a > b) - (a < b);
}

struct limits {
    struct model *m;
    struct problem_limit *list;
    size_t n, cap;
};

static int limit_add(struct limits *all, const struct problem_limit *one, struct objection *ob)
{
    struct problem_limit *grown;

    if (all->n == MAX_LIMITS)
        return objection_set(ob, 422, "spread", "spreading takes more than %d limits", MAX_LIMITS);
    if (all->n == all->cap) {
        grown = realloc(all->list, (all->cap * 2 + 16) * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        all->list = grown;
        all->cap = all->cap * 2 + 16;
    }
    all->list[all->n++] = *one;
    return 0;
}

/* The sites of one value, for the workloads together or each by itself. */
static int limit_group(struct limits *all, const struct problem_limit *group, const uint32_t *each,
                       struct objection *ob)
{
    struct problem_limit one = *group;
    int r = 0;

    if (group->n_workloads)
        return limit_add(all, group, ob);
    one.n_workloads = 1;
    for (size_t w = 0; w < all->m->problem.n_workloads && r == 0; w++) {
        one.workloads = &each[w];
        if (all->m->problem.replicas[w] > group->max)
            r = limit_add(all, &one, ob);
    }
    return r;
}

static int spread_workloads(struct model *m, const struct request_spread *s, size_t at,
                            const struct map *names, const uint32_t **ret, struct objection *ob)
{
    size_t n = s->workloads.n ? s->workloads.n : m->problem.n_workloads;
    uint32_t *list = model_alloc(m, n, sizeof(uint32_t));

    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t w = s->workloads.n ? (uintptr_t)map_get(names, s->workloads.names[i]) : i + 1;
        char field[64];

        (void)snprintf(field, sizeof(field), "spread[%zu].workloads[%zu]", at, i);
        if (w == 0)
            return objection_set(ob, 422, field, "%s: %s is not among targetWorkloads", field,
                                 s->workloads.names[i]);
        list[i] = (uint32_t)(w - 1);
    }
    qsort(list, n, sizeof(*list), model_u32_compare);
    *ret = list;
    return 0;
}

static int spread_read(struct limits *all, const struct request_spread *s, size_t at, const struct map *names,
                       struct objection *ob)
{
    struct model *m = all->m;
    size_t n = 0;
    struct value_site *sites = model_alloc(m, m->problem.n_sites + 1, sizeof(*sites));
    uint32_t *flat = model_alloc(m, m->problem.n_sites + 1, sizeof(uint32_t));
    const uint32_t *workloads = NULL;
    int r = sites && flat ? spread_workloads(m, s, at, names, &workloads, ob) : -ENOMEM;

    if (r < 0)
        return r;
    for (; n < m->problem.n_sites && m->sites[n].cluster != SIZE_MAX; n++)
        sites[n] = (struct value_site){cstr(kube_label(m->in->clusters[m->sites[n].cluster], s->label)),
                                       (uint32_t)n};
    qsort(sites, n, sizeof(*sites), value_site_compare);
    for (size_t i = 0, end; i < n && r == 0; i = end) {
        for (end = i; end < n && strcmp(sites[end].value, sites[i].value) == 0; end++)
            flat[end] = sites[end].site;
        r = limit_group(all,
                        &(struct problem_limit){.workloads = workloads,
                                                .sites = &flat[i],
                                                .n_workloads = s->workloads.n,
                                                .n_sites = end - i,
                                                .max = s->max},
                        workloads, ob);
    }
    return r;
}

int model_read_limits(struct model *m, struct objection *ob)
{
    const struct plan_request *rq = m->in->request;
    struct limits all = {.m = m};
    struct map workloads = {0}, clusters = {0};
    int r = rq->n_spreads ? model_names(&workloads, &clusters, m) : 0;

    for (size_t i = 0; i < rq->n_spreads && r == 0; i++)
        r = spread_read(&all, &rq->spreads[i], i, &workloads, ob);
    map_done(&workloads);
    map_done(&clusters);
    if (r == 0 && all.n) {
        struct problem_limit *kept = model_alloc(m, all.n, sizeof(*kept));

        if (kept)
            m->problem.limits = memcpy(kept, all.list, all.n * sizeof(*kept));
        m->problem.n_limits = kept ? all.n : 0;
        r = kept ? 0 : -ENOMEM;
    }
    free(all.list);
    return r;
}
