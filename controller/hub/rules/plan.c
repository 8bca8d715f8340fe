/* Which scorers each cluster gets: masks, and clusters grouped by equal lists. A plan owns copies of the
 * summaries, and its groups; written/desired.c owns the plan. Loop thread; reads no clock. */
#include "controller/hub/rules/plan.h"

#include "controller/hub/rules/report.h"
#include "controller/kube/json.h"
#include "controller/kube/list_error.h"
#include "exporter/base/clock.h"

#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/glob.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Masks ---- */

static int mask_read_pattern(const char **ret, const struct list_place *at, const json_t *entry,
                             const char *key, struct buf *why)
{
    *ret = kube_str(entry, key, NULL);
    if (!*cstr(*ret))
        return list_member_error(why, at, key, "expected a name or a pattern with * and ?");
    return 0;
}

/* Appends the entries of one of the two lists. */
static int masks_read_list(struct masks *m, const json_t *list, const char *path, struct buf *why)
{
    struct list_place at = {.list = path};
    const json_t *entry;

    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return list_error(why, path, "expected a list of {clusterName, scoreName}");
    json_array_foreach(list, at.i, entry)
    {
        struct mask *one = &m->list[m->n++];

        if (mask_read_pattern(&one->cluster, &at, entry, "clusterName", why) < 0 ||
            mask_read_pattern(&one->score, &at, entry, "scoreName", why) < 0)
            return -EINVAL;
    }
    return 0;
}

int masks_read(struct masks *ret, json_t *object, struct buf *why)
{
    const json_t *list = kube_get(object, "spec", "masks", NULL);
    const json_t *alias = kube_get(object, "spec", "mask", NULL);
    size_t max = json_array_size(list) + json_array_size(alias);
    struct masks m = {.owner = json_incref(object), .list = xcalloc(max + 1, sizeof(struct mask))};
    int r = masks_read_list(&m, list, "spec.masks", why) ?: masks_read_list(&m, alias, "spec.mask", why);

    if (r < 0)
        masks_done(&m);
    else
        *ret = m;
    return r;
}

void masks_done(struct masks *m)
{
    json_decref(m->owner);
    free(m->list);
    *m = (struct masks){0};
}

/* ---- Masks as the plan looks them up ---- */

static void set_bit(uint64_t *set, size_t i)
{
    set[i / 64] |= 1ull << (i % 64);
}

static void plan_compile_masks(struct plan *p, const struct masks *masks)
{
    p->masks = (struct masks){.list = xcalloc(masks->n + 1, sizeof(struct mask)), .n = masks->n};
    p->masks.owner = json_incref(masks->owner);
    p->of_masks = xcalloc(masks->n + 1, sizeof(struct plan_mask));
    p->mask_sets = xcalloc(masks->n + 1, p->words * sizeof(uint64_t));
    for (size_t i = 0; i < masks->n; i++) {
        const struct mask *m = &p->masks.list[i];

        p->masks.list[i] = masks->list[i];
        p->of_masks[i].next = map_get(&p->clusters, m->cluster);
        p->of_masks[i].entries = &p->mask_sets[i * p->words];
        for (size_t k = 0; k < p->n; k++)
            if (glob_match(m->score, p->entries[k].score_name))
                set_bit(p->of_masks[i].entries, k);
        map_set(&p->clusters, m->cluster, &p->of_masks[i]);
        if (strpbrk(m->cluster, "*?") && !p->of_masks[i].next)
            p->globs[p->n_globs++] = m->cluster;
    }
}

static void plan_compile_adjustments(struct plan *p, const struct fleet_adjustments *adjustments)
{
    size_t n = adjustments->n;

    p->adjustments = fleet_adjustments_copy(adjustments);
    p->adjustment_words = n / 64 + 1;
    p->of_adjustments = xcalloc(n + 1, sizeof(*p->of_adjustments));
    p->adjustment_sets = xcalloc(2 * n + 1, p->words * sizeof(uint64_t));
    for (size_t i = 0; i < n; i++) {
        struct plan_adjustment *a = &p->of_adjustments[i];

        a->entries = &p->adjustment_sets[2 * i * p->words];
        a->matched = a->entries + p->words;
        for (size_t k = 0; k < p->n; k++)
            if (glob_match(adjustments->list[i].what.score, p->entries[k].score_name))
                set_bit(a->entries, k);
    }
}

/* Removes from the set what the masks of that cluster leave out, and counts the cluster for each. */
static void plan_apply(struct plan *p, const char *name, uint64_t *set)
{
    for (struct plan_mask *m = map_get(&p->clusters, name); m; m = m->next) {
        m->clusters++;
        for (size_t i = 0; i < p->words; i++)
            set[i] &= ~m->entries[i];
    }
}

/* Which entries of the cluster an adjustment can change: those that its agent takes, and writes as an
 * object. */
static void plan_find_adjustable(const struct plan *p, const struct plan_cluster *c, const uint64_t *set,
                                 uint64_t *ret)
{
    for (size_t i = 0; i < p->n; i++)
        if (set[i / 64] >> (i % 64) & 1 && p->entries[i].has_object && !(p->entries[i].needs & c->lacks))
            set_bit(ret, i);
}

/* Sets the bits of the adjustments that change a score of the cluster, which is meant to have the entries
 * of `set`, and counts it for each. */
static void plan_adjust(struct plan *p, const struct plan_cluster *c, const uint64_t *set, uint64_t *ret)
{
    CLEANUP(cleanup_free) uint64_t *adjustable = xcalloc(p->words, sizeof(*adjustable));
    json_auto_t *attributes =
        p->adjustments.has_selectors && c->attributes ? json_loads(c->attributes, 0, NULL) : NULL;

    plan_find_adjustable(p, c, set, adjustable);
    for (size_t i = 0; i < p->adjustments.n; i++) {
        struct plan_adjustment *a = &p->of_adjustments[i];
        bool changes = false;

        if (!fleet_adjustment_selects(&p->adjustments.list[i], c->name, attributes))
            continue;
        a->selected++;
        for (size_t k = 0; k < p->words; k++) {
            changes |= (a->entries[k] & adjustable[k]) != 0;
            a->matched[k] |= a->entries[k] & adjustable[k];
        }
        if (!changes)
            continue;
        set_bit(ret, i);
        a->clusters++;
    }
}

/* ---- Groups ---- */

enum { EMPTY_BYTES = 4 /* "[]" with quotes */, SINCE_BYTES = 64 };

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

static int plan_compare_names(const void *a, const void *b, void *entries)
{
    const struct plan_entry *list = entries;

    return strcmp(list[*(const size_t *)a].score_name, list[*(const size_t *)b].score_name);
}

/* Appends ,"since":"2026-11-21T06:23:01Z" inside of the summary, an object: the length of its text then. */
static size_t entry_add_since(char *text, size_t n, int64_t since_ms)
{
    char since[KUBE_TIME_BYTES];

    kube_time_format((unix_ms){since_ms}, since);
    return n - 1 + (size_t)sprintf(text + n - 1, ",\"since\":\"%s\"}", since);
}

/* Copies name and text to the storage. Returns where the next one goes. */
static char *entry_copy(struct plan_entry *to, const struct plan_entry *from, char *storage)
{
    char *text;
    size_t n = from->text.n;

    *to = *from;
    to->score_name = storage;
    text = stpcpy(storage, from->score_name) + 1;
    memcpy(text, cstr(from->text.p), n);
    if (from->suspended_ms)
        n = entry_add_since(text, n, from->suspended_ms);
    to->text = (struct str){text, n};
    to->score = report_score(str_of(to->score_name));
    to->escaped = escaped_bytes(to->text);
    return text + n;
}

static size_t entries_bytes(const struct plan_entry *entries, size_t n)
{
    size_t bytes = 1;

    for (size_t i = 0; i < n; i++)
        bytes += strlen(entries[i].score_name) + 1 + entries[i].text.n + SINCE_BYTES;
    return bytes;
}

struct plan *plan_new(const struct plan_entry *entries, size_t n, const struct masks *masks,
                      const struct fleet_adjustments *adjustments, size_t max_bytes)
{
    static const struct masks none;
    static const struct fleet_adjustments unadjusted;
    struct plan *p = xcalloc(1, sizeof(*p));
    size_t bytes = entries_bytes(entries, n);
    char *at;

    masks = masks ?: &none;
    p->n = n;
    p->words = n / 64 + 1;
    p->max_bytes = size_max(max_bytes, EMPTY_BYTES);
    p->entries = xcalloc(n + 1, sizeof(*p->entries));
    p->by_name = xcalloc(n + 1, sizeof(size_t));
    p->globs = xcalloc(masks->n + 1, sizeof(char *));
    at = p->storage = xmalloc(bytes);
    for (size_t i = 0; i < n; i++) {
        at = entry_copy(&p->entries[i], &entries[i], at);
        p->by_name[i] = i;
    }
    invariant(at < p->storage + bytes);
    qsort_r(p->by_name, n, sizeof(size_t), plan_compare_names, p->entries);
    plan_compile_masks(p, masks);
    plan_compile_adjustments(p, adjustments ?: &unadjusted);
    return p;
}

struct plan *plan_free(struct plan *p)
{
    struct plan_group *g;

    if (!p)
        return NULL;
    for (size_t at = 0; (g = map_next(&p->groups, &at)); free(g))
        free(g->key);
    map_done(&p->groups);
    map_done(&p->clusters);
    masks_done(&p->masks);
    free(p->of_masks);
    free(p->mask_sets);
    fleet_adjustments_done(&p->adjustments);
    free(p->of_adjustments);
    free(p->adjustment_sets);
    free(p->globs);
    free(p->entries);
    free(p->by_name);
    free(p->storage);
    free(p);
    return NULL;
}

/* Where the sets of a group are that is made, one behind the other. */
static size_t plan_set_words(const struct plan *p)
{
    return p->words + p->adjustment_words;
}

void plan_adjustments_text(const struct plan *p, const struct plan_group *g, struct buf *into)
{
    fleet_adjustments_text(&p->adjustments, &g->set[2 * p->words], into);
}

/* sets: the entries that are meant for it, and its adjustments. */
static struct plan_group *group_new(const struct plan *p, const uint64_t *sets, unsigned lacks,
                                    const char *key)
{
    struct plan_group *g = xcalloc(1, sizeof(*g) + (p->words + plan_set_words(p)) * sizeof(uint64_t));
    BUF_AUTO(text, p->max_bytes);
    BUF_AUTO(suspended, p->max_bytes);
    BUF_AUTO(adjustments, SIZE_MAX);
    size_t room = p->max_bytes - EMPTY_BYTES;

    g->lacks = lacks;
    memcpy(&g->set[p->words], sets, plan_set_words(p) * sizeof(uint64_t));
    plan_adjustments_text(p, g, &adjustments);
    if (buf_failed(&adjustments) < 0) /* it has no ceiling */
        memory_exhausted(adjustments.n);
    room -= size_min(room, escaped_bytes(buf_str(&adjustments)));
    /* Adds entries in order while there is room, suspended last; one that is too large keeps out no other. */
    for (size_t i = 0; i < p->n; i++) {
        size_t bytes = p->entries[i].escaped + (g->scorers > 0); /* with a comma */

        if (!plan_group_lacks(p, g, i)) /* not meant for it, or too new for its agents */
            continue;
        if (bytes > room) {
            g->left_out++;
            continue;
        }
        set_bit(g->set, i);
        g->scorers++;
        room -= bytes;
    }
    /* No longer than they were counted. */
    plan_text(p, g, false, &text);
    plan_text(p, g, true, &suspended);
    invariant(buf_failed(&text) == 0 && buf_failed(&suspended) == 0);
    g->key = xstrdup(key);
    g->bytes = text.n + suspended.n + adjustments.n;
    g->hash = plan_hash_lists(plan_hash(buf_str(&text)), buf_str(&suspended), buf_str(&adjustments));
    return g;
}

const struct plan_group *plan_group_of(struct plan *p, const struct plan_cluster *c)
{
    CLEANUP(cleanup_free) uint64_t *sets = xcalloc(plan_set_words(p), sizeof(*sets));
    BUF_AUTO(key, SIZE_MAX);
    struct plan_group *g;

    for (size_t i = 0; i < p->n; i++)
        if (!p->entries[i].clusters || map_get(p->entries[i].clusters, c->name))
            set_bit(sets, i);
    plan_apply(p, c->name, sets); /* a name has no wildcard */
    for (size_t i = 0; i < p->n_globs; i++)
        if (glob_match(p->globs[i], c->name))
            plan_apply(p, p->globs[i], sets);
    plan_adjust(p, c, sets, &sets[p->words]);
    buf_printf(&key, "%x", c->lacks);
    for (size_t i = 0; i < plan_set_words(p); i++)
        buf_printf(&key, " %" PRIx64, sets[i]);
    buf_putc(&key, '\0');
    if (buf_failed(&key) < 0) /* it has no ceiling */
        memory_exhausted(key.n);
    g = map_get(&p->groups, key.p);
    if (!g) {
        g = group_new(p, sets, c->lacks, key.p);
        map_set(&p->groups, g->key, g);
    }
    return g;
}

void plan_text(const struct plan *p, const struct plan_group *g, bool suspended, struct buf *into)
{
    char before = '[';

    for (size_t k = 0; k < p->n; k++) {
        size_t i = p->by_name[k];

        if (!plan_group_has(g, i) || p->entries[i].suspended != suspended)
            continue;
        buf_putc(into, before);
        buf_put_str(into, p->entries[i].text);
        before = ',';
    }
    if (before == ',' || !suspended)
        buf_puts(into, before == '[' ? "[]" : "]");
}

uint64_t plan_hash(struct str text)
{
    return hash_bytes(text) ?: 1;
}

uint64_t plan_hash_lists(uint64_t summaries, struct str suspended, struct str adjustments)
{
    uint64_t h = summaries;

    if (suspended.n)
        h = hash_chain_u64(h, hash_bytes(suspended));
    if (adjustments.n) /* as of one list more, also where none is suspended */
        h = hash_chain_u64(hash_chain_u64(h, 0), hash_bytes(adjustments));
    return h ?: 1;
}
