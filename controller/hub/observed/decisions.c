/* Owns which clusters each Placement has decided on, and which of those that have left its
 * PlacementDecisions still count. Loop thread: the conductor hands in what the watches show and the time;
 * written/desired.c asks. Nothing here schedules or writes.
 *
 * Open Cluster Management writes the decisions of a Placement in objects of 100 clusters. When a cluster
 * joins ahead of a boundary, the hundredth is in none of them for a moment (its issue 1346). If that
 * withdrew its scorers, the agent would delete their AddOnPlacementScores, and all Placements that count
 * these would sort their clusters again. Therefore a cluster that leaves all decisions of a Placement
 * counts for another ten seconds while the Placement and the ManagedCluster exist, and then until a list has
 * been read that was begun later: a stream that has died, or that an API server feeds which lags, shows the
 * first of two writes and not the second. What people change themselves takes effect at once: masks,
 * deletions and spec.placements.
 *
 * A standby follows the decisions, too, so that it can take over in the middle of that time. A new process
 * has seen nothing before: for as long, clusters whose ManifestWork has the scorer count as selected. */
#include "controller/hub/observed/decisions.h"

#include "controller/hub/observed/object.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/cut.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"

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

static void decided_free_clusters(struct map *clusters)
{
    void *one;

    for (size_t at = 0; (one = map_next(clusters, &at));)
        free(one);
    map_done(clusters);
}

/* ---- What the watches show ---- */

static void objects_keep(struct decisions *d, struct map *map, const char *name, json_t *object)
{
    json_t *before = map_take(map, name);

    if (object)
        map_set(map, kube_name(object), json_incref(object));
    json_decref(before);
    d->changed = true;
}

void decisions_see_placement(struct decisions *d, const char *name, json_t *object)
{
    objects_keep(d, &d->placements, name, object);
}

void decisions_see_decision(struct decisions *d, const char *name, json_t *object)
{
    objects_keep(d, &d->objects, name, object);
}

/* ---- Which clusters count ---- */

static struct decided *decided_find_or_new(struct decisions *all, const char *placement)
{
    struct decided *d = map_get(&all->decided, placement);
    size_t n = strlen(placement) + 1;

    if (d)
        return d;
    d = xcalloc(1, sizeof(*d) + n);
    memcpy(d->name, placement, n);
    map_set(&all->decided, d->name, d);
    return d;
}

static struct decided_cluster *cluster_set_add(struct map *clusters, const char *name)
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

static void review_read_decision(struct decisions *all, const json_t *decision)
{
    struct decided *d = decided_find_or_new(all, decision_placement(decision));
    json_t *one;
    size_t i;

    json_array_foreach(kube_list(decision, "status", "decisions", NULL), i, one)
    {
        const char *name = kube_str(one, "clusterName", NULL);
        struct decided_cluster *c = name ? cluster_set_add(&d->clusters, name) : NULL;

        if (!c)
            continue;
        c->review = all->reviews;
        c->gone_at = (mono_ms){0};
    }
}

/* Whether the Placement is the one that has made the decisions so far, and stays. */
static bool review_placement(const struct decisions *all, struct decided *d)
{
    const json_t *placement = map_get(&all->placements, d->name);
    const char *uid = placement && !object_is_deleting(placement) ? kube_uid(placement) : NULL;
    bool stays = uid && (!d->uid || strcmp(d->uid, uid) == 0);

    free(d->uid);
    d->uid = uid ? xstrdup(uid) : NULL;
    return stays;
}

static bool review_has_cluster(const struct clusters *clusters, const char *name)
{
    const struct hub_cluster *c = clusters_find(clusters, name);

    return c && c->managed;
}

/* Whether what was gone then still counts. Notes what ends that: the time, or a list. */
static bool review_keeps(struct decisions *all, mono_ms gone_at, mono_ms listed, mono_ms now)
{
    mono_ms end = mono_add(gone_at, GRACE_MS);

    if (!mono_before(now, end)) {
        bool is_confirmed = !mono_before(listed, end);

        all->awaits_list |= !is_confirmed;
        return !is_confirmed;
    }
    if (!all->due.ms || mono_before(end, all->due))
        all->due = end;
    return true;
}

/* Forgets clusters that the decisions lack, and that count no longer. */
static void review_placement_clusters(struct decisions *all, struct decided *d,
                                      const struct clusters *clusters, mono_ms listed, mono_ms now)
{
    CLEANUP(cleanup_free)
    struct decided_cluster **ended = xmalloc((d->clusters.n + 1) * sizeof(*ended));
    bool stays = review_placement(all, d);
    struct decided_cluster *c;
    size_t n = 0;

    for (size_t at = 0; (c = map_next(&d->clusters, &at));) {
        if (c->review == all->reviews)
            continue;
        if (!c->gone_at.ms)
            c->gone_at = now;
        if (!stays || !review_has_cluster(clusters, c->name) || !review_keeps(all, c->gone_at, listed, now))
            ended[n++] = c;
    }
    for (size_t i = 0; i < n; i++)
        free(map_take(&d->clusters, ended[i]->name));
}

static void review_free_decided(struct decided *d)
{
    decided_free_clusters(&d->clusters);
    free(d->uid);
    free(d);
}

static bool scorers_had_clusters(const struct scorers *scorers)
{
    for (size_t i = 0; i < scorers->n; i++)
        if (scorers->by_age[i]->at_start.n)
            return true;
    return false;
}

/* What clusters held at the start counts for as long as a cluster that has left. */
static void review_start(struct decisions *all, const struct scorers *scorers, mono_ms listed, mono_ms now)
{
    if (!all->started_at.ms ||
        (scorers_had_clusters(scorers) && review_keeps(all, all->started_at, listed, now)))
        return;
    all->started_at = (mono_ms){0};
    for (size_t i = 0; i < scorers->n; i++)
        scorer_forget_start(scorers->by_age[i]);
}

void decisions_review(struct decisions *all, const struct scorers *scorers, const struct clusters *clusters,
                      mono_ms listed, mono_ms now)
{
    const json_t *decision;
    struct decided *d;

    if (!all->changed && !all->awaits_list && (!all->due.ms || mono_before(now, all->due)))
        return;
    all->changed = all->awaits_list = false;
    all->due = (mono_ms){0};
    all->reviews++;
    for (size_t at = 0; (decision = map_next(&all->objects, &at));)
        review_read_decision(all, decision);
    for (size_t at = 0; (d = map_next(&all->decided, &at));) {
        review_placement_clusters(all, d, clusters, listed, now);
        if (d->clusters.n)
            continue;
        (void)map_take(&all->decided, d->name);
        review_free_decided(d);
        at = 0; /* the map has changed */
    }
    review_start(all, scorers, listed, now);
}

bool decisions_await_list(const struct decisions *all)
{
    return all->awaits_list;
}

int64_t decisions_due_ms(const struct decisions *all, mono_ms now)
{
    return all->due.ms ? mono_diff(now, all->due) : INT64_MAX;
}

size_t decisions_count(const struct decisions *all, const char *placement)
{
    const struct decided *d = map_get(&all->decided, placement);

    return d ? d->clusters.n : 0;
}

/* One of its Placements exists. */
static bool scorer_has_placement(const struct decisions *all, const struct hub_scorer *s)
{
    const json_t *one;
    size_t i;

    json_array_foreach(s->spec.placements, i, one)
    {
        const json_t *placement = map_get(&all->placements, cstr(json_string_value(one)));

        if (placement && !object_is_deleting(placement))
            return true;
    }
    return false;
}

struct map *decisions_of_scorer(const struct decisions *all, const struct hub_scorer *s)
{
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
    if (!clusters || !scorer_has_placement(all, s))
        return clusters;
    for (size_t at = 0; (c = map_next(&s->at_start, &at));)
        map_set(clusters, c->name, c);
    return clusters;
}

/* ---- What ManifestWorks hold at the start ----
 *
 * Until all objects have been listed once, the texts in ManifestWorks are read: each text once, as most
 * clusters have the same. */

/* The scorers of one text. */
struct start_text {
    size_t n;
    uint64_t *scores; /* report_score() of each */
    char key[20];
};

static void start_key(char ret[20], uint64_t hash)
{
    (void)snprintf(ret, 20, "%016llx", (unsigned long long)hash);
}

static void start_read(void *arg, uint64_t hash, struct str text)
{
    struct decisions *all = arg;
    struct start_text *t;
    char key[20];

    start_key(key, hash);
    if (map_get(&all->texts, key))
        return;
    t = xcalloc(1, sizeof(*t));
    memcpy(t->key, key, sizeof(key));
    t->n = work_scores(text, &t->scores);
    map_set(&all->texts, t->key, t);
}

void decisions_begin(struct decisions *all)
{
    all->work_cut.name = work_cut.name;
    all->work_cut.hash = work_cut.hash;
    all->work_cut.learn = start_read;
    all->work_cut.arg = all;
    all->is_starting = true;
}

/* The text of one list, or what has been read of it before it was cut. */
static const struct start_text *start_find(struct decisions *all, struct str text)
{
    uint64_t hash;
    char key[20];

    if (!text.p)
        return NULL;
    if (!kube_cut_read(text, &hash)) {
        hash = plan_hash(text);
        start_read(all, hash, text);
    }
    start_key(key, hash);
    return map_get(&all->texts, key);
}

void decisions_note_work(struct decisions *all, struct hub_cluster *c, const json_t *work)
{
    if (!all->is_starting)
        return;
    c->at_start[0] = start_find(all, work_list(work, false));
    c->at_start[1] = start_find(all, work_list(work, true));
}

static bool start_has(const struct start_text *t, uint64_t score)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->scores[i] == score)
            return true;
    return false;
}

static void start_resume_scorer(const struct clusters *clusters, struct hub_scorer *s)
{
    uint64_t score = report_score(str_of(cstr(s->effective.score_name)));
    const struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&clusters->by_name, &at));)
        if (start_has(c->at_start[0], score) || start_has(c->at_start[1], score))
            (void)cluster_set_add(&s->at_start, c->name);
}

static void start_free_texts(struct decisions *all, const struct clusters *clusters)
{
    struct start_text *t;
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&clusters->by_name, &at));)
        c->at_start[0] = c->at_start[1] = NULL;
    for (size_t at = 0; (t = map_next(&all->texts, &at)); free(t))
        free(t->scores);
    map_done(&all->texts);
}

void decisions_resume(struct decisions *all, const struct scorers *scorers, const struct clusters *clusters,
                      mono_ms now)
{
    if (!all->is_starting)
        return;
    for (size_t i = 0; i < scorers->n; i++)
        if (scorers->by_age[i]->spec.placements && scorers->by_age[i]->effective.score_name)
            start_resume_scorer(clusters, scorers->by_age[i]);
    start_free_texts(all, clusters);
    all->is_starting = false;
    all->work_cut.learn = NULL;
    all->started_at = now;
    all->changed = true;
}

void scorer_forget_start(struct hub_scorer *s)
{
    decided_free_clusters(&s->at_start);
}

/* ---- The end ---- */

static void objects_done(struct map *map)
{
    json_t *object;

    for (size_t at = 0; (object = map_next(map, &at));)
        json_decref(object);
    map_done(map);
}

void decisions_done(struct decisions *all, const struct clusters *clusters)
{
    struct decided *d;

    for (size_t at = 0; (d = map_next(&all->decided, &at));)
        review_free_decided(d);
    map_done(&all->decided);
    start_free_texts(all, clusters);
    buf_done(&all->work_cut.last);
    objects_done(&all->placements);
    objects_done(&all->objects);
}
