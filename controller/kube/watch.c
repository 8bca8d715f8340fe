/* Owns its one call under way, a page of the list or the stream of events, and its timer, which starts the
 * next call. */
#include "controller/kube/watch.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/lines.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/loop.h"
#include "exporter/base/rand.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum { VERSION_BYTES = 128, WATCH_MIN_RETRY_MS = 1000 };

struct kube_watch {
    struct kube *kube;
    struct kube_watch_options o; /* its strings are the copies below */
    char *namespace, *label_selector, *field_selector;
    struct kube_call *call; /* a page of the list, or the stream of events */
    struct timer timer;     /* set while the watch lives, so that moving it cannot fail */
    struct kube_waiter waiter;
    json_t *known;               /* "namespace/name" → resourceVersion */
    json_t *listed;              /* likewise, from the list under way */
    char version[VERSION_BYTES]; /* to resume from */
    /* The list */
    bool need_list;
    bool whole;      /* without pages, after a continue token expired */
    char *next_page; /* continue token; NULL for the first page */
    size_t page;
    unsigned list_failures;
    bool lacks_kind;
    /* The stream */
    struct lines lines;
    mono_ms opened;
    bool open, has_event;
    unsigned stream_failures;

    bool synced;
    unix_ms heard;
    char trouble[768];
    unsigned busy; /* entries from the loop under way */
    bool dead;     /* freed from one of its callbacks */
};

/* ---- What is known, and which changes to report ---- */

static bool version_is_number(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == '\0';
}

bool kube_version_newer(const char *a, const char *b)
{
    size_t na, nb;

    if (!version_is_number(a) || !version_is_number(b))
        return strcmp(a, b) != 0;
    a += strspn(a, "0");
    b += strspn(b, "0");
    na = strlen(a);
    nb = strlen(b);
    return na != nb ? na > nb : strcmp(a, b) > 0;
}

static bool object_is_usable(const json_t *object)
{
    const char *version = kube_version(object);

    return *kube_name(object) && *version && strlen(version) < VERSION_BYTES;
}

static int object_key(const char *namespace, const char *name, struct buf *key)
{
    return buf_printf(key, "%s/%s", namespace, name) ?: buf_putc(key, '\0');
}

static int object_set_version(json_t *versions, const char *key, const char *version)
{
    return json_object_set_new(versions, key, json_string(version)) == 0 ? 0 : -ENOMEM;
}

/* Reports an object of a list if its version differs from the known one, or of an event if it is newer. A
 * callback may have freed the watch (w->dead). -EINVAL for an object without name or version; -ENOMEM,
 * when nothing was reported. */
static int watch_set(struct kube_watch *w, json_t *object, bool listed)
{
    const char *version = kube_version(object), *before;
    BUF_AUTO(key, 4096);
    int r = object_is_usable(object) ? object_key(kube_namespace(object), kube_name(object), &key) : -EINVAL;

    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    if (listed && object_set_version(w->listed, key.p, version) < 0)
        return -ENOMEM;
    before = kube_str(w->known, key.p, NULL);
    /* A list from the store is right even if versions go back, as after a restore from a backup. */
    if (before && (listed ? strcmp(version, before) == 0 : !kube_version_newer(version, before)))
        return 0;
    if (object_set_version(w->known, key.p, version) < 0)
        return -ENOMEM;
    if (w->o.on_set)
        w->o.on_set(w->o.arg, object);
    return 0;
}

static int watch_delete(struct kube_watch *w, const json_t *object)
{
    BUF_AUTO(key, 4096);
    int r = object_is_usable(object) ? object_key(kube_namespace(object), kube_name(object), &key) : -EINVAL;
    const char *before;

    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    before = kube_str(w->known, key.p, NULL);
    /* An object created anew since then stays. */
    if (!before || kube_version_newer(before, kube_version(object)))
        return 0;
    (void)json_object_del(w->known, key.p);
    if (w->o.on_delete)
        w->o.on_delete(w->o.arg, kube_namespace(object), kube_name(object));
    return 0;
}

/* The list is complete: reports known objects that it lacks as deleted. */
static void watch_sweep(struct kube_watch *w)
{
    json_auto_t *before = w->known;
    const char *key;
    json_t *version;

    w->known = TAKE_PTR(w->listed);
    json_object_foreach(before, key, version)
    {
        const char *slash = strchr(key, '/');
        BUF_AUTO(namespace, 4096);

        if (w->dead || kube_str(w->known, key, NULL) || !w->o.on_delete)
            continue;
        if (buf_put(&namespace, key, (size_t)(slash - key)) < 0 || buf_putc(&namespace, '\0') < 0) {
            /* Out of memory: the object stays known until the next list. */
            (void)json_object_set(w->known, key, version);
            continue;
        }
        w->o.on_delete(w->o.arg, namespace.p, slash + 1);
    }
}

/* Moves the version to resume from forward. False for an invalid version. */
static bool watch_advance(struct kube_watch *w, const char *version)
{
    size_t n = strlen(version);

    if (n == 0 || n >= VERSION_BYTES)
        return false;
    if (!w->version[0] || kube_version_newer(version, w->version))
        memcpy(w->version, version, n + 1);
    return true;
}

bool kube_watch_has(const struct kube_watch *w, const char *namespace, const char *name)
{
    BUF_AUTO(key, 4096);

    return object_key(cstr(namespace), name, &key) == 0 && kube_str(w->known, key.p, NULL);
}

size_t kube_watch_objects(const struct kube_watch *w)
{
    return json_object_size(w->known);
}

/* ---- Troubles and the timer ---- */

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

/* Each entry from the loop is between these two, since callbacks may free the watch. */
static void watch_enter(struct kube_watch *w)
{
    w->busy++;
}

static void watch_leave(struct kube_watch *w)
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

/* The API server answered. */
static void watch_hear(struct kube_watch *w)
{
    w->heard = loop_wall(kube_loop(w->kube));
}

/* NULL: none. */
static void watch_set_trouble(struct kube_watch *w, const char *text)
{
    if (w->dead || strcmp(w->trouble, cstr(text)) == 0)
        return;
    text_line(w->trouble, sizeof(w->trouble), str_of(text));
    if (w->o.on_trouble)
        w->o.on_trouble(w->o.arg, text ? w->trouble : NULL);
}

/* Schedules the next request. */
static void watch_again(struct kube_watch *w, int64_t ms)
{
    if (!w->dead)
        kube_timer_move(kube_loop(w->kube), &w->timer, ms);
}

static void watch_retry(struct kube_watch *w, unsigned failures, int64_t retry_after_ms)
{
    watch_again(w, kube_backoff_ms(failures, WATCH_MIN_RETRY_MS, MAX_RETRY_MS, retry_after_ms));
}

/* A request for the watched objects; the query is borrowed. */
static struct kube_request watch_request(const struct kube_watch *w, const char *query)
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

/* ---- The list, page by page ----
 *
 * A page over its ceiling is requested again in smaller pages; when a continue
 * token expires, the whole list is requested at once, as in client-go. Anything else is retried after a
 * back-off. */

static void watch_list_failed(struct kube_watch *w, const char *why, int64_t retry_after_ms)
{
    watch_retry(w, ++w->list_failures, retry_after_ms);
    watch_set_trouble(w, why);
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

static void watch_start_list(struct kube_watch *w)
{
    BUF_AUTO(query, 64 << 10);
    struct kube_request rq;
    int r = watch_list_query(w, &query);

    if (r == 0 && !w->next_page) {
        json_decref(w->listed);
        w->listed = json_object();
        r = 0;
    }
    rq = watch_request(w, query.p);
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
    (void)watch_advance(w, version);
    watch_sweep(w);
    watch_set_trouble(w, NULL);
    if (!w->dead && !w->synced) {
        w->synced = true;
        if (w->o.on_synced)
            w->o.on_synced(w->o.arg);
    }
    watch_again(w, 0);
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
        r = watch_set(w, item, true);
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
        watch_start_list(w);
    else
        watch_list_complete(w, version);
}

static void watch_page_refused(struct kube_watch *w, const struct kube_answer *a)
{
    bool continued = w->next_page != NULL;

    if (a->verdict == KUBE_TOO_LARGE && (w->page > 1 || w->whole)) {
        w->page = size_max(w->page / 2, 1);
        w->whole = false;
        watch_again(w, 0);
        return;
    }
    if (a->verdict != KUBE_RETRY && a->verdict != KUBE_UNAUTHORIZED)
        watch_drop_page(w);
    if (continued && a->verdict == KUBE_GONE) {
        w->whole = true;
        watch_retry(w, ++w->list_failures, a->retry_after_ms);
        return;
    }
    w->lacks_kind = a->verdict == KUBE_NO_KIND;
    watch_list_failed(w, a->why, a->retry_after_ms);
}

static void watch_on_page(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;

    watch_enter(w);
    w->call = NULL;
    if (a->verdict == KUBE_OK) {
        watch_hear(w);
        watch_list_page(w, a->object);
    } else {
        watch_page_refused(w, a);
    }
    watch_leave(w);
}

/* ---- The stream of events ----
 *
 * It ends cleanly every few minutes and resumes from the last version; an expired
 * version leads to a new list. */

enum {
    EVENT_FRAME_BYTES = 1024, /* around the object in its line */
    WATCH_MIN_S = 300,
    WATCH_SPREAD_S = 300,
    WATCH_GRACE_S = 30,
    IDLE_MS = 150 * 1000, /* bookmarks come every minute */
    GOOD_MS = 10 * 1000,  /* a stream that lived this long resets the back-off */
    FAILURES_TO_LIST = 5, /* consecutive failures after which the list is tried */
};

static void watch_stream_failed(struct kube_watch *w, enum kube_verdict verdict, const char *why,
                                int64_t retry_after_ms)
{
    bool was_open = w->open;

    if (was_open && mono_diff(w->opened, loop_now(kube_loop(w->kube))) >= GOOD_MS)
        w->stream_failures = 0;
    w->stream_failures++;
    if ((verdict != KUBE_RETRY && verdict != KUBE_UNAUTHORIZED) || w->stream_failures >= FAILURES_TO_LIST)
        w->need_list = true;
    watch_retry(w, w->stream_failures, retry_after_ms);
    /* An expired version, or one broken connection, is no trouble. */
    if (verdict != KUBE_GONE && !(verdict == KUBE_RETRY && was_open && w->stream_failures == 1))
        watch_set_trouble(w, why);
}

static void watch_on_error_event(struct kube_watch *w, const json_t *status)
{
    struct kube_status s;
    char why[640];

    kube_status_of_event(status, &s);
    (void)snprintf(why, sizeof(why), "%s: watch %s: %s", kube_label_of(w->kube), w->o.resource->plural,
                   s.message);
    watch_stream_failed(w, s.verdict, why, s.retry_after_ms);
}

/* 0; 1 to end the stream; a negative errno for an event that cannot be used. */
static int watch_take_event(struct kube_watch *w, const char *type, json_t *object)
{
    int r;

    if (strcmp(type, "ERROR") == 0) {
        watch_on_error_event(w, object);
        return 1;
    }
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        r = watch_set(w, object, false);
    else if (strcmp(type, "DELETED") == 0)
        r = watch_delete(w, object);
    else
        r = strcmp(type, "BOOKMARK") == 0 ? 0 : -EINVAL;
    if (r == 0 && !w->dead) {
        w->has_event = true;
        w->stream_failures = 0;
        r = watch_advance(w, kube_version(object)) ? 0 : -EINVAL;
    }
    return r;
}

static int watch_on_line(void *arg, struct str line)
{
    struct kube_watch *w = arg;
    json_auto_t *event = NULL;
    int r = kube_json_parse_cut(&event, line, w->o.cut, NULL)
                ?: watch_take_event(w, cstr(kube_str(event, "type", NULL)), kube_get(event, "object", NULL));

    return r < 0 || !w->dead ? r : 1;
}

static void watch_stream_broken(struct kube_watch *w, int r)
{
    char why[256];

    if (r == -EFBIG)
        (void)snprintf(why, sizeof(why), "%s: watch %s: an event exceeds %zu bytes", kube_label_of(w->kube),
                       w->o.resource->plural, w->o.max_object);
    else
        (void)snprintf(why, sizeof(why), "%s: watch %s: %s", kube_label_of(w->kube), w->o.resource->plural,
                       r == -ENOMEM ? "out of memory" : "the data is not a watch event");
    /* After -ENOMEM the event comes again, from the version before it. */
    watch_stream_failed(w, r == -ENOMEM ? KUBE_RETRY : r == -EFBIG ? KUBE_TOO_LARGE : KUBE_INVALID, why, -1);
}

static void watch_on_data(void *arg, struct str piece)
{
    struct kube_watch *w = arg;
    int r;

    watch_enter(w);
    watch_hear(w);
    if (piece.n == 0) {
        w->open = true;
        w->opened = loop_now(kube_loop(w->kube));
        watch_set_trouble(w, NULL);
    }
    r = lines_feed(&w->lines, piece, watch_on_line, w);
    if (r != 0 && !w->dead) {
        w->call = kube_cancel(w->call);
        if (r < 0)
            watch_stream_broken(w, r);
    }
    watch_leave(w);
}

static void watch_on_end(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;
    bool good =
        w->open && (w->has_event || mono_diff(w->opened, loop_now(kube_loop(w->kube))) >= WATCH_MIN_RETRY_MS);

    watch_enter(w);
    w->call = NULL;
    if (a->verdict != KUBE_OK) {
        watch_stream_failed(w, a->verdict, a->why, a->retry_after_ms);
    } else if (good) {
        w->stream_failures = 0;
        watch_again(w, (int64_t)rand_below(WATCH_MIN_RETRY_MS / 2));
    } else {
        /* A stream that ends right after its start, each time, must not become a busy loop. */
        watch_retry(w, ++w->stream_failures, -1);
    }
    watch_leave(w);
}

static void watch_start_stream(struct kube_watch *w)
{
    uint64_t seconds = WATCH_MIN_S + rand_below(WATCH_SPREAD_S + 1);
    BUF_AUTO(query, 1024);
    struct kube_request rq;
    int r = buf_puts(&query, "watch=1&allowWatchBookmarks=true&resourceVersion=") ?:
            buf_put_url(&query, str_of(w->version)) ?:
            buf_printf(&query, "&timeoutSeconds=%llu", (unsigned long long)seconds) ?: buf_putc(&query, '\0');

    w->open = w->has_event = false;
    lines_done(&w->lines);
    lines_init(&w->lines, w->o.max_object + EVENT_FRAME_BYTES);
    rq = watch_request(w, query.p);
    rq.on_data = watch_on_data;
    rq.timeout_ms = (int64_t)(seconds + WATCH_GRACE_S) * 1000;
    rq.idle_timeout_ms = IDLE_MS;
    if (r == 0)
        r = kube_start(&w->call, w->kube, &rq, watch_on_end, w);
    if (r < 0)
        watch_stream_failed(w, KUBE_RETRY, r == -ENOMEM ? "out of memory" : "the watch cannot be requested",
                            -1);
}

/* ---- The watch ---- */

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
    watch_again(w, 0);
}

/* A stream opened before the server went away may hang on a dead connection. */
static void watch_on_return(struct kube_waiter *waiter)
{
    struct kube_watch *w = CONTAINER_OF(waiter, struct kube_watch, waiter);
    bool fresh =
        w->call && w->open && mono_diff(w->opened, loop_now(kube_loop(w->kube))) < kube_absence_ms(w->kube);

    w->list_failures = w->stream_failures = 0;
    if (fresh)
        return;
    w->call = kube_cancel(w->call);
    watch_again(w, kube_return_ms());
}

/* It makes no attempt, whose error would say so. */
static void watch_say_away(struct kube_watch *w)
{
    char why[256];

    if (w->call || w->trouble[0])
        return;
    (void)snprintf(why, sizeof(why), "%s: watch %s: the API server does not answer", kube_label_of(w->kube),
                   w->o.resource->plural);
    watch_set_trouble(w, why);
}

static void watch_on_timer(struct timer *t)
{
    struct kube_watch *w = CONTAINER_OF(t, struct kube_watch, timer);

    watch_again(w, KUBE_FAR_MS);
    watch_enter(w);
    if (kube_is_away(w->kube))
        watch_say_away(w);
    else if (!w->call && w->need_list)
        watch_start_list(w);
    else if (!w->call)
        watch_start_stream(w);
    watch_leave(w);
}

static int watch_copy(char **ret, const char *s)
{
    *ret = s ? str_dup(str_of(s)) : NULL;
    return s && !*ret ? -ENOMEM : 0;
}

/* A single object is a list with a field selector, which a Role's resourceNames allow. */
static int watch_copy_options(struct kube_watch *w, const struct kube_watch_options *o)
{
    bool both = o->name && o->field_selector;

    if (watch_copy(&w->namespace, o->namespace) < 0 || watch_copy(&w->label_selector, o->label_selector) < 0)
        return -ENOMEM;
    if (!o->name)
        return watch_copy(&w->field_selector, o->field_selector);
    if (asprintf(&w->field_selector, "metadata.name=%s%s%s", o->name, both ? "," : "",
                 both ? o->field_selector : "") < 0) {
        w->field_selector = NULL;
        return -ENOMEM;
    }
    return 0;
}

int kube_watch_new(struct kube_watch **ret, struct kube *k, const struct kube_watch_options *o)
{
    struct kube_watch *w = xcalloc(1, sizeof(*w));

    w->kube = k;
    w->o = *o;
    w->o.max_page = o->max_page ? o->max_page : DEFAULT_PAGE_BYTES;
    w->o.max_object = o->max_object ? o->max_object : DEFAULT_OBJECT_BYTES;
    w->page = o->page ? o->page : DEFAULT_PAGE;
    w->need_list = true;
    w->timer.fn = watch_on_timer;
    w->known = json_object();
    loop_timer_set(kube_loop(k), &w->timer, loop_now(kube_loop(k)));
    if (watch_copy_options(w, o) < 0) {
        (void)kube_watch_free(w);
        return -ENOMEM;
    }
    w->waiter.on_return = watch_on_return;
    kube_waiter_add(k, &w->waiter);
    *ret = w;
    return 0;
}
