#include "controller/kube/watch_internal.h"

#include "exporter/base/text.h"

enum { MAX_RETRY_MS = 60 * 1000 };

static void watch_destroy(struct kube_watch *w)
{
    lines_done(&w->lines);
    json_decref(w->known);
    json_decref(w->listed);
    free(w->next_page);
    free(w->namespace);
    free(w->label_selector);
    free(w->field_selector);
    free(w);
}

void kube_watch_enter(struct kube_watch *w)
{
    w->busy++;
}

void kube_watch_leave(struct kube_watch *w)
{
    if (--w->busy == 0 && w->dead)
        watch_destroy(w);
}

struct kube_watch *kube_watch_free(struct kube_watch *w)
{
    if (!w)
        return NULL;
    w->call = kube_cancel(w->call);
    loop_timer_clear(kube_loop(w->kube), &w->timer);
    if (w->waiter.on_return)
        kube_waiter_remove(&w->waiter);
    w->waiter.on_return = NULL;
    w->dead = true;
    if (!w->busy)
        watch_destroy(w);
    return NULL;
}

void kube_watch_hear(struct kube_watch *w)
{
    w->heard = loop_wall(kube_loop(w->kube));
}

void kube_watch_set_trouble(struct kube_watch *w, const char *text)
{
    if (w->dead || strcmp(w->trouble, cstr(text)) == 0)
        return;
    text_line(w->trouble, sizeof(w->trouble), str_of(text));
    if (w->o.on_trouble)
        w->o.on_trouble(w->o.arg, text ? w->trouble : NULL);
}

void kube_watch_again(struct kube_watch *w, int64_t ms)
{
    if (!w->dead)
        kube_timer_move(kube_loop(w->kube), &w->timer, ms);
}

void kube_watch_retry(struct kube_watch *w, unsigned failures, int64_t retry_after_ms)
{
    kube_watch_again(w, kube_backoff_ms(failures, WATCH_MIN_RETRY_MS, MAX_RETRY_MS, retry_after_ms));
}

struct kube_request kube_watch_request(const struct kube_watch *w, const char *query)
{
    return (struct kube_request){
        .method = KUBE_LIST,
        .resource = w->o.resource,
        .namespace = w->namespace,
        .label_selector = w->label_selector,
        .field_selector = w->field_selector,
        .query = query,
        .max_answer = w->o.max_page,
        .cut = w->o.cut,
    };
}
