#include "controller/hub/pages/status_view.h"

#include "controller/hub/state/hub_tally.h"
#include "controller/hub/state/status.h"

#include <errno.h>

static const struct probe_status not_probed;

/* On a standby no one probes or counts: what the leader wrote is all there is. */
static json_t *status_of(const struct view *v, const struct hub_scorer *s)
{
    if (v->h->leading)
        return status_of_scorer(s, (unix_ms){v->now_ms});
    return json_incref(kube_map(s->object, "status", NULL));
}

static enum view_ready ready_by(const json_t *status)
{
    const json_t *condition;
    size_t i;

    json_array_foreach(kube_list(status, "conditions", NULL), i, condition)
    {
        const char *value = cstr(kube_str(condition, "status", NULL));

        if (strcmp(cstr(kube_str(condition, "type", NULL)), "Ready") != 0)
            continue;
        return strcmp(value, "True") == 0    ? VIEW_READY
               : strcmp(value, "False") == 0 ? VIEW_NOT_READY
                                             : VIEW_UNKNOWN;
    }
    return VIEW_UNKNOWN;
}

static bool is_troubled(const struct view_scorer *s)
{
    const struct probe_status *p = s->probe;

    return s->ready != VIEW_READY || *s->s->spec_error || *s->s->write_error || s->s->older || s->s->younger ||
           s->s->tally.failing || s->s->tally.n_named || s->s->tally.no_room ||
           (p->probe.asked && !p->probe.ok) || (p->config.asked && !p->config.ok);
}

static int view_scorer_make(struct view_scorer *ret, const struct view *v, const struct hub_scorer *s)
{
    *ret = (struct view_scorer){.s = s, .probe = s->probe ? probe_status(s->probe) : &not_probed};
    ret->status = status_of(v, s);
    if (v->h->leading && !ret->status)
        return -ENOMEM;
    ret->ready = ready_by(ret->status);
    ret->troubled = is_troubled(ret);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct view_scorer *x = a, *y = b;

    return strcmp(x->s->name, y->s->name);
}

static int by_trouble(const void *a, const void *b)
{
    const struct view_scorer *x = a, *y = b;

    if (x->ready != y->ready)
        return x->ready < y->ready ? -1 : 1;
    if (x->troubled != y->troubled)
        return x->troubled ? -1 : 1;
    return by_name(a, b);
}

static int by_cluster(const void *a, const void *b)
{
    const struct hub_cluster *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int take_clusters(struct view *v)
{
    const struct hub_cluster *c;
    size_t at = 0;

    v->clusters = calloc(v->h->clusters.n + 1, sizeof(struct hub_cluster *));
    if (!v->clusters)
        return -ENOMEM;
    while ((c = map_next(&v->h->clusters, &at)))
        v->clusters[v->n_clusters++] = c;
    qsort(v->clusters, v->n_clusters, sizeof(struct hub_cluster *), by_cluster);
    return 0;
}

int view_make(struct view *ret, struct hub *h, bool troubled_first)
{
    CLEANUP(view_done) struct view v = {.h = h, .now_ms = loop_wall(h->o.loop).ms};
    int r;

    hub_tally(h);
    v.scorers = calloc(h->n_scorers + 1, sizeof(*v.scorers));
    r = v.scorers ? take_clusters(&v) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < h->n_scorers; i++)
        r = view_scorer_make(&v.scorers[v.n_scorers++], &v, h->by_age[i]);
    if (r < 0)
        return r;
    qsort(v.scorers, v.n_scorers, sizeof(*v.scorers), troubled_first ? by_trouble : by_name);
    *ret = v;
    v = (struct view){0};
    return 0;
}

const struct view_scorer *view_scorer_find(const struct view *v, const char *name)
{
    for (size_t i = 0; i < v->n_scorers; i++)
        if (strcmp(v->scorers[i].s->name, name) == 0)
            return &v->scorers[i];
    return NULL;
}

void view_done(struct view *v)
{
    for (size_t i = 0; i < v->n_scorers; i++)
        json_decref(v->scorers[i].status);
    free(v->scorers);
    free(v->clusters);
    *v = (struct view){0};
}

size_t view_cluster_failing(const struct hub_cluster *c)
{
    size_t n = 0;

    for (uint32_t i = 0; i < c->report.n; i++)
        n += report_cell_fails(&c->report.cells[i]);
    return n;
}

enum view_trouble view_cluster_trouble(const struct hub_cluster *c)
{
    if (c->failures)
        return TROUBLE_WRITE;
    if (*c->work.why)
        return TROUBLE_APPLY;
    if (c->managed && c->unavailable)
        return TROUBLE_AWAY;
    if (c->managed && view_cluster_failing(c))
        return TROUBLE_SCORING;
    if (c->managed && c->report.there && (c->report.trouble || !c->report.config_ok))
        return TROUBLE_REPORT;
    return c->behind ? TROUBLE_BEHIND : TROUBLE_NONE;
}

int64_t view_behind_ms(const struct view *v, const struct hub_cluster *c)
{
    return c->behind ? mono_diff(c->behind_since, loop_now(v->h->o.loop)) : 0;
}

bool view_watch(const struct hub *h, size_t i, const char **ret_kind, const struct kube_watch **ret)
{
    if (i >= HUB_KINDS)
        return false;
    *ret_kind = hub_kinds[i].plural;
    *ret = h->watches[i].watch;
    return true;
}

WORD_TABLE(view_health_word, enum probe_health, HEALTH_INACTIVE + 1,
           {[HEALTH_UNKNOWN] = "unknown", [HEALTH_ACTIVE] = "healthy", [HEALTH_INACTIVE] = "unhealthy"});
