/* Owns which clusters each Placement has decided on, and which of those that have left its PlacementDecisions
 * still count. The plan asks, on the loop; nothing here writes.
 *
 * Open Cluster Management writes the decisions of a Placement in objects of 100 clusters. When a cluster
 * joins ahead of a boundary, the hundredth is in none of them for a moment (its issue 1346). If that withdrew
 * its scorers, the agent would delete their AddOnPlacementScores, and all Placements that count these would
 * sort their clusters again. Therefore a cluster that leaves all decisions of a Placement counts for another
 * ten seconds while the Placement and the ManagedCluster exist. What people change themselves takes effect at
 * once: masks, deletions and spec.placements.
 *
 * A standby follows the decisions, too, so that it can take over in the middle of that time. A new process
 * has seen nothing before: for as long, clusters whose ManifestWork has the scorer count as selected. */
#include "controller/hub/state/state.h"

#include "exporter/base/alloc.h"

#include <stdio.h>

enum { GRACE_MS = 10 * 1000 };

/* A cluster that a Placement has decided on. */
struct decided_cluster {
    size_t review;   /* the number of the last one that found it in the decisions */
    mono_ms gone_at; /* the first review that did not; 0: it is there */
    char name[];     /* the key */
};

/* The clusters of one Placement. */
struct decided {
    struct map clusters; /* struct decided_cluster */
    char *uid;           /* the Placement's; NULL: it does not exist */
    char name[];         /* the key */
};

/* The name of the Placement that it is of; "" if unknown. */
static const char *decision_placement(const json_t *decision)
{
    return cstr(kube_label(decision, "cluster.open-cluster-management.io/placement"));
}

static void clusters_free(struct map *clusters)
{
    void *one;

    for (size_t at = 0; (one = map_next(clusters, &at));)
        free(one);
    map_done(clusters);
}

/* ---- What the watches show ---- */

static void objects_keep(struct hub *h, struct map *map, const char *name, json_t *object)
{
    json_t *before = map_take(map, name);

    if (object)
        map_set(map, kube_name(object), json_incref(object));
    json_decref(before);
    h->decisions.changed = true;
    if (hub_uses_placements(h)) {
        hub_schedule_plan(h);
        hub_schedule_tally(h);
    }
}

void hub_placement_seen(struct hub *h, const char *name, json_t *object)
{
    objects_keep(h, &h->placements, name, object);
}

void hub_decision_seen(struct hub *h, const char *name, json_t *object)
{
    objects_keep(h, &h->decisions.objects, name, object);
}

/* ---- Which clusters count ---- */

static struct decided *decided_find_or_new(struct hub *h, const char *placement)
{
    struct decided *d = map_get(&h->decisions.decided, placement);
    size_t n = strlen(placement) + 1;

    if (d)
        return d;
    d = xcalloc(1, sizeof(*d) + n);
    memcpy(d->name, placement, n);
    map_set(&h->decisions.decided, d->name, d);
    return d;
}

static struct decided_cluster *decided_add(struct map *clusters, const char *name)
{
    struct decided_cluster *c = map_get(clusters, name);
    size_t n = strlen(name) + 1;

    if (c)
        return c;
    c = xcalloc(1, sizeof(*c) + n);
    memcpy(c->name, name, n);
    map_set(clusters, c->name, c);
    return c;
}

static void review_read_decision(struct hub *h, const json_t *decision)
{
    struct decided *d = decided_find_or_new(h, decision_placement(decision));
    json_t *one;
    size_t i;

    json_array_foreach(kube_list(decision, "status", "decisions", NULL), i, one)
    {
        const char *name = kube_str(one, "clusterName", NULL);
        struct decided_cluster *c = name ? decided_add(&d->clusters, name) : NULL;

        if (!c)
            continue;
        c->review = h->decisions.reviews;
        c->gone_at = (mono_ms){0};
    }
}

/* Whether the Placement is the one that has made the decisions so far, and stays. */
static bool review_placement(const struct hub *h, struct decided *d)
{
    const json_t *placement = map_get(&h->placements, d->name);
    const char *uid = placement && !object_is_deleting(placement) ? kube_uid(placement) : NULL;
    bool stays = uid && (!d->uid || strcmp(d->uid, uid) == 0);

    free(d->uid);
    d->uid = uid ? xstrdup(uid) : NULL;
    return stays;
}

static bool cluster_exists(const struct hub *h, const char *name)
{
    const struct hub_cluster *c = map_get(&h->clusters, name);

    return c && c->managed;
}

/* Notes when the next one of them ceases to count. */
static void review_note_end(struct hub *h, mono_ms gone_at)
{
    mono_ms end = mono_add(gone_at, GRACE_MS);

    if (!h->decisions.due.ms || mono_before(end, h->decisions.due))
        h->decisions.due = end;
}

/* Forgets clusters that the decisions lack, and that count no longer. */
static void review_placement_clusters(struct hub *h, struct decided *d)
{
    CLEANUP(cleanup_free)
    struct decided_cluster **over = xmalloc((d->clusters.n + 1) * sizeof(*over));
    bool stays = review_placement(h, d);
    mono_ms now = loop_now(h->o.loop);
    struct decided_cluster *c;
    size_t n = 0;

    for (size_t at = 0; (c = map_next(&d->clusters, &at));) {
        if (c->review == h->decisions.reviews)
            continue;
        if (!c->gone_at.ms)
            c->gone_at = now;
        if (stays && cluster_exists(h, c->name) && mono_diff(c->gone_at, now) < GRACE_MS)
            review_note_end(h, c->gone_at);
        else
            over[n++] = c;
    }
    for (size_t i = 0; i < n; i++)
        free(map_take(&d->clusters, over[i]->name));
}

static void review_free_decided(struct decided *d)
{
    clusters_free(&d->clusters);
    free(d->uid);
    free(d);
}

void hub_decisions_review(struct hub *h)
{
    struct hub_decisions *all = &h->decisions;
    mono_ms now = loop_now(h->o.loop);
    const json_t *decision;
    struct decided *d;

    if (!all->changed && (!all->due.ms || mono_before(now, all->due)))
        return;
    all->changed = false;
    all->due = (mono_ms){0};
    all->reviews++;
    for (size_t at = 0; (decision = map_next(&all->objects, &at));)
        review_read_decision(h, decision);
    for (size_t at = 0; (d = map_next(&all->decided, &at));) {
        review_placement_clusters(h, d);
        if (d->clusters.n)
            continue;
        (void)map_take(&all->decided, d->name);
        review_free_decided(d);
        at = 0; /* the map has changed */
    }
    if (!all->held_at.ms)
        return;
    if (mono_diff(all->held_at, now) < GRACE_MS) {
        review_note_end(h, all->held_at);
        return;
    }
    all->held_at = (mono_ms){0};
    for (size_t i = 0; i < h->n_scorers; i++)
        hub_scorer_drop_held(h->by_age[i]);
}

int64_t hub_decisions_due_ms(const struct hub *h)
{
    return h->decisions.due.ms ? mono_diff(loop_now(h->o.loop), h->decisions.due) : INT64_MAX;
}

size_t hub_placement_clusters(const struct hub *h, const char *placement)
{
    const struct decided *d = map_get(&h->decisions.decided, placement);

    return d ? d->clusters.n : 0;
}

/* One of its Placements exists. */
static bool scorer_has_placement(const struct hub_scorer *s)
{
    const json_t *one;
    size_t i;

    json_array_foreach(s->spec.placements, i, one)
    {
        const json_t *placement = map_get(&s->hub->placements, cstr(json_string_value(one)));

        if (placement && !object_is_deleting(placement))
            return true;
    }
    return false;
}

struct map *hub_scorer_clusters(const struct hub_scorer *s)
{
    const struct hub_decisions *all = &s->hub->decisions;
    struct map *clusters = s->spec.placements ? xcalloc(1, sizeof(*clusters)) : NULL;
    struct decided_cluster *c;
    const json_t *one;
    size_t i;

    json_array_foreach(s->spec.placements, i, one)
    {
        const struct decided *d = map_get(&all->decided, cstr(json_string_value(one)));

        for (size_t at = 0; d && (c = map_next(&d->clusters, &at));)
            map_set(clusters, c->name, c);
    }
    if (!clusters || !scorer_has_placement(s))
        return clusters;
    for (size_t at = 0; (c = map_next(&s->held, &at));)
        map_set(clusters, c->name, c);
    return clusters;
}

/* ---- What ManifestWorks hold at the start ----
 *
 * Until all objects have been listed once, the texts in ManifestWorks are read: each text once, as most
 * clusters have the same. */

/* The scorers of one text. */
struct held_text {
    size_t n;
    uint64_t *scores; /* report_score() of each */
    char key[20];
};

static void held_key(char ret[20], uint64_t hash)
{
    (void)snprintf(ret, 20, "%016llx", (unsigned long long)hash);
}

static void held_read(void *arg, uint64_t hash, struct str text)
{
    struct hub *h = arg;
    struct held_text *t;
    char key[20];

    held_key(key, hash);
    if (map_get(&h->decisions.texts, key))
        return;
    t = xcalloc(1, sizeof(*t));
    memcpy(t->key, key, sizeof(key));
    t->n = work_scores(text, &t->scores);
    map_set(&h->decisions.texts, t->key, t);
}

void hub_decisions_begin(struct hub *h)
{
    h->decisions.work_cut.name = work_cut.name;
    h->decisions.work_cut.hash = work_cut.hash;
    h->decisions.work_cut.learn = held_read;
    h->decisions.work_cut.arg = h;
    h->decisions.is_starting = true;
}

/* The text of one list, or what has been read of it before it was cut. */
static const struct held_text *held_find(struct hub *h, struct str text)
{
    uint64_t hash;
    char key[20];

    if (!text.p)
        return NULL;
    if (!kube_cut_read(text, &hash)) {
        hash = plan_hash(text);
        held_read(h, hash, text);
    }
    held_key(key, hash);
    return map_get(&h->decisions.texts, key);
}

void hub_decisions_note_work(struct hub *h, struct hub_cluster *c, const json_t *work)
{
    if (!h->decisions.is_starting)
        return;
    c->held[0] = held_find(h, work_list(work, false));
    c->held[1] = held_find(h, work_list(work, true));
}

static bool held_has(const struct held_text *t, uint64_t score)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->scores[i] == score)
            return true;
    return false;
}

static void held_resume_scorer(struct hub *h, struct hub_scorer *s)
{
    uint64_t score = report_score(str_of(cstr(s->effective.score_name)));
    const struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        if (held_has(c->held[0], score) || held_has(c->held[1], score))
            (void)decided_add(&s->held, c->name);
}

static void held_free_texts(struct hub *h)
{
    struct held_text *t;
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        c->held[0] = c->held[1] = NULL;
    for (size_t at = 0; (t = map_next(&h->decisions.texts, &at)); free(t))
        free(t->scores);
    map_done(&h->decisions.texts);
}

void hub_decisions_resume(struct hub *h)
{
    if (!h->decisions.is_starting)
        return;
    for (size_t i = 0; i < h->n_scorers; i++)
        if (h->by_age[i]->spec.placements && h->by_age[i]->effective.score_name)
            held_resume_scorer(h, h->by_age[i]);
    held_free_texts(h);
    h->decisions.is_starting = false;
    h->decisions.work_cut.learn = NULL;
    h->decisions.held_at = loop_now(h->o.loop);
    h->decisions.changed = true;
}

void hub_scorer_drop_held(struct hub_scorer *s)
{
    clusters_free(&s->held);
}

/* ---- The end ---- */

static void objects_done(struct map *map)
{
    json_t *object;

    for (size_t at = 0; (object = map_next(map, &at));)
        json_decref(object);
    map_done(map);
}

void hub_decisions_free(struct hub *h)
{
    struct decided *d;

    for (size_t at = 0; (d = map_next(&h->decisions.decided, &at));)
        review_free_decided(d);
    map_done(&h->decisions.decided);
    held_free_texts(h);
    buf_done(&h->decisions.work_cut.last);
    objects_done(&h->placements);
    objects_done(&h->decisions.objects);
}
