/* Owns the watches of all other namespaces, and a queue for each: an object is told of once it has been
 * there for a while without a sign of another controller. On the loop; never waits. */
#include "controller/hub/strays.h"

#include "controller/hub/observed/object.h"
#include "controller/kube/events.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/resource.h"
#include "controller/kube/watch.h"
#include "exporter/base/alloc.h"
#include "exporter/base/log.h"

/* Longer than another controller takes to write its status or finalizer. */
enum { UNATTENDED_MS = 10 * 1000 };

/* Of one kind of objects. */
struct stray_watch {
    struct strays *strays;
    const struct kube_resource *resource;
    struct kube_queue *queue; /* keys: "<namespace>/<name>/<uid>" */
    struct kube_watch *watch;
};

struct strays {
    const struct hub_options *o;
    struct kube_events *events;
    struct stray_watch kinds[2];
    bool is_active;
    bool is_blind; /* logged that some of them cannot be watched */
};

static void stray_report(const struct stray_watch *w, const char *namespace, const char *name,
                         const char *uid)
{
    const char *watched = w->strays->o->namespace;
    json_auto_t *about =
        json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", namespace, "name", name, "uid", uid);
    CLEANUP(cleanup_free)
    char *note =
        xasprintf("No controller watches this namespace: apply the object to namespace %s, or run the "
                  "controller with --namespace=%s",
                  watched, namespace);

    log_warn("object in a namespace that no controller watches", L_STR("kind", w->resource->kind),
             L_STR("namespace", namespace), L_STR("name", name), L_STR("watched", watched));
    kube_events_add(w->strays->events, &(const struct kube_event){.about = about,
                                                                  .api_version = HUB_API,
                                                                  .kind = w->resource->kind,
                                                                  .warning = true,
                                                                  .reason = "NamespaceNotWatched",
                                                                  .action = "Reconcile",
                                                                  .note = note});
}

/* The queue's work. */
static void strays_on_turn(void *arg, const char *key)
{
    const struct stray_watch *w = arg;
    CLEANUP(cleanup_free) char *copy = xstrdup(key);
    const char *parts[3] = {0};
    char *rest = copy;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        parts[i] = strsep(&rest, "/");
    if (w->strays->is_active && kube_watch_has(w->watch, parts[0], parts[1]))
        stray_report(w, parts[0], parts[1], parts[2]);
    kube_queue_done(w->queue, key, true, -1);
}

static bool stray_is_attended(const json_t *object)
{
    return json_object_size(kube_map(object, "status", NULL)) || object_is_deleting(object) ||
           json_array_size(kube_list(object, "metadata", "finalizers", NULL));
}

static void strays_on_set(void *arg, json_t *object)
{
    const struct stray_watch *w = arg;
    CLEANUP(cleanup_free)
    char *key = xasprintf("%s/%s/%s", kube_namespace(object), kube_name(object), kube_uid(object));

    if (stray_is_attended(object))
        kube_queue_forget(w->queue, key);
    else
        kube_queue_add_after(w->queue, key, UNATTENDED_MS);
}

static void strays_on_error(void *arg, const char *error)
{
    const struct stray_watch *w = arg;

    if (!w->strays->is_blind && !kube_watch_synced(w->watch))
        log_info("objects in other namespaces go unnoticed", L_STR("kind", w->resource->kind),
                 L_STR("err", error));
    w->strays->is_blind = true;
}

struct strays *strays_new(const struct hub_options *o, struct kube_events *events)
{
    static const struct kube_resource *const resources[] = {&kube_dynamicscorers,
                                                            &kube_dynamicscoringconfigs};
    CLEANUP(cleanup_free) char *elsewhere = xasprintf("metadata.namespace!=%s", o->namespace);
    struct strays *s = xcalloc(1, sizeof(*s));

    s->o = o;
    s->events = events;
    for (size_t i = 0; i < ARRAY_SIZE(s->kinds); i++) {
        struct stray_watch *w = &s->kinds[i];
        const struct kube_queue_options queue = {.work = strays_on_turn, .arg = w, .kube = o->kube};
        const struct kube_watch_options watch = {.resource = resources[i],
                                                 .field_selector = elsewhere,
                                                 .on_set = strays_on_set,
                                                 .on_error = strays_on_error,
                                                 .arg = w};

        *w = (struct stray_watch){s, resources[i], kube_queue_new(o->loop, &queue), NULL};
        w->watch = kube_watch_new(o->kube, &watch);
    }
    return s;
}

struct strays *strays_free(struct strays *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(s->kinds); i++) {
        (void)kube_watch_free(s->kinds[i].watch);
        (void)kube_queue_free(s->kinds[i].queue);
    }
    free(s);
    return NULL;
}

void strays_start(struct strays *s)
{
    s->is_active = true;
}

void strays_stop(struct strays *s)
{
    s->is_active = false;
}
