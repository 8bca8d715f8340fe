#include "controller/assist/operations/placement_rank.h"

#include "controller/assist/rules/inputs.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"

#include <errno.h>

enum { FULL = 100 };

static bool rank_is_built_in(const struct rank_prioritizer *p, const char *name)
{
    return p->built_in && strcmp(p->built_in, name) == 0;
}

/* Built-in ones replace what they name; scores of add-ons add up, even if one is named twice. */
static void rank_configure(struct rank *r, const struct rank_prioritizer *p)
{
    size_t i = 0;

    while (i < r->n_prioritizers && !(p->built_in && rank_is_built_in(&r->prioritizers[i], p->built_in)))
        i++;
    if (i == RANK_PRIORITIZERS) {
        r->n_left_out++;
        return;
    }
    r->prioritizers[i] = *p;
    r->n_prioritizers += i == r->n_prioritizers;
}

static void rank_drop_without_weight(struct rank *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_prioritizers; i++)
        if (r->prioritizers[i].weight)
            r->prioritizers[n++] = r->prioritizers[i];
    r->n_prioritizers = n;
}

void rank_init(struct rank *r, const json_t *placement)
{
    static const struct rank_prioritizer balance = {.built_in = "Balance", .weight = 1},
                                         steady = {.built_in = "Steady", .weight = 1};
    const char *mode = kube_str(placement, "spec", "prioritizerPolicy", "mode", NULL);
    const json_t *one;
    size_t i;

    *r = (struct rank){0};
    if (!mode || strcmp(mode, "Exact") != 0) {
        rank_configure(r, &balance);
        rank_configure(r, &steady);
    }
    json_array_foreach(kube_list(placement, "spec", "prioritizerPolicy", "configurations", NULL), i, one)
    {
        const json_t *at = kube_map(one, "scoreCoordinate", NULL);
        int64_t weight = 1;
        struct rank_prioritizer p;

        (void)kube_int(one, &weight, "weight", NULL);
        p = (struct rank_prioritizer){.weight = (int32_t)weight};
        if (strcmp(cstr(kube_str(at, "type", NULL)), "AddOn") == 0) {
            p.resource = cstr(kube_str(at, "addOn", "resourceName", NULL));
            p.item = cstr(kube_str(at, "addOn", "scoreName", NULL));
        } else {
            p.built_in = cstr(kube_str(at, "builtIn", NULL));
        }
        rank_configure(r, &p);
    }
    rank_drop_without_weight(r);
}

/* ---- Values ---- */

static struct rank_value rank_score(const struct world *w, const char *cluster,
                                    const struct rank_prioritizer *p)
{
    const struct world_score *s = world_score(w, cluster, p->resource);
    const struct world_item wanted = {.name = str_of(p->item)}, *found = NULL;

    if (s && world_score_is_expired(s, world_now(w)))
        return (struct rank_value){0, "expired"};
    if (s && s->n_items)
        found = bsearch(&wanted, s->items, s->n_items, sizeof(wanted), world_item_compare);
    return found ? (struct rank_value){found->value, NULL} : (struct rank_value){0, "missing"};
}

static size_t rank_count_of(const json_t *counts, const char *cluster)
{
    return (size_t)json_integer_value(json_object_get(counts, cluster));
}

/* {"cluster": how many decisions of other Placements select it}. NULL when out of memory. */
static json_t *rank_count_decisions(const struct world *w, const json_t *placement, size_t *ret_most)
{
    json_auto_t *counts = json_object();
    const json_t *decision, *one;
    size_t at = 0, i;

    *ret_most = 0;
    while ((decision = world_next(w, WORLD_DECISIONS, NULL, &at))) {
        const char *of = cstr(kube_label(decision, PLACEMENT_LABEL));

        if (strcmp(of, kube_name(placement)) == 0 &&
            strcmp(kube_namespace(decision), kube_namespace(placement)) == 0)
            continue;
        json_array_foreach(kube_list(decision, "status", "decisions", NULL), i, one)
        {
            const char *cluster = cstr(kube_str(one, "clusterName", NULL));
            size_t n = rank_count_of(counts, cluster) + 1;

            *ret_most = size_max(*ret_most, n);
            if (json_object_set_new(counts, cluster, json_integer((json_int_t)n)) < 0)
                return NULL;
        }
    }
    return TAKE_PTR(counts);
}

static int rank_balance(struct rank *r, size_t p, const struct world *w, const json_t *placement)
{
    size_t most;
    json_auto_t *counts = rank_count_decisions(w, placement, &most);

    if (!counts)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_clusters; i++) {
        size_t n = rank_count_of(counts, kube_name(r->clusters[i].cluster));

        r->clusters[i].values[p].value = n ? 2 * (int64_t)(FULL * (0.5 - (double)n / (double)most)) : FULL;
    }
    return 0;
}

/* A Kubernetes quantity as a number; false without one. */
static bool rank_quantity(const char *text, double *ret)
{
    static const struct {
        const char *suffix;
        double factor;
    } suffixes[] = {{"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
                    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                    {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
                    {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
    char *end;
    double v;

    if (!text)
        return false;
    v = strtod(text, &end);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes) && end != text; i++)
        if (strcmp(end, suffixes[i].suffix) == 0) {
            *ret = v * suffixes[i].factor;
            return true;
        }
    return false;
}

static bool rank_allocatable(const json_t *cluster, const char *resource, double *ret)
{
    double capacity;

    return rank_quantity(kube_str(cluster, "status", "allocatable", resource, NULL), ret) &&
           rank_quantity(kube_str(cluster, "status", "capacity", resource, NULL), &capacity);
}

static void rank_resource(struct rank *r, size_t p, const char *resource)
{
    double least = 0, most = 0, v;
    bool any = false;

    for (size_t i = 0; i < r->n_clusters; i++)
        if (rank_allocatable(r->clusters[i].cluster, resource, &v)) {
            least = any && least < v ? least : v;
            most = any && most > v ? most : v;
            any = true;
        }
    for (size_t i = 0; i < r->n_clusters; i++) {
        struct rank_value *to = &r->clusters[i].values[p];

        if (!rank_allocatable(r->clusters[i].cluster, resource, &v))
            to->missing = "missing";
        else
            to->value = most > least ? (int64_t)(((v - least) / (most - least) - 0.5) * 2.0 * FULL) : FULL;
    }
}

static int rank_fill(struct rank *r, size_t p, const struct world *w, const json_t *placement)
{
    const struct rank_prioritizer *by = &r->prioritizers[p];

    if (rank_is_built_in(by, "Balance"))
        return rank_balance(r, p, w, placement);
    if (rank_is_built_in(by, "ResourceAllocatableCPU"))
        rank_resource(r, p, "cpu");
    else if (rank_is_built_in(by, "ResourceAllocatableMemory"))
        rank_resource(r, p, "memory");
    else if (by->built_in && !rank_is_built_in(by, "Steady"))
        r->unknown_built_in = by->built_in;
    for (size_t i = 0; i < r->n_clusters; i++) {
        struct rank_cluster *c = &r->clusters[i];

        if (rank_is_built_in(by, "Steady"))
            c->values[p].value = c->is_selected ? FULL : 0;
        else if (!by->built_in)
            c->values[p] = rank_score(w, kube_name(c->cluster), by);
    }
    return 0;
}

/* The higher sum first, then by name. */
static int rank_compare(const void *a, const void *b)
{
    const struct rank_cluster *x = a, *y = b;

    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return strcmp(kube_name(x->cluster), kube_name(y->cluster));
}

int rank_clusters(struct rank *r, const struct world *w, const json_t *placement,
                  const json_t *const *clusters, size_t n, const json_t *decisions)
{
    size_t width = size_max(r->n_prioritizers, 1);

    r->clusters = calloc(n + 1, sizeof(*r->clusters));
    r->values = calloc((n + 1) * width, sizeof(*r->values));
    if (!r->clusters || !r->values)
        return -ENOMEM;
    r->n_clusters = n;
    for (size_t i = 0; i < n; i++)
        r->clusters[i] =
            (struct rank_cluster){.cluster = clusters[i],
                                  .is_selected = kube_list_has(decisions, kube_name(clusters[i])),
                                  .values = r->values + i * width};
    for (size_t p = 0; p < r->n_prioritizers; p++)
        if (rank_fill(r, p, w, placement) < 0)
            return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < r->n_prioritizers; p++)
            r->clusters[i].total += r->clusters[i].values[p].value * r->prioritizers[p].weight;
    qsort(r->clusters, n, sizeof(*r->clusters), rank_compare);
    return 0;
}

void rank_done(struct rank *r)
{
    free(r->clusters);
    free(r->values);
    *r = (struct rank){0};
}
