/* Owns its one call under way, a page of the list, a look at the store's version or the stream of events,
 * and its timer, which starts the next call. All on the loop.
 *
 * A page and an event become trees in as many turns as they need, during which the call stays under way:
 * who cancels it is told nothing more of the page, which ends as one that never came. */
#include "controller/kube/watch.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/tree.h"
#include "controller/kube/version.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/loop.h"

#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/map.h"
#include "exporter/base/random.h"
#include "exporter/base/text.h"

#include <errno.h>

enum {
    VERSION_BYTES = 128,
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 60 * 1000,
    FAILURES_TO_LIST = 5, /* consecutive failures after which the list is tried */
    DEFAULT_PAGE = 100,
    MAX_PAGES = 10000, /* of a list: a server that never ends one */
    PAGE_BYTES = 16 << 20,
    EVENT_BYTES = KUBE_TREE_MAX_BYTES,
};

/* An object as last seen. */
struct known {
    size_t list;         /* number of the last list that had it */
    const char *version; /* behind the key */
    char key[];          /* "namespace/name" */
};

/* What the timer starts. */
enum watch_step {
    WATCH_LIST,
    WATCH_CHECK, /* whether the store is as new as what is known: a list of one object */
    WATCH_STREAM,
};

struct kube_watch {
    struct kube *kube;
    struct kube_watch_options o;
    char *field_selector;
    struct kube_call *call; /* a page of the list, a check, or the stream of events */
    enum watch_step next;
    struct timer timer;
    struct kube_waiter waiter;
    struct map known;
    char version[VERSION_BYTES]; /* to resume from */
    /* The list */
    bool is_first;                 /* since the start, or since the store went back, or may have */
    char *next_page;               /* continue token; NULL for the first page */
    size_t page, n_pages, n_lists; /* n_lists: begun since the start */
    bool page_is_valid;            /* so far: its version, and its objects' names and versions */
    unsigned list_failures;
    enum kube_verdict refused;  /* why the last list failed; KUBE_OK: it did not */
    mono_ms list_began, listed; /* listed: when the last complete one began */
    /* The stream */
    struct buf line;        /* the start of an unfinished one, or the event that is being read */
    struct kube_tree event; /* of that line */
    bool is_reading;
    mono_ms asked, opened, asked_until; /* asked_until: when it ends by itself */
    bool open, has_event;
    unsigned stream_failures;

    bool synced;
    unix_ms heard;
    mono_ms heard_at;     /* the same by the other clock */
    char last_error[768]; /* "": there is news */
};

/* ---- What is known, and which changes to report ---- */

/* NULL for an object without a name or a version. */
static char *object_key(const json_t *object)
{
    const char *version = kube_version(object);

    if (!*kube_name(object) || !*version || strlen(version) >= VERSION_BYTES)
        return NULL;
    return xasprintf("%s/%s", kube_namespace(object), kube_name(object));
}

static void known_set(struct kube_watch *w, const char *key, const char *version)
{
    size_t n = strlen(key) + 1, version_n = strlen(version) + 1;
    struct known *k = xmalloc(sizeof(*k) + n + version_n);

    k->list = w->n_lists;
    memcpy(k->key, key, n);
    k->version = memcpy(k->key + n, version, version_n);
    free(map_take(&w->known, key));
    map_set(&w->known, k->key, k);
}

/* Of an object in a list: whether the store went back to before it was deleted or changed, although the
 * list's version is newer than what is known. So it is after a restore that has versions go on far ahead of
 * those that were given, as etcd recommends for Kubernetes (`--bump-revision`). */
static bool watch_item_is_back(const struct kube_watch *w, const struct known *before, const char *version)
{
    if (!kube_version_is_number(version) || !kube_version_is_number(w->version))
        return false;
    if (!before) /* gone, or the list or an event would have shown it */
        return !kube_version_newer(version, w->version);
    return kube_version_is_number(before->version) && kube_version_newer(before->version, version);
}

/* Whether nothing new is told of an object. A list from the store is right even if versions go back, as after
 * a restore from a backup; where there may have been one, equal versions mean nothing either. */
static bool watch_is_known(const struct kube_watch *w, const struct known *before, const char *version,
                           bool listed)
{
    bool may_be_restored = w->is_first && w->synced;

    if (listed)
        return !may_be_restored && strcmp(version, before->version) == 0;
    return !kube_version_newer(version, before->version);
}

/* Reports an object of a list if its version differs from the known one, or of an event if it is newer.
 * False for an object without a name or a version. */
static bool watch_set(struct kube_watch *w, json_t *object, bool listed)
{
    CLEANUP(cleanup_free) char *key = object_key(object);
    const char *version = kube_version(object);
    struct known *before = key ? map_get(&w->known, key) : NULL;

    if (!key)
        return false;
    if (before && listed)
        before->list = w->n_lists;
    if (before && watch_is_known(w, before, version, listed))
        return true;
    known_set(w, key, version);
    if (w->o.on_set)
        w->o.on_set(w->o.arg, object);
    return true;
}

static bool watch_delete(struct kube_watch *w, const json_t *object)
{
    CLEANUP(cleanup_free) char *key = object_key(object);
    const struct known *before = key ? map_get(&w->known, key) : NULL;

    /* An object created anew since then stays. */
    if (!before || kube_version_newer(before->version, kube_version(object)))
        return key;
    free(map_take(&w->known, key));
    if (w->o.on_delete)
        w->o.on_delete(w->o.arg, kube_namespace(object), kube_name(object));
    return true;
}

/* The list is complete: reports known objects that it lacks as deleted. */
static void watch_sweep(struct kube_watch *w)
{
    CLEANUP(cleanup_free) struct known **gone = xmalloc((w->known.n + 1) * sizeof(*gone));
    struct known *k;
    size_t at = 0, n = 0;

    while ((k = map_next(&w->known, &at)))
        if (k->list != w->n_lists)
            gone[n++] = k;
    for (size_t i = 0; i < n; i++)
        (void)map_take(&w->known, gone[i]->key);
    for (size_t i = 0; i < n; i++) {
        char *slash = strchr(gone[i]->key, '/');

        *slash = '\0';
        if (w->o.on_delete)
            w->o.on_delete(w->o.arg, gone[i]->key, slash + 1);
        free(gone[i]);
    }
}

/* Forgets the versions, but not which objects there are: the next list reports each of them anew, and those
 * that it lacks as deleted. */
static void watch_forget(struct kube_watch *w)
{
    struct known *k;

    for (size_t at = 0; (k = map_next(&w->known, &at));)
        k->version = "";
    w->version[0] = '\0';
    w->is_first = true;
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
    CLEANUP(cleanup_free) char *key = xasprintf("%s/%s", cstr(namespace), name);

    return map_get(&w->known, key);
}

/* ---- Errors and the timer ---- */

struct kube_watch *kube_watch_free(struct kube_watch *w)
{
    struct known *k;

    if (!w)
        return NULL;
    w->call = kube_cancel(w->call);
    loop_timer_clear(kube_loop(w->kube), &w->timer);
    LIST_REMOVE(&w->waiter, entry);
    buf_done(&w->line);
    kube_tree_done(&w->event);
    for (size_t at = 0; (k = map_next(&w->known, &at));)
        free(k);
    map_done(&w->known);
    free(w->next_page);
    free(w->field_selector);
    free(w);
    return NULL;
}

static void watch_set_error(struct kube_watch *w, const char *error)
{
    if (strcmp(w->last_error, error) == 0)
        return;
    text_line(w->last_error, sizeof(w->last_error), str_of(error));
    if (w->o.on_error)
        w->o.on_error(w->o.arg, w->last_error);
}

static void watch_clear_error(struct kube_watch *w)
{
    if (!w->last_error[0])
        return;
    w->last_error[0] = '\0';
    if (w->o.on_recovered)
        w->o.on_recovered(w->o.arg);
}

static void watch_note_heard(struct kube_watch *w)
{
    w->heard = loop_wall(kube_loop(w->kube));
    w->heard_at = kube_now(w->kube);
}

/* An error of the stream, in the words of the client's errors. */
static void watch_set_stream_error(struct kube_watch *w, const char *what)
{
    CLEANUP(cleanup_free)
    char *why = xasprintf("%s: watch %s: %s", kube_label_of(w->kube), w->o.resource->plural, what);

    watch_set_error(w, why);
}

/* Schedules the next request. */
static void watch_again(struct kube_watch *w, int64_t ms)
{
    kube_timer_move(kube_loop(w->kube), &w->timer, ms);
}

static void watch_retry(struct kube_watch *w, unsigned failures, int64_t retry_after_ms)
{
    watch_again(w, kube_backoff_ms(failures, MIN_RETRY_MS, MAX_RETRY_MS, retry_after_ms));
}

/* A request for the watched objects; the query is borrowed. */
static struct kube_request watch_request(struct kube_watch *w, const char *query)
{
    return (struct kube_request){
        .method = KUBE_LIST,
        .resource = w->o.resource,
        .namespace = w->o.namespace,
        .label_selector = w->o.label_selector,
        .field_selector = w->field_selector,
        .query = query,
        .max_answer = PAGE_BYTES,
        .cut = w->o.cut,
    };
}

/* ---- The list, page by page ----
 *
 * A page over its ceiling is requested again in smaller pages; when a continue token expires, the list
 * begins anew. Anything else is retried after a back-off. */

static void watch_list_failed(struct kube_watch *w, const char *why, int64_t retry_after_ms)
{
    watch_retry(w, ++w->list_failures, retry_after_ms);
    watch_set_error(w, why);
}

static void watch_on_page(void *arg, struct kube_answer *a);
static void watch_on_page_head(void *arg, const json_t *list);
static void watch_on_page_item(void *arg, json_t *item);

/* After a restore from a backup, versions begin again at an older one. */
static bool watch_is_ahead_of(const struct kube_watch *w, const char *version)
{
    return kube_version_is_number(w->version) && kube_version_is_number(version) &&
           kube_version_newer(w->version, version);
}

static void watch_start_list(struct kube_watch *w)
{
    BUF_AUTO(token, SIZE_MAX);
    CLEANUP(cleanup_free) char *query = NULL;
    struct kube_request rq;

    buf_put_url(&token, str_of(w->next_page));
    if (buf_failed(&token) < 0)
        memory_exhausted(token.n);
    query = xasprintf("limit=%zu%s%.*s", w->page, token.n ? "&continue=" : "", (int)token.n, cstr(token.p));
    if (!w->next_page) {
        w->n_lists++;
        w->n_pages = 0;
        w->list_began = kube_now(w->kube);
    }
    invariant(!w->call && w->next == WATCH_LIST);
    rq = watch_request(w, query);
    rq.on_head = watch_on_page_head;
    rq.on_item = watch_on_page_item;
    w->call = kube_start(w->kube, &rq, watch_on_page, w);
}

static void watch_list_complete(struct kube_watch *w, const char *version)
{
    bool was_first = w->is_first;

    invariant(w->page_is_valid && !w->next_page);
    w->next = WATCH_STREAM;
    w->refused = KUBE_OK;
    w->list_failures = 0;
    w->version[0] = '\0';
    (void)watch_advance(w, version);
    watch_sweep(w);
    w->is_first = false;
    w->listed = w->list_began;
    watch_clear_error(w);
    if (!w->synced) {
        w->synced = true;
        if (w->o.on_synced)
            w->o.on_synced(w->o.arg);
    } else if (was_first && w->o.on_restored) {
        w->o.on_restored(w->o.arg);
    }
    if (w->o.on_listed)
        w->o.on_listed(w->o.arg);
    watch_again(w, 0);
}

static void watch_on_page_head(void *arg, const json_t *list)
{
    struct kube_watch *w = arg;
    const char *version = kube_version(list);

    w->page_is_valid = *version && strlen(version) < VERSION_BYTES;
    if (w->page_is_valid && watch_is_ahead_of(w, version))
        kube_note_restore(w->kube, w); /* which forgets the versions, before the first object is looked at */
}

static void watch_on_page_item(void *arg, json_t *item)
{
    struct kube_watch *w = arg;
    CLEANUP(cleanup_free) char *key = object_key(item);

    invariant(w->next == WATCH_LIST);
    /* A restore begins this list anew, too: objects before this one count. */
    if (key && watch_item_is_back(w, map_get(&w->known, key), kube_version(item)))
        kube_note_restore(w->kube, NULL);
    else if (w->page_is_valid)
        w->page_is_valid = watch_set(w, item, true);
}

/* All its objects have been looked at. */
static void watch_list_page(struct kube_watch *w, const json_t *list)
{
    const char *next = cstr(kube_str(list, "metadata", "continue", NULL)), *version = kube_version(list);
    bool repeats = w->next_page && strcmp(next, w->next_page) == 0;

    free(TAKE_PTR(w->next_page));
    if (!w->page_is_valid) {
        watch_list_failed(w, "the answer is not a list of Kubernetes objects", -1);
    } else if (repeats) {
        watch_list_failed(w, "the API server repeats a continue token", -1);
    } else if (!*next) {
        watch_list_complete(w, version);
    } else if (++w->n_pages == MAX_PAGES) {
        CLEANUP(cleanup_free) char *why = xasprintf("a list has more than %d pages", (int)MAX_PAGES);
        watch_list_failed(w, why, -1);
    } else {
        w->next_page = xstrdup(next);
        watch_start_list(w);
    }
}

static void watch_page_refused(struct kube_watch *w, const struct kube_answer *a)
{
    if (a->verdict == KUBE_TOO_LARGE && w->page > 1) {
        w->page /= 2;
        watch_again(w, 0);
        return;
    }
    if (a->verdict == KUBE_GONE && w->next_page) {
        free(TAKE_PTR(w->next_page));
        watch_retry(w, ++w->list_failures, a->retry_after_ms);
        return;
    }
    if (a->verdict != KUBE_RETRY && a->verdict != KUBE_UNAUTHORIZED)
        free(TAKE_PTR(w->next_page));
    if (a->verdict == KUBE_NO_KIND && w->o.resource->other) {
        w->o.resource = w->o.resource->other;
        if (w->refused != KUBE_NO_KIND) {
            w->refused = KUBE_NO_KIND;
            watch_again(w, 0);
            return;
        }
    }
    w->refused = a->verdict;
    watch_list_failed(w, a->why, a->retry_after_ms);
}

static void watch_on_page(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;

    w->call = NULL;
    if (a->verdict == KUBE_OK) {
        watch_note_heard(w);
        watch_list_page(w, a->object);
    } else {
        watch_page_refused(w, a);
    }
}

/* ---- The check ----
 *
 * A stream from a version that the store, restored from a backup, has not reached yet is opened, but hears
 * nothing, not even bookmarks, until the store has passed it; and what has changed until then, never. So
 * before a stream is resumed that has not ended by itself, the version of a list tells whether the store
 * went back. */

static void watch_on_check(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;
    const char *version = kube_version(a->object);

    w->call = NULL;
    if (a->verdict == KUBE_RETRY || a->verdict == KUBE_UNAUTHORIZED) {
        watch_list_failed(w, a->why, a->retry_after_ms);
        if (w->list_failures >= FAILURES_TO_LIST)
            w->next = WATCH_LIST;
        return;
    }
    w->next = WATCH_LIST;
    if (a->verdict == KUBE_OK && watch_is_ahead_of(w, version)) {
        kube_note_restore(w->kube, w);
    } else if (a->verdict == KUBE_OK && kube_version_is_number(version) &&
               kube_version_is_number(w->version)) {
        watch_note_heard(w);
        w->list_failures = 0;
        w->next = WATCH_STREAM;
    }
    watch_again(w, 0);
}

static void watch_start_check(struct kube_watch *w)
{
    const struct kube_request rq = watch_request(w, "limit=1");

    invariant(!w->call && w->next == WATCH_CHECK);
    w->call = kube_start(w->kube, &rq, watch_on_check, w);
}

/* ---- The stream of events ----
 *
 * It ends cleanly every few minutes and resumes from the last version. One that ends in another way is
 * resumed after a check; one that has been silent for so long that it cannot be trusted, or whose version
 * has expired, leads to a new list. */

enum {
    WATCH_MIN_S = 300,
    WATCH_SPREAD_S = 300,
    WATCH_GRACE_S = 30,
    WATCH_EARLY_MS = 5000,  /* an end this much before its time is still that of its time */
    IDLE_MS = 150 * 1000,   /* bookmarks come every minute */
    OLD_MS = 75 * 1000,     /* without news for longer than bookmarks take */
    BACKLOG_MS = 1000,      /* in which a stream tells what it had missed */
    GOOD_MS = 10 * 1000,    /* a stream that lived this long resets the back-off */
    RESTORE_MS = 30 * 1000, /* a restore from a backup hardly takes less */
};

/* Whether it brought nothing for longer than bookmarks take: since its last news, or ever. */
static bool watch_was_silent(const struct kube_watch *w)
{
    mono_ms now = kube_now(w->kube);
    bool never_spoke = !w->has_event && mono_diff(w->opened, now) >= IDLE_MS;

    return w->open && (never_spoke || mono_diff(w->heard_at, now) >= OLD_MS);
}

/* In a time without news the store may have been restored from a backup, and the version alone does not tell:
 * there may have been as many changes since. A list compares the objects. It begins anew and counts as the
 * first one: an object that this watch never knew, or whose end it has not heard of, may be back, too. */
static void watch_distrust(struct kube_watch *w)
{
    free(TAKE_PTR(w->next_page));
    w->next = WATCH_LIST;
    w->is_first = true;
}

/* Whether to say why: an expired version, or one broken connection, is no error. */
static bool watch_stream_failed(struct kube_watch *w, enum kube_verdict verdict, int64_t retry_after_ms)
{
    if (w->open && mono_diff(w->opened, kube_now(w->kube)) >= GOOD_MS)
        w->stream_failures = 0;
    w->stream_failures++;
    w->next = WATCH_CHECK;
    if ((verdict != KUBE_RETRY && verdict != KUBE_UNAUTHORIZED) || w->stream_failures >= FAILURES_TO_LIST)
        w->next = WATCH_LIST;
    if (watch_was_silent(w))
        watch_distrust(w);
    watch_retry(w, w->stream_failures, retry_after_ms);
    return verdict != KUBE_GONE && !(verdict == KUBE_RETRY && w->open && w->stream_failures == 1);
}

static void watch_stop_stream(struct kube_watch *w, enum kube_verdict verdict, const char *why,
                              int64_t retry_after_ms)
{
    w->call = kube_cancel(w->call);
    if (watch_stream_failed(w, verdict, retry_after_ms))
        watch_set_stream_error(w, why);
}

/* False if it is no event of a watch. */
static bool watch_take_event(struct kube_watch *w, const char *type, json_t *object)
{
    struct kube_answer s = {0};
    bool ok = false;

    if (strcmp(type, "ERROR") == 0) {
        kube_status_of_event(object, &s);
        watch_stop_stream(w, s.verdict, s.why, s.retry_after_ms);
        return true;
    }
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        ok = watch_set(w, object, false);
    else if (strcmp(type, "DELETED") == 0)
        ok = watch_delete(w, object);
    else if (strcmp(type, "BOOKMARK") == 0)
        ok = true;
    if (!ok)
        return false;
    w->has_event = true;
    w->stream_failures = 0;
    return watch_advance(w, kube_version(object));
}

/* Takes what `rest` has of the line: all of it, or the bytes before its newline. Returns how many. */
static size_t watch_take_line(struct kube_watch *w, struct str rest)
{
    const char *newline = memchr(rest.p, '\n', rest.n);
    size_t n = newline ? (size_t)(newline - rest.p) : rest.n;

    loop_spend(kube_loop(w->kube), n);
    buf_put(&w->line, rest.p, n);
    if (buf_failed(&w->line) < 0) {
        CLEANUP(cleanup_free) char *why = xasprintf("an event exceeds %d bytes", (int)EVENT_BYTES);
        watch_stop_stream(w, KUBE_TOO_LARGE, why, -1);
    }
    return n;
}

static bool watch_event_is_valid(struct kube_watch *w)
{
    json_auto_t *event = NULL;

    if (w->event.state != KUBE_TREE_DONE)
        return false;
    event = kube_tree_take(&w->event);
    return watch_take_event(w, cstr(kube_str(event, "type", NULL)), kube_get(event, "object", NULL));
}

/* Reads the line as far as this turn has a share for it. Whether it got to its end, where the event may have
 * ended the stream. */
static bool watch_read_event(struct kube_watch *w)
{
    struct loop *l = kube_loop(w->kube);

    if (!w->is_reading)
        kube_tree_begin(&w->event, buf_str(&w->line), w->o.cut);
    w->is_reading = true;
    loop_spend(l, kube_tree_step(&w->event, loop_bytes_left(l)));
    if (w->event.state == KUBE_TREE_MORE)
        return false;
    w->is_reading = false;
    if (!watch_event_is_valid(w))
        watch_stop_stream(w, KUBE_INVALID, "the data is not a watch event", -1);
    buf_clear(&w->line);
    return true;
}

/* The newline of an event is taken when the event has been, so that the stream waits for as long. */
static size_t watch_on_data(void *arg, struct str piece)
{
    struct kube_watch *w = arg;
    struct loop *l = kube_loop(w->kube);
    size_t taken = 0, left;

    watch_note_heard(w);
    if (!w->open) {
        w->open = true;
        w->opened = kube_now(w->kube);
        watch_clear_error(w);
    }
    while (w->call && taken < piece.n && (left = loop_bytes_left(l)) > 0) {
        if (!w->is_reading)
            taken += watch_take_line(w, (struct str){piece.p + taken, size_min(piece.n - taken, left)});
        if (!w->call || taken == piece.n || piece.p[taken] != '\n')
            break; /* the line goes on in a later piece, or turn */
        if (w->line.n && !watch_read_event(w))
            break; /* the event goes on in a later turn */
        taken++;
    }
    return taken;
}

static void watch_on_end(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;
    bool good = w->open && (w->has_event || mono_diff(w->opened, kube_now(w->kube)) >= MIN_RETRY_MS);

    w->call = NULL;
    if (a->verdict != KUBE_OK) {
        if (watch_stream_failed(w, a->verdict, a->retry_after_ms))
            watch_set_error(w, a->why);
        return;
    }
    if (watch_was_silent(w))
        watch_distrust(w);
    else if (mono_before(kube_now(w->kube), w->asked_until)) /* as when a server stops */
        w->next = WATCH_CHECK;
    if (good) {
        w->stream_failures = 0;
        watch_again(w, 1 + (int64_t)rand_below(MIN_RETRY_MS / 2)); /* in a turn of its own */
    } else {
        /* A stream that ends right after its start, each time, must not become a busy loop. */
        watch_retry(w, ++w->stream_failures, -1);
    }
}

static void watch_start_stream(struct kube_watch *w)
{
    int seconds = WATCH_MIN_S + (int)rand_below(WATCH_SPREAD_S + 1);
    CLEANUP(cleanup_free) char *query = NULL;
    BUF_AUTO(version, 4 * VERSION_BYTES);
    struct kube_request rq;

    buf_put_url(&version, str_of(w->version));
    query = xasprintf("watch=1&allowWatchBookmarks=true&resourceVersion=%.*s&timeoutSeconds=%d",
                      STR_ARG(buf_str(&version)), seconds);
    invariant(!w->call && w->next == WATCH_STREAM);
    invariant(w->version[0] != '\0'); /* without one, the stream would begin anywhere */
    w->open = w->has_event = false;
    buf_done(&w->line);
    kube_tree_done(&w->event);
    w->is_reading = false;
    rq = watch_request(w, query);
    rq.on_data = watch_on_data;
    rq.timeout_ms = (int64_t)(seconds + WATCH_GRACE_S) * 1000;
    rq.idle_timeout_ms = IDLE_MS;
    w->asked = kube_now(w->kube);
    w->asked_until = mono_add(w->asked, (int64_t)seconds * 1000 - WATCH_EARLY_MS);
    w->call = kube_start(w->kube, &rq, watch_on_end, w);
}

/* ---- The watch ---- */

bool kube_watch_synced(const struct kube_watch *w)
{
    return w->synced;
}

mono_ms kube_watch_listed(const struct kube_watch *w)
{
    return w->listed;
}

bool kube_watch_is_first_list(const struct kube_watch *w)
{
    return w->is_first;
}

bool kube_watch_has_passed(const struct kube_watch *w, const char *version)
{
    return kube_version_is_number(version) && kube_version_is_number(w->version) &&
           !kube_version_newer(version, w->version);
}

const char *kube_watch_error(const struct kube_watch *w)
{
    return w->last_error[0] ? w->last_error : NULL;
}

enum kube_verdict kube_watch_refused(const struct kube_watch *w)
{
    return w->refused;
}

unix_ms kube_watch_heard(const struct kube_watch *w)
{
    return w->heard;
}

/* Ends the call under way, also a stream, which has not ended by itself. */
static void watch_start_over(struct kube_watch *w, int64_t ms)
{
    w->call = kube_cancel(w->call);
    if (w->next == WATCH_STREAM)
        w->next = WATCH_CHECK;
    watch_again(w, ms);
}

void kube_watch_hurry(struct kube_watch *w)
{
    bool is_old = mono_diff(w->heard_at, kube_now(w->kube)) > OLD_MS;

    watch_start_over(w, 0);
    if (is_old)
        watch_distrust(w);
}

bool kube_watch_is_current(const struct kube_watch *w)
{
    return w->synced && w->next == WATCH_STREAM && w->call &&
           mono_diff(w->asked, kube_now(w->kube)) >= BACKLOG_MS;
}

void kube_watch_relist(struct kube_watch *w)
{
    if (w->next == WATCH_LIST)
        return;
    w->call = kube_cancel(w->call);
    w->next = WATCH_LIST;
    watch_again(w, 0);
}

/* A stream opened before the server went away may hang on a dead connection. */
static void watch_on_return(struct kube_waiter *waiter)
{
    struct kube_watch *w = CONTAINER_OF(waiter, struct kube_watch, waiter);
    int64_t absence_ms = kube_absence_ms(w->kube);
    bool is_long = absence_ms >= RESTORE_MS;
    bool fresh = w->call && w->open && mono_diff(w->opened, kube_now(w->kube)) < absence_ms;

    w->list_failures = w->stream_failures = 0;
    if (fresh && !is_long)
        return;
    watch_start_over(w, kube_return_ms());
    if (is_long)
        watch_distrust(w);
}

/* Another watch has found it, or this one. */
static void watch_on_restore(struct kube_waiter *waiter, const void *found_by)
{
    struct kube_watch *w = CONTAINER_OF(waiter, struct kube_watch, waiter);

    watch_forget(w);
    if (w == found_by)
        return;
    w->call = kube_cancel(w->call);
    free(TAKE_PTR(w->next_page));
    w->next = WATCH_LIST;
    watch_again(w, 0);
}

static void watch_on_timer(struct timer *t)
{
    struct kube_watch *w = CONTAINER_OF(t, struct kube_watch, timer);

    if (w->call)
        return;
    if (kube_is_unreachable(w->kube)) {
        /* No attempt is made, whose error would say so. */
        if (!w->last_error[0])
            watch_set_stream_error(w, "the API server does not answer");
        return;
    }
    switch (w->next) {
    case WATCH_LIST:
        watch_start_list(w);
        break;
    case WATCH_CHECK:
        watch_start_check(w);
        break;
    case WATCH_STREAM:
        watch_start_stream(w);
        break;
    }
}

struct kube_watch *kube_watch_new(struct kube *k, const struct kube_watch_options *o)
{
    struct kube_watch *w = xcalloc(1, sizeof(*w));

    w->kube = k;
    w->o = *o;
    /* A single object is a list with a field selector, which a Role's resourceNames allow. */
    if (o->name || o->field_selector)
        w->field_selector = xasprintf("%s%s", o->name ? "metadata.name=" : "", o->name ?: o->field_selector);
    w->page = o->page ? o->page : DEFAULT_PAGE;
    w->is_first = true;
    buf_init(&w->line, EVENT_BYTES);
    w->timer.fn = watch_on_timer;
    watch_again(w, 0);
    w->waiter.on_return = watch_on_return;
    w->waiter.on_restore = watch_on_restore;
    kube_waiter_add(k, &w->waiter);
    return w;
}
