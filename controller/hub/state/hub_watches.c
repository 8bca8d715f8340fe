#include "controller/hub/state/hub_watches.h"

#include "controller/hub/rules/work.h"
#include "controller/hub/rules/work_text.h"
#include "controller/hub/state/hub_clusters.h"
#include "controller/hub/state/hub_configs.h"
#include "controller/hub/state/hub_scorers.h"
#include "controller/kube/watch.h"
#include "exporter/base/log.h"

enum {
    ADDONS_PAGE = 100,
    WORKS_PAGE = 25 /* each may hold half a megabyte */
};

static const struct {
    void (*set)(struct hub *h, json_t *object);
    void (*delete)(struct hub *h, const char *namespace, const char *name);
    bool in_own_namespace;
    struct kube_watch_options options;
} watches[HUB_KINDS] = {
    [HUB_SCORERS] = {hub_scorer_set, hub_scorer_delete, true, {0}},
    [HUB_CONFIGS] = {hub_config_set, hub_config_delete, true, {0}},
    [HUB_CLUSTERS] = {hub_managed_set, hub_managed_delete, false, {0}},
    [HUB_ADDONS] = {hub_addon_set, hub_addon_delete, false, {.page = ADDONS_PAGE}},
    [HUB_WORKS] = {hub_work_set,
                   hub_work_delete,
                   false,
                   {.name = WORK_NAME, .page = WORKS_PAGE, .cut = &work_cut}},
};

static size_t watch_kind(const struct hub_watch *w)
{
    return (size_t)(w - w->hub->watches);
}

static void watch_on_set(void *arg, json_t *object)
{
    struct hub_watch *w = arg;

    watches[watch_kind(w)].set(w->hub, object);
}

static void watch_on_delete(void *arg, const char *namespace, const char *name)
{
    struct hub_watch *w = arg;

    watches[watch_kind(w)].delete(w->hub, namespace, name);
}

static void watch_on_synced(void *arg)
{
    struct hub_watch *w = arg;

    w->hub->on_synced(w->hub);
}

static void watch_on_trouble(void *arg, const char *text)
{
    const struct hub_watch *w = arg;
    const char *objects = hub_kinds[watch_kind(w)].plural;

    if (text && !hub_watch_trouble(w->hub, watch_kind(w)))
        log_info("kind not installed, agents are judged by their reports alone", L_STR("objects", objects));
    else if (text)
        log_warn("watch failed, last known objects stay active", L_STR("objects", objects),
                 L_STR("err", text));
    else
        log_info("watch recovered", L_STR("objects", objects));
    if (text && watch_kind(w) == HUB_ADDONS) /* not waited for any longer */
        w->hub->on_synced(w->hub);
}

int hub_watches_new(struct hub *h, void (*synced)(struct hub *h))
{
    int r = 0;

    h->on_synced = synced;
    for (size_t i = 0; i < HUB_KINDS && r == 0; i++) {
        struct kube_watch_options o = watches[i].options;

        h->watches[i].hub = h;
        o.resource = hub_kinds[i].resource;
        o.namespace = watches[i].in_own_namespace ? h->o.namespace : NULL;
        o.name = i == HUB_ADDONS ? h->o.addon_name : o.name;
        o.on_set = watch_on_set;
        o.on_delete = watch_on_delete;
        o.on_synced = watch_on_synced;
        o.on_trouble = watch_on_trouble;
        o.arg = &h->watches[i];
        r = kube_watch_new(&h->watches[i].watch, h->o.kube, &o);
    }
    return r;
}

void hub_watches_free(struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        h->watches[i].watch = kube_watch_free(h->watches[i].watch);
}

void hub_watches_hurry(struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        kube_watch_hurry(h->watches[i].watch);
}

bool hub_synced(const struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        if (!hub_watch_listed(h, i))
            return false;
    return true;
}
