#include "controller/hub/state/state.h"

#include "controller/kube/client.h"
#include "controller/kube/event.h"
#include "controller/kube/json.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <stdio.h>

/* Longer than another controller takes to write its status or finalizer. */
enum { UNATTENDED_MS = 10 * 1000, STRAY_KEY_BYTES = 1024 };

struct hub_strays {
    struct hub *hub;
    struct stray_watch {
        struct hub_strays *strays;
        struct kube_watch *watch;
    } scorers, configs;
    struct kube_queue *queue; /* keys: "<kind>/<namespace>/<name>/<uid>" */
    bool said;                /* that one of the kinds cannot be watched */
};

static void stray_report(const struct hub *h, const char *kind, const char *namespace, const char *name,
                         const char *uid)
{
    json_auto_t *about =
        json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", namespace, "name", name, "uid", uid);
    char note[512];

    (void)snprintf(
        note, sizeof(note),
        "No controller watches this namespace: apply the object to namespace %s, or run the controller "
        "with --namespace=%s",
        h->o.namespace, namespace);
    log_warn("object in a namespace that no controller watches", L_STR("kind", kind),
             L_STR("namespace", namespace), L_STR("name", name), L_STR("watched", h->o.namespace));
    kube_events_add(h->events, &(const struct kube_event){.about = about,
                                                          .api_version = HUB_API,
                                                          .kind = kind,
                                                          .warning = true,
                                                          .reason = "NamespaceNotWatched",
                                                          .action = "Reconcile",
                                                          .note = note});
}

static void strays_work(void *arg, const char *key)
{
    const struct hub_strays *s = arg;
    const struct kube_watch *watch;
    char copy[STRAY_KEY_BYTES], *rest = copy;
    const char *parts[4] = {0};

    (void)snprintf(copy, sizeof(copy), "%s", key);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        parts[i] = strsep(&rest, "/");
    watch = strcmp(parts[0], kube_dynamicscorers.kind) == 0 ? s->scorers.watch : s->configs.watch;
    if (s->hub->active && kube_watch_has(watch, parts[1], parts[2]))
        stray_report(s->hub, parts[0], parts[1], parts[2], parts[3]);
    kube_queue_done(s->queue, key, true, -1);
}

/* Whether some controller has written to it. */
static bool stray_is_attended(const json_t *object)
{
    return json_object_size(kube_map(object, "status", NULL)) ||
           json_array_size(kube_list(object, "metadata", "finalizers", NULL)) || object_is_deleting(object);
}

static const char *stray_kind(const struct stray_watch *w)
{
    return w == &w->strays->scorers ? kube_dynamicscorers.kind : kube_dynamicscoringconfigs.kind;
}

static void strays_on_set(void *arg, json_t *object)
{
    struct stray_watch *w = arg;
    struct kube_queue *q = w->strays->queue;
    BUF_AUTO(key, STRAY_KEY_BYTES);

    /* All parts are limited by the API server. */
    if (buf_printf(&key, "%s/%s/%s/%s", stray_kind(w), kube_namespace(object), kube_name(object),
                   kube_uid(object)) < 0 ||
        buf_putc(&key, '\0') < 0)
        return;
    if (stray_is_attended(object))
        kube_queue_forget(q, key.p);
    else
        kube_queue_add_after(q, key.p, UNATTENDED_MS);
}

static void strays_on_trouble(void *arg, const char *text)
{
    const struct stray_watch *w = arg;

    if (text && !w->strays->said && !kube_watch_synced(w->watch))
        log_info("objects in other namespaces go unnoticed", L_STR("kind", stray_kind(w)),
                 L_STR("err", text));
    w->strays->said |= text != NULL;
}

static int strays_watch(struct hub_strays *s, struct stray_watch *w, const struct kube_resource *resource)
{
    char elsewhere[128];
    const struct kube_watch_options o = {.resource = resource,
                                         .field_selector = elsewhere,
                                         .on_set = strays_on_set,
                                         .on_trouble = strays_on_trouble,
                                         .arg = w};

    (void)snprintf(elsewhere, sizeof(elsewhere), "metadata.namespace!=%s", s->hub->o.namespace);
    w->strays = s;
    w->watch = kube_watch_new(s->hub->o.kube, &o);
    return 0;
}

int hub_strays_new(struct hub_strays **ret, struct hub *h)
{
    struct hub_strays *s = xcalloc(1, sizeof(*s));
    const struct kube_queue_options q = {.work = strays_work, .arg = s, .kube = h->o.kube};
    int r = 0;

    s->queue = kube_queue_new(h->o.loop, &q);

    if (s)
        s->hub = h;
    if (r == 0)
        r = strays_watch(s, &s->scorers, &kube_dynamicscorers);
    if (r == 0)
        r = strays_watch(s, &s->configs, &kube_dynamicscoringconfigs);
    if (r < 0) {
        (void)hub_strays_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

struct hub_strays *hub_strays_free(struct hub_strays *s)
{
    if (!s)
        return NULL;
    s->scorers.watch = kube_watch_free(s->scorers.watch);
    s->configs.watch = kube_watch_free(s->configs.watch);
    s->queue = kube_queue_free(s->queue);
    free(s);
    return NULL;
}
