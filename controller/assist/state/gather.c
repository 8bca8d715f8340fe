#include "controller/assist/state/gather.h"

#include "controller/assist/rules/request.h"
#include "controller/assist/state/assist_internal.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <errno.h>

/* References to the objects of a kind in the namespace; only generated ones if asked. */
static int gather_all(const struct gathered *g, const struct world *w, enum world_kind kind, json_t ***list,
                      size_t *n, bool only_generated)
{
    const char *namespace = g->in.request->namespace;
    size_t at = 0, count = 0;
    json_t *o, **grown;

    while (world_next(w, kind, namespace, &at))
        count++;
    grown = realloc(*list, (*n + count + 1) * sizeof(json_t *));
    if (!grown)
        return -ENOMEM;
    *list = grown;
    at = 0;
    while ((o = world_next(w, kind, namespace, &at))) {
        const char *mark = kube_label(o, GENERATED_LABEL);

        if (!only_generated || (mark && strcmp(mark, "true") == 0))
            (*list)[(*n)++] = json_incref(o);
    }
    return 0;
}

static void gather_named(struct gathered *g, const struct world *w)
{
    const struct plan_request *rq = g->in.request;

    for (size_t c = 0; c < rq->n_clusters; c++) {
        const struct request_cluster *one = &rq->clusters[c];

        g->in.clusters[c] = json_incref(world_get(w, WORLD_CLUSTERS, "", one->name));
        for (size_t i = 0; i < one->policies.n; i++)
            g->in.policies[one->first_policy + i] =
                json_incref(world_get(w, WORLD_POLICIES, rq->namespace, one->policies.names[i]));
    }
    for (size_t i = 0; i < rq->n_workloads; i++) {
        json_t *o = world_get(w, WORLD_WORKLOADS, rq->namespace, rq->workloads[i].name);
        const char *placement = input_placement_name(o);

        g->in.workloads[i] = json_incref(o);
        if (placement)
            g->in.placements[i] = json_incref(world_get(w, WORLD_PLACEMENTS, rq->namespace, placement));
    }
}

static void gather_scores(struct gathered *g, const struct world *w, unix_ms now)
{
    const struct plan_request *rq = g->in.request;

    for (size_t i = 0; i < g->n_scores; i++) {
        const struct world_score *s =
            world_score(w, rq->clusters[i / rq->n_scores].name, rq->scores[i % rq->n_scores].name);

        if (!s)
            continue;
        g->scores[i] = world_score_keep(s);
        g->in.scores[i] = (struct input_score){true, world_score_is_expired(s, now), s->items, s->n_items};
    }
}

int gather(struct gathered *g, const struct assist *a, const struct plan_request *rq)
{
    size_t n_scores = rq->n_clusters * rq->n_scores, at = 0;
    int r;

    *g = (struct gathered){.in = {.request = rq}};
    g->in.clusters = calloc(rq->n_clusters, sizeof(json_t *));
    g->in.policies = calloc(rq->n_policies + 1, sizeof(json_t *));
    g->in.workloads = calloc(rq->n_workloads, sizeof(json_t *));
    g->in.placements = calloc(rq->n_workloads, sizeof(json_t *));
    g->in.scores = calloc(n_scores, sizeof(*g->in.scores));
    g->scores = calloc(n_scores, sizeof(const struct world_score *));
    if (!g->in.clusters || !g->in.policies || !g->in.workloads || !g->in.placements || !g->in.scores ||
        !g->scores)
        return -ENOMEM;
    g->n_scores = n_scores;
    gather_named(g, a->world);
    gather_scores(g, a->world, loop_wall(a->o.loop));
    r = gather_all(g, a->world, WORLD_DECISIONS, &g->in.decisions, &g->in.n_decisions, false);
    r = r ?: gather_all(g, a->world, WORLD_PLACEMENTS, &g->in.generated, &g->in.n_generated, true);
    r = r ?: gather_all(g, a->world, WORLD_BINDINGS, &g->in.generated, &g->in.n_generated, true);
    g->in.has_cel = a->cel == CEL_PRESENT;
    g->in.lacks_set_binding = !world_trouble(a->world, WORLD_SET_BINDINGS) &&
                              !world_next(a->world, WORLD_SET_BINDINGS, rq->namespace, &at);
    return r;
}

static void objects_release(json_t **list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        json_decref(list[i]);
    free(list);
}

void gathered_done(struct gathered *g)
{
    const struct plan_request *rq = g->in.request;

    if (!rq)
        return;
    objects_release(g->in.clusters, rq->n_clusters);
    objects_release(g->in.policies, rq->n_policies);
    objects_release(g->in.workloads, rq->n_workloads);
    objects_release(g->in.placements, rq->n_workloads);
    objects_release(g->in.decisions, g->in.n_decisions);
    objects_release(g->in.generated, g->in.n_generated);
    for (size_t i = 0; i < g->n_scores; i++)
        world_score_release(g->scores[i]);
    free(g->in.scores);
    free(g->scores);
}
