#include "controller/hub/state/state.h"

#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/masks.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/writer.h"
#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/base/map.h"

#include <errno.h>

/* Owners of what no two scorers may share: a score name, and the AddOnPlacementScore that it leads to. */
struct owners {
    struct map names, objects;
};

static void plan_claim(struct owners *owners, struct hub_scorer *s)
{
    struct hub_scorer *owner = map_get(&owners->names, s->effective.score_name);

    s->object_name[0] = '\0';
    if (strcmp(cstr(s->spec.destination), "None") != 0)
        (void)object_name(str_of(s->effective.score_name), s->object_name);
    s->same_object = !owner;
    if (!owner && *s->object_name)
        owner = map_get(&owners->objects, s->object_name);
    if (owner) {
        s->older = owner;
        owner->younger = s;
        return;
    }
    map_set(&owners->names, s->effective.score_name, s);
    if (*s->object_name)
        map_set(&owners->objects, s->object_name, s);
}

/* The older of two scorers owns the score name, healthy or not: a name that changed owners with each
 * failed probe would mix two scorers' scores. */
static int plan_find_duplicates(struct hub *h)
{
    struct owners owners = {0};
    int r = 0;

    for (size_t i = 0; i < h->n_scorers; i++) {
        h->by_age[i]->older = h->by_age[i]->younger = NULL;
        h->by_age[i]->eligible = hub_scorer_is_eligible(h->by_age[i]);
    }
    for (size_t i = 0; i < h->n_scorers; i++)
        if (h->by_age[i]->effective.score_name)
            plan_claim(&owners, h->by_age[i]);
    map_done(&owners.names);
    map_done(&owners.objects);
    return r;
}

static bool plan_includes(const struct hub_scorer *s)
{
    return !s->older && effective_usable(&s->effective) && s->eligible;
}

void hub_plan_done(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    h->body = hub_body_unref(h->body);
    while ((c = map_next(&h->clusters, &at)))
        c->group = NULL;
    for (size_t i = 0; i < h->n_entries; i++)
        if (h->entry_scorers[i])
            h->entry_scorers[i]->entry = SIZE_MAX;
    h->plan = plan_free(h->plan);
    free(h->entries);
    free(h->entry_scorers);
    free(h->entry_scores);
    free(h->entries_by_score);
    h->entries = NULL;
    h->entry_scorers = NULL;
    h->entry_scores = NULL;
    h->entries_by_score = NULL;
    h->n_entries = 0;
    buf_done(&h->entry_texts);
    free(h->mask_counts);
    h->mask_counts = NULL;
    free(h->plan_masks.list);
    json_decref(h->plan_masks.owner);
    h->plan_masks = (struct masks){0};
}

static void plan_copy_masks(struct hub *h)
{
    const struct masks *m = &h->config.masks;

    h->plan_masks.list = xmalloc((m->n + 1) * sizeof(struct mask));
    if (m->n)
        memcpy(h->plan_masks.list, m->list, m->n * sizeof(struct mask));
    h->plan_masks.n = m->n;
    h->plan_masks.owner = json_incref(m->owner);
}

static int plan_copy_text(struct buf *into, struct str text)
{
    return buf_put_str(into, text) ?: buf_putc(into, '\0');
}

static int plan_copy_texts(struct hub *h)
{
    int r = 0;

    for (size_t i = 0; i < h->n_entries && r == 0; i++) {
        const struct effective *e = &h->entry_scorers[i]->effective;

        r = plan_copy_text(&h->entry_texts, str_of(e->score_name))
                ?: plan_copy_text(&h->entry_texts, buf_str(&e->text));
    }
    return r;
}

/* Only once the buffer is complete, since it moves while it grows. */
static void plan_point_into_texts(struct hub *h)
{
    const char *at = h->entry_texts.p;

    for (size_t i = 0; i < h->n_entries; i++) {
        struct plan_entry *e = &h->entries[i];

        e->score_name = at;
        at += strlen(at) + 1;
        e->text = (struct str){at, h->entry_scorers[i]->effective.text.n};
        at += e->text.n + 1;
        h->entry_scores[i] = report_score(str_of(e->score_name));
    }
}

static int plan_compare_score(const void *pa, const void *pb, void *arg)
{
    const uint64_t *scores = arg;
    uint64_t a = scores[*(const size_t *)pa], b = scores[*(const size_t *)pb];

    return a < b ? -1 : a > b;
}

static int plan_make_entries(struct hub *h)
{
    h->entries = xcalloc(h->n_scorers + 1, sizeof(struct plan_entry));
    h->entry_scorers = xcalloc(h->n_scorers + 1, sizeof(struct hub_scorer *));
    h->entry_scores = xcalloc(h->n_scorers + 1, sizeof(uint64_t));
    h->entries_by_score = xcalloc(h->n_scorers + 1, sizeof(size_t));
    for (size_t i = 0; i < h->n_scorers; i++)
        if (plan_includes(h->by_age[i])) {
            h->entries_by_score[h->n_entries] = h->n_entries;
            h->entry_scorers[h->n_entries++] = h->by_age[i];
        }
    if (plan_copy_texts(h) < 0)
        return -ENOMEM;
    plan_point_into_texts(h);
    for (size_t i = 0; i < h->n_entries; i++)
        h->entry_scorers[i]->entry = i;
    qsort_r(h->entries_by_score, h->n_entries, sizeof(size_t), plan_compare_score, h->entry_scores);
    return 0;
}

static int plan_assign(struct hub *h, struct hub_cluster *c)
{
    bool selected = hub_cluster_target(h, c) == TARGET_WORK;
    uint64_t hash;

    c->group = selected ? plan_group_of(h->plan, c->name) : NULL;
    if (selected && !c->group)
        return -ENOMEM;
    hash = c->group ? c->group->hash : 0;
    /* Another writer undid other summaries: these need not wait. */
    if (hash != c->wanted_hash && c->write.undone)
        kube_queue_forget(h->works.queue, c->name);
    c->wanted_hash = hash;
    hub_cluster_reconcile(h, c);
    return 0;
}

/* Without valid masks it is unknown which cluster gets what: everything stays as it is. */
static bool plan_is_possible(const struct hub *h)
{
    return hub_is_distributing(h) && hub_config_has_finalizer(h) && h->config.has_masks;
}

int hub_plan_make(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;
    int r = plan_find_duplicates(h);

    hub_plan_done(h);
    if (r == 0 && plan_is_possible(h)) {
        plan_copy_masks(h);
        r = plan_make_entries(h);
        if (r == 0)
            h->plan = plan_new(h->entries, h->n_entries, &h->plan_masks, WORK_MAX_BYTES - WORK_FRAME_BYTES);
    }
    while (r == 0 && (c = map_next(&h->clusters, &at)))
        r = plan_assign(h, c);
    if (r == 0 && h->plan)
        hub_masks_count(h);
    if (r < 0)
        hub_plan_done(h);
    return r;
}
