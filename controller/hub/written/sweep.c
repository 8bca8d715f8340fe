/* Owns the queue of clusters to sweep, and the one that is being swept. Called by the conductor before
 * each plan, on the loop; never waits. Also what was there at the start is deleted, but nothing of another
 * add-on, and nothing that has changed since it was listed. */
#include "controller/hub/written/sweep.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/queue.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/placement/owner.h"
#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/map.h"

/* After the ManifestWork: while that is there, a running agent would write them again. */
static bool sweep_is_wanted(const struct sweep *s, const struct hub_cluster *c)
{
    return s->is_active && c && c->managed && c->addon == ADDON_GONE && !c->work.exists &&
           !c->write.object.call;
}

void sweep_review(struct sweep *s)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&s->clusters->by_name, &at));) {
        if (c->addon != ADDON_GONE)
            c->write.is_swept = false;
        if (c->write.is_swept || !sweep_is_wanted(s, c))
            continue;
        c->write.is_swept = true;
        kube_queue_add(s->queue, c->name);
    }
}

static void sweep_end(struct sweep *s, const struct kube_answer *failed)
{
    CLEANUP(cleanup_free) char *cluster = TAKE_PTR(s->cluster);

    invariant(cluster && !s->call);
    if (failed)
        log_warn("AddOnPlacementScores of a cluster without the add-on not deleted",
                 L_STR("cluster", cluster), L_STR("err", failed->why));
    json_decref(TAKE_PTR(s->left));
    kube_queue_done(s->queue, cluster, !failed, failed ? failed->retry_after_ms : -1);
}

static void sweep_next(struct sweep *s);

static void sweep_on_deleted(void *arg, struct kube_answer *answer)
{
    struct sweep *s = arg;
    json_t *list = kube_list(s->left, "items", NULL);
    size_t last = json_array_size(list) - 1;

    s->call = NULL;
    if (answer->verdict != KUBE_OK && answer->verdict != KUBE_NOT_FOUND) {
        sweep_end(s, answer);
        return;
    }
    log_info("AddOnPlacementScore deleted, as the cluster has no add-on", L_STR("cluster", s->cluster),
             L_STR("object", kube_name(json_array_get(list, last))));
    (void)json_array_remove(list, last);
    sweep_next(s);
}

/* Only as it was listed: whoever has written it meanwhile is alive. */
static void sweep_delete(struct sweep *s, const json_t *score)
{
    json_auto_t *body =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "kind", "DeleteOptions", "apiVersion", "v1", "preconditions",
                  "uid", kube_uid(score), "resourceVersion", kube_version(score));
    const struct kube_request rq = {.method = KUBE_DELETE,
                                    .resource = &kube_addonplacementscores,
                                    .namespace = s->cluster,
                                    .name = kube_name(score),
                                    .body = body};

    s->call = kube_start(s->o->kube, &rq, sweep_on_deleted, s);
}

/* Goes on from the end of the list, which loses what has been dealt with. */
static void sweep_next(struct sweep *s)
{
    json_t *list = kube_list(s->left, "items", NULL);

    while (json_array_size(list) && sweep_is_wanted(s, clusters_find(s->clusters, s->cluster))) {
        size_t last = json_array_size(list) - 1;
        const json_t *score = json_array_get(list, last);

        if (object_is_of_add_on(score, s->o->addon_name)) {
            sweep_delete(s, score);
            return;
        }
        (void)json_array_remove(list, last);
    }
    sweep_end(s, NULL);
}

static void sweep_on_listed(void *arg, struct kube_answer *answer)
{
    struct sweep *s = arg;
    bool has_none = answer->verdict == KUBE_NOT_FOUND || answer->verdict == KUBE_NO_KIND;

    s->call = NULL;
    if (answer->verdict != KUBE_OK) {
        sweep_end(s, has_none ? NULL : answer);
        return;
    }
    s->left = json_incref(answer->object);
    sweep_next(s);
}

/* The queue's work. */
static void sweep_on_turn(void *arg, const char *cluster)
{
    struct sweep *s = arg;
    const struct kube_request rq = {.method = KUBE_LIST,
                                    .resource = &kube_addonplacementscores,
                                    .namespace = cluster,
                                    .label_selector = SCORE_LABEL "=" SCORE_LABEL_VALUE,
                                    .metadata_only = true};

    if (!sweep_is_wanted(s, clusters_find(s->clusters, cluster))) {
        kube_queue_done(s->queue, cluster, true, -1);
        return;
    }
    invariant(!s->cluster);
    s->cluster = xstrdup(cluster);
    s->call = kube_start(s->o->kube, &rq, sweep_on_listed, s);
}

void sweep_begin(struct sweep *s)
{
    const struct kube_queue_options queue = {
        .work = sweep_on_turn, .arg = s, .kube = s->o->kube, .max_active = 1};

    s->queue = kube_queue_new(s->o->loop, &queue);
}

void sweep_start(struct sweep *s)
{
    s->is_active = true;
}

void sweep_stop(struct sweep *s)
{
    struct hub_cluster *c;

    s->is_active = false;
    for (size_t at = 0; (c = map_next(&s->clusters->by_name, &at));)
        c->write.is_swept = false;
    if (!s->call)
        return;
    s->call = kube_cancel(s->call);
    sweep_end(s, NULL);
}

void sweep_done(struct sweep *s)
{
    sweep_stop(s);
    s->queue = kube_queue_free(s->queue);
}
