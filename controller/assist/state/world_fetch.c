#include "controller/assist/state/world_fetch.h"

#include "controller/hub/rules/work_text.h"
#include "controller/kube/verdict.h"

#include <errno.h>

enum { FETCH_TIMEOUT_MS = 5000 };

struct world_fetch {
    world_fetched_fn done;
    void *arg;
    struct kube_call *call;
    LIST_ENTRY(world_fetch) entry;
};

struct world_fetches {
    struct kube *kube;
    LIST_HEAD(, world_fetch) list;
};

static void fetch_end(struct world_fetch *f, const json_t *object, const char *why)
{
    LIST_REMOVE(f, entry);
    f->done(f->arg, object, why);
    free(f);
}

static void fetch_on_answer(void *arg, struct kube_answer *a)
{
    bool missing = a->verdict == KUBE_NOT_FOUND || a->verdict == KUBE_NO_KIND;

    fetch_end(arg, a->verdict == KUBE_OK ? a->object : NULL,
              a->verdict == KUBE_OK || missing ? NULL : a->why);
}

int world_fetch_work(const struct world *w, const char *cluster, world_fetched_fn done, void *arg)
{
    struct world_fetches *fetches = world_fetches_of(w);
    const struct kube_request rq = {
        .method = KUBE_GET,
        .resource = &kube_manifestworks,
        .namespace = cluster,
        .name = WORK_NAME,
        .timeout_ms = FETCH_TIMEOUT_MS,
    };
    struct world_fetch *f = calloc(1, sizeof(*f));
    int r;

    if (!f)
        return -ENOMEM;
    f->done = done;
    f->arg = arg;
    r = kube_start(&f->call, fetches->kube, &rq, fetch_on_answer, f);
    if (r < 0) {
        free(f);
        return r;
    }
    LIST_INSERT_HEAD(&fetches->list, f, entry);
    return 0;
}

int world_fetches_new(struct world_fetches **ret, struct kube *k)
{
    struct world_fetches *f = calloc(1, sizeof(*f));

    if (!f)
        return -ENOMEM;
    f->kube = k;
    LIST_INIT(&f->list);
    *ret = f;
    return 0;
}

struct world_fetches *world_fetches_free(struct world_fetches *f)
{
    struct world_fetch *one;

    while (f && (one = LIST_FIRST(&f->list))) {
        (void)kube_cancel(one->call);
        fetch_end(one, NULL, "the optimizer stops");
    }
    free(f);
    return NULL;
}
