#include "controller/hub/rules/plan.h"

#include "exporter/base/buf.h"
#include "exporter/base/glob.h"
#include "exporter/base/hash.h"
#include "exporter/base/map.h"

#include <errno.h>

struct plan_masks;

/* ---- Masks ---- */

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

/* The pattern of that text, from `known` or new. */
static struct pattern *pattern_find(struct plan_masks *m, struct map *known, const struct entry_list *all,
                                    const char *text)
{
    struct pattern *p = map_get(known, text);

    if (p)
        return p;
    p = xcalloc(1, sizeof(*p) + m->words * sizeof(*p->set));
    p->next = m->patterns;
    m->patterns = p;
    pattern_fill(p, all, text);
    map_set(known, text, p);
    return p;
}

static int mask_by_cluster(const void *a, const void *b)
{
    const struct compiled_mask *x = a, *y = b;

    return strcmp(x->cluster, y->cluster);
}

static void masks_compile(struct plan_masks *m, const struct masks *masks, const struct entry_list *all)
{
    CLEANUP(map_done) struct map known = {0};

    m->globs = xcalloc(masks->n + 1, sizeof(*m->globs));
    m->names = xcalloc(masks->n + 1, sizeof(*m->names));
    for (size_t i = 0; i < masks->n; i++) {
        const struct mask *one = &masks->list[i];
        const struct pattern *p = pattern_find(m, &known, all, one->score);
        struct compiled_mask *to;

        to = has_wildcard(one->cluster) ? &m->globs[m->n_globs++] : &m->names[m->n_names++];
        *to = (struct compiled_mask){one->cluster, p, i, 0};
    }
    qsort(m->names, m->n_names, sizeof(*m->names), mask_by_cluster);
    qsort(m->globs, m->n_globs, sizeof(*m->globs), mask_by_cluster);
}

static struct plan_masks *plan_masks_free(struct plan_masks *m)
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
DEFINE_CLEANUP(struct plan_masks, plan_masks_free)

/* sorted: pointers into `entries`, by score name. A set has `words` words, bit i for entries[i]. masks may
 * be NULL and must outlive the result. -ENOMEM. */
static struct plan_masks *plan_masks_new(const struct masks *masks, const struct plan_entry *const *sorted,
                                         size_t n, const struct plan_entry *entries, size_t words)
{
    CLEANUP(cleanup_plan_masks_free) struct plan_masks *m = xcalloc(1, sizeof(*m));
    const struct entry_list all = {sorted, n, entries};

    m->words = words;
    if (masks && masks->n)
        masks_compile(m, masks, &all);
    return TAKE_PTR(m);
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

/* Removes from the set what the cluster leaves out, and counts the cluster for each mask that names it. */
static void plan_masks_apply(struct plan_masks *m, const char *cluster, uint64_t *set)
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

/* Sets ret[i] to the number of clusters counted for masks->list[i]. */
static void plan_masks_clusters(const struct plan_masks *m, size_t *ret)
{
    for (size_t i = 0; i < m->n_globs; i++)
        ret[m->globs[i].index] = m->globs[i].clusters;
    for (size_t i = 0; i < m->n_names; i++)
        ret[m->names[i].index] = m->names[i].clusters;
}

/* ---- Groups ---- */

enum { FIRST_CAP = 16, EMPTY_BYTES = 4 /* "[]" with quotes */ };

struct plan {
    const struct plan_entry *entries;
    size_t n, words; /* words: per set */
    size_t max_bytes;
    const struct plan_entry **sorted; /* by score name */
    size_t *escaped;                  /* size of each entry's text in a ManifestWork */
    struct plan_masks *masks;
    uint64_t *all, *wanted;     /* sets: all entries; those of the cluster at hand */
    struct plan_group **groups; /* an open-addressing table by wanted set */
    size_t cap, n_groups;       /* cap: a power of two */
    struct buf text;            /* for hashing */
};

/* As API servers and webhooks count: Go's encoding/json also escapes <, >, &, U+2028 and U+2029. */
static size_t escaped_bytes(struct str s)
{
    size_t n = s.n;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t')
            n += 1;
        else if (c < ' ' || c == '<' || c == '>' || c == '&')
            n += 5;
        else if (c == 0xe2 && s.n - i >= 3 && s.p[i + 1] == '\x80' && (s.p[i + 2] & '\xfe') == '\xa8')
            n += 3;
    }
    return n;
}

static int plan_by_score_name(const void *a, const void *b)
{
    const struct plan_entry *const *x = a, *const *y = b;

    return strcmp((*x)->score_name, (*y)->score_name);
}

static bool has_bit(const uint64_t *set, size_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *set, size_t i)
{
    set[i / 64] |= 1ull << (i % 64);
}

static void plan_allocate(struct plan *p)
{
    p->sorted = xcalloc(p->n + 1, sizeof(*p->sorted));
    p->escaped = xcalloc(p->n + 1, sizeof(*p->escaped));
    p->all = xcalloc(p->words, sizeof(*p->all));
    p->wanted = xcalloc(p->words, sizeof(*p->wanted));
    p->groups = xcalloc(FIRST_CAP, sizeof(struct plan_group *));
    p->cap = FIRST_CAP;
}

struct plan *plan_new(const struct plan_entry *entries, size_t n, const struct masks *masks, size_t max_bytes)
{
    CLEANUP(cleanup_plan_free) struct plan *p = xcalloc(1, sizeof(*p));

    p->entries = entries;
    p->n = n;
    p->words = n / 64 + 1;
    p->max_bytes = size_max(max_bytes, EMPTY_BYTES);
    buf_init(&p->text, p->max_bytes);
    plan_allocate(p);
    for (size_t i = 0; i < n; i++) {
        p->sorted[i] = &entries[i];
        p->escaped[i] = escaped_bytes(entries[i].text);
        set_bit(p->all, i);
    }
    qsort(p->sorted, n, sizeof(*p->sorted), plan_by_score_name);
    p->masks = plan_masks_new(masks, p->sorted, n, entries, p->words);
    return TAKE_PTR(p);
}

struct plan *plan_free(struct plan *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; p->groups && i < p->cap; i++)
        free(p->groups[i]);
    free(p->groups);
    p->masks = plan_masks_free(p->masks);
    free(p->sorted);
    free(p->escaped);
    free(p->all);
    free(p->wanted);
    buf_done(&p->text);
    free(p);
    return NULL;
}

/* The set before entries were left out; stored behind it. */
static uint64_t *group_wanted(const struct plan *p, struct plan_group *g)
{
    return &g->set[p->words];
}

static size_t plan_set_bytes(const struct plan *p)
{
    return p->words * sizeof(uint64_t);
}

/* The slot of the group with that set, or a free one for it. There is always a free slot. */
static struct plan_group **plan_slot(const struct plan *p, struct plan_group **groups, size_t cap,
                                     const uint64_t *wanted)
{
    size_t i = hash_bytes((struct str){(const char *)wanted, plan_set_bytes(p)}) & (cap - 1);

    while (groups[i] && memcmp(group_wanted(p, groups[i]), wanted, plan_set_bytes(p)) != 0)
        i = (i + 1) & (cap - 1);
    return &groups[i];
}

static void plan_grow(struct plan *p)
{
    size_t cap = p->cap * 2;
    struct plan_group **groups = xcalloc(cap, sizeof(*groups));

    for (size_t i = 0; i < p->cap; i++)
        if (p->groups[i])
            *plan_slot(p, groups, cap, group_wanted(p, p->groups[i])) = p->groups[i];
    free(p->groups);
    p->groups = groups;
    p->cap = cap;
}

/* Adds entries in their order while there is room; one that is too large does not keep out smaller ones
 * after it. */
static void group_fill(const struct plan *p, struct plan_group *g)
{
    const uint64_t *wanted = group_wanted(p, g);
    size_t room = p->max_bytes - EMPTY_BYTES;

    for (size_t i = 0; i < p->n; i++) {
        size_t bytes = p->escaped[i] + (g->scorers > 0); /* with a comma */

        if (!has_bit(wanted, i))
            continue;
        if (bytes > room) {
            g->left_out++;
            continue;
        }
        set_bit(g->set, i);
        g->scorers++;
        room -= bytes;
    }
}

static int group_new(struct plan_group **ret, struct plan *p)
{
    CLEANUP(cleanup_free) struct plan_group *g = xcalloc(1, sizeof(*g) + 2 * plan_set_bytes(p));

    memcpy(group_wanted(p, g), p->wanted, plan_set_bytes(p));
    group_fill(p, g);
    buf_truncate(&p->text, 0);
    if (plan_text(p, g, &p->text) < 0)
        return -ENOMEM;
    g->bytes = p->text.n;
    g->hash = plan_hash(buf_str(&p->text));
    *ret = TAKE_PTR(g);
    return 0;
}

const struct plan_group *plan_group_of(struct plan *p, const char *cluster)
{
    struct plan_group **slot;

    memcpy(p->wanted, p->all, plan_set_bytes(p));
    plan_masks_apply(p->masks, cluster, p->wanted);
    if (4 * (p->n_groups + 1) > 3 * p->cap)
        plan_grow(p);
    slot = plan_slot(p, p->groups, p->cap, p->wanted);
    if (!*slot) {
        if (group_new(slot, p) < 0)
            return NULL;
        p->n_groups++;
    }
    (*slot)->clusters++;
    return *slot;
}

bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i)
{
    return has_bit(&g->set[p->words], i) && !plan_group_has(g, i);
}

void plan_mask_clusters(const struct plan *p, size_t *ret)
{
    plan_masks_clusters(p->masks, ret);
}

static int plan_put_entries(const struct plan *p, const struct plan_group *g, struct buf *into)
{
    char before = '[';
    int r = 0;

    for (size_t i = 0; i < p->n && r == 0; i++) {
        const struct plan_entry *e = p->sorted[i];

        if (!plan_group_has(g, (size_t)(e - p->entries)))
            continue;
        r = buf_putc(into, before);
        if (r == 0)
            r = buf_put_str(into, e->text);
        before = ',';
    }
    if (r == 0 && before == '[')
        r = buf_putc(into, '[');
    return r == 0 ? buf_putc(into, ']') : r;
}

int plan_text(const struct plan *p, const struct plan_group *g, struct buf *into)
{
    size_t mark = into->n;
    int r = plan_put_entries(p, g, into);

    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

uint64_t plan_hash(struct str text)
{
    uint64_t h = hash_bytes(text);

    return h ? h : 1;
}
