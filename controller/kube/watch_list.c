/* The list, page by page. A page over its ceiling is requested again in smaller pages; when a continue
 * token expires, the whole list is requested at once, as in client-go. Anything else is retried after a
 * back-off. */
#include "controller/kube/watch_internal.h"

#include "exporter/base/escape.h"

#include <errno.h>

static void watch_list_failed(struct kube_watch *w, const char *why, int64_t retry_after_ms)
{
    kube_watch_retry(w, ++w->list_failures, retry_after_ms);
    kube_watch_set_trouble(w, why);
}

static void watch_drop_page(struct kube_watch *w)
{
    free(w->next_page);
    w->next_page = NULL;
}

static int watch_list_query(const struct kube_watch *w, struct buf *query)
{
    int r = 0;

    if (!w->whole)
        r = buf_printf(query, "limit=%zu", w->page);
    if (r == 0 && w->next_page)
        r = buf_puts(query, "&continue=") ?: buf_put_url(query, str_of(w->next_page));
    return r ?: buf_putc(query, '\0');
}

static void watch_on_page(void *arg, struct kube_answer *a);

void kube_watch_start_list(struct kube_watch *w)
{
    BUF_AUTO(query, 64 << 10);
    struct kube_request rq;
    int r = watch_list_query(w, &query);

    if (r == 0 && !w->next_page) {
        json_decref(w->listed);
        w->listed = json_object();
        r = w->listed ? 0 : -ENOMEM;
    }
    rq = kube_watch_request(w, query.p);
    if (r == 0)
        r = kube_start(&w->call, w->kube, &rq, watch_on_page, w);
    if (r < 0)
        watch_list_failed(w, r == -ENOMEM ? "out of memory" : "the list cannot be requested", -1);
}

static void watch_list_complete(struct kube_watch *w, const char *version)
{
    w->need_list = w->whole = w->lacks_kind = false;
    w->list_failures = 0;
    w->version[0] = '\0';
    (void)kube_watch_advance(w, version);
    kube_watch_sweep(w);
    kube_watch_set_trouble(w, NULL);
    if (!w->dead && !w->synced) {
        w->synced = true;
        if (w->o.on_synced)
            w->o.on_synced(w->o.arg);
    }
    kube_watch_again(w, 0);
}

static int watch_set_page(struct kube_watch *w, const json_t *list)
{
    const json_t *items = kube_list(list, "items", NULL);
    size_t i;
    json_t *item;
    int r = 0;

    json_array_foreach(items, i, item)
    {
        if (w->dead || r < 0)
            break;
        r = kube_watch_set(w, item, true);
    }
    return r;
}

static void watch_list_page(struct kube_watch *w, const json_t *list)
{
    const char *next = kube_str(list, "metadata", "continue", NULL), *version = kube_version(list);
    int r = *version && strlen(version) < VERSION_BYTES ? watch_set_page(w, list) : -EINVAL;

    if (w->dead)
        return;
    watch_drop_page(w);
    if (r == 0 && next && *next && !(w->next_page = str_dup(str_of(next))))
        r = -ENOMEM;
    if (r < 0)
        watch_list_failed(
            w, r == -ENOMEM ? "out of memory" : "the answer is not a list of Kubernetes objects", -1);
    else if (w->next_page)
        kube_watch_start_list(w);
    else
        watch_list_complete(w, version);
}

static void watch_page_refused(struct kube_watch *w, const struct kube_answer *a)
{
    bool continued = w->next_page != NULL;

    if (a->verdict == KUBE_TOO_LARGE && (w->page > 1 || w->whole)) {
        w->page = size_max(w->page / 2, 1);
        w->whole = false;
        kube_watch_again(w, 0);
        return;
    }
    if (a->verdict != KUBE_RETRY && a->verdict != KUBE_UNAUTHORIZED)
        watch_drop_page(w);
    if (continued && a->verdict == KUBE_GONE) {
        w->whole = true;
        kube_watch_retry(w, ++w->list_failures, a->retry_after_ms);
        return;
    }
    w->lacks_kind = a->verdict == KUBE_NO_KIND;
    watch_list_failed(w, a->why, a->retry_after_ms);
}

static void watch_on_page(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;

    kube_watch_enter(w);
    w->call = NULL;
    if (a->verdict == KUBE_OK) {
        kube_watch_hear(w);
        watch_list_page(w, a->object);
    } else {
        watch_page_refused(w, a);
    }
    kube_watch_leave(w);
}
