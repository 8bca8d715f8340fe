/* Owns its one call under way, a page of the list or the stream of events, and its timer.
 *
 * A list that is too large for its ceiling is asked for in smaller pages; an expired continue token leads to a list in one
 * piece, as in client-go; an expired version to a new list. All else is tried again after a back-off. */
#include "controller/kube/watch_internal.h"

#include "exporter/base/escape.h"
#include "exporter/base/rand.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum {
    DEFAULT_PAGE = 500,
    DEFAULT_PAGE_BYTES = 16 << 20,
    DEFAULT_OBJECT_BYTES = 4 << 20,
    EVENT_FRAME_BYTES = 1024, /* what surrounds an object in its line */
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 60 * 1000,
    WATCH_MIN_S = 300,
    WATCH_SPREAD_S = 300,
    WATCH_GRACE_S = 30,
    /* Bookmarks come every minute. */
    IDLE_MS = 150 * 1000,
    /* A stream that lived so long was a good one. */
    GOOD_MS = 10 * 1000,
    /* Failures of the watch alone, after which the list is tried. */
    ENOUGH_FAILURES = 5,
};

static void destroy(struct kube_watch *w)
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

struct kube_watch *kube_watch_free(struct kube_watch *w)
{
    if (!w)
        return NULL;
    w->call = kube_cancel(w->call);
    loop_timer_clear(kube_loop(w->kube), &w->timer);
    w->dead = true;
    if (!w->busy)
        destroy(w);
    return NULL;
}

/* Each entry from the loop is between these two, since callbacks may free the watch. */
static void enter(struct kube_watch *w)
{
    w->busy++;
}

static void leave(struct kube_watch *w)
{
    if (--w->busy == 0 && w->dead)
        destroy(w);
}

bool kube_watch_synced(const struct kube_watch *w)
{
    return w->synced;
}

const char *kube_watch_trouble(const struct kube_watch *w)
{
    return w->trouble[0] ? w->trouble : NULL;
}

unix_ms kube_watch_heard(const struct kube_watch *w)
{
    return w->heard;
}

static void hear(struct kube_watch *w)
{
    w->heard = loop_wall(kube_loop(w->kube));
}

static void set_trouble(struct kube_watch *w, const char *text)
{
    if (w->dead || strcmp(w->trouble, cstr(text)) == 0)
        return;
    text_line(w->trouble, sizeof(w->trouble), str_of(text));
    if (w->o.on_trouble)
        w->o.on_trouble(w->o.arg, text ? w->trouble : NULL);
}

static void again_in(struct kube_watch *w, int64_t ms)
{
    if (!w->dead)
        kube_timer_move(kube_loop(w->kube), &w->timer, ms);
}

static void again_after_failure(struct kube_watch *w, unsigned failures, int64_t retry_after_ms)
{
    again_in(w, kube_backoff_ms(failures, MIN_RETRY_MS, MAX_RETRY_MS, retry_after_ms));
}

void kube_watch_hurry(struct kube_watch *w)
{
    w->call = kube_cancel(w->call);
    again_in(w, 0);
}

/* ---- The list ---- */

static void list_failed(struct kube_watch *w, const char *why, int64_t retry_after_ms)
{
    again_after_failure(w, ++w->list_failures, retry_after_ms);
    set_trouble(w, why);
}

static void drop_page(struct kube_watch *w)
{
    free(w->next_page);
    w->next_page = NULL;
}

static int list_query(const struct kube_watch *w, struct buf *query)
{
    int r = 0;

    if (!w->whole)
        r = buf_printf(query, "limit=%zu", w->page);
    if (r == 0 && w->next_page)
        r = buf_puts(query, "&continue=") ?: buf_put_url(query, str_of(w->next_page));
    return r ?: buf_putc(query, '\0');
}

static struct kube_request request_of(const struct kube_watch *w, const char *query)
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

static void on_page(void *arg, struct kube_answer *a);

static void start_page(struct kube_watch *w)
{
    BUF_AUTO(query, 64 << 10);
    struct kube_request rq;
    int r = list_query(w, &query);

    if (r == 0 && !w->next_page) {
        json_decref(w->listed);
        w->listed = json_object();
        r = w->listed ? 0 : -ENOMEM;
    }
    rq = request_of(w, query.p);
    if (r == 0)
        r = kube_start(&w->call, w->kube, &rq, on_page, w);
    if (r < 0)
        list_failed(w, r == -ENOMEM ? "out of memory" : "the list cannot be asked for", -1);
}

static void list_complete(struct kube_watch *w, const char *version)
{
    w->need_list = w->whole = false;
    w->list_failures = 0;
    w->version[0] = '\0';
    (void)kube_watch_advance(w, version);
    kube_watch_sweep(w);
    set_trouble(w, NULL);
    if (!w->dead && !w->synced) {
        w->synced = true;
        if (w->o.on_synced)
            w->o.on_synced(w->o.arg);
    }
    again_in(w, 0);
}

static int take_page(struct kube_watch *w, const json_t *list)
{
    const json_t *items = kube_list(list, "items", NULL);
    size_t i;
    json_t *item;
    int r = 0;

    json_array_foreach(items, i, item)
    {
        if (w->dead || r < 0)
            break;
        r = kube_watch_take(w, item, true);
    }
    return r;
}

static void page_came(struct kube_watch *w, const json_t *list)
{
    const char *next = kube_str(list, "metadata", "continue", NULL), *version = kube_version(list);
    int r = *version && strlen(version) < VERSION_BYTES ? take_page(w, list) : -EINVAL;

    if (w->dead)
        return;
    drop_page(w);
    if (r == 0 && next && *next && !(w->next_page = str_dup(str_of(next))))
        r = -ENOMEM;
    if (r < 0)
        list_failed(w, r == -ENOMEM ? "out of memory" : "the answer is not a list of Kubernetes objects", -1);
    else if (w->next_page)
        start_page(w);
    else
        list_complete(w, version);
}

static void page_refused(struct kube_watch *w, const struct kube_answer *a)
{
    bool going_on = w->next_page != NULL;

    if (a->verdict == KUBE_TOO_LARGE && (w->page > 1 || w->whole)) {
        w->page = size_max(w->page / 2, 1);
        w->whole = false;
        again_in(w, 0);
        return;
    }
    if (a->verdict != KUBE_RETRY && a->verdict != KUBE_UNAUTHORIZED)
        drop_page(w);
    if (going_on && a->verdict == KUBE_GONE) {
        w->whole = true;
        again_after_failure(w, ++w->list_failures, a->retry_after_ms);
        return;
    }
    list_failed(w, a->why, a->retry_after_ms);
}

static void on_page(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;

    enter(w);
    w->call = NULL;
    if (a->verdict == KUBE_OK) {
        hear(w);
        page_came(w, a->object);
    } else {
        page_refused(w, a);
    }
    leave(w);
}

/* ---- The watch ---- */

static void watch_failed(struct kube_watch *w, enum kube_verdict verdict, const char *why,
                         int64_t retry_after_ms)
{
    bool was_open = w->open;

    if (was_open && mono_diff(w->opened, loop_now(kube_loop(w->kube))) >= GOOD_MS)
        w->watch_failures = 0;
    w->watch_failures++;
    if ((verdict != KUBE_RETRY && verdict != KUBE_UNAUTHORIZED) || w->watch_failures >= ENOUGH_FAILURES)
        w->need_list = true;
    again_after_failure(w, w->watch_failures, retry_after_ms);
    /* That a version has expired, or a stream is cut once, is nothing to tell. */
    if (verdict != KUBE_GONE && !(verdict == KUBE_RETRY && was_open && w->watch_failures == 1))
        set_trouble(w, why);
}

static void on_error_event(struct kube_watch *w, const json_t *status)
{
    struct kube_status s;
    char why[640];

    kube_status_of_event(status, &s);
    (void)snprintf(why, sizeof(why), "%s: watch %s: %s", kube_label_of(w->kube), w->o.resource->plural,
                   s.message);
    watch_failed(w, s.verdict, why, s.retry_after_ms);
}

/* 0; 1 when the stream is to end; a negative errno when the event cannot be taken. */
static int take_event(struct kube_watch *w, const char *type, json_t *object)
{
    int r;

    if (strcmp(type, "ERROR") == 0) {
        on_error_event(w, object);
        return 1;
    }
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        r = kube_watch_take(w, object, false);
    else if (strcmp(type, "DELETED") == 0)
        r = kube_watch_drop(w, object);
    else
        r = strcmp(type, "BOOKMARK") == 0 ? 0 : -EINVAL;
    if (r == 0 && !w->dead) {
        w->told = true;
        w->watch_failures = 0;
        r = kube_watch_advance(w, kube_version(object)) ? 0 : -EINVAL;
    }
    return r;
}

static int on_line(void *arg, struct str line)
{
    struct kube_watch *w = arg;
    json_auto_t *event = NULL;
    int r = kube_json_parse_cut(&event, line, w->o.cut, NULL);

    if (r == 0)
        r = take_event(w, cstr(kube_str(event, "type", NULL)), kube_get(event, "object", NULL));
    return r < 0 || !w->dead ? r : 1;
}

static void stream_broken(struct kube_watch *w, int r)
{
    char why[256];

    if (r == -EFBIG)
        (void)snprintf(why, sizeof(why), "%s: watch %s: an object is over the limit of %zu bytes",
                       kube_label_of(w->kube), w->o.resource->plural, w->o.max_object);
    else
        (void)snprintf(why, sizeof(why), "%s: watch %s: %s", kube_label_of(w->kube), w->o.resource->plural,
                       r == -ENOMEM ? "out of memory" : "what came is no event");
    /* Out of memory: the event comes again from the version before it. */
    watch_failed(w, r == -ENOMEM ? KUBE_RETRY : r == -EFBIG ? KUBE_TOO_LARGE : KUBE_INVALID, why, -1);
}

static void on_data(void *arg, struct str piece)
{
    struct kube_watch *w = arg;
    int r;

    enter(w);
    hear(w);
    if (piece.n == 0) {
        w->open = true;
        w->opened = loop_now(kube_loop(w->kube));
        set_trouble(w, NULL);
    }
    r = lines_feed(&w->lines, piece, on_line, w);
    if (r != 0 && !w->dead) {
        w->call = kube_cancel(w->call);
        if (r < 0)
            stream_broken(w, r);
    }
    leave(w);
}

static void on_end(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;
    bool good = w->open && (w->told || mono_diff(w->opened, loop_now(kube_loop(w->kube))) >= MIN_RETRY_MS);

    enter(w);
    w->call = NULL;
    if (a->verdict != KUBE_OK) {
        watch_failed(w, a->verdict, a->why, a->retry_after_ms);
    } else if (good) {
        w->watch_failures = 0;
        again_in(w, (int64_t)rand_below(MIN_RETRY_MS / 2));
    } else {
        /* One that ends as soon as it begins, each time, must not become a busy loop. */
        again_after_failure(w, ++w->watch_failures, -1);
    }
    leave(w);
}

static void start_watch(struct kube_watch *w)
{
    uint64_t seconds = WATCH_MIN_S + rand_below(WATCH_SPREAD_S + 1);
    BUF_AUTO(query, 1024);
    struct kube_request rq;
    int r = buf_puts(&query, "watch=1&allowWatchBookmarks=true&resourceVersion=") ?:
            buf_put_url(&query, str_of(w->version)) ?:
            buf_printf(&query, "&timeoutSeconds=%llu", (unsigned long long)seconds) ?: buf_putc(&query, '\0');

    w->open = w->told = false;
    lines_done(&w->lines);
    lines_init(&w->lines, w->o.max_object + EVENT_FRAME_BYTES);
    rq = request_of(w, query.p);
    rq.on_data = on_data;
    rq.timeout_ms = (int64_t)(seconds + WATCH_GRACE_S) * 1000;
    rq.idle_timeout_ms = IDLE_MS;
    if (r == 0)
        r = kube_start(&w->call, w->kube, &rq, on_end, w);
    if (r < 0)
        watch_failed(w, KUBE_RETRY, r == -ENOMEM ? "out of memory" : "the watch cannot be asked for", -1);
}

static void on_timer(struct timer *t)
{
    struct kube_watch *w = CONTAINER_OF(t, struct kube_watch, timer);

    enter(w);
    again_in(w, KUBE_FAR_MS);
    if (!w->call && w->need_list)
        start_page(w);
    else if (!w->call)
        start_watch(w);
    leave(w);
}

static int copy(char **ret, const char *s)
{
    if (!s)
        return 0;
    *ret = str_dup(str_of(s));
    return *ret ? 0 : -ENOMEM;
}

/* One object is a list with a field selector, which rights given by resourceNames cover. */
static int copy_options(struct kube_watch *w, const struct kube_watch_options *o)
{
    bool both = o->name && o->field_selector;

    if (copy(&w->namespace, o->namespace) < 0 || copy(&w->label_selector, o->label_selector) < 0)
        return -ENOMEM;
    if (!o->name)
        return copy(&w->field_selector, o->field_selector);
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
    w->timer.fn = on_timer;
    w->known = json_object();
    if (!w->known || copy_options(w, o) < 0 ||
        loop_timer_set(kube_loop(k), &w->timer, loop_now(kube_loop(k))) < 0) {
        destroy(w);
        return -ENOMEM;
    }
    *ret = w;
    return 0;
}
