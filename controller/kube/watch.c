/* Owns its one call under way, a page of the list or the stream of events, and its timer, which starts the
 * next call. */
#include "controller/kube/watch_internal.h"

#include "exporter/base/clock.h"

#include <errno.h>
#include <stdio.h>

enum {
    DEFAULT_PAGE = 500,
    DEFAULT_PAGE_BYTES = 16 << 20,
    DEFAULT_OBJECT_BYTES = 4 << 20,
};

bool kube_watch_synced(const struct kube_watch *w)
{
    return w->synced;
}

const char *kube_watch_trouble(const struct kube_watch *w)
{
    return w->trouble[0] ? w->trouble : NULL;
}

bool kube_watch_lacks_kind(const struct kube_watch *w)
{
    return w->lacks_kind;
}

unix_ms kube_watch_heard(const struct kube_watch *w)
{
    return w->heard;
}

void kube_watch_hurry(struct kube_watch *w)
{
    w->call = kube_cancel(w->call);
    kube_watch_again(w, 0);
}

/* A stream opened before the server went away may hang on a dead connection. */
static void watch_on_return(struct kube_waiter *waiter)
{
    struct kube_watch *w = CONTAINER_OF(waiter, struct kube_watch, waiter);
    bool fresh = w->call && w->open && mono_before(w->kube->reach.doubted_at, w->opened);

    w->list_failures = w->stream_failures = 0;
    if (fresh)
        return;
    w->call = kube_cancel(w->call);
    kube_watch_again(w, kube_return_ms());
}

/* It makes no attempt, whose error would say so. */
static void watch_say_away(struct kube_watch *w)
{
    char why[256];

    if (w->call || w->trouble[0])
        return;
    (void)snprintf(why, sizeof(why), "%s: watch %s: the API server does not answer", kube_label_of(w->kube),
                   w->o.resource->plural);
    kube_watch_set_trouble(w, why);
}

static void watch_on_timer(struct timer *t)
{
    struct kube_watch *w = CONTAINER_OF(t, struct kube_watch, timer);

    kube_watch_again(w, KUBE_FAR_MS);
    kube_watch_enter(w);
    if (kube_is_away(w->kube))
        watch_say_away(w);
    else if (!w->call && w->need_list)
        kube_watch_start_list(w);
    else if (!w->call)
        kube_watch_start_stream(w);
    kube_watch_leave(w);
}

/* A single object is a list with a field selector, which a Role's resourceNames allow. */
static int watch_copy_options(struct kube_watch *w, const struct kube_watch_options *o)
{
    bool both = o->name && o->field_selector;

    if (kube_copy(&w->namespace, o->namespace) < 0 || kube_copy(&w->label_selector, o->label_selector) < 0)
        return -ENOMEM;
    if (!o->name)
        return kube_copy(&w->field_selector, o->field_selector);
    if (asprintf(&w->field_selector, "metadata.name=%s%s%s", o->name, both ? "," : "",
                 both ? o->field_selector : "") < 0) {
        w->field_selector = NULL;
        return -ENOMEM;
    }
    return 0;
}

int kube_watch_new(struct kube_watch **ret, struct kube *k, const struct kube_watch_options *o)
{
    struct kube_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->kube = k;
    w->o = *o;
    w->o.max_page = o->max_page ? o->max_page : DEFAULT_PAGE_BYTES;
    w->o.max_object = o->max_object ? o->max_object : DEFAULT_OBJECT_BYTES;
    w->page = o->page ? o->page : DEFAULT_PAGE;
    w->need_list = true;
    w->timer.fn = watch_on_timer;
    w->known = json_object();
    if (!w->known || watch_copy_options(w, o) < 0 ||
        loop_timer_set(kube_loop(k), &w->timer, loop_now(kube_loop(k))) < 0) {
        (void)kube_watch_free(w);
        return -ENOMEM;
    }
    w->waiter.on_return = watch_on_return;
    kube_waiter_add(k, &w->waiter);
    *ret = w;
    return 0;
}
