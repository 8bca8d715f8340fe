#include "controller/hub/rules/plan_masks.h"

#include "exporter/base/glob.h"
#include "exporter/base/map.h"

#include <errno.h>

/* A score pattern, shared by all masks that have it, with the entries that it matches. */
struct pattern {
    struct pattern *next;
    bool any; /* the set is not empty */
    uint64_t set[];
};

struct compiled_mask {
    const char *cluster;
    const struct pattern *scores;
    size_t index; /* in the list */
    size_t clusters;
};

struct plan_masks {
    size_t words;
    struct pattern *patterns;
    struct compiled_mask *globs,
        *names; /* with a pattern for clusters; with a name. Each sorted by cluster */
    size_t n_globs, n_names;
};

struct entry_list {
    const struct plan_entry *const *sorted;
    size_t n;
    const struct plan_entry *first;
};

static bool has_wildcard(const char *pattern)
{
    return strpbrk(pattern, "*?");
}

static void pattern_add(struct pattern *p, const struct entry_list *all, const struct plan_entry *e)
{
    size_t i = (size_t)(e - all->first);

    p->set[i / 64] |= 1ull << (i % 64);
    p->any = true;
}

static int pattern_by_score(const void *name, const void *at)
{
    const struct plan_entry *const *e = at;

    return strcmp(name, (*e)->score_name);
}

static void pattern_fill(struct pattern *p, const struct entry_list *all, const char *text)
{
    const struct plan_entry *const *found;

    if (!has_wildcard(text)) {
        found = all->n ? bsearch(text, all->sorted, all->n, sizeof(*all->sorted), pattern_by_score) : NULL;
        if (found)
            pattern_add(p, all, *found);
        return;
    }
    for (size_t i = 0; i < all->n; i++)
        if (glob_match(text, all->sorted[i]->score_name))
            pattern_add(p, all, all->sorted[i]);
}

/* The pattern of that text, from `known` or new. NULL when out of memory. */
static struct pattern *pattern_find(struct plan_masks *m, struct map *known, const struct entry_list *all,
                                    const char *text)
{
    struct pattern *p = map_get(known, text);

    if (p)
        return p;
    p = calloc(1, sizeof(*p) + m->words * sizeof(*p->set));
    if (!p)
        return NULL;
    p->next = m->patterns;
    m->patterns = p;
    pattern_fill(p, all, text);
    return map_set(known, text, p) < 0 ? NULL : p;
}

static int mask_by_cluster(const void *a, const void *b)
{
    const struct compiled_mask *x = a, *y = b;

    return strcmp(x->cluster, y->cluster);
}

static int masks_compile(struct plan_masks *m, const struct masks *masks, const struct entry_list *all)
{
    CLEANUP(map_done) struct map known = {0};

    m->globs = calloc(masks->n + 1, sizeof(*m->globs));
    m->names = calloc(masks->n + 1, sizeof(*m->names));
    if (!m->globs || !m->names)
        return -ENOMEM;
    for (size_t i = 0; i < masks->n; i++) {
        const struct mask *one = &masks->list[i];
        const struct pattern *p = pattern_find(m, &known, all, one->score);
        struct compiled_mask *to;

        if (!p)
            return -ENOMEM;
        to = has_wildcard(one->cluster) ? &m->globs[m->n_globs++] : &m->names[m->n_names++];
        *to = (struct compiled_mask){one->cluster, p, i, 0};
    }
    qsort(m->names, m->n_names, sizeof(*m->names), mask_by_cluster);
    qsort(m->globs, m->n_globs, sizeof(*m->globs), mask_by_cluster);
    return 0;
}

int plan_masks_new(struct plan_masks **ret, const struct masks *masks, const struct plan_entry *const *sorted,
                   size_t n, const struct plan_entry *entries, size_t words)
{
    CLEANUP(cleanup_plan_masks_free) struct plan_masks *m = calloc(1, sizeof(*m));
    const struct entry_list all = {sorted, n, entries};

    if (!m)
        return -ENOMEM;
    m->words = words;
    if (masks && masks->n && masks_compile(m, masks, &all) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(m);
    return 0;
}

struct plan_masks *plan_masks_free(struct plan_masks *m)
{
    if (!m)
        return NULL;
    while (m->patterns) {
        struct pattern *p = m->patterns;

        m->patterns = p->next;
        free(p);
    }
    free(m->globs);
    free(m->names);
    free(m);
    return NULL;
}

static void mask_apply(const struct plan_masks *m, struct compiled_mask *d, uint64_t *set)
{
    d->clusters++;
    for (size_t i = 0; d->scores->any && i < m->words; i++)
        set[i] &= ~d->scores->set[i];
}

/* The index of the first name that is not less than the cluster's. */
static size_t masks_lower_bound(const struct plan_masks *m, const char *cluster)
{
    size_t low = 0, high = m->n_names;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(m->names[middle].cluster, cluster) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void plan_masks_apply(struct plan_masks *m, const char *cluster, uint64_t *set)
{
    bool match = false;

    for (size_t i = 0; i < m->n_globs; i++) {
        if (i == 0 || mask_by_cluster(&m->globs[i - 1], &m->globs[i]) != 0)
            match = glob_match(m->globs[i].cluster, cluster);
        if (match)
            mask_apply(m, &m->globs[i], set);
    }
    for (size_t i = masks_lower_bound(m, cluster);
         i < m->n_names && strcmp(m->names[i].cluster, cluster) == 0; i++)
        mask_apply(m, &m->names[i], set);
}

void plan_masks_clusters(const struct plan_masks *m, size_t *ret)
{
    for (size_t i = 0; i < m->n_globs; i++)
        ret[m->globs[i].index] = m->globs[i].clusters;
    for (size_t i = 0; i < m->n_names; i++)
        ret[m->names[i].index] = m->names[i].clusters;
}
