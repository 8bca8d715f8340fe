/* The stream of events. It ends cleanly every few minutes and resumes from the last version; an expired
 * version leads to a new list. */
#include "controller/kube/watch_internal.h"

#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/rand.h"

#include <errno.h>
#include <stdio.h>

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
    kube_watch_retry(w, w->stream_failures, retry_after_ms);
    /* An expired version, or one broken connection, is no trouble. */
    if (verdict != KUBE_GONE && !(verdict == KUBE_RETRY && was_open && w->stream_failures == 1))
        kube_watch_set_trouble(w, why);
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
        r = kube_watch_set(w, object, false);
    else if (strcmp(type, "DELETED") == 0)
        r = kube_watch_delete(w, object);
    else
        r = strcmp(type, "BOOKMARK") == 0 ? 0 : -EINVAL;
    if (r == 0 && !w->dead) {
        w->has_event = true;
        w->stream_failures = 0;
        r = kube_watch_advance(w, kube_version(object)) ? 0 : -EINVAL;
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

    kube_watch_enter(w);
    kube_watch_hear(w);
    if (piece.n == 0) {
        w->open = true;
        w->opened = loop_now(kube_loop(w->kube));
        kube_watch_set_trouble(w, NULL);
    }
    r = lines_feed(&w->lines, piece, watch_on_line, w);
    if (r != 0 && !w->dead) {
        w->call = kube_cancel(w->call);
        if (r < 0)
            watch_stream_broken(w, r);
    }
    kube_watch_leave(w);
}

static void watch_on_end(void *arg, struct kube_answer *a)
{
    struct kube_watch *w = arg;
    bool good =
        w->open && (w->has_event || mono_diff(w->opened, loop_now(kube_loop(w->kube))) >= WATCH_MIN_RETRY_MS);

    kube_watch_enter(w);
    w->call = NULL;
    if (a->verdict != KUBE_OK) {
        watch_stream_failed(w, a->verdict, a->why, a->retry_after_ms);
    } else if (good) {
        w->stream_failures = 0;
        kube_watch_again(w, (int64_t)rand_below(WATCH_MIN_RETRY_MS / 2));
    } else {
        /* A stream that ends right after its start, each time, must not become a busy loop. */
        kube_watch_retry(w, ++w->stream_failures, -1);
    }
    kube_watch_leave(w);
}

void kube_watch_start_stream(struct kube_watch *w)
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
    rq = kube_watch_request(w, query.p);
    rq.on_data = watch_on_data;
    rq.timeout_ms = (int64_t)(seconds + WATCH_GRACE_S) * 1000;
    rq.idle_timeout_ms = IDLE_MS;
    if (r == 0)
        r = kube_start(&w->call, w->kube, &rq, watch_on_end, w);
    if (r < 0)
        watch_stream_failed(w, KUBE_RETRY, r == -ENOMEM ? "out of memory" : "the watch cannot be requested",
                            -1);
}
